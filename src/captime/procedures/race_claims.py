"""What a race may claim: bounds, duels and leaders, and the certificate that follows from them.

Everything here is about truth and nothing about schedules: in whatever order the runs are made and come back, these
statements hold together with probability 1 - delta (docs/random-captimes.md, steps 4 to 8).
"""

import math
from dataclasses import replace

import numpy as np

from captime.arrays import BoolArray, FloatArray, IntArray
from captime.certificate import Certificate
from captime.errors import ScenarioDiffers
from captime.plans.random_captimes import RandomCaptimes, Schedule, Stops
from captime.procedures.agenda import Agenda, runs_missing
from captime.procedures.duels import Duels, lead
from captime.procedures.estimates import measured_utility
from captime.procedures.problem import SECOND_SCHEDULE, Problem
from captime.procedures.race_terms import (
    LATE_LOWER,
    LATE_SHOWN,
    LATE_UPPER,
    LOWER,
    PAIRED,
    SHARES,
    SHOWN,
    UPPER,
    Latecomers,
    Mode,
    difference_grid,
    difference_step,
    margins,
)
from captime.procedures.scoreboard import Scoreboard, grown
from captime.tally import Tally

# No configuration takes the lead on fewer common positions.
_ENOUGH_TO_LEAD = 8
# The first 8 ranks are considered as leaders, whenever the runs have grown by the factor 1.15. Another one leads if
# its certificate seems to cost less than this share of the leader's.
_CONSIDERED, _LOOK_AGAIN, _CHEAPER = 8, 1.15, 0.75
# Captimes are first cut as this epsilon needs it; longer ones come when epsilon has come near.
_FIRST_TRUNCATION = 0.1
# With an unknown or tiny goal, captimes and margins are made for this epsilon.
_SMALLEST_EPSILON = 0.005
# From this many configurations on, runs begin with short captimes. With fewer, the runs that find a leader and clear
# the hopeless ones are a small part of the cost.
_MANY = 40


class Claims:
    """The state of a race's knowledge.

    Args:
        problem: The question.
        boost: B of the random captimes.
        mode: What delta covers.
        paired: Also compare with the leader on the same instances.
        growth: How much of its past a configuration repeats at a time.
        truncation: Stop runs where u has fallen to this share of epsilon.

    Attributes:
        leader: The recommended configuration.
        lower: Lower bounds, leaders' only.
        upper: Upper bounds.
        candidates: Who is not cleared yet, and the leader.
    """

    def __init__(
        self, problem: Problem, boost: float, mode: Mode, *, paired: bool, growth: float, truncation: float
    ) -> None:
        n_configs = problem.n_configs
        self.problem = problem
        self.mode = mode
        self.leader = 0
        self.candidates: BoolArray = np.ones(n_configs, dtype=np.bool_)
        self.lower: FloatArray = np.zeros(n_configs)
        self.upper: FloatArray = np.ones(n_configs)
        self._aim = max(problem.epsilon, _SMALLEST_EPSILON)
        self._available = math.inf if problem.n_instances is None else problem.n_instances
        self._agenda = Agenda(n_configs, growth, self._available)
        self._paired = paired
        self._boost = boost
        self._truncation = truncation
        self._truncated_for = max(self._aim, _FIRST_TRUNCATION)
        self._lengthened: list[tuple[int, float]] = [(0, self._longest(self._truncated_for))]
        short = problem.short_captimes and n_configs >= _MANY
        stops = Stops.doubling(problem.utility, boost, self._longest(self._aim)) if short else Stops.none()
        self.plan = RandomCaptimes(
            problem.utility, problem.seed, Schedule(boost), Schedule(self._lengthened[0][1]), stops
        )
        self._board = Scoreboard(n_configs, 1.0 / boost)
        self._duels = self._fresh_duels()
        # Duels of a configuration that does not lead, and how many runs there were when that was last looked at.
        self._other_duels: Duels | None = None
        self._looked_at = 0
        self._late = Latecomers(n_configs, problem.delta)
        self._tally: Tally | None = None
        self._start: int | None = None
        # Until there is a ranking, all configurations have the same prior.
        self._log_rank: FloatArray = np.full(n_configs, math.log(n_configs))
        self._margin: FloatArray = np.ones(n_configs)
        # How many sure scores there were when bounds were last read, and when the certificate was last renewed.
        self._read: IntArray = np.zeros(n_configs, dtype=np.int64)
        self._stated = 0
        self._best: Certificate | None = None
        # Who joined later: with the first position it may have while it waits for the race, then with the one it has.
        self._waiting: dict[int, int] = {}
        self._joined: list[tuple[int, int]] = []

    @property
    def longest_captime(self) -> float:
        """How many CPU seconds a run that is ordered now may get at most."""
        return self._lengthened[-1][1]

    # ------------------------------------------------------------------ levels

    def _log_upper(self, config: IntArray) -> FloatArray:
        """Selection needs the upper bound of one fixed configuration only; simultaneity needs all of them."""
        union = 0.0 if self.mode == "selection" else math.log(self.problem.n_configs)
        own = np.full(len(config), union - math.log(UPPER * self.problem.delta))
        return self._late.level(LATE_UPPER, config, own)

    def _log_lower(self, config: IntArray) -> FloatArray:
        own = self._log_rank[config] - math.log(LOWER * self.problem.delta)
        return self._late.level(LATE_LOWER, config, own)

    def _log_duels(self, challengers: IntArray, leader: int | None = None) -> FloatArray:
        leads = self.leader if leader is None else leader
        own = float(self._log_rank[leads]) - math.log(PAIRED * self.problem.delta)
        return self._late.duels(leads, challengers, own)

    def _log_shown(self, config: int) -> FloatArray:
        # The warm start's scores count here, and the prior was ranked on them: so this level knows nothing of ranks.
        own = math.log(self._late.n_first) - math.log(SHOWN * self.problem.delta)
        return self._late.level(LATE_SHOWN, np.array([config]), np.array([own]))

    # ------------------------------------------------------------------ bounds and leaders

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
        """Return which configurations have enough new scores to read bounds again; at the end of the stream, all."""
        sure = self._board.scored[config]
        news = grown(sure, self._read[config]) | (self._agenda.ordered[config] >= self._available)
        self._read[config[news]] = sure[news]
        return news

    def _raise_lower(self, config: IntArray) -> None:
        if len(config):
            bound = self._board.lower(config, self._log_lower(config))
            self.lower[config] = np.maximum(self.lower[config], bound)

    def _fresh_duels(self) -> Duels:
        """Return duels in which nothing has been weighed, at the margins and steps that the goal needs."""
        step = difference_step(self._aim) if self.problem.duel_step is None else self.problem.duel_step
        return Duels(self.problem.n_configs, margins(self._aim), difference_grid(step, 1.0 / self._boost))

    def _fight(self) -> None:
        """Duels on positions that leader and challengers have in common since the last time."""
        fought = self._duels.due(self._board, self.leader, self._available - (self._start or 0))
        if len(fought):
            shown = self._duels.margins(self._board, self.leader, fought, self._log_duels(fought))
            self._margin[fought] = np.minimum(self._margin[fought], shown)

    def _consider_leaders(self, fresh: list[int]) -> None:
        """A challenger that clearly beats the leader on their common positions takes over; validity does not care."""
        if self.problem.schedule >= SECOND_SCHEDULE:
            self._lead_with_cheapest()
        for config in fresh:
            ahead = lead(self._board, config, self.leader)
            # Ahead by more than half of epsilon, and by more than two standard errors.
            if (
                len(ahead) >= _ENOUGH_TO_LEAD
                and ahead.mean() > 0.25 * self._aim
                and ahead.sum() > 2.0 * math.sqrt(float(ahead @ ahead))
            ):
                self._crown(config)

    def _lead_with_cheapest(self) -> None:
        """Let the one of the first ranks lead whose certificate seems to cost least from here.

        Duels and bounds of another leader follow from the runs there are, at the level of its own rank. So the look
        costs no run, and validity holds for every choice of leaders.
        """
        runs = int(self._board.scored.sum())
        if runs < _LOOK_AGAIN * self._looked_at:
            return
        self._looked_at = runs
        enough = np.flatnonzero(self._board.scored >= _ENOUGH_TO_LEAD)
        enough = enough[enough != self.leader]
        first = enough[np.argsort(self._log_rank[enough], kind="stable")][:_CONSIDERED]
        now = self._cost_to_certify(self.leader, self._epsilons())
        costs = [self._cost_to_certify(each, self._epsilons_of(each)) for each in first.tolist()]
        if costs and min(costs) < _CHEAPER * now:
            self._crown(int(first[int(np.argmin(costs))]))

    def _epsilons_of(self, leader: int) -> FloatArray:
        """By how much each configuration may be better than another leader, by own bounds or by duel."""
        which = np.array([leader])
        lower = max(float(self.lower[leader]), float(self._board.lower(which, self._log_lower(which))[0]))
        epsilon: FloatArray = np.maximum(self.upper - lower, 0.0)
        epsilon[leader] = 0.0
        fought = np.flatnonzero(epsilon > self.problem.epsilon)
        if self._paired and len(fought):
            if self._other_duels is None:
                self._other_duels = self._fresh_duels()
            self._other_duels.restart(self._board, leader)
            shown = self._other_duels.margins(self._board, leader, fought, self._log_duels(fought, leader))
            epsilon[fought] = np.minimum(epsilon[fought], shown)
        return epsilon

    def _cost_to_certify(self, leader: int, epsilon: FloatArray) -> float:
        """About how many more runs it takes until a leader has cleared all others, its own runs included.

        Args:
            leader: Who leads.
            epsilon: By how much each of the others may be better.
        """
        mean, scored, goal = self._board.means(), self._board.scored, self._aim
        left = np.flatnonzero(epsilon > goal)
        have = np.maximum(np.minimum(scored[left], scored[leader]), 1)
        missing = np.maximum(runs_missing(epsilon[left], mean[left] - mean[leader], have, goal), 1.0)
        ahead = float((scored[left] + missing).max(initial=0.0)) - float(scored[leader])
        return float(missing.sum()) + max(ahead, 0.0)

    def _crown(self, config: int) -> None:
        """Make a configuration the leader. Clearing belongs to one leader: all others are cleared afresh."""
        self.leader = config
        self._margin[:] = 1.0
        self._duels.restart(self._board, config)
        self._raise_lower(np.array([config]))
        if self._paired:
            self._fight()

    def more_instances(self, length: int) -> None:
        """The stream has become longer at its end; positions that were there stay what they were."""
        self.problem = replace(self.problem, n_instances=length)
        self._available = length
        self._agenda.lengthen(length)

    def newcomers(self, count: int, earliest: int = 0) -> int:
        """Add `count` configurations, chosen with knowledge of the runs so far. Return the index of the first.

        They are judged on positions that no configuration has been told to run, from the start of the race on. The
        certificate covers them too from now on, so what is held so far is not shown any longer.

        Args:
            count: How many.
            earliest: Their first position, if the race itself has not come so far: what else has been seen by then.
        """
        if self.mode != "selection":
            raise ScenarioDiffers(
                f"configurations were added, but a race in mode {self.mode} has spent all of delta on those it began "
                "with; take them out again, or begin a new ledger"
            )
        first = self.problem.n_configs
        self.problem = replace(self.problem, n_configs=first + count)
        self.candidates = np.append(self.candidates, np.ones(count, dtype=np.bool_))
        self.lower, self.upper = np.append(self.lower, np.zeros(count)), np.append(self.upper, np.ones(count))
        # Their weight as leaders is not one of a rank; see race_terms.py.
        self._log_rank = np.append(self._log_rank, np.full(count, np.inf))
        self._margin = np.append(self._margin, np.ones(count))
        self._read = np.append(self._read, np.zeros(count, dtype=np.int64))
        for each in (self._board, self._duels, self._agenda):
            each.enter(count)
        self._other_duels = None
        self._waiting |= dict.fromkeys(range(first, first + count), earliest)
        self._let_in()
        if self._best is not None:
            self._best = None
            self._certify()
        return first

    def _let_in(self) -> None:
        """Let waiting configurations begin behind everything that has been ordered or seen, once the race has begun."""
        if self._start is None or not self._waiting:
            return
        frontier = max(self._start, int(self._agenda.ordered.max()))
        for config, earliest in self._waiting.items():
            position = max(frontier, earliest)
            self._agenda.begin_at(config, position)
            self._board.begin_at(config, position - self._start)
            self._joined.append((config, position))
        self._waiting.clear()
        self._duels.restart(self._board, self.leader)

    def retarget(self, epsilon: float) -> None:
        """Another goal from now on. Bounds stay; duels are weighed at other margins, which are right at all of them."""
        self.problem = replace(self.problem, epsilon=epsilon)
        self._aim = max(epsilon, _SMALLEST_EPSILON)
        self._duels, self._other_duels = self._fresh_duels(), None
        self._duels.restart(self._board, self.leader)
        if self._start is not None and self._paired:
            self._fight()
        if self._best is not None:
            self._certify()
            # Clearing was for the old goal, and so was the moment at which captimes are lengthened.
            self._lengthen(self._best.epsilon)

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
            if self._best.epsilon <= self.problem.epsilon and self.problem.schedule >= SECOND_SCHEDULE:
                self._name_the_fastest(self._best)

    def _name_the_fastest(self, held: Certificate) -> None:
        """Name, of those with a certificate at the goal, the one with the best estimate from measured times.

        Scores are lotteries; the times tell near ties apart. Another one is named only if it clears all others itself,
        at the level of its own rank.

        Args:
            held: The leader's certificate.
        """
        tally = self._tally
        if tally is None or self._start is None:
            return
        near = np.flatnonzero(self.upper >= held.utility_low)
        near = near[self._board.scored[near] >= _ENOUGH_TO_LEAD]
        estimate = np.array([measured_utility(tally, each, self.problem.utility) for each in near.tolist()])
        leads = measured_utility(tally, self.leader, self.problem.utility)
        better = near[estimate > leads][np.argsort(-estimate[estimate > leads], kind="stable")]
        for config in better[:_CONSIDERED].tolist():
            epsilon = self._epsilons_of(config)
            worst = int(epsilon.argmax())
            if epsilon[worst] <= self.problem.epsilon:
                which = np.array([config])
                self.lower[config] = max(
                    float(self.lower[config]), float(self._board.lower(which, self._log_lower(which))[0])
                )
                self.candidates[config] = True
                self._best = self._statement(float(epsilon[worst]), worst if worst != config else None, config)
                return

    def _longest(self, epsilon: float) -> float:
        """The longest captime that an epsilon needs: what lies behind it is a small share of that epsilon."""
        needed = float(self.problem.utility.inverse(np.array(self._truncation * epsilon)))
        return min(self.problem.captime_top, needed)

    def _lengthen(self, epsilon: float) -> None:
        """Allow longer captimes as epsilon shrinks, on positions that no configuration has been ordered to run yet."""
        position = int(self._agenda.ordered.max()) + 1
        wanted = self._truncated_for > self._aim and epsilon <= 2.0 * self._truncated_for
        if wanted and self._start is not None and position > self.plan.longest.last_change:
            self._truncated_for = max(self._aim, 0.5 * self._truncated_for)
            self._lengthened.append((position, self._longest(self._truncated_for)))
            self.plan.longest.change_from(*self._lengthened[-1])

    def _statement(self, epsilon: float, challenger: int | None = None, config: int | None = None) -> Certificate:
        """Return the claim about the leader, or about another one that has cleared all others itself."""
        named = self.leader if config is None else config
        shown = float(self._board.upper(np.array([named]), self._log_shown(named))[0])
        low = float(self.lower[named])
        return Certificate(
            config=named,
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
