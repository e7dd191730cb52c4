"""What is known of every run, whatever attempts it took: one row per configuration and stream position, as columns."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from captime.arrays import FloatArray, IntArray
from captime.ledger.reading import VERDICTS, Columns, which_mean
from captime.runs import STATUS_OF, RunRequest

KINDS = ("answered", "cut at its captime", "failed", "stopped early", "open")
"""What the numbers in the column `kind` stand for."""
ANSWERED, CUT, FAILED, STOPPED, OPEN = range(len(KINDS))


@dataclass(frozen=True, slots=True)
class KnownRuns:
    """Runs as columns, by configuration and then by position.

    Attributes:
        config: Whose.
        position: Where in the stream.
        kind: A number into `KINDS`.
        seconds: Answered: until the answer. Otherwise: how long it was seen unfinished.
        captime: Of the newest attempt; infinite for none.
        verdict: A number into `VERDICTS` of the ledger's reader; -1 for none.
        cost: CPU seconds of all attempts, those included that do not count.
        attempts: How many there were.
        spent: CPU seconds of the whole campaign when its newest outcome came.
    """

    config: IntArray
    position: IntArray
    kind: IntArray
    seconds: FloatArray
    captime: FloatArray
    verdict: IntArray
    cost: FloatArray
    attempts: IntArray
    spent: FloatArray

    def __len__(self) -> int:
        return len(self.config)

    def where(self, chosen: IntArray | slice) -> "KnownRuns":
        """Only these rows."""
        return KnownRuns(*(getattr(self, field.name)[chosen] for field in fields(self)))

    def bounds(self, n_configs: int) -> IntArray:
        """Where the rows of each configuration begin; one more for the end."""
        return np.searchsorted(self.config, np.arange(n_configs + 1))

    def of(self, config: int) -> "KnownRuns":
        """The runs of one configuration."""
        first, last = np.searchsorted(self.config, [config, config + 1])
        return self.where(slice(int(first), int(last)))


def known_runs(columns: Columns, in_flight: Sequence[RunRequest] = ()) -> KnownRuns:
    """What the outcomes of a ledger say, and what is still under way.

    Args:
        columns: As `LedgerReader.outcomes` gives them.
        in_flight: Attempts that have not come back.
    """
    spent = np.cumsum(columns["cost"])
    counts = ~columns["orphan"]
    stride = int(columns["position"].max(initial=0)) + 1
    key = columns["config"] * stride + columns["position"]
    order = np.flatnonzero(counts)
    order = order[np.argsort(key[order], kind="stable")]
    if len(order) == 0:
        return _with_open(_nothing(), in_flight)
    ordered = key[order]
    first = np.flatnonzero(np.diff(ordered, prepend=ordered[0] - 1))
    newest = order[np.append(first[1:], len(order)) - 1]
    seen = np.maximum.reduceat(columns["runtime"][order], first)
    place = np.minimum(np.searchsorted(ordered[first], key), len(first) - 1)
    cost = sums(place, columns["cost"] * (ordered[first][place] == key), len(first))
    status, captime = columns["status"][newest], columns["captime"][newest]
    runs = KnownRuns(
        config=columns["config"][newest],
        position=columns["position"][newest],
        kind=_kinds(status, seen, captime),
        seconds=seen,
        captime=captime,
        verdict=columns["verdict"][newest].astype(np.int64),
        cost=cost,
        attempts=columns["attempt"][newest] + 1,
        spent=spent[newest],
    )
    return _with_open(runs, in_flight)


def _kinds(status: IntArray, seen: FloatArray, captime: FloatArray) -> IntArray:
    kind = np.full(len(status), OPEN)
    completed = which_mean(status, lambda each: each.answered)
    stopped = which_mean(status, lambda each: each.counts and each.unfinished and not each.final) | completed
    kind[stopped] = np.where(seen[stopped] >= captime[stopped], CUT, STOPPED)
    # Completed means strictly before the captime.
    kind[completed & (seen < captime)] = ANSWERED
    kind[which_mean(status, lambda each: each.never)] = FAILED
    kind[which_mean(status, lambda each: each.unfinished and each.final)] = STOPPED
    return kind


def _nothing() -> KnownRuns:
    none, nothing = np.empty(0, dtype=np.int64), np.empty(0)
    return KnownRuns(none, none, none, nothing, nothing, none, nothing, none, nothing)


def _with_open(runs: KnownRuns, in_flight: Sequence[RunRequest]) -> KnownRuns:
    """Attempts under way, as open runs; a run that is tried again keeps what was seen of it before."""
    fresh = []
    for request in in_flight:
        first, last = np.searchsorted(runs.config, [request.config, request.config + 1]).tolist()
        place = first + int(np.searchsorted(runs.position[first:last], request.instance))
        if place < last and runs.position[place] == request.instance:
            runs.kind[place] = OPEN
        else:
            fresh.append(request)
    if not fresh:
        return runs
    end = float(runs.spent.max(initial=0.0))
    new = KnownRuns(
        config=np.array([request.config for request in fresh]),
        position=np.array([request.instance for request in fresh]),
        kind=np.full(len(fresh), OPEN),
        seconds=np.zeros(len(fresh)),
        captime=np.array([request.captime for request in fresh]),
        verdict=np.full(len(fresh), -1),
        cost=np.zeros(len(fresh)),
        attempts=np.array([request.attempt + 1 for request in fresh]),
        spent=np.full(len(fresh), end),
    )
    joined = KnownRuns(
        *(np.concatenate((getattr(runs, field.name), getattr(new, field.name))) for field in fields(KnownRuns))
    )
    return joined.where(np.lexsort((joined.position, joined.config)))


def sums(group: IntArray, values: FloatArray, n_groups: int) -> FloatArray:
    """The sum of the values of each group."""
    return np.asarray(np.bincount(group, values, n_groups), dtype=np.float64)


def verdict_words(code: int) -> str:
    """The word of a verdict; empty for none."""
    return VERDICTS[code].value if 0 <= code < len(VERDICTS) else ""


FAILURES = tuple(code for code, verdict in enumerate(VERDICTS) if STATUS_OF[verdict].meaning.never)
"""Verdicts of runs that never answer."""
