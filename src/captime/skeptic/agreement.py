"""Whether the rows belong to the scenario and to each other: all that can be made again, or has to agree.

A forger who makes all hashes anew can write anything. What he writes has to be the configurations that the scenario
lists, the instances and seeds that its seed gives, outcomes whose columns agree, and dates in their order; otherwise
the first row that does not fit is named.
"""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, NoReturn

from captime.errors import LedgerDamaged
from captime.ledger.rows import ConfigRow, Noted, SampleRow, config_of, note_of, sample_of, to_bytes, to_text
from captime.ledger.schema import CAMPAIGN, CERTIFICATE, CONFIG, LOOK, NOTE, OUTCOME, OWNER, SAMPLE, START, Row, Table
from captime.skeptic.outcomes import Context, OutcomeRules
from captime.skeptic.stream import Stream


class Trust(StrEnum):
    """What a ledger may leave open, and a reader may take on trust."""

    ORDERS = "orders"
    """What the procedure ordered is not on record: who took part in the warm start, and when that was decided."""
    DATES = "dates"
    """Dates contradict each other, as they do where a clock was set while the campaign ran."""
    DRAWS = "draws"
    """Configurations were listed, and the certificate takes the list as random draws."""
    LISTING = "listing"
    """In which order instances were listed is not on record, so their order does not follow from the seed."""
    SCENARIO = "scenario"
    """The scenario does not say what the rows have to agree with."""


SECTIONS = ("configurations", "instances", "target")
"""What a scenario has to say so that rows can be compared with it."""
CLOCK_STEP = "clock-step"
"""Kind of the note that a machine's clock was set."""

# Two threads may note what they saw in another order than they saw it, and clocks are adjusted a little all the time.
BACK_NS = 1_000_000_000
SHORT_NS, SHORT_SHARE = 100_000_000, 0.002
# A sum of costs is rounded at every step.
_ROUNDED = 1e-6


@dataclass(frozen=True, slots=True)
class _Attempt:
    """An attempt that was started: when, by which clock (None once that was set), its captime, how far it was seen."""

    captime: float
    clock: int | None
    at_ns: int
    seen: float = 0.0


@dataclass(slots=True)
class Agreement:
    """Compares rows with the scenario and with each other, in their order.

    Args:
        scenario: What was asked.
        trust: What is taken on trust.

    Attributes:
        left_open: What the ledger leaves open, with a sentence each.
    """

    scenario: Mapping[str, Any]
    trust: frozenset[Trust] = frozenset()
    left_open: dict[Trust, str] = field(default_factory=dict)
    _rules: OutcomeRules = field(init=False)
    _stream: Stream | None = None
    _listed: list[dict[str, Any]] | None = None
    _added: list[dict[str, Any]] = field(default_factory=list)
    _configs: list[dict[str, Any]] = field(default_factory=list)
    _instances: dict[int, str] = field(default_factory=dict)
    _attempts: dict[tuple[int, int, int], _Attempt] = field(default_factory=dict)
    _epoch: int = 0
    _clock: int = 0
    _steps: int = 0
    _latest: int = 0
    _cost: float = 0.0
    _told_cost: float = 0.0
    _compared: int = 0

    def __post_init__(self) -> None:
        sections = {name: self.scenario.get(name) for name in SECTIONS}
        # An empty section says as little as none.
        missing = [name for name, told in sections.items() if not isinstance(told, Mapping) or not told]
        if missing:
            self.left_open[Trust.SCENARIO] = f"its scenario does not say the {' nor the '.join(missing)}"
        self._rules = OutcomeRules(self.scenario)
        configurations, instances = sections["configurations"], sections["instances"]
        if isinstance(configurations, Mapping) and configurations:
            self._listed = [_written(entry) for entry in configurations["list"]]
        if isinstance(instances, Mapping) and instances:
            seed, length = int(self.scenario["seed"]), self.scenario.get("length")
            self._stream = Stream(instances, seed, length, self.scenario.get("listed"))
            self._look_at_listing()

    def take(self, table: Table, row: Row) -> None:
        """Compare the next row; refuse it if it does not fit."""
        # By name: an older file has fewer columns.
        told = dict(row)
        match table.name:
            case CAMPAIGN.name:
                if hashlib.sha256(told["scenario"].encode()).hexdigest() != told["scenario_hash"]:
                    _doubt(row["seq"], "has another scenario than its SHA-256 says")
            case OWNER.name:
                self._signed(row["seq"], told)
            case CONFIG.name:
                self._registered(row["seq"], config_of(row))
            case SAMPLE.name:
                self._met(row["seq"], sample_of(row))
            case NOTE.name:
                self._noted(row["seq"], note_of(row))
            case _:
                self._ran(table, row["seq"], told)

    def _ran(self, table: Table, row: int, told: Mapping[str, Any]) -> None:
        match table.name:
            case START.name:
                self._dated(row, told["at_ns"])
                self._started(row, told)
            case LOOK.name:
                self._looked(row, told)
            case OUTCOME.name:
                self._dated(row, told["at_ns"])
                self._came_back(row, told)
            case CERTIFICATE.name:
                self._certified(row, told)

    def account(self) -> list[str]:
        """Tell what was found, one sentence each."""
        found = []
        if self._listed is not None:
            found.append(f"{len(self._configs):,} configurations are those of the scenario, by name and settings")
        if self._stream is not None:
            order = "" if self._stream.recomputed else "; in which order instances were listed is not on record"
            found.append(
                f"instances and seeds of {len(self._instances):,} positions are those that the scenario and its seed "
                f"give{order}"
            )
        if self._rules.known:
            found.append(f"status, verdict, exit code, answer, seconds and dates of {self._compared:,} runs agree")
        if self._steps:
            found.append(f"dates before and after {self._steps:,} settings of a clock are not compared")
        return found

    # ------------------------------------------------------------------ what is run

    def _registered(self, row: int, config: ConfigRow) -> None:
        told = {**config.settings, "name": config.name}
        if config.index != len(self._configs):
            _doubt(row, f"registers configuration {config.index}, but number {len(self._configs)} comes next")
        self._configs.append(told)
        if self._listed is None:
            return
        on_space = self.scenario.get("space") is not None
        called = f"{config.origin}-{config.index}"
        if config.index < len(self._listed):
            wanted = self._listed[config.index]
        elif on_space and config.origin != "favourite":
            # The settings of random draws are made again where the certificate is checked.
            wanted = {**told, "name": called}
        elif self._added:
            added = self._added.pop(0)
            wanted = {**added, "name": called} if on_space else added
        else:
            _doubt(row, f"registers configuration {config.name!r}, which the scenario does not list")
        if told != wanted:
            _doubt(
                row,
                f"registers configuration {config.index} as {config.name!r} with {_settings(told)}, but the scenario "
                f"says {wanted['name']!r} with {_settings(wanted)}",
            )

    def _check_registered(self, row: int) -> None:
        """Before anything is run or claimed, all configurations that were listed are there."""
        listed = self._listed or []
        if len(self._configs) < len(listed):
            missing = listed[len(self._configs)]["name"]
            _doubt(
                row,
                f"comes when {len(self._configs)} configurations are registered, but the scenario lists "
                f"{len(listed)}: {missing!r} is missing",
            )
        if self._added and self.scenario.get("order") == "arrival":
            _doubt(row, f"comes after {self._added[0]['name']!r} was added, which is not registered")

    def _look_at_listing(self) -> None:
        if self._stream is not None and not self._stream.recomputed:
            self.left_open[Trust.LISTING] = (
                "the order in which its instances were listed is not on record, so that of the stream does not follow "
                "from the seed"
            )

    def _met(self, row: int, sample: SampleRow) -> None:
        self._instances[sample.position] = sample.instance
        if self._stream is not None:
            self._stream.check(row, sample)

    def _noted(self, row: int, note: Noted) -> None:
        facts: Mapping[str, Any] = note.facts
        order = self.scenario.get("order")
        if note.kind == "instances" and self._stream is not None:
            self._stream.grow(facts, row)
            self._look_at_listing()
        elif note.kind == "configurations":
            self._added += [_written(entry) for entry in facts["list"]]
        elif note.kind in ("began", "resumed") and order is not None and facts.get("order", order) != order:
            _doubt(row, f"says that outcomes are told in order {facts['order']!r}, but the scenario says {order!r}")
        elif note.kind == CLOCK_STEP:
            self._steps += 1
            self._clock_was_set()

    # ------------------------------------------------------------------ what became of it

    def _started(self, row: int, told: Mapping[str, Any]) -> None:
        self._check_registered(row)
        if told["epoch"] != self._epoch:
            _doubt(row, f"was written by owner {told['epoch']}, but owner {self._epoch} has the ledger")
        if told["attempt"] > 0 and not self._rules.repeatable:
            _doubt(row, f"is attempt {told['attempt']} of a program that does not repeat itself: a second chance")
        captime = math.inf if told["captime"] is None else float(told["captime"])
        self._attempts[_key(told)] = _Attempt(captime, self._clock, told["at_ns"])

    def _looked(self, row: int, told: Mapping[str, Any]) -> None:
        attempt = self._attempts.get(_key(told))
        if attempt is None:
            _doubt(row, "is a look at an attempt that was not started")
        if told["seconds"] > attempt.captime * (1.0 + _ROUNDED):
            _doubt(row, f"sees a run unfinished after {told['seconds']!r} s, but its captime is {attempt.captime!r} s")
        self._attempts[_key(told)] = replace(attempt, seen=max(attempt.seen, told["seconds"]))

    def _came_back(self, row: int, told: Mapping[str, Any]) -> None:
        self._cost += told["cost"]
        self._told_cost += 0.0 if told["orphan"] else told["cost"]
        attempt = self._attempts.get(_key(told))
        if attempt is None or told["config"] >= len(self._configs):
            _doubt(row, "is the outcome of a run that was not started")
        if not self._rules.known:
            return
        instance, config = self._instances.get(told["position"], ""), self._configs[told["config"]]
        self._rules.check(row, told, Context(attempt.captime, config, instance, attempt.seen))
        self._compared += 1
        if attempt.clock == self._clock and Trust.DATES not in self.trust:
            passed = told["at_ns"] - attempt.at_ns
            least = (told["wall_ns"] or 0) * (1.0 - SHORT_SHARE) - SHORT_NS
            if passed < least:
                _misdated(row, f"came back {passed / 1e9:.3f} s after its start, but ran for {told['wall_ns']} ns")

    def _certified(self, row: int, told: Mapping[str, Any]) -> None:
        self._check_registered(row)
        claimed, slack = told["cpu_seconds"], _ROUNDED * (1.0 + self._cost)
        if claimed > self._cost + slack:
            _doubt(row, f"is a certificate after {claimed!r} s, but all runs cost {self._cost!r} s")
        # In fixed order a procedure is told of outcomes later than the ledger.
        if claimed < self._told_cost - slack and self.scenario.get("order") == "arrival":
            _doubt(row, f"is a certificate after {claimed!r} s, but the runs that count cost {self._told_cost!r} s")

    # ------------------------------------------------------------------ clocks

    def _signed(self, row: int, told: Mapping[str, Any]) -> None:
        if told["epoch"] != self._epoch + 1:
            _doubt(row, f"is owner {told['epoch']}, but number {self._epoch + 1} comes next")
        self._epoch += 1
        # Another owner may sit at another machine, with a clock of its own.
        self._clock_was_set()

    def _clock_was_set(self) -> None:
        self._clock, self._latest = self._clock + 1, 0

    def _dated(self, row: int, at_ns: int) -> None:
        """Refuse a run that is dated before an earlier row; that a clock was set is noted before such rows only."""
        if at_ns < self._latest - BACK_NS and Trust.DATES not in self.trust:
            _misdated(row, f"is dated {(self._latest - at_ns) / 1e9:.3f} s before a run above it")
        self._latest = max(self._latest, at_ns)


def _key(told: Mapping[str, Any]) -> tuple[int, int, int]:
    return told["config"], told["position"], told["attempt"]


def _written(entry: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration of the scenario as its row has it: without the digests of a program of its own."""
    named = {name: value for name, value in entry.items() if name != "programs"}
    return {**named, "name": to_text(to_bytes(str(entry["name"])))}


def _settings(told: Mapping[str, Any]) -> object:
    return told.get("settings", {name: value for name, value in told.items() if name != "name"})


def _misdated(row: int, what: str) -> NoReturn:
    _doubt(row, f"{what}; if a clock was set while the campaign ran, say --trust dates")


def _doubt(row: int, what: str) -> NoReturn:
    raise LedgerDamaged(f"row {row} {what}")
