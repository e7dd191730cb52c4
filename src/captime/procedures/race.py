"""The race: captime's own engine. Random captimes, a leader, and challengers cleared one by one.

Why it is valid, in short (docs/engine.md has the proofs): every score is an unbiased sample of a
configuration's utility; bounds are betting bounds that hold at all times at once; a wrong certificate needs one of
three kinds of events about the one best configuration i* (its upper bound fails; the leader's lower bound fails; the
duel of the leader with i* fails), and delta pays for these three. How runs are scheduled touches only the cost.
"""

import math

import numpy as np

from captime.arrays import BoolArray, FloatArray, IntArray
from captime.certificate import Orders, no_orders
from captime.procedures.agenda import Challenger, LevelCosts, Rivals, WarmStart, runs_missing
from captime.procedures.board import NODES
from captime.procedures.claims import FRACTIONS, EngineOptions
from captime.procedures.leader_search import LeaderSearch, NextRuns, RaceStanding
from captime.procedures.pool_growth import runs_to_show
from captime.procedures.problem import (
    FIFTH_SCHEDULE,
    SECOND_SCHEDULE,
    SEVENTH_SCHEDULE,
    SIXTH_SCHEDULE,
    THIRD_SCHEDULE,
    Problem,
)
from captime.procedures.race_claims import FEW, ListClaims, Mode, check_options
from captime.procedures.scout import Scout
from captime.tally import Tally

# With an unknown or tiny goal, captimes and margins are made for this epsilon.
_SMALLEST_EPSILON = 0.005
# The warm start ends with this many configurations or fewer.
_FINALISTS = 2
# With fewer configurations the warm start is so cheap that scouting cannot save much.
_SCOUT_FROM = 24
# On a shorter stream the positions are better kept for the race; on a longer one the scout takes at most a quarter.
_SCOUT_INSTANCES = 128
# A configuration is only judged close to the largest possible utility after this many positions of the warm start.
_ENOUGH_TO_JUDGE = 8
# A race of few configurations has no warm start if its goal is at least this, times the logarithm of n + 1. Equal
# weights cost that logarithm; and the coarser the goal, the more a warm start costs beside the runs that are needed.
_COARSE = 0.04
# With more slots than this no configuration is sent ahead alone.
_FEW_SLOTS = 4
# The leader makes this many runs before its challengers: every challenger is cheaper to clear then.
_LEADER_FIRST = 24
# Its share of all CPU time as long as it goes first; larger if a lower bound of 1 - epsilon, which clears everything at
# once, is in sight.
_SHARE_FIRST, _SHARE_FOR_ALL = 0.2, 0.6
# How far the leader's runs are looked ahead, as multiples of those it has, and on how many challengers that is weighed.
_HORIZONS = np.array([1.1, 1.5, 2.0, 4.0, 8.0])
_SAMPLED = 16
# How much of its past a configuration repeats at a time if nothing else is asked for: fewer runs too many against more
# decisions.
_GROWTH, _GROWTH_OF_FEW, _GROWTH_BEFORE = 0.02, 0.01, 0.1


def _growth(problem: Problem) -> float:
    if problem.schedule < SEVENTH_SCHEDULE:
        return _GROWTH_BEFORE
    return _GROWTH_OF_FEW if problem.n_configs < FEW else _GROWTH


class Race(ListClaims):
    """Random captimes, paired duels with the leader, upper bounds without a union: the default.

    Args:
        problem: The question.
        boost: B of the random captimes: at least 1; larger lets more runs finish and costs more time a run.
        mode: What delta covers. `selection`: that the recommended configuration is within epsilon of the best, at all
            times. `simultaneous`: that every interval holds too.
        paired: Also compare with the leader on the same instances.
        first_runs: Positions every configuration runs in the first round of the warm start.
        growth: How much of its past a configuration repeats at a time; if left out, less with fewer configurations.
        leader_share: Give the leader at least this share of all CPU time while that still narrows its interval.
        truncation: Stop runs where u has fallen to this share of epsilon.
        scout: First see whether one configuration is within epsilon of the largest possible utility; see scout.py.

    Attributes:
        leader: The recommended configuration.
        lower: Lower bounds, leaders' only.
        upper: Upper bounds.
    """

    def __init__(
        self,
        problem: Problem,
        *,
        boost: float = 1.25,
        mode: Mode = "selection",
        paired: bool = True,
        first_runs: int = 4,
        growth: float | None = None,
        leader_share: float = 0.05,
        truncation: float = 0.1,
        scout: bool = True,
    ) -> None:
        shares = {"leader_share": leader_share, "truncation": truncation}
        growth = _growth(problem) if growth is None else growth
        check_options(boost, mode, first_runs, growth, shares)
        options = EngineOptions(boost, growth, leader_share, truncation, _SMALLEST_EPSILON, paired)
        super().__init__(problem, mode, options)
        n_configs = problem.n_configs
        stops = self.plan.stops
        # The last level at which every run is stopped before its draw.
        shorter = int(np.count_nonzero(stops.reach == 0.0)) - 1 if stops.top else 0
        # Whether the race begins with its first run: where many runs are not needed, a warm start costs as much as it
        # saves.
        at_once = n_configs == 1 or (
            problem.schedule >= SIXTH_SCHEDULE
            and mode == "selection"
            and n_configs < FEW
            and problem.epsilon >= _COARSE * math.log(n_configs + 1.0)
        )
        self._warm = WarmStart(
            n_configs,
            0 if at_once else 2 if shorter else first_runs,
            _FINALISTS,
            problem.n_instances,
            stops=shorter,
            top=stops.top,
            seconds=stops.stop[: shorter + 1] if problem.schedule >= FIFTH_SCHEDULE else None,
            frugal=problem.schedule >= SEVENTH_SCHEDULE,
        )
        self._costs = LevelCosts(self.plan, boost, self._longest(self._aim)) if stops.top else None
        self._levels: IntArray = np.zeros(n_configs, dtype=np.int64)
        # For which leader, with how many runs, it was last weighed whether more of them save anything.
        self._asked, self._saves = (-1, 0), False
        # CPU seconds by configuration: in the warm start, and after it until it was cleared.
        self._spent_warm: FloatArray = np.zeros(n_configs)
        self._spent_cleared: FloatArray = np.zeros(n_configs)
        self._scout: Scout | None = None
        if scout and not shorter and not at_once and n_configs >= _SCOUT_FROM and self._available >= _SCOUT_INSTANCES:
            level = -math.log(dict(self.levels.named)["scout"] * problem.delta)
            self._scout = Scout(n_configs, 1.0 - problem.epsilon, level, first_runs, self._board)
        self._tried = self._scout
        # How far the scout got. Before that position the warm start has to be blind for what happened there.
        self._scouted = 0
        self._known: IntArray = np.zeros(n_configs, dtype=np.int64)
        self._pilot_end: IntArray = np.zeros(n_configs, dtype=np.int64)
        self._slots = 1
        self._ranking: IntArray | None = None
        # For a leader that needs no challengers, and what the last look came to.
        self._search: LeaderSearch | None = None
        self._found: NextRuns | None = None
        if self._costs is not None and problem.schedule >= SEVENTH_SCHEDULE and mode == "selection":
            self._search = LeaderSearch(self.plan, shorter, 1.0 / boost)
        if at_once:
            self._begin(np.arange(n_configs))

    # ------------------------------------------------------------------ what to learn next

    def ask(self, slots: int) -> Orders:
        """Return the next runs: of all configurations in the warm start, then of leader and most urgent challengers."""
        if self.finished() is not None:
            return no_orders()
        in_hand = 0 if self._tally is None else int(self._tally.open[self.candidates].sum())
        self._slots = max(self._slots, slots + in_hand)
        if self._scout is not None and slots > _FEW_SLOTS and not self._agenda.ordered.any():
            # One configuration at a time would keep many workers waiting.
            self._scout = self._tried = None
        if slots > _FEW_SLOTS and not self._agenda.ordered.any():
            self._warm.without_probes()
        if self._scout is not None:
            members, positions = self._scout.wanted
            return self._agenda.place(members, np.full(len(members), positions))
        if self._start is None:
            warm = self._warm_order(slots)
            if self._start is None:
                return warm
        searched = self._search_order()
        return searched if len(searched) else self._race_order(slots)

    def _search_order(self) -> Orders:
        """Runs that the last look for a better leader asked for."""
        found, self._found = self._found, None
        if found is None or not len(found.config):
            return no_orders()
        ends = self._agenda.ordered[found.config] + found.runs
        wanted = list(zip(found.config.tolist(), ends.tolist(), found.level.tolist(), strict=True))
        return self._agenda.with_leader(self.leader, wanted, lambda _: (self.plan.stops.top, False), no_further=True)

    def _warm_order(self, slots: int) -> Orders:
        """This rung's runs. If they are all under way and slots are free, judge it as it stands, or lengthen it."""
        warm, tally, agenda = self._warm, self._tally, self._agenda
        if tally is not None and self.plan.repeats:
            # A longer captime changes nothing for a run that has ended, and nothing is told of it.
            self._climb(tally)
            if self._start is not None:
                return no_orders()
        members = warm.members
        waiting = members[(agenda.ordered[members] < warm.positions) | (agenda.level[members] < warm.level)]
        few = slots <= _FEW_SLOTS and self.plan.repeats
        if not len(waiting) and tally is not None and warm.positions >= self._scouted and not few:
            # No configuration has been told to run a later position, so all that is known now may decide about those.
            if warm.heard(tally):
                if not warm.longer(tally):
                    self._judge_warm_start(warm.means(tally))
            elif not warm.lengthen(slots):
                self._break_ties()
                self._begin(warm.ranking(warm.means(tally)))
            if self._start is not None:
                return no_orders()
            members = warm.members
            waiting = members[(agenda.ordered[members] < warm.positions) | (agenda.level[members] < warm.level)]
        return agenda.place(waiting, np.full(len(waiting), warm.positions), np.full(len(waiting), warm.level))

    def _race_order(self, slots: int) -> Orders:
        """The leader alone where that pays, else challengers with the leader ahead of them."""
        agenda, epsilon = self._agenda, self._epsilons()
        rivals = np.flatnonzero(epsilon > self.problem.epsilon)
        uncleared = len(rivals)
        rivals = rivals[agenda.has_more(rivals) | (agenda.level[rivals] < self.plan.stops.top)]
        leader = np.array([self.leader])
        open_runs = np.zeros(len(epsilon), dtype=np.int64) if self._tally is None else self._tally.open
        # Its share of the slots; all of them if no other configuration has anything left to run.
        room = math.ceil(self._options.leader_share * self._slots) - int(open_runs[self.leader])
        if not len(rivals):
            room = max(room, slots)
        if room > 0 and bool(agenda.has_more(leader)[0]) and (self._alone_pays(uncleared) or not len(rivals)):
            return agenda.place(leader, np.array([agenda.further(self.leader, room)]), np.array([self.plan.stops.top]))
        mean, goal = self._board.means(), max(self.problem.epsilon, 0.5 * float(epsilon.max()))
        missing = runs_missing(epsilon, mean - mean[self.leader], self._board.scored, goal)
        return agenda.for_challengers(
            self.leader,
            Rivals(rivals, self._urgency(epsilon)[rivals], missing[rivals], open_runs[rivals]),
            slots,
            self._level_for,
        )

    def _level_for(self, config: int) -> tuple[int, bool]:
        """The level at which a challenger is cheapest to clear, as far as known, and whether that lengthens runs."""
        now, top, tally = int(self._agenda.level[config]), self.plan.stops.top, self._tally
        if self._costs is None or tally is None or now == top:
            return top, False
        q = float(self.lower[self.leader]) + max(self.problem.epsilon, 0.25 * self._held_epsilon())
        if q >= 1.0:
            return now, False
        known = self._challenger(config)
        level = self._costs.best_level(known, q)[0]
        cut = known.position[known.high > known.low]
        longer = self.plan.captime(np.array([level]), cut) > self.plan.captime(np.array([now]), cut)
        return level, bool(longer.any())

    def _held_epsilon(self) -> float:
        """The epsilon certified so far."""
        return 1.0 if self._best is None else self._best.epsilon

    def _urgency(self, epsilon: FloatArray) -> FloatArray:
        """Return each challenger's urgency: what holds epsilon up comes first, so the certificate keeps improving."""
        return epsilon

    def _alone_pays(self, rivals: int) -> bool:
        """Whether a second spent on the leader narrows the rest more than one spent on a challenger."""
        if rivals < 2 or self._tally is None:
            return False
        if self._costs is None:
            return self._leader_pays(rivals, self._tally.seconds)
        count = self._board.raced(self.leader)
        return count < _LEADER_FIRST or (self._leader_may_spend() and self._leader_saves(self._costs, count))

    def _leader_saves(self, costs: LevelCosts, count: int) -> bool:
        """Whether more runs of the leader cost less than they save on the challengers that are still to be cleared.

        Looks ahead to several numbers of runs, since a lower bound of 1 - epsilon clears every challenger at once.
        """
        q = float(self.lower[self.leader]) + self.problem.epsilon
        if q >= 1.0 or self._tally is None:
            return False
        if self._asked == (self.leader, count):
            return self._saves
        mean, epsilon = self._board.mean(self.leader), self.problem.epsilon
        slack = mean - float(self.lower[self.leader])
        price = self._leader_seconds() / count
        rivals = np.flatnonzero(self._epsilons() > epsilon)
        sample = rivals[np.unique(np.linspace(0, len(rivals) - 1, _SAMPLED).astype(np.int64))]
        share = len(rivals) / len(sample)
        ahead = mean - slack / np.sqrt(_HORIZONS) + epsilon
        now = np.array([self._clearing_cost(costs, config, q) for config in sample.tolist()])
        self._asked, self._saves = (self.leader, count), False
        for times, reached in zip(_HORIZONS.tolist(), ahead.tolist(), strict=True):
            then = np.array([self._clearing_cost(costs, config, reached) for config in sample.tolist()])
            saved = share * float((now - then).sum())
            if saved > price * count * (times - 1.0):
                self._saves = True
                break
        return self._saves

    def _clearing_cost(self, costs: LevelCosts, config: int, q: float) -> float:
        """About what it costs to clear a challenger once the leader's lower bound plus epsilon is q."""
        if q >= 1.0:
            return 0.0
        return costs.best_level(self._challenger(config), q)[1]

    def _challenger(self, config: int) -> Challenger:
        """What is known of a configuration that is to be cleared."""
        tally = self._tally
        wanted = float(self.levels.upper(np.array([config]))[0])
        parts: list[tuple[IntArray, FloatArray, FloatArray]] = [(np.empty(0, dtype=np.int64), np.empty(0), np.empty(0))]
        for first, end in (
            (0, int(self._pilot_end[config])),
            (int(self._board.start[config]), int(self._agenda.ordered[config])),
        ):
            last = 0 if tally is None else min(end, int(tally.n[config]))
            if tally is not None and last > first:
                parts.append((np.arange(first, last), *tally.samples(config, first, last)))
        position, low, high = (np.concatenate([part[column] for part in parts]) for column in range(3))
        return Challenger(position, low, high, int(self._agenda.level[config]), wanted)

    def _leader_may_spend(self) -> bool:
        """Whether the leader has had its fair part: estimates may be wrong, and so may the choice of the leader."""
        spent = 0.0 if self._tally is None else float(self._tally.seconds.sum())
        enough_for_all = self._board.mean(self.leader) > 1.0 - self.problem.epsilon
        return self._leader_seconds() < (_SHARE_FOR_ALL if enough_for_all else _SHARE_FIRST) * spent

    def _leader_seconds(self) -> float:
        """CPU seconds of the leader's runs in the race, about."""
        tally = self._tally
        return 0.0 if tally is None else float(tally.seconds[self.leader]) * self._race_share()

    def _race_share(self) -> float:
        """Which share of the leader's runs belongs to the race."""
        count = self._board.raced(self.leader)
        return count / max(1, count + int(self._pilot_end[self.leader]))

    # ------------------------------------------------------------------ what became known

    def tell(self, tally: Tally, changed: IntArray) -> None:
        """Take in new scores, judge the warm start, change the leader, renew the certificate."""
        self._tally = tally
        racing = self._start is not None
        fresh = [config for config in changed.tolist() if self._take_in(tally, config)]
        if not fresh:
            return
        self.rounds += 1
        before = self.candidates.copy()
        if self._scout is not None:
            self._judge_scout(tally, self._scout)
        elif not racing:
            self._climb(tally)
        else:
            self._tighten(np.array(fresh))
            self._look_for_leader(tally)
        self._certify()
        self._note_spending(tally, before)

    def _look_for_leader(self, tally: Tally) -> None:
        """Look for a leader that needs no challengers, and let it lead if one is found; see leader_search.py."""
        search, costs = self._search, self._costs
        if search is None or costs is None or self._board.raced(self.leader) < _LEADER_FIRST or not search.due(tally):
            return
        all_configs = np.arange(len(tally.n))
        rivals = np.flatnonzero(self._epsilons()[: len(tally.n)] > self.problem.epsilon)
        lower = self.levels.lower(all_configs)
        share = dict(self.levels.named)
        self._found = search.look(
            tally,
            RaceStanding(
                leader=self.leader,
                rivals=rivals[rivals != self.leader],
                more=self._agenda.has_more(all_configs),
                raced=np.maximum(self._board.settled - self._board.counted, 0)[all_configs],
                scored=self._board.scored[all_configs],
                level=self._agenda.level[all_configs],
                lower=lower,
                duels=lower + math.log(share["lower"] / share["paired"]),
                upper=float(self.levels.upper(np.array([self.leader]))[0]),
                drawn=costs.longest_mean,
                epsilon=self.problem.epsilon,
                slots=self._slots,
            ),
        )
        if self._found.leader != self.leader:
            self._crown(self._found.leader)

    def _climb(self, tally: Tally) -> None:
        """Judge rungs of the warm start as long as everything they wanted to know is known."""
        while self._start is None:
            members = self._warm.members
            waiting = (tally.settled[members] < self._warm.positions) | (tally.level[members] < self._warm.level)
            if waiting.any():
                break
            if not self._warm.longer(tally):
                self._judge_warm_start(self._warm.means(tally))

    def _take_in(self, tally: Tally, config: int) -> bool:
        """Read what is new about a configuration; False if there is nothing to judge."""
        if tally.level[config] > self._levels[config]:
            # All its scores may have changed.
            self._levels[config] = tally.level[config]
            self._board.forget(config)
            self._known[config] = (
                0 if self._start is None or self._pilot_end[config] else int(self._board.start[config])
            )
            self._read[config] = 0
            at_once = self._start is not None and self.problem.schedule >= THIRD_SCHEDULE
            if at_once and self._known[config] < self._pilot_end[config] <= tally.settled[config]:
                # The warm start's runs are all settled: read them now, so that the race's are read with this outcome.
                # It may be the last one of this configuration.
                self._take_in_pilot(tally, config)
                self._await_pilot(tally, config)
            if config == self.leader:
                self._duels.restart(self._board, config)
            else:
                self._duels.forget(self._board, self.leader, config)
        return self._take_in_pilot(tally, config) if self._start is None else self._take_in_race(tally, config)

    def _take_in_pilot(self, tally: Tally, config: int) -> bool:
        """Settled scores of the warm start; False if there are no new ones."""
        first, last = int(self._known[config]), int(tally.settled[config])
        if self._start is not None:
            last = min(last, int(self._pilot_end[config]))
        if last > first:
            self._board.settle_pilot(config, tally.samples(config, first, last)[1])
            self._known[config] = last
        return last > first

    def _take_in_race(self, tally: Tally, config: int) -> bool:
        """All that is known of the race's positions; what the warm start left open comes before them."""
        start, first = self._start or 0, int(self._known[config])
        awaited = bool(first < self._pilot_end[config])
        if awaited:
            self._take_in_pilot(tally, config)
            self._await_pilot(tally, config)
            # While something is open before them, the race's runs are all behind the settled ones.
            first = last = start
        else:
            last = max(first, int(tally.settled[config]))
        if last > first:
            self._board.settle(config, *tally.samples(config, first, last))
            self._known[config] = last
        if tally.n[config] > last:
            self._board.open(config, *tally.samples(config, last, int(tally.n[config])))
        return awaited or last > first or bool(tally.n[config] > last)

    def _await_pilot(self, tally: Tally, config: int) -> None:
        """Runs of the warm start that are still open count as what is known of them now."""
        first, end = int(self._known[config]), int(self._pilot_end[config])
        self._board.await_pilot(config, tally.samples(config, first, end)[1])
        if first >= end:
            self._known[config] = self._start or 0

    def newcomers(self, count: int, earliest: int = 0) -> int:
        """See claims."""
        nothing = np.zeros(count, dtype=np.int64)
        self._known, self._pilot_end = np.append(self._known, nothing), np.append(self._pilot_end, nothing)
        self._levels = np.append(self._levels, nothing)
        self._spent_warm = np.append(self._spent_warm, np.zeros(count))
        self._spent_cleared = np.append(self._spent_cleared, np.zeros(count))
        return super().newcomers(count, earliest)

    def _let_in(self) -> None:
        super()._let_in()
        for config, position in self._joined:
            self._known[config] = max(int(self._known[config]), position)

    def _judge_scout(self, tally: Tally, scout: Scout) -> None:
        scout.judge(tally, self._known, self._available)
        if scout.champion is not None:
            self.leader = scout.champion
            self.lower[scout.champion] = scout.lower
        if scout.over:
            if scout.lower < 1.0 - self.problem.epsilon:
                # Its share of delta bought nothing; later lower bounds are paid from another one.
                self.lower[:] = 0.0
            self._scout = None
            self._scouted = int(self._agenda.ordered.max())

    def _close_to_the_largest(self, means: FloatArray) -> bool:
        """Whether the best so far is likely to show a lower bound of 1 - epsilon for less than the next rung costs.

        That clears all others at once, and a better leader would save nothing. Like every end of the warm start it is
        decided from positions that were run, so the prior is fixed blindly.
        """
        warm, tally = self._warm, self._tally
        if (
            tally is None
            or not warm.level
            or warm.positions < _ENOUGH_TO_JUDGE
            or self.problem.schedule < SIXTH_SCHEDULE
        ):
            return False
        best, rung = warm.next_rung(means)
        low, high = tally.samples(best, 0, warm.positions)
        middle, n = 0.5 * (low + high), warm.positions
        # The smallest variance that this many runs can tell from none is added.
        variance = float(middle.var()) * n / (n - 1) + 0.25 / n**2
        cautious = float(middle.mean()) - math.sqrt(variance / n)
        level = math.log(2.0 / (dict(self.levels.named)["lower"] * self.problem.delta))
        runs = runs_to_show(1.0 - self.problem.epsilon, cautious, variance, level)
        # The next rung makes as many runs again as its members have made. Both get longer captimes than so far.
        return runs * float(tally.seconds[best]) / n <= float(tally.seconds[rung].sum())

    def _judge_warm_start(self, means: FloatArray) -> None:
        """Advance to the next rung, or begin the race."""
        self._break_ties()
        if self._close_to_the_largest(means):
            self._begin(self._warm.ranking(means))
            return
        # Where scouts have been, rungs follow from the scores of earlier positions and from nothing else.
        ranking = self._warm.judge(means, self._slots if self._warm.positions >= self._scouted else 1)
        if ranking is None:
            self.leader = int(self._warm.alive[0])
        else:
            self._begin(ranking)

    def _break_ties(self) -> None:
        """Let measured times decide between equal means of the warm start."""
        if self._tally is not None and self.problem.schedule >= SECOND_SCHEDULE:
            self._warm.break_ties(self._tally, self.problem.utility)

    def _begin(self, ranking: IntArray) -> None:
        """The prior is fixed, the race begins: lower bounds and duels use only what comes from here on."""
        n_configs = len(ranking)
        # Behind every position that any configuration has been told to run so far, the scout's included.
        ordered = self._agenda.ordered
        self._start = max(self._warm.positions, int(ordered.max()))
        self._ranking = ranking
        if self._tally is not None:
            # Configurations that join during the warm start begin with the race; they have spent nothing so far.
            self._spent_warm[:n_configs] = self._tally.seconds[:n_configs]
        self.leader = int(ranking[0])
        if self._start > 0 or n_configs == 1:
            self.levels.rank(ranking)
        else:
            self.levels.weigh_alike()
        self._board.begin(self._start)
        self._pilot_end = ordered.copy()
        awaited = np.flatnonzero(self._known < ordered)
        self._known = np.where(self._known < ordered, self._known, self._start)
        if self._tally is not None:
            for config in awaited.tolist():
                self._await_pilot(self._tally, config)
        self._agenda.begin(self._start)
        self._let_in()
        all_configs = np.arange(n_configs)
        self.upper[all_configs] = np.minimum(
            self.upper[all_configs], self._board.upper(all_configs, self.levels.upper(all_configs))
        )

    # ------------------------------------------------------------------ how it stands

    def facts(self) -> dict[str, object] | None:
        """Return what a checker needs and cannot read off the runs; None before a champion runs or the race begins.

        Nothing here is an input of anything. Keys: `start` (the first position of the race) and `ranking` (best first),
        both only once the race has begun; `joined`, configurations that came later with their first positions, if any
        did; `shares` of delta; `mode`, `boost`, `paired`; how many bets are mixed in bounds (`nodes`) and in duels
        (`fractions`); `longest_captimes`, pairs of a position and the seconds from there on (None: no limit); and
        `scout` if there was one: its champion, from where on its scores count, how many of them have been counted
        (0 while it is still at work), and ln(1 / failure probability) of its bound.
        """
        scout, start, ranking = self._tried, self._start, self._ranking
        champion = None if scout is None else scout.champion
        if champion is None and start is None:
            return None
        told: dict[str, object] = {
            "shares": dict(self.levels.named),
            "mode": self.mode,
            "boost": self._options.boost,
            "paired": self._options.paired,
            "nodes": NODES,
            "fractions": FRACTIONS,
            "longest_captimes": [
                [position, seconds if math.isfinite(seconds) else None] for position, seconds in self._lengthened
            ],
        }
        if start is not None and ranking is not None:
            told |= {"start": start, "ranking": ranking.tolist()}
        if self._joined:
            told["joined"] = [list(each) for each in self._joined]
        if scout is not None and champion is not None:
            count = scout.count if scout.over else 0
            told["scout"] = {"champion": champion, "start": scout.start, "count": count, "level": scout.level}
        return told

    def spending(self) -> dict[str, float]:
        """CPU seconds by purpose; a challenger's are booked where it was cleared, by its own bound or by a duel.

        What a configuration spent after it was cleared is told apart: runs that were under way, and those of a
        configuration that led before.
        """
        tally = self._tally
        if tally is None:
            return dict.fromkeys(("warm_start", "leader", "own_bound", "duel", "after_clearance", "not_cleared"), 0.0)
        # Configurations that joined after the last outcome are not in the tally yet; they have spent nothing.
        seconds = np.zeros(self.problem.n_configs)
        seconds[: len(tally.seconds)] = tally.seconds
        if self._start is None:
            warm, seconds = float(seconds.sum()), np.zeros(len(seconds))
        else:
            warm, seconds = float(self._spent_warm.sum()), seconds - self._spent_warm
        cleared = self._epsilons() <= self.problem.epsilon
        own = self.upper - self.lower[self.leader] <= self.problem.epsilon
        others = np.arange(len(seconds)) != self.leader
        late = np.where(cleared & others, np.maximum(seconds - self._spent_cleared, 0.0), 0.0)
        before = seconds - late
        return {
            "warm_start": warm,
            "leader": float(seconds[self.leader]),
            "own_bound": float(before[cleared & own & others].sum()),
            "duel": float(before[cleared & ~own & others].sum()),
            "after_clearance": float(late.sum()),
            "not_cleared": float(seconds[~cleared & others].sum()),
        }

    def _note_spending(self, tally: Tally, before: BoolArray) -> None:
        """Remember what a challenger had cost when it was cleared."""
        if self._start is not None:
            fresh = np.flatnonzero(before & ~self.candidates)
            self._spent_cleared[fresh] = tally.seconds[fresh] - self._spent_warm[fresh]

    def finished(self) -> str | None:
        """See the protocol."""
        if self.problem.n_configs == 1:
            return "single"
        if self._best is not None and self._best.epsilon <= self.problem.epsilon:
            return "epsilon"
        return "instances" if self._used_up() else None

    def _used_up(self) -> bool:
        """Return whether no configuration that matters can learn more from the stream; ordered is not yet known."""
        if self._start is None:
            return False
        rivals = self._epsilons() > self.problem.epsilon
        rivals[self.leader] = True
        return bool((self._known[rivals] >= self._available).all())
