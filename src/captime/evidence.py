"""The book-keeping of the live path: orders become the runs still missing, outcomes become sums.

Rules of this room. Samples of a configuration are the first n positions of the stream, all of them, each with an
interval that holds its score whatever happens later. A run without any news counts from 0 to 1; a run seen
unfinished counts up to what an answer just then would be worth; a lost run is asked for again and is open until then,
unless the program cannot repeat itself: then what was seen of it is all there will ever be.
Nothing here depends on the order in which outcomes arrive: the same outcomes give the same tally, to the last bit.
There is no clock.
"""

import sys
from collections import deque
from collections.abc import Iterable, Sequence
from typing import assert_never

import numpy as np

from captime.arrays import BoolArray, FloatArray, IntArray
from captime.certificate import Orders
from captime.errors import InvariantViolated
from captime.plans import Plan
from captime.runs import RunOutcome, RunRequest, Status
from captime.tally import Tally, blank_tally
from captime.utilities.formula import Utility

# All runs of one configuration, one entry per stream position: what was measured, and the interval of its score.
#
# Columns with room to grow, no object per run. Nothing is decided here.

# The state of a run before any news of it.
_UNHEARD_OF: dict[str, float | bool | int] = {
    "captime": 0.0,
    "runtime": np.nan,
    "seen": 0.0,
    "cost": 0.0,
    "low": 0.0,
    "high": 1.0,
    "attempts": 0,
    "completed": False,
    "settled": False,
    "flying": False,
    "skipped": False,
    "abandoned": False,
    "given_up": False,
}


class Prefix:
    """Everything known of one configuration, one entry per stream position; arrays with room to grow.

    Nothing is kept of what comes before its first position: configurations that join late are many, and begin far
    down the stream. So an entry's place in the arrays is its position less `start`.

    Attributes:
        start: Its first position; those before count as skipped.
        captime: In force when the run was last asked for.
        runtime: Not a number until known; infinite if the run failed.
        seen: CPU seconds after which the run was last seen unfinished.
        cost: CPU seconds of all its attempts.
        low: Low end of its score at the level in force; 0 if skipped.
        high: High end; 0 if skipped, so that sums do not count it.
        attempts: How often it was asked for.
        completed: Whether it ended before its captime at the level in force.
        settled: Whether nothing more can become known of it at the level in force; true if skipped.
        flying: Whether an attempt is under way.
        skipped: Whether it will never be run.
        abandoned: Whether it was begun and will never be tried again; what was seen of it is all there will be.
        given_up: Whether it was abandoned before the captime in force, so that its score stays an interval.
        done: Length of the prefix in which everything is settled.
        sums: Low ends, high ends and costs over that prefix, added from the left.
        n_completed: Completed runs of that prefix.
    """

    captime: FloatArray
    runtime: FloatArray
    seen: FloatArray
    cost: FloatArray
    low: FloatArray
    high: FloatArray
    attempts: IntArray
    completed: BoolArray
    settled: BoolArray
    flying: BoolArray
    skipped: BoolArray
    abandoned: BoolArray
    given_up: BoolArray

    def __init__(self) -> None:
        self.start = 0
        for name, value in _UNHEARD_OF.items():
            setattr(self, name, np.full(0, value))
        self.start_over()

    def begin_at(self, start: int) -> None:
        """Its first position is this one; only before anything is known of it."""
        self.start = start
        self.start_over()

    def start_over(self) -> None:
        """Forget the sums: a new level makes every entry anew."""
        self.done = self.start
        self.sums: FloatArray = np.zeros(3)
        self.n_completed = 0

    def grow(self, n: int) -> None:
        """Make room for the first n positions of the stream."""
        if n - self.start > len(self.seen):
            more = max(n - self.start, 2 * len(self.seen), 16) - len(self.seen)
            for name, value in _UNHEARD_OF.items():
                setattr(self, name, np.concatenate((getattr(self, name), np.full(more, value))))

    def totals(self, n: int) -> tuple[FloatArray, int, int]:
        """Sums over the first n positions, completed runs among them, and open ones."""
        begin, end = self.done - self.start, n - self.start
        settled = self.settled[begin:end]
        fresh = end - begin if bool(settled.all()) else int(settled.argmin())
        # Added from left to right whatever came first, as in a replay: the order of arrival must not show in rounding.
        steps = np.empty((3, end - begin + 1))
        steps[:, 0] = self.sums
        steps[0, 1:], steps[1, 1:], steps[2, 1:] = self.low[begin:end], self.high[begin:end], self.cost[begin:end]
        np.cumsum(steps, axis=1, out=steps)
        self.done += fresh
        self.sums = steps[:, fresh].copy()
        in_tail = int(np.count_nonzero(self.completed[begin + fresh : end]))
        self.n_completed += int(np.count_nonzero(self.completed[begin : begin + fresh]))
        return steps[:, -1], self.n_completed + in_tail, int(np.count_nonzero(~settled))


# Stands for the runtime of a run that was cut: later than any captime, but not "never", which is what a failure is.
_LATER_THAN_ANY_CAPTIME = sys.float_info.max


class Evidence:
    """What is known and what is under way: aim it, take requests, add outcomes, read the tally.

    Args:
        n_configs: How many configurations.
        plan: How long runs may take and what they are then worth.
        utility: What answers are worth.
        repeatable: Whether a run that is tried again takes the same time as the first time, because its seed is the
            same. If not, a run that was stopped early or lost is never tried again: a second chance for the unlucky
            ones only would bias every mean.

    Attributes:
        tally: What is known, open runs included as intervals.
        ignored: Outcomes that answered no attempt under way: doubled, or given up before they came.
        utility: As given.
        disagreements: Runs that answered sooner than they had been seen unfinished before. They count as if they had
            answered just then: to take the sooner time would let a run that is tried twice be lucky twice.
    """

    def __init__(self, n_configs: int, plan: Plan, utility: Utility, *, repeatable: bool = True) -> None:
        self.tally: Tally = blank_tally(n_configs, self.samples, self.times)
        self.tally.settled = np.zeros(n_configs, dtype=np.int64)
        self.ignored = 0
        self.disagreements = 0
        self._plan = plan
        self.utility = utility
        self._repeatable = repeatable
        self._runs = [Prefix() for _ in range(n_configs)]
        self._waiting: deque[tuple[int, int]] = deque()
        self._held: dict[int, list[int]] = {}
        self._flying: dict[tuple[int, int], RunRequest] = {}
        self._aloft: IntArray = np.zeros(n_configs, dtype=np.int64)
        self._retired: BoolArray = np.zeros(n_configs, dtype=np.bool_)
        self._some_given_up = False

    @property
    def open(self) -> int:
        """Runs that were ordered and are not settled, those of retired configurations left out: the work in hand."""
        return int(self.tally.open[~self._retired].sum())

    @property
    def in_flight(self) -> int:
        """Attempts under way."""
        return len(self._flying)

    # ------------------------------------------------------------------ orders

    def grow(self, n_configs: int) -> None:
        """Make room for configurations that have joined; nothing about the others changes."""
        more = n_configs - len(self._runs)
        if more <= 0:
            return
        tally, nothing = self.tally, np.zeros(more, dtype=np.int64)
        for name in ("level", "n", "settled", "skipped", "open", "completed", "given_up", "runs"):
            setattr(tally, name, np.concatenate((getattr(tally, name), nothing)))
        for name in ("utility_low", "utility_high", "seconds"):
            setattr(tally, name, np.concatenate((getattr(tally, name), np.zeros(more))))
        self._runs += [Prefix() for _ in range(more)]
        self._aloft = np.concatenate((self._aloft, nothing))
        self._retired = np.concatenate((self._retired, np.zeros(more, dtype=np.bool_)))

    def aim(self, orders: Orders) -> int:
        """Take these orders; they stand until they are fulfilled. Return how many runs they opened.

        An order for an unknown configuration makes room for it: so pools grow.
        """
        if len(orders):
            self.grow(int(orders.config.max()) + 1)
        tally, config = self.tally, orders.config
        before = int(tally.open.sum())
        first = np.zeros(len(orders), dtype=np.int64) if orders.first is None else orders.first
        news = (np.maximum(orders.n, first) > tally.n.take(config)) | (orders.level > tally.level.take(config))
        columns = (column[news].tolist() for column in (config, orders.n, orders.level, first))
        for which, n, level, start in zip(*columns, strict=True):
            self._aim(which, n, level, start)
        return int(tally.open.sum()) - before

    def _aim(self, config: int, n: int, level: int, start: int) -> None:
        tally, runs = self.tally, self._runs[config]
        old = int(tally.n[config])
        if start > old:
            if old == 0:
                runs.begin_at(start)
            else:
                runs.grow(start)
                gap = slice(old - runs.start, start - runs.start)
                runs.skipped[gap] = runs.settled[gap] = True
                runs.high[gap] = 0.0
            tally.skipped[config] += start - old
            old = start
        if level > tally.level[config]:
            self._raise(config, level, old)
        if n > old:
            runs.grow(n)
            self._waiting.extend((config, position) for position in range(old, n))
        tally.n[config] = max(n, old)
        self._add_up(config)

    def _raise(self, config: int, level: int, n: int) -> None:
        """Open capped runs again; attempts under way continue to their old captime and are asked for once more."""
        runs = self._runs[config]
        self.tally.level[config] = level
        place = np.flatnonzero(~runs.skipped[: n - runs.start])
        position = place + runs.start
        runs.captime[place] = self._plan.captime(np.full(len(place), level), position)
        runs.start_over()
        self._judge(config, position)
        again = position[~runs.settled[place] & ~runs.flying[place]]
        self._waiting.extend((config, each) for each in again.tolist())

    def retire(self, candidates: BoolArray) -> IntArray:
        """Ask for no more runs of configurations that are no candidates; return those with attempts under way.

        Their orders stand: a configuration that becomes a candidate again resumes where it was.
        """
        for config in np.flatnonzero(self._retired & candidates).tolist():
            self._waiting.extend((config, position) for position in self._held.pop(config, ()))
        self._retired = ~candidates
        return np.flatnonzero(self._retired & (self._aloft > 0))

    def take(self, limit: int) -> list[RunRequest]:
        """Return at most `limit` missing runs, in the order in which they were wanted; they count as under way now."""
        chosen: list[tuple[int, int]] = []
        while self._waiting and len(chosen) < limit:
            config, position = self._waiting.popleft()
            runs = self._runs[config]
            place = position - runs.start
            if self._retired[config]:
                self._held.setdefault(config, []).append(position)
            elif not (runs.settled[place] or runs.flying[place]):
                runs.flying[place] = True
                chosen.append((config, position))
        if not chosen:
            return []
        configs, positions = np.array(chosen, dtype=np.int64).T
        captimes = self._plan.captime(self.tally.level[configs], positions)
        captimes = np.broadcast_to(captimes, configs.shape).tolist()
        return [self._launch(*which, captime) for which, captime in zip(chosen, captimes, strict=True)]

    def _launch(self, config: int, position: int, captime: float) -> RunRequest:
        runs = self._runs[config]
        place = position - runs.start
        request = RunRequest(config, position, captime, int(runs.attempts[place]))
        runs.captime[place] = captime
        runs.attempts[place] += 1
        self.tally.runs[config] += 1
        self._aloft[config] += 1
        self._flying[config, position] = request
        return request

    # ------------------------------------------------------------------ what became known

    def seen(self, request: RunRequest, seconds: float) -> bool:
        """Record after how many CPU seconds, from its very first start, an attempt was last seen unfinished.

        "Now minus start" will not do: the run may have ended since it was looked at. Return whether that was news.
        """
        config, position = request.config, request.instance
        runs = self._runs[config]
        place = position - runs.start
        if self._flying.get((config, position)) != request or not seconds > runs.seen[place]:
            return False
        runs.seen[place] = seconds
        self._judge(config, np.array([position]))
        self._add_up(config)
        return True

    def add(self, outcomes: Iterable[RunOutcome]) -> IntArray:
        """Take in what became of requests, in any order; return the configurations whose sums moved."""
        heard: dict[int, list[int]] = {}
        for outcome in outcomes:
            if self._landed(outcome):
                heard.setdefault(outcome.request.config, []).append(outcome.request.instance)
        for config, positions in heard.items():
            self._judge(config, np.array(positions))
            self._add_up(config)
            runs = self._runs[config]
            # To the front: they have waited longest.
            self._waiting.extendleft((config, each) for each in positions if not runs.settled[each - runs.start])
        return np.array(sorted(heard), dtype=np.int64)

    def _landed(self, outcome: RunOutcome) -> bool:
        """Record what was measured; return False if the run is not under way."""
        config, position = outcome.request.config, outcome.request.instance
        if self._flying.get((config, position)) != outcome.request:
            self.ignored += 1
            return False
        del self._flying[config, position]
        self._aloft[config] -= 1
        runs = self._runs[config]
        place = position - runs.start
        runs.flying[place] = False
        runs.cost[place] += outcome.cost
        match outcome.status:
            case Status.COMPLETED:
                self.disagreements += int(outcome.runtime < runs.seen[place])
                runs.runtime[place] = max(outcome.runtime, float(runs.seen[place]))
            case Status.FAILED:
                runs.runtime[place] = np.inf
            case Status.CAPPED | Status.LOST | Status.ABANDONED:
                runs.seen[place] = max(outcome.runtime, float(runs.seen[place]))
                runs.abandoned[place] = outcome.status.meaning.final or not self._repeatable
            case _:
                assert_never(outcome.status)
        return True

    def _judge(self, config: int, position: IntArray) -> None:
        """Intervals of these runs, from what is written down and the level in force."""
        runs, level = self._runs[config], np.full(len(position), self.tally.level[config])
        place = position - runs.start
        seen = runs.seen[place]
        known = ~np.isnan(runs.runtime[place])
        # Reached its captime, and no attempt is under way. An attempt seen past its captime is about to end: wait.
        cut = ~known & ~runs.flying[place] & (runs.attempts[place] > 0) & (seen >= runs.captime[place])
        ended = known | cut
        runs.settled[place] = ended | runs.abandoned[place]
        runs.given_up[place] = runs.abandoned[place] & ~ended
        self._some_given_up |= bool(runs.given_up[place].any())
        if ended.any():
            self._settle(runs, position[ended], level[ended])
        if not ended.all():
            unfinished = place[~ended]
            runs.completed[unfinished], runs.low[unfinished] = False, 0.0
            runs.high[unfinished] = self._plan.alive(seen[~ended], level[~ended], position[~ended])

    def _settle(self, runs: Prefix, position: IntArray, level: IntArray) -> None:
        # A cut run is told as "later than any captime": u⁻¹ may have been rounded, and the plan must not take the
        # rounded captime for a runtime that is just in time.
        place = position - runs.start
        runtime = runs.runtime[place]
        cut = np.isnan(runtime)
        seconds = np.where(cut, _LATER_THAN_ANY_CAPTIME, runtime)
        worth = self.utility(np.where(cut, np.inf, runtime))
        runs.completed[place], runs.low[place], runs.high[place] = self._plan.settled(seconds, worth, level, position)

    def _add_up(self, config: int) -> None:
        tally, runs = self.tally, self._runs[config]
        sums, tally.completed[config], tally.open[config] = runs.totals(int(tally.n[config]))
        tally.utility_low[config], tally.utility_high[config], tally.seconds[config] = sums
        tally.settled[config] = runs.done
        if self._some_given_up:
            tally.given_up[config] = np.count_nonzero(runs.given_up[: int(tally.n[config]) - runs.start])

    def samples(self, config: int, first: int, last: int) -> tuple[FloatArray, FloatArray]:
        """Low and high ends of that configuration on positions first, …, last - 1; 0 and 1 where nothing was run."""
        if not 0 <= first <= last:
            raise InvariantViolated(
                f"samples of positions {first} to {last} were asked for; expected 0 <= first <= last"
            )
        runs, low, high = self._runs[config], np.zeros(last - first), np.ones(last - first)
        begin, end = max(first, runs.start), min(last, int(self.tally.n[config]))
        if end > begin:
            here, there = slice(begin - runs.start, end - runs.start), slice(begin - first, end - first)
            low[there] = runs.low[here]
            high[there] = np.where(runs.skipped[here], 1.0, runs.high[here])
        return low, high

    def times(self, config: int, last: int) -> tuple[FloatArray, BoolArray]:
        """Return when runs of a configuration on positions 0, …, last - 1 ended or were last seen, and which ended."""
        runs, seconds, ended = self._runs[config], np.full(last, np.nan), np.zeros(last, dtype=np.bool_)
        end = min(last, int(self.tally.n[config]))
        if end > runs.start:
            here, there = slice(0, end - runs.start), slice(runs.start, end)
            known = ~np.isnan(runs.runtime[here])
            seconds[there] = np.where(known, runs.runtime[here], runs.seen[here])
            seconds[there][runs.skipped[here]] = np.nan
            ended[there] = known & ~runs.skipped[here]
        return seconds, ended

    def under_way(self) -> Sequence[RunRequest]:
        """Return the attempts under way, oldest first."""
        return tuple(self._flying.values())
