"""What the rows say about every run, read again from the beginning by rules of its own.

Leases, orphans and the order of things are worked out here anew; what a row claims about itself is compared with that.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NoReturn

import numpy as np

from captime.arrays import BoolArray, FloatArray, IntArray
from captime.errors import LedgerDamaged
from captime.ledger.rows import ConfigRow, Noted, config_of, note_of, orders_of
from captime.ledger.schema import ASK, CONFIG, LOOK, NOTE, OUTCOME, SAMPLE, START, Row, Table

_FINAL = {"completed", "failed", "abandoned"}


@dataclass(slots=True)
class Run:
    """One configuration on one position, whatever attempts it took.

    Attributes:
        began: Number of the row in which it was first started.
        captime: Of the newest attempt.
        attempt: The newest.
        flying: Whether that has not come back.
        status: How it came back last; empty before.
        seen: Seconds it has been seen unfinished.
        runtime: Seconds until it answered; not a number if it did not.
    """

    began: int
    captime: float
    attempt: int = 0
    flying: bool = True
    status: str = ""
    seen: float = 0.0
    runtime: float = math.nan

    @property
    def settled(self) -> bool:
        """Whether nothing more will be known of it."""
        return not self.flying and (self.status in _FINAL or self.seen >= self.captime)


@dataclass(frozen=True, slots=True)
class Story:
    """All runs of one configuration as arrays, by position.

    Attributes:
        position: Where; increasing.
        began: Row of the first start.
        captime: Of the newest attempt.
        seen: Seconds seen unfinished.
        runtime: Until the answer; not a number if there is none.
        failed: Whether it never will answer.
        cut: Whether it was stopped at its captime.
        settled: Whether nothing more will be known of it.
    """

    position: IntArray
    began: IntArray
    captime: FloatArray
    seen: FloatArray
    runtime: FloatArray
    failed: BoolArray
    cut: BoolArray
    settled: BoolArray

    def __len__(self) -> int:
        return len(self.position)


@dataclass(slots=True)
class Books:
    """Everything that has been said so far.

    Attributes:
        n_configs: Configurations registered.
        configs: The same, as they were registered, each with the number of its row.
        runs: By configuration and position.
        ordered: By configuration: how many positions it was told to run, in which row, skipping those below which.
        notes: What was noted.
        positions: Stream positions registered.
        counted: Outcomes that count.
        orphans: Outcomes that do not.
        cost: Seconds that all of them cost.
        asked: How many orders are on record.
        must_be_ordered: Whether every run has an order on record; if not, runs need one only once there is any.
        at_first_race_order: Copies of the runs as they were when positions were skipped for the first time: what was
            known when a race began.
        at_ranking: What was known when terms of a claim about a set were written down, by the number of that row: the
            row of the last start before it, and copies of the runs.
    """

    n_configs: int = 0
    configs: list[tuple[int, ConfigRow]] = field(default_factory=list)
    runs: list[dict[int, Run]] = field(default_factory=list)
    ordered: list[list[tuple[int, int, int]]] = field(default_factory=list)
    notes: list[Noted] = field(default_factory=list)
    positions: set[int] = field(default_factory=set)
    counted: int = 0
    orphans: int = 0
    cost: float = 0.0
    asked: int = 0
    must_be_ordered: bool = False
    at_first_race_order: list[dict[int, Run]] = field(default_factory=list)
    at_ranking: dict[int, tuple[int, list[dict[int, Run]]]] = field(default_factory=dict)
    _terms: set[str] = field(default_factory=set)
    _last_start: int = 0

    def take(self, table: Table, row: Row) -> None:
        """The next row."""
        if table is START:
            self._started(row["seq"], row["config"], row["position"], row["attempt"], row["captime"])
        elif table is OUTCOME:
            self._came_back(row)
        elif table is LOOK:
            self._seen(row["seq"], row["config"], row["position"], row["attempt"], row["seconds"])
        elif table is ASK:
            self._asked(row)
        elif table is SAMPLE:
            self.positions.add(row["position"])
        elif table is NOTE:
            self._noted(note_of(row))
        elif table is CONFIG:
            self.n_configs += 1
            self.configs.append((row["seq"], config_of(row)))
            self.runs.append({})
            self.ordered.append([])

    @property
    def n_first(self) -> int:
        """How many configurations were registered before one was added; all, if none was."""
        added = next((note.sequence for note in self.notes if note.kind == "configurations"), None)
        return self.n_configs if added is None else sum(row < added for row, _ in self.configs)

    def _noted(self, note: Noted) -> None:
        """Keep a note, and what was known when it fixed other terms of a claim about a set than the notes before it."""
        self.notes.append(note)
        if note.kind == "facts" and "set" in note.facts and terms_told(note) not in self._terms:
            self._terms.add(terms_told(note))
            self.at_ranking[note.sequence] = self._last_start, _copied(self.runs)

    def _asked(self, row: Row) -> None:
        orders = orders_of(row)
        self.asked += 1
        first = np.zeros(len(orders), dtype=np.int64) if orders.first is None else orders.first
        if first.any() and not self.at_first_race_order:
            self.at_first_race_order = _copied(self.runs)
        for config, n, start in zip(orders.config.tolist(), orders.n.tolist(), first.tolist(), strict=True):
            if config < self.n_configs:
                self.ordered[config].append((row["seq"], n, start))

    def _started(self, sequence: int, config: int, position: int, attempt: int, captime: float | None) -> None:
        limit = math.inf if captime is None else captime
        if config >= self.n_configs or position not in self.positions:
            _doubt(sequence, f"starts configuration {config} on position {position}, which was not registered")
        known = self.asked or self.must_be_ordered
        if known and not any(n > position >= first for _, n, first in reversed(self.ordered[config])):
            _doubt(sequence, f"starts configuration {config} on position {position}, which was not ordered")
        self._last_start = sequence
        run = self.runs[config].get(position)
        if run is None:
            if attempt != 0:
                _doubt(sequence, f"is attempt {attempt} of a run that has no attempt before it")
            self.runs[config][position] = Run(sequence, limit)
            return
        if attempt != run.attempt + 1:
            _doubt(sequence, f"is attempt {attempt} of a run whose last attempt was number {run.attempt}")
        if run.status in _FINAL:
            _doubt(sequence, f"tries a run again that was {run.status} before: only what is lost may be tried again")
        run.attempt, run.captime, run.flying = attempt, limit, True

    def _came_back(self, row: Row) -> None:
        sequence, config, position, attempt = row["seq"], row["config"], row["position"], row["attempt"]
        status, runtime = row["status"], row["runtime"]
        run = self.runs[config].get(position) if config < self.n_configs else None
        if run is None or attempt > run.attempt:
            _doubt(sequence, f"is the outcome of a run that was not started: {config} on {position}, attempt {attempt}")
        counts = attempt == run.attempt and run.flying
        if counts == bool(row["orphan"]):
            _doubt(sequence, "is set aside, but it is the attempt that counts" if counts else "counts, and must not")
        self.cost += row["cost"]
        if not counts:
            self.orphans += 1
            return
        self.counted += 1
        run.flying, run.status = False, status
        match status:
            case "completed":
                run.runtime = max(runtime, run.seen)
            case "failed":
                pass
            case "capped" | "lost" | "abandoned":
                run.seen = max(runtime, run.seen)
            case _:
                _doubt(sequence, f"has the status {status!r}, which is unknown")

    def _seen(self, sequence: int, config: int, position: int, attempt: int, seconds: float) -> None:
        run = self.runs[config].get(position) if config < self.n_configs else None
        if run is None:
            _doubt(sequence, f"is a look at a run that was not started: {config} on {position}")
        if run.flying and attempt == run.attempt:
            run.seen = max(run.seen, seconds)

    def story(self, config: int) -> Story:
        """The runs of a configuration, in the order of the stream."""
        return story_of(self.runs[config])


def terms_told(note: Noted) -> str:
    """Return the terms of both claims about a set that a note tells, as a key: instances, starts and rankings."""
    told = [note.facts.get("instances")]
    for name in ("set", "drawn"):
        part = note.facts.get(name)
        told += [part.get("start"), part.get("ranking")] if isinstance(part, Mapping) else [part]
    return repr(told)


def frontier(books: Books, row: int) -> int:
    """Return the first position on which no run had been started before this row."""
    return max((where + 1 for runs in books.runs for where, run in runs.items() if run.began < row), default=0)


def _copied(runs: Sequence[Mapping[int, Run]]) -> list[dict[int, Run]]:
    """Return copies of all runs as they are now."""
    return [{where: replace(run) for where, run in known.items()} for known in runs]


def story_of(known: Mapping[int, Run]) -> Story:
    """Runs as arrays, in the order of the stream."""
    order = sorted(known)
    runs = [known[position] for position in order]
    return Story(
        position=np.array(order, dtype=np.int64),
        began=np.array([run.began for run in runs], dtype=np.int64),
        captime=np.array([run.captime for run in runs], dtype=np.float64),
        seen=np.array([run.seen for run in runs], dtype=np.float64),
        runtime=np.array([run.runtime for run in runs], dtype=np.float64),
        failed=np.array([run.status == "failed" for run in runs], dtype=np.bool_),
        cut=np.array([not run.flying and run.seen >= run.captime for run in runs], dtype=np.bool_),
        settled=np.array([run.settled for run in runs], dtype=np.bool_),
    )


def told_in_order(runs: Sequence[Mapping[int, Run]], window: int) -> Iterator[list[dict[int, Run]]]:
    """What a procedure may have known that is told outcomes in the order in which runs were asked for.

    It knows the outcomes of the first runs, and nothing of the others, at most a window of which are open; the ledger
    may know more of them. All numbers of first runs that fit are tried, the largest first.

    Args:
        runs: What the ledger knew at that moment.
        window: How many runs may be open.
    """
    everything = sorted((run.began, config, where) for config, known in enumerate(runs) for where, run in known.items())
    back = next(
        (place for place, (_, config, where) in enumerate(everything) if not runs[config][where].settled),
        len(everything),
    )
    for heard in range(back, max(-1, len(everything) - window - 1), -1):
        known = {(config, where) for _, config, where in everything[:heard]}
        yield [
            {
                where: run if (config, where) in known else Run(run.began, run.captime)
                for where, run in of_config.items()
            }
            for config, of_config in enumerate(runs)
        ]


def _doubt(sequence: int, what: str) -> NoReturn:
    raise LedgerDamaged(f"row {sequence} {what}")
