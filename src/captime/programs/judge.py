"""Success is positive: the one place that decides whether a run has answered.

A run is answered if it ended by itself, before its captime, with an accepted exit code, with an answer that the pattern
recognises, that does not differ from the known one, and that the verifier agrees with. A run with a target value is
answered if a line reached that value before the captime, however the program ends. Everything else is not answered, and
is worth what "never finishes" is worth, however soon it came. There is no clock and no file here.
"""

import math
import re
from dataclasses import dataclass
from typing import Literal, assert_never

from captime.runs import STATUS_OF, UNBEGUN, Halt, Measurement, RunOutcome, RunRequest, Status, Verdict
from captime.supervision.messages import Clock, Report
from captime.supervision.output import UNTIL

# Answers compared: with what is known, and with each other. Two that contradict each other end all claims.
#
# What cannot be compared is not a contradiction: a word against a number, or two different words other than
# "satisfiable" and "unsatisfiable". Which of two contradicting answers is right is not known here.

_SAT = {"sat", "satisfiable", "s satisfiable", "feasible", "optimum found", "s optimum found"}
_UNSAT = {"unsat", "unsatisfiable", "s unsatisfiable", "infeasible"}
_NOTHING = {"", "?", "unknown", "s unknown", "unk", "none", "na", "n/a", "indeterminate"}
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")

TOLERANCE = 1e-6
"""By which share two optimal values may differ and still be the same."""


def meaning(answer: bytes) -> str | float | None:
    """Return what an answer says: "sat", "unsat", a number, another text, or None if it says nothing.

    >>> meaning(b"s SATISFIABLE"), meaning(b"42.0"), meaning(b"unknown")
    ('sat', 42.0, None)
    """
    text = " ".join(answer.decode("utf-8", "replace").split()).lower()
    if text in _NOTHING:
        return None
    if text in _SAT or text in _UNSAT:
        return "sat" if text in _SAT else "unsat"
    return float(text) if _NUMBER.fullmatch(text) else text


def agrees(answer: bytes, known: bytes, tolerance: float = TOLERANCE) -> bool:
    """Return whether an answer is the known one; a known answer that says nothing agrees with everything."""
    found, expected = meaning(answer), meaning(known)
    if expected is None:
        return True
    if isinstance(found, float) and isinstance(expected, float):
        return _close(found, expected, tolerance)
    return found == expected


def contradicts(one: bytes, other: bytes, tolerance: float = TOLERANCE) -> bool:
    """Return whether two answers cannot both be right."""
    first, second = meaning(one), meaning(other)
    if isinstance(first, float) and isinstance(second, float):
        return not _close(first, second, tolerance)
    return {first, second} == {"sat", "unsat"}


def _close(one: float, other: float, tolerance: float) -> bool:
    return math.isclose(one, other, rel_tol=tolerance, abs_tol=tolerance)


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two configurations that contradict each other on one instance.

    Attributes:
        instance: The instance.
        first: The configuration that answered first, by index.
        first_answer: What it said.
        second: The other one.
        second_answer: What that said.
    """

    instance: str
    first: int
    first_answer: bytes
    second: int
    second_answer: bytes

    def __str__(self) -> str:
        """Return a sentence without names of configurations, which are known elsewhere."""
        said = [repr(answer.decode("utf-8", "replace")) for answer in (self.first_answer, self.second_answer)]
        return (
            f"on instance {self.instance!r} configuration {self.first} answered {said[0]} and configuration "
            f"{self.second} answered {said[1]}; both cannot be right"
        )


class AnswerBook:
    """Remembers one answer per instance, and notices the first that contradicts it.

    Args:
        tolerance: By which share numbers may differ.
    """

    def __init__(self, tolerance: float = TOLERANCE) -> None:
        self._tolerance = tolerance
        self._said: dict[str, tuple[int, bytes]] = {}

    def note(self, instance: str, config: int, answer: bytes | None) -> Conflict | None:
        """Take in an answer that was counted as right; None if it contradicts nothing heard before."""
        if answer is None or meaning(answer) is None:
            return None
        first, said = self._said.setdefault(instance, (config, answer))
        if contradicts(said, answer, self._tolerance):
            return Conflict(instance, first, said, config, answer)
        return None


TellsTime = Literal["measured", "reported"]
Word = Literal["solved", "timeout", "crashed", "memout", "abort", "nothing"]

# A reported time may differ from the measured one by this share, or by what the measuring itself may be wrong by.
_SHARE, _SECONDS = 0.05, 0.02
_KEPT = 4096


@dataclass(frozen=True, slots=True)
class SelfReport:
    """What a wrapper or a function says about its own run.

    Attributes:
        word: How it ended, by its own account; `nothing` if no account was found.
        seconds: How long it took, by its own clock.
        answer: Its answer.
        problem: What is wrong, in a sentence.
    """

    word: Word
    seconds: float | None = None
    answer: bytes | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class AnswerRules:
    """What counts as an answer.

    Attributes:
        exit_codes: Accepted exit codes; None if a wrapper's own words count instead.
        pattern: Whether an answer has to be recognised by a pattern.
        verifier: Whether a verifier has to agree.
        time: Which time counts: as measured by us, or as reported by the program.
        clock: The clock of captimes and costs.
        tolerance: By which share a number may differ from the known answer.
        until: Whether a line that reaches a value is the answer, and nothing else.
    """

    exit_codes: tuple[int, ...] | None = (0,)
    pattern: bool = False
    verifier: bool = False
    time: TellsTime = "measured"
    clock: Clock = "cpu"
    tolerance: float = TOLERANCE
    until: bool = False


@dataclass(frozen=True, slots=True)
class _Finding:
    """What is to be said of a run: the verdict, how long it was seen, why, and whether everything has to stop."""

    verdict: Verdict
    seconds: float
    detail: str = ""
    status: Status | None = None
    halt: Halt | None = None


def judge(
    request: RunRequest,
    report: Report,
    rules: AnswerRules,
    *,
    repeatable: bool = True,
    known: bytes | None = None,
    told: SelfReport | None = None,
) -> RunOutcome:
    """Return the outcome that a report amounts to.

    Args:
        request: What was asked.
        report: What the supervisor saw.
        rules: What counts as an answer.
        repeatable: Whether runs that were stopped or lost may be tried again.
        known: The right answer, if it is known.
        told: What a wrapper or a function says; None for a plain command.
    """
    printed = report.matches.get(UNTIL if rules.until else "answer")
    answer = printed if told is None or told.answer is None else told.answer
    measured = report.runtime_ns / 1e9
    reported = None if told is None else told.seconds
    ours = rules.time == "measured"
    counted = measured if ours or reported is None else reported
    # What is known of a run that did not end by itself: the seconds on our clock; on its own clock nothing.
    seen = measured if ours else 0.0
    found = _ours(request, report, measured, seen, repeatable=repeatable)
    # [P2, T18] The only comparison of a runtime with a captime on this side: at the captime is too late.
    if found is None and counted >= request.captime and (ours or report.ended == "exit"):
        found = _Finding(Verdict.CAPPED, request.captime)
    if found is None and measured >= request.captime:
        found = _cut_by_our_clock()
    if found is None:
        found = _stopped(report, measured, seen) or _by_itself(report, rules, known, told, answer)
        found = found or _Finding(Verdict.ANSWERED, counted)
    if not ours and found.verdict is Verdict.CAPPED and report.ended == "captime":
        found = _cut_by_our_clock()
    found = _if_fit(found, report, repeatable=repeatable)
    flags = report.flags + (("reported-disagrees",) if _disagrees(reported, measured) else ())
    if found.verdict is Verdict.LOST and report.shortage is not None:
        flags += (report.shortage.value, *((UNBEGUN,) if report.ended == "unfit" else ()))
    cost = report.cpu_ns if rules.clock == "cpu" else report.wall_ns
    return RunOutcome(
        request=request,
        status=STATUS_OF[found.verdict] if found.status is None else found.status,
        runtime=found.seconds,
        cost=cost / 1e9,
        detail=found.detail,
        verdict=found.verdict,
        measured=_measurement(report, found.verdict, answer, reported, flags),
        halt=found.halt,
        changed_file=report.changed_file,
    )


def _cut_by_our_clock() -> _Finding:
    """A run whose own time counts, stopped when ours was over: when it would have answered by its own is not known.

    Its score is an interval from 0 up to u(0). It is not tried again: it would be stopped at the same moment.
    """
    detail = "stopped by captime's clock before it could report its own time"
    return _Finding(Verdict.CAPPED, 0.0, detail, Status.ABANDONED)


def _if_fit(found: _Finding, report: Report, *, repeatable: bool) -> _Finding:
    """Return what was found, unless the machine was out of something: then a run without an answer is lost, not judged.

    A limit of the run's own that was reached stays the run's own verdict, whatever the machine was like.
    """
    own_doing = found.verdict is Verdict.OUTPUT or report.ended == "memory"
    if report.shortage is None or own_doing or found.verdict in _STANDS_ANYWAY:
        return found
    detail = f"the machine was unfit: {report.short}"
    if found.detail:
        detail = f"{detail} (the run: {found.detail})"
    # How long it was seen unfinished says nothing either: it may have waited for what the machine did not have.
    return _Finding(Verdict.LOST, 0.0, detail, Status.LOST if repeatable else Status.ABANDONED)


_STANDS_ANYWAY = (Verdict.ANSWERED, Verdict.CANCELLED, Verdict.LOST)


def _ours(request: RunRequest, report: Report, measured: float, seen: float, *, repeatable: bool) -> _Finding | None:
    """Runs about whose end the program is not to blame, or cannot be."""
    if report.ended == "unfit":
        return _Finding(Verdict.LOST, 0.0, f"not begun, the machine was unfit: {report.problem}", Status.LOST)
    if report.ended in ("lost", "not-started"):
        begun = report.ended == "lost"
        detail = report.problem if begun else f"not started: {report.problem}"
        # [A4] To try a begun run of an unrepeatable program again would give bad luck a second chance.
        status = Status.ABANDONED if begun and not repeatable else Status.LOST
        return _Finding(Verdict.LOST, 0.0, detail, status, report.halt if begun else Halt.NOT_STARTED)
    if report.ended == "captime":
        return _Finding(Verdict.CAPPED, request.captime)
    if report.ended == "cancelled" and measured < request.captime:
        return _Finding(Verdict.CANCELLED, seen, "", Status.CAPPED if repeatable else Status.ABANDONED)
    return None


def _stopped(report: Report, measured: float, seen: float) -> _Finding | None:
    """Runs that ran into another limit than the captime."""
    match report.ended:
        case "wall":
            detail = f"stopped after {report.wall_ns / 1e9:.3g} s of wall-clock time, {measured:.3g} s by its own clock"
            return _Finding(Verdict.WALL, seen, detail)
        case "memory":
            return _Finding(Verdict.MEMOUT, measured, "it used more memory than it is allowed")
        case "output" | "disk":
            what = "to its output" if report.ended == "output" else "into its directory"
            return _Finding(Verdict.OUTPUT, measured, f"it wrote more {what} than it is allowed")
        case "exit" | "target" | "captime" | "cancelled" | "lost" | "unfit" | "not-started":
            return None
        case _:
            assert_never(report.ended)


def _by_itself(
    report: Report, rules: AnswerRules, known: bytes | None, told: SelfReport | None, answer: bytes | None
) -> _Finding | None:
    """Runs that ended by themselves in time, and why that is no answer; None if nothing speaks against it."""
    if report.ended == "target":
        return None
    seconds = report.runtime_ns / 1e9
    if report.signal is not None:
        return _Finding(Verdict.CRASH, seconds, f"ended by signal {report.signal}")
    if told is not None and (found := _account(told, seconds, rules.time)) is not None:
        return found
    if rules.exit_codes is not None and report.exit_code not in rules.exit_codes:
        accepted = ", ".join(map(str, rules.exit_codes))
        # Exit code 0 is a program in good order that has nothing to say, perhaps after a time limit of its own.
        verdict = Verdict.UNKNOWN if report.exit_code == 0 else Verdict.CRASH
        return _Finding(verdict, seconds, f"exit code {report.exit_code}, accepted: {accepted}")
    if rules.until:
        return _short_of_target(answer, seconds)
    return _against_answer(report, rules, known, answer)


def _short_of_target(answer: bytes | None, seconds: float) -> _Finding:
    """Say how far a run with a target value came, which ended by itself and in good order."""
    last = "printed no value" if answer is None else f"came to {answer.decode('utf-8', 'replace')!r}"
    return _Finding(Verdict.UNKNOWN, seconds, f"it ended before it reached the target: it {last}")


def _against_answer(report: Report, rules: AnswerRules, known: bytes | None, answer: bytes | None) -> _Finding | None:
    """Say why the answer of a run that ended in good order is none; None if nothing speaks against it."""
    seconds = report.runtime_ns / 1e9
    if rules.pattern and answer is None:
        return _Finding(Verdict.UNKNOWN, seconds, "no line of its output is an answer")
    if known is not None and meaning(known) is not None:
        right = known.decode("utf-8", "replace")
        if answer is None:
            return _Finding(Verdict.UNKNOWN, seconds, f"it told no answer that could be compared with {right!r}")
        if not agrees(answer, known, rules.tolerance):
            said = answer.decode("utf-8", "replace")
            return _Finding(Verdict.WRONG, seconds, f"it answered {said!r}, but {right!r} is right")
    if rules.verifier and report.verified is not True:
        if report.verified is False:
            return _Finding(Verdict.WRONG, seconds, "the verifier says that the answer is wrong")
        return _Finding(
            Verdict.UNKNOWN, seconds, f"the verifier gave no verdict: {report.problem or 'no reason known'}"
        )
    return None


def _account(told: SelfReport, seconds: float, time: TellsTime) -> _Finding | None:
    """Return what a wrapper says of its own run, where that is no success."""
    match told.word:
        case "solved":
            return None
        case "timeout":
            # It was allowed more than its captime and gave up sooner by its own clock: what was to come is unknown.
            unfinished = seconds if time == "measured" else told.seconds or 0.0
            return _Finding(Verdict.WALL, unfinished, "the wrapper gave up by its own clock before the captime")
        case "memout":
            return _Finding(Verdict.MEMOUT, seconds, "the wrapper reports that memory ran out")
        case "abort":
            words = told.problem or "the wrapper asks to stop everything"
            return _Finding(Verdict.CRASH, seconds, f"abort: {words}", halt=Halt.ABORTED)
        case "crashed":
            return _Finding(Verdict.CRASH, seconds, told.problem or "the wrapper reports a crash")
        case "nothing":
            return _Finding(Verdict.UNKNOWN, seconds, told.problem or "nothing like a result was found")
        case _:
            assert_never(told.word)


def _disagrees(reported: float | None, measured: float) -> bool:
    if reported is None:
        return False
    return abs(reported - measured) > max(_SHARE * max(reported, measured), _SECONDS)


def _measurement(
    report: Report, verdict: Verdict, answer: bytes | None, reported: float | None, flags: tuple[str, ...]
) -> Measurement:
    well = verdict in (Verdict.ANSWERED, Verdict.CAPPED, Verdict.CANCELLED)
    return Measurement(
        cpu_ns=report.cpu_ns,
        wall_ns=report.wall_ns,
        exit_code=report.exit_code,
        signal=report.signal,
        peak_memory=report.peak_memory,
        answer=answer,
        reported=reported,
        queue_wait_ns=report.queue_wait_ns,
        switches=report.switches,
        leftovers=report.leftovers,
        output_bytes=report.output_bytes,
        stdout_tail=b"" if well else report.stdout_tail[-_KEPT:],
        stderr_tail=b"" if well else report.stderr_tail[-_KEPT:],
        flags=flags,
    )
