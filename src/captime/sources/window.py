"""In which order the instances of a recorded table are met: the stream all configurations share.

The order is fixed by the seed before the first run and depends on nothing else. Bounds speak about prefixes of it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

from captime.arrays import BoolArray, FloatArray, IntArray
from captime.certificate import Orders
from captime.errors import ScenarioError

if TYPE_CHECKING:
    from captime.sources.replay import Replay


# Draws are made in blocks of this size, so that the stream does not depend on how far one looked at a time.
_BLOCK = 4096


class RowStream(Protocol):
    """A fixed, possibly endless sequence of table rows."""

    @property
    def length(self) -> int | None:
        """How many positions there are; None for an endless stream."""
        ...

    @property
    def population(self) -> str:
        """`stream`: the distribution the instances were drawn from. `finite`: exactly these instances."""
        ...

    def rows(self, start: int, stop: int) -> IntArray:
        """Table rows at positions start, …, stop - 1."""
        ...


class FixedOrder:
    """Every instance once, in a given order."""

    population = "stream"

    def __init__(self, order: IntArray) -> None:
        self._order = order
        self.length = len(order)

    def rows(self, start: int, stop: int) -> IntArray:
        """See the protocol."""
        return self._order[start:stop]


class WithReplacement:
    """Independent uniform draws from the rows of the table, without end: its means are the truth."""

    population = "finite"
    length = None

    def __init__(self, n_rows: int, rng: np.random.Generator) -> None:
        self._n_rows = n_rows
        self._rng = rng
        self._drawn: IntArray = np.empty(0, dtype=np.int64)

    def rows(self, start: int, stop: int) -> IntArray:
        """See the protocol."""
        if stop > len(self._drawn):
            # Growing by at least half keeps the copying linear over a long run.
            blocks = -(-(max(stop, len(self._drawn) * 3 // 2) - len(self._drawn)) // _BLOCK)
            fresh = [self._rng.integers(self._n_rows, size=_BLOCK) for _ in range(blocks)]
            self._drawn = np.concatenate((self._drawn, *fresh))
        return self._drawn[start:stop]


def _shuffle(groups: IntArray, rng: np.random.Generator) -> RowStream:
    """Each instance once in random order; of repeated measurements of one instance, one at random.

    Repetitions of one instance are not independent draws of instances, so a second one must not count as a sample.
    """
    shuffled = rng.permutation(len(groups))
    _, first_seen = np.unique(groups[shuffled], return_index=True)
    return FixedOrder(shuffled[np.sort(first_seen)])


def _given(groups: IntArray, rng: np.random.Generator) -> RowStream:  # noqa: ARG001 (nothing is random here)
    """Each instance once in recorded order; of repeated measurements the first."""
    _, first_seen = np.unique(groups, return_index=True)
    return FixedOrder(np.sort(first_seen))


def _replace(groups: IntArray, rng: np.random.Generator) -> RowStream:
    return WithReplacement(len(groups), rng)


SAMPLING: dict[str, Callable[[IntArray, np.random.Generator], RowStream]] = {
    "shuffle": _shuffle,
    "given": _given,
    "replace": _replace,
}


def stream_of(kind: str, groups: IntArray, seed: int) -> RowStream:
    """Return the stream of that kind over table rows whose instance identities are `groups`."""
    if kind not in SAMPLING:
        raise ScenarioError(f"sampling is {kind!r}; there are {', '.join(SAMPLING)}")
    return SAMPLING[kind](groups, np.random.default_rng(seed))


# The next rounds of a replay, shown before they are booked.

# How a run that was cut and is wanted for longer is paid.

Accounting = Literal["restart", "resume"]
"""`restart`: again in full, from the start, as in the paper. `resume`: only the time that is added."""


# Raised rows are looked up whole, from the start of the stream: this many cells at a time.
_CELLS_AT_ONCE = 1 << 20


@dataclass(frozen=True, slots=True)
class _Raise:
    """Captimes that rise in the window, unless their rows are eliminated before."""

    rows: IntArray
    start: IntArray  # first round at the new level
    level: IntArray
    completed: IntArray  # runs completed before that round, at the new level
    runs: IntArray
    seconds: dict[Accounting, FloatArray]


class Window:
    """Some configurations in lockstep over K positions: an outlook for the procedure, costs for the books.

    Args:
        replay: Where runs are looked up and booked.
        config: Which configurations, shape (A,); all stand at the same position.
        level: Captime level of each in the first round; where it is above the one in force, cut runs are made again
            first, as part of that round.
        first: Position of the first round.
        depth: K.
        affordable: CPU seconds left to spend.

    Attributes:
        n: Prefix length after each round, shape (K,).
        low: Sums of the low ends after each round, shape (A, K).
        high: Sums of the high ends after each round, shape (A, K).
        cost: CPU seconds of each round, repeated runs included, shape (A, K).
    """

    def __init__(
        self, replay: "Replay", config: IntArray, level: IntArray, first: int, depth: int, *, affordable: float = np.inf
    ) -> None:
        tally = replay.tally
        self.config = config
        self.level = level
        self.n: IntArray = np.arange(first + 1, first + depth + 1)
        self._replay = replay
        self._first = first
        self._affordable = affordable
        self._in_force = level.copy()
        self._raises: list[_Raise] = []
        self._position = np.arange(first, first + depth)
        self._seconds = replay.seconds(config, first, first + depth)
        # What the positions before the window come to, at the levels in force.
        self._completed_before = tally.completed.take(config)
        self._low_before = tally.utility_low.take(config)
        self._high_before = tally.utility_high.take(config)
        cells = replay.made(self._seconds, level[:, None], self._position)
        self.cost: FloatArray = cells.cost
        self.low = running_sums(self._low_before, cells.low)
        self.high = running_sums(self._high_before, cells.high)
        self._completed = cells.completed
        before = tally.level.take(config)
        if len(rising := np.flatnonzero(level > before)):
            self._replace(rising, before[rising], np.zeros_like(rising))

    def raise_captimes(self, rows: IntArray, after: IntArray) -> None:
        """Show these rows one level higher from the round that follows round number `after` (counted from 0)."""
        before = self._in_force[rows]
        self._in_force[rows] += 1
        self._replace(rows, before, after + 1)

    def _replace(self, rows: IntArray, before: IntArray, start: IntArray) -> None:
        """Rows go to the level in force with round `start`: repeat what was cut, see the rest anew."""
        some = max(1, _CELLS_AT_ONCE // int(self.n[-1]))
        for k in range(0, len(rows), some):
            part = slice(k, k + some)
            self._replace_some(rows[part], before[part], start[part])

    def _replace_some(self, rows: IntArray, before: IntArray, start: IntArray) -> None:
        replay, config, level = self._replay, self.config[rows], self._in_force[rows]
        done = replay.repeat_cut(config, before, level, self._first)
        self._completed_before[rows] += done.completed
        self._low_before[rows] += done.low
        self._high_before[rows] += done.high
        seconds, later = self._seconds[rows], np.arange(len(self.n)) >= start[:, None]
        worth = replay.utility(seconds)
        old = replay.made(seconds, before[:, None], self._position, worth)
        new = replay.made(seconds, level[:, None], self._position, worth)
        again = ~old.completed & ~later & (new.captime > old.captime)
        costs: dict[Accounting, FloatArray] = {
            "restart": done.seconds["restart"] + (new.cost * again).sum(axis=1),
            "resume": done.seconds["resume"] + ((new.cost - old.cost) * again).sum(axis=1),
        }
        completed = self._completed_before[rows] + (new.completed & ~later).sum(axis=1)
        runs = done.runs + again.sum(axis=1)
        self._raises.append(_Raise(rows, start, level, completed, runs, costs))
        self._completed[rows] = np.where(later, new.completed, self._completed[rows])
        self.low[rows] = np.where(later, running_sums(self._low_before[rows], new.low), self.low[rows])
        self.high[rows] = np.where(later, running_sums(self._high_before[rows], new.high), self.high[rows])
        cost = np.where(later, new.cost, self.cost[rows])
        cost[np.arange(len(rows)), start] += costs[replay.accounting]
        self.cost[rows] = cost

    def within_budget(self, used: IntArray) -> bool:
        """Return whether all rounds begin before the budget is spent, if row k takes part in `used[k]` of them."""
        if not np.isfinite(self._affordable):
            return True
        part = np.arange(len(self.n) - 1) < used[:, None]
        return float((self.cost[:, :-1] * part).sum()) < self._affordable or len(self.n) == 1

    def book(self, used: IntArray | None = None) -> tuple[FloatArray, IntArray]:
        """Make the runs: the first `used[k]` rounds of the k-th configuration, or all.

        Returns:
            CPU seconds and executions in all, after each round.
        """
        tally, depth = self._replay.tally, len(self.n)
        spent, started = float(tally.seconds.sum()), int(tally.runs.sum())
        if used is None:
            used = np.full(len(self.config), depth)
        part = np.arange(depth) < used[:, None]
        rows, last = np.arange(len(used)), used - 1
        tally.level[self.config] = self.level
        tally.n[self.config] = self._first + used
        tally.utility_low[self.config] = self.low[rows, last]
        tally.utility_high[self.config] = self.high[rows, last]
        cost = self.cost * part
        tally.seconds[self.config] += cost.sum(axis=1)
        tally.runs[self.config] += used
        runs = part.sum(axis=0)
        self._book_completed(used, part)
        for event in self._raises:
            self._book_raise(event, used, runs)
        return spent + np.cumsum(cost.sum(axis=0)), started + np.cumsum(runs)

    def _book_completed(self, used: IntArray, part: BoolArray) -> None:
        """Count completed runs, each row from the round on since which it has been at its last level."""
        before, since = self._replay.tally.completed.take(self.config), np.zeros_like(used)
        for event in self._raises:
            took_part = used[event.rows] > event.start
            before[event.rows[took_part]] = event.completed[took_part]
            since[event.rows[took_part]] = event.start[took_part]
        counted = self._completed & part
        if since.any():
            counted &= np.arange(len(self.n)) >= since[:, None]
        self._replay.tally.completed[self.config] = before + counted.sum(axis=1)

    def _book_raise(self, event: _Raise, used: IntArray, runs: IntArray) -> None:
        """Book repeated runs, only of configurations that took part in the round that needed them."""
        took_part = used[event.rows] > event.start
        config, start, again = (
            self.config[event.rows[took_part]],
            event.start[took_part],
            event.runs[took_part],
        )
        tally = self._replay.tally
        tally.level[config] = event.level[took_part]
        tally.runs[config] += again
        np.add.at(runs, start, again)
        seconds = {kind: cost[took_part] for kind, cost in event.seconds.items()}
        self._replay.book_rerun(config, self._first + start, event.level[took_part], seconds)


def running_sums(start: FloatArray, steps: FloatArray) -> FloatArray:
    """Return the start plus the steps one after the other, along each row, added in the order in which runs are made.

    Uses up the steps: they are sums afterwards.
    """
    steps[:, 0] += start
    return np.cumsum(steps, axis=1, out=steps)


# The next positions of some configurations, each from where it stands, shown before they are booked.


class ReplayedLanes:
    """See `captime.procedures.turns.Lanes`.

    Args:
        replay: Where runs are looked up and booked.
        orders: The orders; a configuration ordered at a higher level than it has gets a lane of length 0.
        depth: Show at most this many positions.
        affordable: CPU seconds that may still be spent.

    Attributes:
        cost: CPU seconds of each run, shape (A, K).
    """

    def __init__(self, replay: "Replay", orders: Orders, depth: int, affordable: float) -> None:
        tally, config, end = replay.tally, orders.config, replay.stream.length
        self._replay = replay
        self._affordable = affordable
        self.config = config
        self.level: IntArray = tally.level.take(config)
        first = tally.n.take(config)
        self.length: IntArray = np.full(len(config), depth)
        if end is not None:
            np.minimum(self.length, end - first, out=self.length)
            depth = max(1, int(self.length.max()))
        self.length[orders.level > self.level] = 0
        position = first[:, None] + np.arange(depth)
        self.n: IntArray = position + 1
        # Beyond the end of the stream there is nothing to look up; whatever stands there is outside the lane.
        shown = position if end is None else np.minimum(position, end - 1)
        cells = replay.made(replay.seconds_at(config, shown), self.level[:, None], shown)
        self.cost: FloatArray = cells.cost
        self.low = running_sums(tally.utility_low.take(config), cells.low)
        self.high = running_sums(tally.utility_high.take(config), cells.high)
        self.completed: IntArray = tally.completed[config, None] + np.cumsum(cells.completed, axis=1)

    def payable(self, row: IntArray, /) -> int:
        """See the protocol."""
        if np.isinf(self._affordable):
            return len(row)
        spent = np.cumsum(self._costs(row).sum(axis=1))
        return min(len(row), int(np.searchsorted(spent, self._affordable)) + 1)

    def book(self, row: IntArray) -> tuple[FloatArray, IntArray]:
        """Make the runs of these decisions.

        Returns:
            CPU seconds and executions in all, after each decision.
        """
        tally, config = self._replay.tally, self.config
        spent, started = float(tally.seconds.sum()), int(tally.runs.sum())
        costs = self._costs(row)
        moved = row >= 0
        used = np.bincount(row[moved], minlength=len(config))
        walked = np.flatnonzero(used)
        who, last = config[walked], used[walked] - 1
        tally.n[who] = self.n[walked, last]
        tally.utility_low[who] = self.low[walked, last]
        tally.utility_high[who] = self.high[walked, last]
        tally.completed[who] = self.completed[walked, last]
        tally.runs[who] += used[walked]
        tally.seconds[config] += np.bincount(row[moved], weights=costs[moved], minlength=len(config))
        return spent + np.cumsum(costs.sum(axis=1)), started + np.cumsum(moved.sum(axis=1))

    def _costs(self, row: IntArray) -> FloatArray:
        """CPU seconds of each run of these decisions: a lane's first turn is its first position, and so on."""
        moved = row >= 0
        lane = row[moved]
        order = np.argsort(lane, kind="stable")
        times = np.bincount(lane, minlength=len(self.config))
        step = np.empty_like(lane)
        step[order] = np.arange(len(lane)) - np.repeat(np.cumsum(times) - times, times)
        costs = np.zeros(row.shape)
        costs[moved] = self.cost[lane, step]
        return costs
