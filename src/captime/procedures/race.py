"""The race: captime's own engine. Random captimes, a leader, and challengers cleared one by one.

Why it is valid, in short (docs/random-captimes.md has the proofs): every score is an unbiased sample of a
configuration's utility; bounds are betting bounds that hold at all times at once; a wrong certificate needs one of
three kinds of events about the one best configuration i* (its upper bound fails; the leader's lower bound fails; the
duel of the leader with i* fails), and delta pays for these three. How runs are scheduled touches only the cost.
"""

import math
from dataclasses import replace

import numpy as np

from captime.arrays import BoolArray, FloatArray, IntArray
from captime.certificate import Certificate
from captime.plans.random_captimes import RandomCaptimes, Schedule
from captime.procedures.agenda import Agenda, Rivals, runs_missing
from captime.procedures.duels import Duels, lead
from captime.procedures.problem import Problem
from captime.procedures.race_terms import LOWER, PAIRED, SCOUT, SHARES, SHOWN, UPPER, Mode, check_options, margins
from captime.procedures.scoreboard import Scoreboard, grown
from captime.procedures.scout import Scout
from captime.procedures.warm_start import WarmStart
from captime.tally import Tally
from captime.targets import Targets, no_targets

# The warm start ends with so many configurations or fewer.
_FINALISTS = 2
# With fewer configurations the warm start is so cheap that scouting cannot save much.
_SCOUT_FROM = 24
# On a shorter stream the positions are better kept for the race; on a longer one the scout takes at most a quarter.
_SCOUT_INSTANCES = 128
# Nobody takes the lead on fewer common positions.
_ENOUGH_TO_LEAD = 8
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
        self._agenda = Agenda(n_configs, growth, self._available)
        self._leader_share = leader_share
        self._board = Scoreboard(n_configs, 1.0 / boost)
        self._duels = Duels(n_configs, margins(self._aim))
        self._warm = WarmStart(n_configs, first_runs, _FINALISTS, problem.n_instances)
        self._scout: Scout | None = None
        if scout and n_configs >= _SCOUT_FROM and problem.epsilon > 0 and self._available >= _SCOUT_INSTANCES:
            level = -math.log(SCOUT * problem.delta)
            self._scout = Scout(n_configs, 1.0 - problem.epsilon, level, n_configs * first_runs, self._board)
        # How far the scout got. Before that position the warm start has to be blind for what happened there.
        self._scouted = 0
        self._start: int | None = None
        # Until there is a ranking, everyone has the same prior.
        self._log_rank: FloatArray = np.full(n_configs, math.log(n_configs))
        self._margin: FloatArray = np.ones(n_configs)
        self._known: IntArray = np.zeros(n_configs, dtype=np.int64)
        self._pilot_end: IntArray = np.zeros(n_configs, dtype=np.int64)
        self._read: IntArray = np.zeros(n_configs, dtype=np.int64)
        self._tally: Tally | None = None
        self._slots = 1
        self._stated = 0
        self._ranking: IntArray | None = None
        self._best: Certificate | None = None
        if n_configs == 1:
            self._begin(np.array([0]))

    # ------------------------------------------------------------------ what to learn next

    def ask(self, slots: int) -> Targets:
        """The next runs: everyone's in the warm start, then leader and most urgent challengers."""
        if self.finished() is not None:
            return no_targets()
        in_hand = 0 if self._tally is None else int(self._tally.open[self.candidates].sum())
        self._slots = max(self._slots, slots + in_hand)
        if self._scout is not None and slots > _FEW_SLOTS and not self._agenda.ordered.any():
            # One configuration at a time would keep many workers waiting.
            self._scout = None
        if self._scout is not None:
            members, positions = self._scout.wanted
            return self._agenda.place(members, np.full(len(members), positions))
        if self._start is None:
            warm = self._warm_order(slots)
            if self._start is None:
                return warm
        return self._race_order(slots)

    def _warm_order(self, slots: int) -> Targets:
        """This rung's runs. If they are all under way and slots are free, judge it as it stands, or lengthen it."""
        warm, tally = self._warm, self._tally
        waiting = warm.alive[self._agenda.ordered[warm.alive] < warm.positions]
        if not len(waiting) and tally is not None and warm.positions >= self._scouted:
            # Nobody has been told to run a later position, so whatever is known now may decide about those.
            if warm.heard(tally):
                self._judge_warm_start(warm.means_so_far(tally))
            elif not warm.lengthen(slots):
                self._begin(warm.ranking(warm.means_so_far(tally)))
            if self._start is not None:
                return no_targets()
            waiting = warm.alive[self._agenda.ordered[warm.alive] < warm.positions]
        return self._agenda.place(waiting, np.full(len(waiting), warm.positions))

    def _race_order(self, slots: int) -> Targets:
        """The leader alone where that pays, else challengers with the leader ahead of them."""
        agenda, epsilon = self._agenda, self._epsilons()
        rivals = np.flatnonzero(epsilon > self.problem.epsilon)
        uncleared = len(rivals)
        rivals = rivals[agenda.has_more(rivals)]
        leader = np.array([self.leader])
        open_runs = np.zeros(len(epsilon), dtype=np.int64) if self._tally is None else self._tally.open
        # Its share of the slots; all of them if nobody else has anything left to run.
        room = math.ceil(self._leader_share * self._slots) - int(open_runs[self.leader])
        if not len(rivals):
            room = max(room, slots)
        if room > 0 and bool(agenda.has_more(leader)[0]) and (self._leader_pays(uncleared) or not len(rivals)):
            return agenda.place(leader, np.array([agenda.further(self.leader, room)]))
        mean, goal = self._board.means(), max(self.problem.epsilon, 0.5 * float(epsilon.max()))
        missing = runs_missing(epsilon, mean - mean[self.leader], self._board.sure, goal)
        return agenda.for_challengers(
            self.leader, Rivals(rivals, epsilon[rivals], missing[rivals], open_runs[rivals]), slots
        )

    def _leader_pays(self, rivals: int) -> bool:
        """Whether a second spent on the leader narrows the rest more than one spent on a challenger."""
        if rivals < 2 or self._tally is None or not self._board.count[self.leader]:
            return False
        slack = self._board.mean(self.leader) - float(self.lower[self.leader])
        seconds = self._tally.seconds
        return slack > 0.125 * self._aim and float(seconds[self.leader]) < self._leader_share * float(seconds.sum())

    # ------------------------------------------------------------------ what became known

    def tell(self, tally: Tally, changed: IntArray) -> None:
        """Take in new scores, judge the warm start, change the leader, renew the certificate."""
        self._tally = tally
        racing = self._start is not None
        fresh = [config for config in changed.tolist() if self._take_in(tally, config)]
        if not fresh:
            return
        self.rounds += 1
        if self._scout is not None:
            self._judge_scout(tally, self._scout)
        elif not racing:
            while self._start is None and not (self._known[self._warm.alive] < self._warm.positions).any():
                self._judge_warm_start(self._warm.means(tally))
        else:
            self._tighten(np.array(fresh))
        self._certify()

    def _take_in(self, tally: Tally, config: int) -> bool:
        """Read what is new about a configuration; False if there is nothing to judge."""
        return self._take_in_pilot(tally, config) if self._start is None else self._take_in_race(tally, config)

    def _take_in_pilot(self, tally: Tally, config: int) -> bool:
        """Settled scores of the warm start; False if there are no new ones."""
        first, last = int(self._known[config]), int(tally.settled[config])
        if self._start is not None:
            last = min(last, int(self._pilot_end[config]))
        if last > first:
            low, high = tally.samples(config, first, last)
            self._board.add(config, low, high, race=False)
            self._known[config] = last
        return last > first

    def _take_in_race(self, tally: Tally, config: int) -> bool:
        """All that is known of the race's positions; what the warm start left open comes before them."""
        start, first = self._start or 0, int(self._known[config])
        if first < self._pilot_end[config]:
            self._take_in_pilot(tally, config)
            self._await_pilot(tally, config)
            # While something is open before them, the race's runs are all behind the settled ones.
            first = last = start
        else:
            last = max(first, int(tally.settled[config]))
        if last > first:
            self._board.add(config, *tally.samples(config, first, last), race=True)
            self._known[config] = last
        if tally.n[config] > last:
            self._board.open(config, *tally.samples(config, last, int(tally.n[config])))
        return True

    def _await_pilot(self, tally: Tally, config: int) -> None:
        """Runs of the warm start that are still open count as what is known of them now."""
        first, end = int(self._known[config]), int(self._pilot_end[config])
        self._board.await_pilot(config, tally.samples(config, first, end)[1])
        if first >= end:
            self._known[config] = self._start or 0

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

    def _judge_warm_start(self, means: FloatArray) -> None:
        """Go on to the next rung, or begin the race."""
        ranking = self._warm.judge(means, self._slots)
        if ranking is None:
            self.leader = int(self._warm.alive[0])
        else:
            self._begin(ranking)

    def _begin(self, ranking: IntArray) -> None:
        """The prior is fixed, the race begins: lower bounds and duels use only what comes from here on."""
        n_configs = len(ranking)
        # Behind every position that anybody has been told to run so far, the scout's included.
        ordered = self._agenda.ordered
        self._start = self._agenda.start = max(self._warm.positions, int(ordered.max()))
        self._ranking = ranking
        self.leader = int(ranking[0])
        if self.mode == "selection":
            # π of rank r is 1 / ((r + 1)(r + 2)); over all ranks these would sum to 1.
            rank = np.arange(n_configs, dtype=np.float64)
            self._log_rank[ranking] = np.log((rank + 1.0) * (rank + 2.0))
        else:
            self._log_rank[:] = math.log(n_configs)
        self._pilot_end = ordered.copy()
        awaited = np.flatnonzero(self._known < ordered)
        self._known = np.where(self._known < ordered, self._known, self._start)
        if self._tally is not None:
            for config in awaited.tolist():
                self._await_pilot(self._tally, config)
        self._agenda.ordered = np.maximum(ordered, self._start)
        everyone = np.arange(n_configs)
        self.upper = np.minimum(self.upper, self._board.upper(everyone, self._log_upper(everyone)))

    def _log_upper(self, config: IntArray) -> FloatArray:
        """Selection needs the upper bound of one fixed configuration only; simultaneity needs all of them."""
        union = 0.0 if self.mode == "selection" else math.log(self.problem.n_configs)
        return np.full(len(config), union - math.log(UPPER * self.problem.delta))

    def _log_by_rank(self, share: float, config: IntArray) -> FloatArray:
        return self._log_rank[config] - math.log(share * self.problem.delta)

    def _tighten(self, fresh: IntArray) -> None:
        """Bounds of those with noticeably more scores, and their duels with the leader."""
        fresh = fresh[self._noticeable(fresh)]
        if len(fresh):
            self.upper[fresh] = np.minimum(self.upper[fresh], self._board.upper(fresh, self._log_upper(fresh)))
            self._raise_lower(fresh[fresh == self.leader] if self.mode == "selection" else fresh)
        if self._paired:
            self._fight()
        if len(fresh):
            self._consider_leaders(fresh.tolist())

    def _noticeable(self, config: IntArray) -> BoolArray:
        """Whose scores have become so many more that looking again is worth it; at the end of the stream, all."""
        sure = self._board.sure[config]
        news = grown(sure, self._read[config]) | (self._agenda.ordered[config] >= self._available)
        self._read[config[news]] = sure[news]
        return news

    def _raise_lower(self, config: IntArray) -> None:
        if len(config):
            bound = self._board.lower(config, self._log_by_rank(LOWER, config))
            self.lower[config] = np.maximum(self.lower[config], bound)

    def _fight(self) -> None:
        """Duels on positions that leader and challengers have in common since the last time."""
        fought = self._duels.due(self._board, self.leader)
        if len(fought):
            level = float(self._log_by_rank(PAIRED, np.array([self.leader]))[0])
            shown = self._duels.margins(self._board, self.leader, fought, level)
            self._margin[fought] = np.minimum(self._margin[fought], shown)

    def _consider_leaders(self, fresh: list[int]) -> None:
        """A challenger that clearly beats the leader on their common positions takes over; validity does not care."""
        for config in fresh:
            ahead = lead(self._board, config, self.leader)
            # Ahead by more than half of epsilon, and by more than two standard errors.
            if (
                len(ahead) >= _ENOUGH_TO_LEAD
                and ahead.mean() > 0.5 * self._aim
                and ahead.sum() > 2.0 * math.sqrt(float(ahead @ ahead))
            ):
                self._crown(config)

    def _crown(self, config: int) -> None:
        """Clearing belongs to one leader: everyone is cleared afresh."""
        self.leader = config
        self._margin[:] = 1.0
        self._duels.restart()
        self._raise_lower(np.array([config]))
        if self._paired:
            self._fight()

    def retarget(self, epsilon: float) -> None:
        """Another goal from now on. Bounds stay; duels are weighed at other margins, which are right at all of them."""
        self.problem = replace(self.problem, epsilon=epsilon)
        self._aim = max(epsilon, _SMALLEST_EPSILON)
        self._duels = Duels(self.problem.n_configs, margins(self._aim))
        if self._start is not None and self._paired:
            self._fight()
        if self._best is not None:
            self._certify()
            # Clearing was for the old goal, and so was the moment at which captimes are lengthened.
            self._lengthen(self._best.epsilon)

    # ------------------------------------------------------------------ what is certain

    def facts(self) -> dict[str, object] | None:
        """Where the race begins and with which ranking, for those who check it; None before it has begun."""
        if self._start is None or self._ranking is None:
            return None
        return {"start": self._start, "ranking": self._ranking.tolist()}

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
        best, sure = self._best, int(self._board.sure[self.leader])
        # The interval beside an epsilon that has not changed is renewed when there is more to say.
        if (
            best is None
            or epsilon[worst] < best.epsilon
            or (
                epsilon[worst] == best.epsilon
                and (best.config != self.leader or bool(grown(np.array([sure]), np.array([self._stated]))[0]))
            )
        ):
            self._stated = sure
            self._best = self._statement(float(epsilon[worst]), worst if worst != self.leader else None)
            self._lengthen(self._best.epsilon)

    def _longest(self, epsilon: float) -> float:
        """The longest captime that an epsilon needs: what lies behind it is a small share of that epsilon."""
        needed = float(self.problem.utility.inverse(np.array(self._truncation * epsilon)))
        return min(self.problem.captime_top, needed)

    def _lengthen(self, epsilon: float) -> None:
        """As epsilon shrinks, allow longer captimes, on positions that nobody has been ordered to run yet."""
        position = int(self._agenda.ordered.max()) + 1
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
