"""Whether an outcome agrees with itself: status, verdict, exit code, answer and seconds, under the rules of the target.

The rules are those of docs/measuring.md and docs/scenario.md, read a second time. Nothing is decided on a sentence:
what a wrapper or a function said of its own run is on record as a sentence only, so it is taken as it is.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from captime.errors import LedgerDamaged
from captime.programs.judge import TOLERANCE, agrees, meaning

STATUSES: Mapping[str, tuple[str, ...]] = {
    "answered": ("completed",),
    "capped": ("capped", "abandoned"),
    "cancelled": ("capped", "abandoned"),
    "wall": ("abandoned",),
    "crash": ("failed",),
    "wrong": ("failed",),
    "unknown": ("failed",),
    "memout": ("failed",),
    "output": ("failed",),
    "lost": ("lost", "abandoned"),
    "interrupted": ("lost", "abandoned"),
    "blocked": ("abandoned",),
}
"""Under which status each verdict may stand. Under the second only where the program cannot repeat itself; a capped run
only where its own time counts, because our clock cut it before it could report that."""

_OURS = ("lost", "interrupted", "blocked")
# Seconds are doubles, made of whole nanoseconds by one division.
_ROUNDED = 1e-9
# What the program left running is part of its CPU time, and not of its runtime.
LEFT_SECONDS, LEFT_SHARE = 1.0, 0.05
_SECOND = 1e9


@dataclass(frozen=True, slots=True)
class Context:
    """What an outcome has to agree with.

    Attributes:
        captime: Of the attempt.
        config: The configuration, as it was registered.
        instance: Name of the instance.
        seen: Seconds after which the attempt was last seen unfinished.
    """

    captime: float
    config: Mapping[str, Any]
    instance: str
    seen: float = 0.0


@dataclass(slots=True)
class OutcomeRules:
    """What the scenario demands of an outcome.

    Args:
        scenario: What was asked.
    """

    scenario: Mapping[str, Any]
    _target: Mapping[str, Any] = field(init=False)
    _known: dict[str, bytes] = field(init=False)
    _listed: frozenset[str] | None = field(init=False)

    def __post_init__(self) -> None:
        target, instances = self.scenario.get("target"), self.scenario.get("instances")
        self._target = target if isinstance(target, Mapping) else {}
        section: Mapping[str, Any] = instances if isinstance(instances, Mapping) else {}
        answers = section.get("answers")
        self._known = {name: bytes.fromhex(told) for name, told in answers.items()} if answers else {}
        listed = section.get("list")
        self._listed = frozenset(str(entry[0]) for entry in listed) if isinstance(listed, list) else None

    @property
    def repeatable(self) -> bool:
        """Whether a run that is tried again takes the same time."""
        return bool(self._target.get("repeatable", True))

    @property
    def known(self) -> bool:
        """Whether the scenario says what an answer is."""
        return bool(self._target)

    def check(self, row: int, told: Mapping[str, Any], context: Context) -> None:
        """Refuse an outcome that contradicts itself.

        Args:
            row: Its number.
            told: Its columns by name.
            context: What it has to agree with.
        """
        doubt = self._doubt(told, context)
        if doubt:
            raise LedgerDamaged(f"row {row}, an outcome of configuration {context.config['name']!r}, {doubt}")

    def _doubt(self, told: Mapping[str, Any], context: Context) -> str:
        status, verdict = told["status"], told["verdict"]
        if verdict not in STATUSES:
            return f"has the verdict {verdict!r}, which is unknown" if verdict else "has no verdict"
        allowed = STATUSES[verdict]
        exceptional = self._own_time if verdict == "capped" else not self.repeatable
        if status not in allowed or (status != allowed[0] and not exceptional):
            return f"counts as {status}, but its verdict is {verdict!r}"
        return self._seconds(told, context) or self._ended(told, context)

    # ------------------------------------------------------------------ seconds

    def _seconds(self, told: Mapping[str, Any], context: Context) -> str:
        verdict, cost = told["verdict"], told["cost"]
        if told["cpu_ns"] is None or told["wall_ns"] is None:
            return "" if verdict in _OURS and not cost else f"has the verdict {verdict!r}, but nothing was measured"
        spent = told[f"{self._clock}_ns"] / _SECOND
        if not math.isclose(cost, spent, rel_tol=_ROUNDED, abs_tol=_ROUNDED):
            return f"cost {cost!r} s, but the {self._clock} clock says {spent!r} s"
        if told["cpu_ns"] > 0 and told["wall_ns"] <= 0:
            return f"used {told['cpu_ns']} ns of CPU time in no time"
        if verdict in _OURS:
            return ""
        if spent < context.seen * (1.0 - _ROUNDED) and not self._converted:
            return f"used {spent!r} s of the {self._clock} clock, but was seen unfinished after {context.seen!r} s"
        if verdict == "capped":
            return self._capped(told, context.captime, spent)
        if told["runtime"] >= context.captime:
            return f"is {verdict!r} after {told['runtime']!r} s, but its captime is {context.captime!r} s"
        return self._in_time(told, context, spent)

    def _in_time(self, told: Mapping[str, Any], context: Context, spent: float) -> str:
        """Compare the runtime of a run that ended before its captime with what was measured."""
        verdict, runtime = told["verdict"], told["runtime"]
        own = told["reported"] if self._own_time and verdict in ("answered", "wall") else None
        if own is not None:
            # A wrapper that gave up may have told when, or not.
            known = runtime == own or (verdict == "wall" and runtime <= spent * (1.0 + _ROUNDED))
            return "" if known else f"took {runtime!r} s, but the program reported {own!r} s"
        if self._converted:
            return ""
        if runtime > spent * (1.0 + _ROUNDED):
            return f"took {runtime!r} s, but the {self._clock} clock says {spent!r} s"
        if verdict != "answered":
            return ""
        if runtime < context.seen * (1.0 - _ROUNDED):
            return f"answered after {runtime!r} s, but was seen unfinished after {context.seen!r} s"
        if not told["leftovers"] and spent - runtime > LEFT_SECONDS + LEFT_SHARE * spent:
            return f"answered after {runtime!r} s, but used {spent!r} s of the {self._clock} clock"
        return ""

    @property
    def _clock(self) -> str:
        return str(self.scenario.get("clock", "cpu"))

    @property
    def _converted(self) -> bool:
        """Whether seconds of several machines are converted: how much each of them counts for is not on record."""
        return self.scenario.get("machines") is not None

    @property
    def _own_time(self) -> bool:
        """Whether the time counts that the program reports."""
        return bool(self._target.get("time") == "reported")

    def _capped(self, told: Mapping[str, Any], captime: float, spent: float) -> str:
        known = 0.0 if told["status"] == "abandoned" else captime
        if told["runtime"] != known:
            return f"is 'capped' after {told['runtime']!r} s, but its captime is {captime!r} s"
        reported = told["reported"] if self._own_time else None
        longest = max(spent, 0.0 if reported is None else reported)
        if not self._converted and longest < captime * (1.0 - _ROUNDED):
            return f"is 'capped' at {captime!r} s, but only {longest!r} s were measured"
        return ""

    # ------------------------------------------------------------------ exit code and answer

    def _ended(self, told: Mapping[str, Any], context: Context) -> str:
        """How it ended, as far as a command's own account does not decide that."""
        match told["verdict"]:
            case "answered":
                return self._answered(told, context)
            case "crash" if self._plain:
                fine = told["signal"] is None and told["exit_code"] in (0, *(self._codes(context) or ()))
                return f"is a crash, but its exit code {told['exit_code']} is none" if fine else ""
            case "wrong":
                return self._wrong(told, context)
            case "unknown" if self._plain:
                return self._unknown(told, context)
            case "output":
                most = self._target.get("output_limit")
                little = most is not None and (told["output_bytes"] or 0) <= most
                if little and self._target.get("disk_limit") is None:
                    return f"wrote too much, but its {told['output_bytes']} bytes are allowed"
        return ""

    def _answered(self, told: Mapping[str, Any], context: Context) -> str:
        if self._until is not None:
            return self._reached(told, context)
        codes, code = self._codes(context), told["exit_code"]
        if told["signal"] is not None:
            return f"is answered, but was ended by signal {told['signal']}"
        if codes is not None and code not in codes:
            return f"is answered, but its exit code is {code}; accepted are {', '.join(map(str, codes))}"
        if self._pattern(context) and told["answer"] is None:
            return "is answered, but has no answer, and the scenario says what one looks like"
        known = self._known_answer(context)
        if known is not None and (told["answer"] is None or not agrees(told["answer"], known, self._tolerance)):
            return f"is answered, but its answer is not the known one of {context.instance!r}"
        return ""

    def _reached(self, told: Mapping[str, Any], context: Context) -> str:
        """Compare the value of a run that is over when a line reaches one; how the program ended does not matter."""
        if told["answer"] is None:
            return "is answered, but has no value, and the scenario says which one it has to reach"
        reaches = self._reaches(told["answer"], context)
        said = told["answer"].decode("utf-8", "replace")
        return f"is answered, but its value {said!r} does not reach the target" if reaches is False else ""

    def _reaches(self, answer: bytes, context: Context) -> bool | None:
        """Return whether a value reaches the target; None if the best value of the instance is not on record."""
        until = self._until or {}
        least = until.get("at_most") is None
        bound = until["at_least"] if least else until["at_most"]
        value = meaning(answer)
        if not isinstance(value, float):
            return False
        if isinstance(bound, Mapping):
            best = meaning(self._known[context.instance]) if context.instance in self._known else None
            if not isinstance(best, float):
                return None
            share, sign = bound.get("gap"), -1.0 if least else 1.0
            bound = bound["best_times"] * best if share is None else best + sign * share * abs(best)
        return bool(value >= bound if least else value <= bound)

    @property
    def _until(self) -> Mapping[str, Any] | None:
        """The value at which a run is over, as the scenario says it."""
        until = self._target.get("until")
        return until if isinstance(until, Mapping) else None

    def _wrong(self, told: Mapping[str, Any], context: Context) -> str:
        if self._target.get("verifier") is not None or not self._answers_are_told(context):
            return ""
        known, said = self._known_answer(context), told["answer"]
        if known is None:
            return "is a wrong answer, but the scenario knows neither a right one nor a verifier"
        if said is None or agrees(said, known, self._tolerance):
            return f"is a wrong answer, but its answer does not contradict the known one of {context.instance!r}"
        return ""

    def _unknown(self, told: Mapping[str, Any], context: Context) -> str:
        codes = self._codes(context) or ()
        if self._until is not None:
            there = told["answer"] is not None and self._reaches(told["answer"], context)
            return "ended without an answer, but its value reaches the target" if there else ""
        silent = told["answer"] is None
        asked = self._pattern(context) or self._known_answer(context) is not None
        why = (
            told["exit_code"] == 0 and 0 not in codes,
            silent and (asked or not self._answers_are_told(context)),
            self._target.get("verifier") is not None,
        )
        return "" if any(why) else "ended without an answer, but nothing that was asked of one is missing"

    @property
    def _plain(self) -> bool:
        """Whether the target is a command that gives no account of its own."""
        return self._target.get("wrapper") is None and self._target.get("function") is None

    @property
    def _tolerance(self) -> float:
        return float(self._target.get("tolerance", TOLERANCE))

    def _codes(self, context: Context) -> tuple[int, ...] | None:
        """Accepted exit codes; None where a wrapper's convention says."""
        told = context.config.get("exit_codes") or self._target.get("exit_codes")
        if told is not None:
            return tuple(told)
        return (0,) if self._target.get("wrapper") is None else None

    def _pattern(self, context: Context) -> bool:
        """Whether an answer has to be recognised in the output."""
        return self._plain and (context.config.get("answer") or self._target.get("answer")) is not None

    def _answers_are_told(self, context: Context) -> bool:
        """Whether the right answer would be on record, if it is known; of instances that were added it is not."""
        return self._listed is None or context.instance in self._listed

    def _known_answer(self, context: Context) -> bytes | None:
        known = self._known.get(context.instance)
        return None if known is None or meaning(known) is None else known
