"""The decisions of a procedure, one row each, and what happened to which configuration. Values only, no files."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from captime.arrays import FloatArray, IntArray
from captime.certificate import Certificate

Value = str | int | float | None
COLUMNS = ("kind", "round", "seconds", "config", "epsilon", "candidates", "runs", "captime")
# Columns of the rows of kind `spent`, which stand behind the last decision. Traces of 0.2.0 do not have them.
BOOK_COLUMNS = ("purpose", "cpu_seconds")


@dataclass(frozen=True, slots=True)
class Decisions:
    """Consecutive decisions, as columns.

    Attributes:
        round: Number of the decision.
        seconds: CPU seconds spent until then.
        runs: Executions until then.
        config: Recommended configuration.
        epsilon: Certified epsilon.
        candidates: Candidates left.
    """

    round: IntArray
    seconds: FloatArray
    runs: IntArray
    config: IntArray
    epsilon: FloatArray
    candidates: IntArray


_OF_DECISIONS = ("round", "seconds", "runs", "config", "epsilon", "candidates")


@dataclass(frozen=True, slots=True)
class Incident:
    """Something that happened to one configuration: `captime` (it was raised to `captime`) or `eliminated`."""

    kind: str
    round: int
    seconds: float
    config: int
    captime: float | None = None


@dataclass(frozen=True, slots=True)
class Incidents:
    """Things that happened around the same decisions, as columns; `captime` is NaN for eliminations.

    Attributes:
        round: With which decision.
        seconds: CPU seconds spent until then.
        config: To which configuration.
        captime: The new captime.
    """

    round: IntArray
    seconds: FloatArray
    config: IntArray
    captime: FloatArray


@dataclass(slots=True)
class Trace:
    """Decisions and incidents, in blocks and in the order in which they came.

    Attributes:
        blocks: The decisions.
        happened: The incidents.
        spending: CPU seconds by purpose, when the last decision was made; empty if the procedure keeps no such book.
    """

    blocks: list[Decisions] = field(default_factory=list)
    happened: list[Incidents] = field(default_factory=list)
    spending: Mapping[str, float] = field(default_factory=dict)

    def decisions(self) -> Decisions:
        """Return all decisions, as columns."""
        if not self.blocks:
            none, nothing = np.empty(0, dtype=np.int64), np.empty(0)
            return Decisions(none, nothing, none, none, nothing, none)
        return Decisions(*(np.concatenate([getattr(block, name) for block in self.blocks]) for name in _OF_DECISIONS))

    def incidents(self) -> list[Incident]:
        """Return all incidents: by round, raised captimes before eliminations, then by configuration."""
        if not self.happened:
            return []
        columns = {
            name: np.concatenate([getattr(block, name) for block in self.happened])
            for name in ("round", "seconds", "config", "captime")
        }
        order = np.lexsort((columns["config"], np.isnan(columns["captime"]), columns["round"]))
        rows = zip(*(column[order].tolist() for column in columns.values()), strict=True)
        return [
            Incident("eliminated", number, seconds, config)
            if math.isnan(captime)
            else Incident("captime", number, seconds, config, captime)
            for number, seconds, config, captime in rows
        ]

    def rows(self) -> Iterator[dict[str, Value]]:
        """Merge decisions and incidents by round, one flat record each with the same keys; the book comes last."""
        made = self.decisions()
        columns = zip(*(getattr(made, name).tolist() for name in _OF_DECISIONS), strict=True)
        waiting = iter(self.incidents())
        incident = next(waiting, None)
        for number, seconds, runs, config, epsilon, candidates in columns:
            while incident is not None and incident.round <= number:
                yield _row(incident.kind, incident.round, incident.seconds, incident.config, captime=incident.captime)
                incident = next(waiting, None)
            yield _row("decision", number, seconds, config, runs=runs, epsilon=epsilon, candidates=candidates)
        if len(made.round):
            last = int(made.round[-1]), float(made.seconds[-1]), int(made.config[-1])
            for purpose, spent in self.spending.items():
                yield _row("spent", *last, purpose=purpose, cpu_seconds=spent)


def _row(kind: str, number: int, seconds: float, config: int, **rest: Value) -> dict[str, Value]:
    row = dict.fromkeys((*COLUMNS, *BOOK_COLUMNS), None) | {
        "kind": kind,
        "round": number,
        "seconds": seconds,
        "config": config,
    }
    return row | rest


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopOutcome:
    """What a loop came to, on recorded runtimes or on runs of programs.

    Attributes:
        certificate: The statement.
        stopped: Why it ended: `epsilon`, `single`, `instances`, `budget`, `interrupted`, or `idle` if the procedure
            wanted nothing although it was not content.
        rounds: Decisions taken.
        candidates: Configurations that may still be the best.
        seconds: CPU seconds per configuration.
        runs: Executions per configuration.
        samples: Prefix lengths per configuration, skipped positions left out.
        captimes: Captime in force per configuration, on its newest position.
        capping: Mean score that is still open per configuration: cut runs, and what is not settled.
        trace: The story in CPU seconds.
        spending: CPU seconds by purpose, where the procedure says; see `Race.spending`.
        runs_everything: Whether the procedure ordered every run of the set at once, because nothing was cheaper.
    """

    certificate: Certificate
    stopped: str
    rounds: int
    candidates: IntArray
    seconds: FloatArray
    runs: IntArray
    samples: IntArray
    captimes: FloatArray
    capping: FloatArray
    trace: Trace = field(repr=False)
    spending: dict[str, float] = field(default_factory=dict)
    runs_everything: bool = False
