"""The race: captime's own engine. Random captimes, a leader, and challengers cleared one by one.

Why it is valid, in short (docs/random-captimes.md has the proofs): every score is an unbiased sample of a
configuration's utility; bounds are betting bounds that hold at all times at once; a wrong certificate needs one of
three kinds of events about the one best configuration i* (its upper bound fails; the leader's lower bound fails; the
duel of the leader with i* fails), and delta pays for these three. How runs are scheduled touches only the cost.
"""

import math

import numpy as np

from captime.arrays import BoolArray, FloatArray, IntArray
from captime.certificate import Certificate
from captime.plans.random_captimes import RandomCaptimes, Schedule
from captime.procedures.problem import Problem
from captime.procedures.race_terms import LOWER, PAIRED, SCOUT, SHARES, SHOWN, UPPER, Mode, check_options, margins
from captime.procedures.scoreboard import Duels, Scoreboard
from captime.procedures.scout import Scout
from captime.procedures.warm_start import WarmStart
from captime.tally import Tally
from captime.targets import Targets, no_targets

# The warm start ends with so many configurations or fewer.
_FINALISTS = 2
# One challenger in so many is run at a time, or one if there are fewer.
_TOGETHER = 32
# With fewer configurations the warm start is so cheap that scouting cannot save much.
_SCOUT_FROM = 24
# On a shorter stream the positions are better kept for the race; on a longer one the scout takes at most a quarter.
_SCOUT_INSTANCES = 128
# With more slots than this nobody is sent ahead alone.
_FEW_SLOTS = 4
# Captimes are first cut as this epsilon needs it; longer ones come when epsilon has come near.
_FIRST_TRUNCATION = 0.1
# With an unknown or tiny goal, captimes and margins are made for this epsilon.
_SMALLEST_EPSILON = 0.005


class Race:
    """Random captimes, paired duels with the leader, upper bounds without a union: the default.

    Args:
        problem: The question.
        boost: B of the random captimes: at least 1; larger lets more runs finish and costs more time a run.
        mode: What delta covers. `selection`: that the recommended configuration is within epsilon of the best, at all
            times. `simultaneous`: that every interval holds too.
        paired: Also compare with the leader on the same instances.
        first_runs: Positions everyone runs in the first round of the warm start.
        growth: How much of its past a configuration repeats at a time.
        leader_share: Give the leader at least this share of all CPU time while that still narrows its interval.
        truncation: Stop runs where u has fallen to this share of epsilon.
        scout: First see whether one configuration is good enough for anyone; see scout.py.

    Attributes:
        leader: The recommended configuration.
        lower: Lower bounds, leaders' only.
        upper: Upper bounds.
    """

    bound = "mixture"
    pays = True

    def __init__(
        self,
        problem: Problem,
        *,
        boost: float = 1.25,
        mode: Mode = "selection",
        paired: bool = True,
        first_runs: int = 4,
        growth: float = 0.1,
        leader_share: float = 0.05,
        truncation: float = 0.1,
        scout: bool = True,
    ) -> None:
        shares = {"leader_share": leader_share, "truncation": truncation}
        check_options(boost, mode, first_runs, growth, shares)
        n_configs = problem.n_configs
        self.problem = problem
        self.mode = mode
        self.rounds = 0
        self.leader = 0
        self.candidates: BoolArray = np.ones(n_configs, dtype=np.bool_)
        self.lower: FloatArray = np.zeros(n_configs)
        self.upper: FloatArray = np.ones(n_configs)
        self._aim = max(problem.epsilon, _SMALLEST_EPSILON)
        self._available = math.inf if problem.n_instances is None else problem.n_instances
        self._truncation = truncation
        self._truncated_for = max(self._aim, _FIRST_TRUNCATION)
        longest = Schedule(self._longest(self._truncated_for))
        self.plan = RandomCaptimes(problem.utility, problem.seed, Schedule(boost), longest)
        self._paired = paired
        self._growth = growth
        self._leader_share = leader_share
        self._board = Scoreboard(n_configs, 1.0 / boost)
        self._duels = Duels(n_configs, margins(self._aim))
        self._warm = WarmStart(n_configs, first_runs, _FINALISTS, problem.n_instances)
        self._scout: Scout | None = None
        if scout and n_configs >= _SCOUT_FROM and problem.epsilon > 0 and self._available >= _SCOUT_INSTANCES:
            level = -math.log(SCOUT * problem.delta)
            self._scout = Scout(n_configs, 1.0 - problem.epsilon, level, n_configs * first_runs, self._board)
        self._start: int | None = None
        # Until there is a ranking, everyone has the same prior.
        self._log_rank: FloatArray = np.full(n_configs, math.log(n_configs))
        self._margin: FloatArray = np.ones(n_configs)
        self._known: IntArray = np.zeros(n_configs, dtype=np.int64)
        self._ordered: IntArray = np.zeros(n_configs, dtype=np.int64)
        self._seconds: FloatArray = np.zeros(n_configs)
        self._open: IntArray | None = None
        self._warm_sums: FloatArray = np.zeros(n_configs)
        self._ranking: IntArray | None = None
        self._best: Certificate | None = None
        if n_configs == 1:
            self._begin(np.array([0]))

    # ------------------------------------------------------------------ what to learn next

    def ask(self, slots: int) -> Targets:
        """The next runs: everyone's in the warm start, then leader and most promising challengers."""
        if self.finished() is not None:
            return no_targets()
        if self._scout is not None and slots > _FEW_SLOTS and not self._ordered.any():
            # One configuration at a time would keep many workers waiting.
            self._scout = None
        if self._scout is not None:
            members, positions = self._scout.wanted
            return self._order(members, np.full(len(members), positions))
        if self._start is None:
            return self._warm_order(slots)
        wanted = self._wanted(slots)
        config = np.array([config for config, _ in wanted], dtype=np.int64)
        return self._order(config, np.array([n for _, n in wanted], dtype=np.int64))

    def _warm_order(self, slots: int) -> Targets:
        """Everyone left runs the positions of this round; while stragglers are awaited, the next round may begin."""
        alive, positions = self._warm.alive, self._warm.positions
        waiting = alive[self._ordered[alive] < positions]
        if len(waiting) or self._ranking is not None or self._open is None or not self._open[alive].any():
            return self._order(waiting, np.full(len(waiting), positions))
        # Who goes ahead is decided by scores on positions before the ones it then runs, as everywhere.
        likely = alive[np.argsort(-self._warm_sums[alive], kind="stable")][: max(1, len(alive) // 4)]
        likely = likely[self._ordered[likely] < 2 * positions][: max(1, slots // positions)]
        return self._order(likely, np.full(len(likely), 2 * positions))

    def _order(self, config: IntArray, n: IntArray) -> Targets:
        if self.problem.n_instances is not None:
            n = np.minimum(n, self.problem.n_instances)
        more = n > self._ordered[config]
        config, n = config[more], n[more]
        self._ordered[config] = n
        first = None if self._start is None else np.full(len(config), self._start)
        return Targets(config, n, np.zeros(len(config), dtype=np.int64), first)

    def _wanted(self, slots: int) -> list[tuple[int, int]]:
        """Configurations and prefix lengths, the leader first where it has to stay ahead."""
        rivals = np.flatnonzero(self._epsilons() > self.problem.epsilon)
        uncleared = len(rivals)
        rivals = rivals[self._has_more(rivals)]
        rivals = rivals[np.argsort(-self.upper[rivals], kind="stable")]
        idle = self._idle(rivals)
        leader = np.array([self.leader])
        leader_waits = len(self._idle(leader)) == 1 and bool(self._has_more(leader)[0])
        if leader_waits and (self._leader_pays(uncleared) or not len(rivals)):
            return [(self.leader, self._next(self.leader, slots))]
        # With many slots and few challengers, deeper orders; even for those at work already, rather than none.
        # With many challengers, several at a time: all of them need runs, and one decision serves them together.
        chosen = (idle if len(idle) else rivals)[: max(1, slots, len(idle) // _TOGETHER)]
        share = math.ceil(slots / (len(chosen) + 1)) if slots > 1 else 1
        wanted = [(int(config), self._next(int(config), share)) for config in chosen]
        ahead = max((n for _, n in wanted), default=0)
        if self._ordered[self.leader] < ahead:
            wanted.insert(0, (self.leader, max(ahead, self._next(self.leader, 1))))
        return wanted

    def _has_more(self, config: IntArray) -> BoolArray:
        """Whether the stream has positions that these have not been ordered to run."""
        more: BoolArray = self._ordered[config] < self._available
        return more

    def _idle(self, config: IntArray) -> IntArray:
        """Those of them whose orders are all done."""
        return config if self._open is None else config[self._open[config] == 0]

    def _next(self, config: int, least: int) -> int:
        """Where this configuration's prefix should end next, at least so many positions further."""
        start = self._start or 0
        have = max(int(self._ordered[config]), start)
        return have + max(least, int(self._growth * (have - start)))

    def _leader_pays(self, rivals: int) -> bool:
        """Whether a second spent on the leader narrows the rest more than one spent on a challenger."""
        if rivals < 2 or not self._board.count[self.leader]:
            return False
        slack = self._board.mean(self.leader) - float(self.lower[self.leader])
        spent = float(self._seconds.sum())
        return slack > 0.125 * self._aim and float(self._seconds[self.leader]) < self._leader_share * spent

    # ------------------------------------------------------------------ what became known

    def tell(self, tally: Tally, changed: IntArray) -> None:
        """Take in new scores, judge the warm start, change the leader, renew the certificate."""
        self._seconds, self._open = tally.seconds, tally.open
        fresh = [int(config) for config in changed if self._take_in(tally, int(config))]
        if not fresh:
            return
        self.rounds += 1
        if self._scout is not None:
            self._judge_scout(tally, self._scout)
        elif self._start is None:
            self._judge_warm_start(tally)
        else:
            self._tighten(np.array(fresh))
            self._consider_leaders(fresh)
        self._certify()

    def _take_in(self, tally: Tally, config: int) -> bool:
        """Read a configuration's new scores; False if there is nothing to judge."""
        racing = self._start is not None
        first, last = int(self._known[config]), int(tally.settled[config])
        if last > first:
            low, high = tally.samples(config, first, last)
            self._board.add(config, low, high, race=racing)
            self._warm_sums[config] += float(low[: max(0, self._warm.positions - first)].sum())
            self._known[config] = last
        still_open = int(tally.n[config]) > last >= (self._start or 0)
        if racing and still_open:
            self._board.open(config, *tally.samples(config, last, int(tally.n[config])))
        return last > first or (racing and still_open)

    def _judge_scout(self, tally: Tally, scout: Scout) -> None:
        members, positions = scout.wanted
        if (self._known[members] < np.minimum(positions, self.problem.n_instances or positions)).any():
            return
        if scout.champion is None:
            scout.choose(tally.utility_low)
            self.leader = scout.champion if scout.champion is not None else self.leader
            return
        low, _ = tally.samples(scout.champion, scout.start + scout.count, int(self._known[scout.champion]))
        scout.add(low)
        self.lower[scout.champion] = scout.lower
        if scout.over or self._known[scout.champion] >= self._available / 4:
            if scout.lower < 1.0 - self.problem.epsilon:
                # Its share of delta bought nothing; later lower bounds are paid from another one.
                self.lower[:] = 0.0
            self._scout = None

    def _judge_warm_start(self, tally: Tally) -> None:
        """Halve as long as everybody left has run enough.

        Some have run further than that, as scouts or ahead of a round. What they met there must not decide who else
        runs there. And the race begins only when nothing is open: leaving a slow run behind would be dropping it.
        """
        while self._ranking is None and not (self._known[self._warm.alive] < self._warm.positions).any():
            positions, alive = self._warm.positions, self._warm.alive
            means = tally.utility_low / positions
            for config in alive[self._known[alive] > positions].tolist():
                means[config] = tally.samples(config, 0, positions)[0].mean()
            self._ranking = self._warm.judge(means)
        if self._ranking is not None and (self._known >= self._ordered).all():
            self._begin(self._ranking)

    def _begin(self, ranking: IntArray) -> None:
        """The prior is fixed, the race begins: lower bounds and duels use only what comes from here on."""
        n_configs = len(ranking)
        # Behind everything that the ranking has seen, the scout's positions included.
        self._start = max(self._warm.positions, int(self._known.max()))
        self.leader = int(ranking[0])
        if self.mode == "selection":
            # π of rank r is 1 / ((r + 1)(r + 2)); over all ranks these would sum to 1.
            rank = np.arange(n_configs, dtype=np.float64)
            self._log_rank[ranking] = np.log((rank + 1.0) * (rank + 2.0))
        else:
            self._log_rank[:] = math.log(n_configs)
        self._known = np.maximum(self._known, self._start)
        self._ordered = np.maximum(self._ordered, self._start)
        everyone = np.arange(n_configs)
        self.upper = np.minimum(self.upper, self._board.upper(everyone, self._log_upper(everyone)))

    def _log_upper(self, config: IntArray) -> FloatArray:
        """Selection needs the upper bound of one fixed configuration only; simultaneity needs all of them."""
        union = 0.0 if self.mode == "selection" else math.log(self.problem.n_configs)
        return np.full(len(config), union - math.log(UPPER * self.problem.delta))

    def _log_by_rank(self, share: float, config: IntArray) -> FloatArray:
        return self._log_rank[config] - math.log(share * self.problem.delta)

    def _tighten(self, fresh: IntArray) -> None:
        """Bounds of those with new scores, and their duels with the leader."""
        self.upper[fresh] = np.minimum(self.upper[fresh], self._board.upper(fresh, self._log_upper(fresh)))
        in_lead = fresh[fresh == self.leader] if self.mode == "selection" else fresh
        self._raise_lower(in_lead)
        if self._paired:
            self._fight()

    def _raise_lower(self, config: IntArray) -> None:
        if len(config):
            bound = self._board.lower(config, self._log_by_rank(LOWER, config))
            self.lower[config] = np.maximum(self.lower[config], bound)

    def _fight(self) -> None:
        """Duels on positions that leader and challengers have in common since the last time."""
        fought = self._duels.catch_up(self._board, self.leader)
        if len(fought):
            level = float(self._log_by_rank(PAIRED, np.array([self.leader]))[0])
            shown = self._duels.margins(self._board, self.leader, fought, level)
            self._margin[fought] = np.minimum(self._margin[fought], shown)

    def _consider_leaders(self, fresh: list[int]) -> None:
        """A challenger that clearly beats the leader on their common positions takes over; validity does not care."""
        for config in fresh:
            n = int(min(self._board.count[config], self._board.count[self.leader]))
            if config == self.leader or n < 8:
                continue
            ahead = self._board.low(config, 0, n) - self._board.low(self.leader, 0, n)
            # Ahead by more than half of epsilon, and by more than two standard errors.
            if ahead.mean() > 0.5 * self._aim and ahead.sum() > 2.0 * math.sqrt(float(ahead @ ahead)):
                self._crown(config)

    def _crown(self, config: int) -> None:
        """Clearing belongs to one leader: everyone is cleared afresh."""
        self.leader = config
        self._margin[:] = 1.0
        self._duels.restart()
        self._raise_lower(np.array([config]))
        if self._paired:
            self._fight()

    # ------------------------------------------------------------------ what is certain

    def _epsilons(self) -> FloatArray:
        """By how much each configuration may be better than the leader, by own bounds or by duel."""
        epsilon: FloatArray = np.minimum(np.maximum(self.upper - self.lower[self.leader], 0.0), self._margin)
        epsilon[self.leader] = 0.0
        return epsilon

    def _certify(self) -> None:
        epsilon = self._epsilons()
        self.candidates = epsilon > self.problem.epsilon
        self.candidates[self.leader] = True
        worst = int(epsilon.argmax())
        if self._best is None or epsilon[worst] <= self._best.epsilon:
            self._best = self._statement(float(epsilon[worst]), worst if worst != self.leader else None)
            self._lengthen(self._best.epsilon)

    def _longest(self, epsilon: float) -> float:
        """The longest captime that an epsilon needs: what lies behind it is a small share of that epsilon."""
        needed = float(self.problem.utility.inverse(np.array(self._truncation * epsilon)))
        return min(self.problem.captime_top, needed)

    def _lengthen(self, epsilon: float) -> None:
        """As epsilon shrinks, allow longer captimes, on positions that nobody has been ordered to run yet."""
        position = int(self._ordered.max()) + 1
        wanted = self._truncated_for > self._aim and epsilon <= 2.0 * self._truncated_for
        if wanted and self._start is not None and position > self.plan.longest.last_change:
            self._truncated_for = max(self._aim, 0.5 * self._truncated_for)
            self.plan.longest.change_from(position, self._longest(self._truncated_for))

    def _statement(self, epsilon: float, challenger: int | None = None) -> Certificate:
        leader = np.array([self.leader])
        # The warm start's scores count here, and the prior was ranked on them: so this level knows nothing of ranks.
        level = np.array([math.log(self.problem.n_configs) - math.log(SHOWN * self.problem.delta)])
        shown = float(self._board.upper(leader, level)[0])
        low = float(self.lower[self.leader])
        return Certificate(
            config=self.leader,
            epsilon=min(1.0, epsilon),
            delta=self.problem.delta,
            n_configs=self.problem.n_configs,
            utility_low=low,
            utility_high=max(low, shown),
            challenger=challenger,
            mode=self.mode,
            shares=SHARES,
        )

    def certificate(self) -> Certificate:
        """The best statement so far; a leader is always named, with epsilon 1 before anything is shown."""
        if self._best is None:
            return self._statement(1.0 if self.problem.n_configs > 1 else 0.0)
        return self._best

    def finished(self) -> str | None:
        """See the protocol."""
        if self.problem.n_configs == 1:
            return "single"
        if self._best is not None and self._best.epsilon <= self.problem.epsilon:
            return "epsilon"
        return "instances" if self._used_up() else None

    def _used_up(self) -> bool:
        """Whether nobody who matters has anything left to learn from the stream; ordered is not yet known."""
        if self._start is None:
            return False
        rivals = self._epsilons() > self.problem.epsilon
        rivals[self.leader] = True
        return bool((self._known[rivals] >= self._available).all())
