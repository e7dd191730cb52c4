"""Answers orders from a recorded table, by array slices: the fast road, with no object per run.

Only this room and the plans ever compare a recorded runtime with a captime.
"""

from dataclasses import dataclass

import numpy as np

from captime.arrays import BoolArray, FloatArray, IntArray
from captime.certificate import Orders
from captime.errors import InvariantViolated
from captime.plans import Plan
from captime.sources.table import RuntimeTable
from captime.sources.window import Accounting, ReplayedLanes, RowStream, Window
from captime.tally import Tally, blank_tally
from captime.utilities.formula import Utility

# A long order is answered in pieces of this many positions, to keep the arrays small.
_POSITIONS_AT_A_TIME = 256


@dataclass(frozen=True, slots=True)
class ReplayedRuns:
    """Runs of some configurations (rows) on some positions (columns), made up to their captimes."""

    captime: FloatArray
    completed: BoolArray
    low: FloatArray
    high: FloatArray
    cost: FloatArray


@dataclass(frozen=True, slots=True)
class Repeated:
    """What repeating the cut runs of a prefix at a higher level changes, per configuration."""

    completed: IntArray
    low: FloatArray
    high: FloatArray
    runs: IntArray
    seconds: dict[Accounting, FloatArray]


class Replay:
    """A table as a source: what would these runs have told, and what would they have cost?

    Costs: a completed run costs its runtime, a cut one its captime, and running a completed pair again costs nothing.
    When a captime rises, a cut run is either made again from the start (`restart`, as in the paper) or resumes where it
    stopped (`resume`). A run that never finishes (a crash) is booked up to its captime, which is the worst case.

    Args:
        table: The recorded runtimes.
        stream: In which order instances are met.
        plan: How long runs may take.
        utility: What answers are worth.
        accounting: Which of the two costs the tally carries; both are kept.
        pays: False for a hypothetical procedure that is told runtimes free of charge.

    Attributes:
        tally: What is known now.
        accounting: As given.
        raises: Captimes that rose with the last answer or booking, as columns: configurations, how many positions each
            had seen, new captimes.
        rerun_seconds: What repeating cut runs cost so far, by accounting.
    """

    def __init__(
        self,
        table: RuntimeTable,
        stream: RowStream,
        plan: Plan,
        utility: Utility,
        *,
        accounting: Accounting = "restart",
        pays: bool = True,
    ) -> None:
        self.table = table
        self.stream = stream
        self.plan = plan
        self.utility = utility
        self.accounting: Accounting = accounting
        self.tally: Tally = blank_tally(table.n_configs, self.samples, self.times)
        self.raises: list[tuple[IntArray, IntArray, FloatArray]] = []
        self.rerun_seconds: dict[Accounting, float] = {"restart": 0.0, "resume": 0.0}
        self._pays = pays
        # Positions that a configuration never runs, as pairs of the first and the one behind the last.
        self._gaps: dict[int, list[tuple[int, int]]] = {}

    def answer(self, orders: Orders) -> IntArray:
        """Bring the tally to the orders; return the configurations it changed."""
        self.raises = []
        if orders.first is not None:
            self._skip(orders.config, orders.first)
        rising = orders.level > self.tally.level.take(orders.config)
        if rising.any():
            self._raise(orders.config[rising], orders.level[rising])
        old_n = self.tally.n.take(orders.config)
        for first, last in {(int(a), int(b)) for a, b in zip(old_n, orders.n, strict=True)}:
            together = orders.config[(old_n == first) & (orders.n == last)]
            for start in range(first, last, _POSITIONS_AT_A_TIME):
                depth = min(_POSITIONS_AT_A_TIME, last - start)
                Window(self, together, self.tally.level.take(together), start, depth).book()
        return orders.config

    def look_ahead(self, orders: Orders, depth: int, affordable: float = np.inf) -> Window:
        """Return the next rounds of orders in lockstep. Nothing is booked yet: see `Window.book`.

        Args:
            orders: The order for the first of these rounds.
            depth: Show at most this many rounds.
            affordable: CPU seconds left to spend.
        """
        self.raises = []
        first = int(orders.n[0]) - 1
        if self.stream.length is not None:
            depth = min(depth, self.stream.length - first)
        return Window(self, orders.config, orders.level, first, depth, affordable=affordable)

    def lanes(self, orders: Orders, depth: int, affordable: float = np.inf) -> ReplayedLanes:
        """Return the next positions of some configurations, each from where it stands; see `ReplayedLanes.book`."""
        self.raises = []
        return ReplayedLanes(self, orders, depth, affordable)

    def samples(self, config: int, first: int, last: int) -> tuple[FloatArray, FloatArray]:
        """Low and high ends of that configuration on positions first, …, last - 1."""
        which = np.array([config])
        cells = self.cells(which, self.tally.level.take(which), first, last)
        return cells.low[0], cells.high[0]

    def times(self, config: int, last: int) -> tuple[FloatArray, BoolArray]:
        """Return when runs of a configuration on positions 0, …, last - 1 ended or were last seen, and which ended."""
        which, position = np.array([config]), np.arange(last)
        seconds = self.seconds(which, 0, last)[0]
        level = self.tally.level.take(which)
        captime = np.broadcast_to(self.plan.captime(level, position), last)
        ended: BoolArray = self.plan.completes(seconds, level, position) & (seconds < self.table.limit)
        shown = np.where(ended, seconds, np.minimum(captime, self.table.limit))
        for begin, end in self._gaps.get(config, ()):
            shown[begin:end], ended[begin:end] = np.nan, False
        return shown, ended

    def _skip(self, config: IntArray, first: IntArray) -> None:
        """These configurations never run the positions from where they are up to `first`."""
        gap = np.maximum(first - self.tally.n.take(config), 0)
        for which in config[gap > 0].tolist():
            begin = int(self.tally.n[which])
            self._gaps.setdefault(which, []).append((begin, int(first[config == which][0])))
        self.tally.skipped[config] += gap
        self.tally.n[config] += gap

    def cells(self, config: IntArray, level: IntArray, first: int, last: int) -> ReplayedRuns:
        """Return all configurations on positions first, …, last - 1, each at its level."""
        return self.made(self.seconds(config, first, last), level[:, None], np.arange(first, last))

    def repeat_cut(self, config: IntArray, before: IntArray, after: IntArray, n: int) -> Repeated:
        """Return the first n positions, when captimes rise from one level to another. Nothing is booked.

        Only cut runs change, so only they are looked at: a column of them, with the row each belongs to.
        """
        seconds = self.seconds(config, 0, n)
        cut = ~self.plan.completes(seconds, before[:, None], np.arange(n))
        for row, which in enumerate(config.tolist()):
            for begin, end in self._gaps.get(which, ()):
                cut[row, begin:end] = False
        # The cut runs of a row stand side by side; rows without any are left at 0.
        counts = cut.sum(axis=1)
        some = counts > 0
        starts = (np.cumsum(counts) - counts)[some]
        seconds = seconds[cut]
        position = np.broadcast_to(np.arange(n), cut.shape)[cut]
        worth = self.utility(seconds)
        old = self.made(seconds, _per_run(before, counts), position, worth)
        new = self.made(seconds, _per_run(after, counts), position, worth)
        again = np.broadcast_to(new.captime > old.captime, seconds.shape)

        def per_row(values: FloatArray | BoolArray) -> FloatArray:
            sums = np.zeros(len(config))
            if len(starts):
                sums[some] = np.add.reduceat(values, starts, dtype=np.float64)
            return sums

        return Repeated(
            completed=per_row(new.completed).astype(np.int64),
            low=per_row(new.low - old.low),
            high=per_row(new.high - old.high),
            runs=per_row(again).astype(np.int64),
            seconds={"restart": per_row(new.cost * again), "resume": per_row((new.cost - old.cost) * again)},
        )

    def _raise(self, config: IntArray, level: IntArray) -> None:
        """Raise the captimes of configurations on the prefixes they have now."""
        tally = self.tally
        for n in np.unique(tally.n.take(config)).tolist():
            here = tally.n.take(config) == n
            who, to = config[here], level[here]
            done = self.repeat_cut(who, tally.level.take(who), to, n)
            tally.level[who] = to
            tally.completed[who] += done.completed
            tally.utility_low[who] += done.low
            tally.utility_high[who] += done.high
            tally.runs[who] += done.runs
            tally.seconds[who] += done.seconds[self.accounting]
            self.book_rerun(who, np.full(len(who), n), to, done.seconds)

    def book_rerun(self, config: IntArray, n: IntArray, level: IntArray, seconds: dict[Accounting, FloatArray]) -> None:
        """Write down that captimes rose, and what either accounting says about it."""
        for kind, cost in seconds.items():
            self.rerun_seconds[kind] += float(cost.sum())
        self.raises.append((config, n, self.plan.captime(level, n)))

    def made(
        self, seconds: FloatArray, level: IntArray, position: IntArray, worth: FloatArray | None = None
    ) -> ReplayedRuns:
        """Return runs that take these seconds, made up to their captimes at that level.

        Args:
            seconds: How long each takes if it is not stopped.
            level: Level of the plan, per run.
            position: Stream position, per run.
            worth: u(seconds), if it was computed already.
        """
        captime = self.plan.captime(level, position)
        # A table knows nothing of runs beyond its own timeout, and nothing is made up here.
        if captime.size and (longest := float(captime.max())) > self.table.limit:
            raise InvariantViolated(
                f"a captime of {longest:g} s was ordered from a table that ends at {self.table.limit:g} s"
            )
        worth = self.utility(seconds) if worth is None else worth
        completed, low, high = self.plan.settled(seconds, worth, level, position)
        cost = np.minimum(seconds, captime) if self._pays else np.zeros_like(seconds)
        return ReplayedRuns(captime, completed, low, high, cost)

    def seconds(self, config: IntArray, first: int, last: int) -> FloatArray:
        """Recorded runtimes of these configurations on positions first, …, last - 1."""
        length = self.stream.length
        if length is not None and last > length:
            raise InvariantViolated(f"positions up to {last} were ordered from a stream of {length}")
        rows = self.stream.rows(first, last)
        if len(rows) and rows[-1] - rows[0] == last - first - 1 and bool((np.diff(rows) == 1).all()):
            return self.table.seconds[config, rows[0] : rows[-1] + 1]
        # Flat indices: NumPy takes them several times faster than pairs.
        return self.table.seconds.ravel().take(config[:, None] * self.table.n_instances + rows)

    def seconds_at(self, config: IntArray, position: IntArray) -> FloatArray:
        """Recorded runtimes of each configuration on its own row of positions, shape (A, K)."""
        first = int(position.min())
        rows = self.stream.rows(first, int(position.max()) + 1).take(position - first)
        return self.table.seconds.ravel().take(config[:, None] * self.table.n_instances + rows)


def _per_run(level: IntArray, counts: IntArray) -> IntArray:
    """Return the level of every run, rows one after the other; a single one where it is the same for all."""
    return level[:1] if (level == level[0]).all() else np.repeat(level, counts)
