"""What the race on a list claims beside the shared claims: who leads, late configurations, and its certificate.

Everything here is about truth and nothing about schedules; docs/random-captimes.md, steps 7 to 9, has the proofs.
"""

import math
from dataclasses import replace

import numpy as np

from captime.arrays import BoolArray, FloatArray, IntArray
from captime.certificate import Certificate
from captime.errors import ScenarioDiffers
from captime.plans import RandomCaptimes, Schedule, Stops
from captime.procedures.agenda import runs_missing
from captime.procedures.board import Board, grown
from captime.procedures.claims import Claims, EngineOptions
from captime.procedures.duels import Duels
from captime.procedures.estimates import measured_utility
from captime.procedures.problem import SECOND_SCHEDULE, Problem
from captime.procedures.race_terms import ListLevels, Mode

# No configuration takes the lead on fewer common positions.
_ENOUGH_TO_LEAD = 8
# The first 8 ranks are considered as leaders, whenever the runs have grown by the factor 1.15. Another one leads if
# its certificate seems to cost less than this share of the leader's.
_CONSIDERED, _LOOK_AGAIN, _CHEAPER = 8, 1.15, 0.75
# Captimes are first cut as this epsilon needs it; longer ones come when epsilon has come near.
_FIRST_TRUNCATION = 0.1
# From this many configurations on, runs begin with short captimes. With fewer, the runs that find a leader and clear
# the hopeless ones are a small part of the cost.
_MANY = 40


class ListClaims(Claims):
    """The state of knowledge of a race on a list.

    Args:
        problem: The question.
        mode: What delta covers.
        options: How captimes and orders are made.

    Attributes:
        levels: By rank, with a reserve for those who join later.
        candidates: Who is not cleared yet, and the leader.
    """

    levels: ListLevels

    def __init__(self, problem: Problem, mode: Mode, options: EngineOptions) -> None:
        n_configs, boost = problem.n_configs, options.boost
        self.mode = mode
        levels = ListLevels(n_configs, problem.delta, mode)
        super().__init__(problem, levels, Board(n_configs, 1.0 / boost), options)
        self.candidates: BoolArray = np.ones(n_configs, dtype=np.bool_)
        self._truncated_for = max(self._aim, _FIRST_TRUNCATION)
        self._lengthened: list[tuple[int, float]] = [(0, self._longest(self._truncated_for))]
        short = problem.short_captimes and n_configs >= _MANY
        stops = Stops.doubling(problem.utility, boost, self._longest(self._aim)) if short else Stops.none()
        self.plan = RandomCaptimes(
            problem.utility, problem.seed, Schedule(boost), Schedule(self._lengthened[0][1]), stops
        )
        # Duels of a configuration that does not lead, and how many runs there were when that was last looked at.
        self._other_duels: Duels | None = None
        self._looked_at = 0
        self._start: int | None = None
        # How many sure scores there were when bounds were last read, and when the certificate was last renewed.
        self._read: IntArray = np.zeros(n_configs, dtype=np.int64)
        self._stated = 0
        # Who joined later: with the first position it may have while it waits for the race, then with the one it has.
        self._waiting: dict[int, int] = {}
        self._joined: list[tuple[int, int]] = []

    @property
    def longest_captime(self) -> float:
        """How many CPU seconds a run that is ordered now may get at most."""
        return self._lengthened[-1][1]

    # ------------------------------------------------------------------ bounds and leaders

    def _tighten(self, fresh: IntArray) -> None:
        """Bounds of those with noticeably more scores, and their duels with the leader."""
        fresh = fresh[self._noticeable(fresh)]
        super()._tighten(fresh)
        if len(fresh):
            self._consider_leaders(fresh.tolist())

    def _noticeable(self, config: IntArray) -> BoolArray:
        """Return which configurations have enough new scores to read bounds again; at the end of the stream, all."""
        sure = self._board.scored[config]
        news = grown(sure, self._read[config]) | (self._agenda.ordered[config] >= self._available)
        self._read[config[news]] = sure[news]
        return news

    def _due(self, fresh: IntArray | None) -> IntArray:  # noqa: ARG002 (news of all is looked at)
        return self._duels.due(self._board, self.leader, self._available)

    def _consider_leaders(self, fresh: list[int]) -> None:
        """A challenger that clearly beats the leader on their common positions takes over; validity does not care."""
        if self.problem.schedule >= SECOND_SCHEDULE:
            self._lead_with_cheapest()
        for config in fresh:
            ahead = self._board.ahead(config, self.leader, open_too=True)
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
        first = enough[np.argsort(self.levels.log_rank[enough], kind="stable")][:_CONSIDERED]
        now = self._cost_to_certify(self.leader, self._epsilons())
        costs = [self._cost_to_certify(each, self._epsilons_of(each)) for each in first.tolist()]
        if costs and min(costs) < _CHEAPER * now:
            self._crown(int(first[int(np.argmin(costs))]))

    def _epsilons_of(self, leader: int) -> FloatArray:
        """By how much each configuration may be better than another leader, by own bounds or by duel."""
        epsilon: FloatArray = np.maximum(self.upper - self._lower_of(leader), 0.0)
        epsilon[leader] = 0.0
        fought = np.flatnonzero(epsilon > self.problem.epsilon)
        if self._options.paired and len(fought):
            if self._other_duels is None:
                self._other_duels = self._fresh_duels()
            self._other_duels.restart(self._board, leader)
            shown = self._other_duels.margins(self._board, leader, fought, self.levels.duels(leader, fought))
            epsilon[fought] = np.minimum(epsilon[fought], shown)
        return epsilon

    def _lower_of(self, config: int) -> float:
        """Return the lower bound of a configuration that may not have led yet, at the level of its own rank."""
        which = np.array([config])
        return max(float(self.lower[config]), float(self._board.lower(which, self.levels.lower(which))[0]))

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
        self.levels.enter(count)
        self._enter(count)
        self.candidates = np.append(self.candidates, np.ones(count, dtype=np.bool_))
        self._read = np.append(self._read, np.zeros(count, dtype=np.int64))
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
            self._agenda.ordered[config] = position
            self._board.begin_at(config, position)
            self._joined.append((config, position))
        self._waiting.clear()
        self._duels.restart(self._board, self.leader)

    def retarget(self, epsilon: float) -> None:
        """Take another goal from now on; what is known counts as before."""
        self._aim_at(epsilon)
        self._other_duels = None
        if self._start is not None:
            self._fight()
        if self._best is not None:
            self._certify()
            # Clearing was for the old goal, and so was the moment at which captimes are lengthened.
            self._lengthen(self._best.epsilon)

    # ------------------------------------------------------------------ what is certain

    def _certify(self) -> None:
        epsilon = self._epsilons()
        self.candidates = epsilon > self.problem.epsilon
        self.candidates[self.leader] = True
        worst = int(epsilon.argmax())
        best, sure = self._best, int(self._board.sure[self.leader] - (self._start or 0))
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
                self.lower[config] = self._lower_of(config)
                self.candidates[config] = True
                self._best = self._statement(float(epsilon[worst]), worst if worst != config else None, config)
                return

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
        return self._claim(self.leader if config is None else config, epsilon, challenger, self.problem.n_configs)

    def certificate(self) -> Certificate:
        """The best statement so far; a leader is always named, with epsilon 1 before anything is shown."""
        if self._best is None:
            return self._statement(1.0 if self.problem.n_configs > 1 else 0.0)
        return self._best
