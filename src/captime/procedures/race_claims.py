"""What the race on a list claims: how its delta is shared out, who leads, late configurations, and its certificate.

Everything here is about truth and nothing about schedules; docs/engine.md, steps 7 to 9, has the proofs.
"""

import math
from dataclasses import replace
from typing import Literal, get_args

import numpy as np

from captime.arrays import BoolArray, FloatArray, IntArray
from captime.certificate import Certificate
from captime.errors import ScenarioDiffers, ScenarioError
from captime.plans import RandomCaptimes, Schedule, Stops
from captime.procedures.agenda import runs_missing
from captime.procedures.board import Board, grown, measured_utility
from captime.procedures.claims import Claims, Duels, EngineOptions
from captime.procedures.problem import SECOND_SCHEDULE, SIXTH_SCHEDULE, Problem
from captime.tally import Tally

Mode = Literal["selection", "simultaneous"]

# Shares of delta: upper bound of the best configuration, duels, lower bounds, the upper end of the interval shown, and
# the scout's lower bound.
UPPER, PAIRED, LOWER, SHOWN, SCOUT = 0.41, 0.41, 0.1, 0.04, 0.04
Shares = tuple[tuple[str, float], ...]
SHARES: Shares = (("upper", UPPER), ("paired", PAIRED), ("lower", LOWER), ("shown", SHOWN), ("scout", SCOUT))
# Where there are few configurations, most of them are near the leader, and duels take most of the CPU time.
SHARES_OF_FEW: Shares = (("upper", 0.26), ("paired", 0.6), ("lower", 0.07), ("shown", 0.04), ("scout", 0.03))
FEW = 40
"""With fewer configurations than this, a race begins without short captimes, and more of delta is spent on duels."""


def shares_of(n_configs: int, schedule: int) -> Shares:
    """Return the shares of delta of a race that began with `n_configs` configurations."""
    return SHARES_OF_FEW if n_configs < FEW and schedule >= SIXTH_SCHEDULE else SHARES


def check_options(boost: float, mode: str, first_runs: int, growth: float, shares: dict[str, float]) -> None:
    """Refuse options of the race that make no sense, each with what would."""
    if not 1.0 <= boost <= 100.0:
        raise ScenarioError(f"boost is {boost!r}, but it has to be between 1 and 100; 1.25 is a good choice")
    if mode not in get_args(Mode):
        raise ScenarioError(f"race has no mode {mode!r}; there are {', '.join(get_args(Mode))}")
    if first_runs < 1:
        raise ScenarioError(f"first_runs is {first_runs}, but every configuration has to run at least once")
    if not 0.0 < growth <= 10.0:
        raise ScenarioError(f"growth is {growth!r}, but it has to be a positive share, such as 0.1")
    for name, share in shares.items():
        if not 0.0 < share < 1.0:
            raise ScenarioError(f"{name} is {share!r}, but it has to be a share between 0 and 1, such as 0.1")


# Configurations that join a race after its first run: what delta has left for them, and how they share it.
#
# The weights of leaders, 1 / ((r + 1)(r + 2)) by rank, sum to n / (n + 1) over n ranks. The rest, 1 / (n + 1) of what
# lower bounds and duels may cost, was kept from the start and is untouched. All statements about latecomers are paid
# from it, and only positions without a run when they came count for them; docs/engine.md, step 9, has the
# proof.

# Parts of the reserve: upper bounds of latecomers; duels of a leader from the beginning with them; duels of a leader
# who came late, with the best from the beginning and with other latecomers; lower bounds; the upper end shown.
LATE_UPPER, LATE_PAIRED, LATE_LEADS, LATE_AMONG, LATE_LOWER, LATE_SHOWN = 0.25, 0.3, 0.15, 0.15, 0.1, 0.05


def reserve(n_first: int, leaders: float = PAIRED + LOWER) -> float:
    """Return the share of delta that a race of `n_first` configurations keeps for latecomers.

    Args:
        n_first: How many configurations the race began with.
        leaders: The share of delta that lower bounds and duels may cost.
    """
    return leaders / (n_first + 1)


class Latecomers:
    """Levels of statements about those who joined later, as ln(1 / failure probability).

    Args:
        n_first: How many configurations the race began with; indices from there on are latecomers.
        delta: Allowed probability of a wrong certificate.
        paired: The share of delta that duels may cost.
        lower: The share that lower bounds may cost.

    Attributes:
        n_first: As given.
    """

    def __init__(self, n_first: int, delta: float, paired: float = PAIRED, lower: float = LOWER) -> None:
        self.n_first = n_first
        self._reserve, self._paired = reserve(n_first, paired + lower), paired
        self._log_reserve = -math.log(self._reserve * delta)

    def price(self, config: IntArray) -> FloatArray:
        """ln(k(k + 1)) of the k-th latecomer, 0 for those who were there from the start.

        >>> np.exp(Latecomers(2, 0.1).price(np.array([0, 1, 2, 3]))).round(6).tolist()
        [1.0, 1.0, 2.0, 6.0]
        """
        number = np.maximum(config - self.n_first + 1, 1).astype(np.float64)
        return np.where(config < self.n_first, 0.0, np.log(number * (number + 1.0)))

    def level(self, part: float, config: IntArray, own: FloatArray) -> FloatArray:
        """Of a statement that takes this part of the reserve; `own` for those who were there from the start."""
        return np.where(config < self.n_first, own, self._log_reserve - math.log(part) + self.price(config))

    def duels(self, leader: int, challengers: IntArray, own: float) -> FloatArray:
        """Of the duels of a leader; `own` where both were there from the start.

        Args:
            leader: The configuration that leads.
            challengers: Its opponents.
            own: ln(1 / failure probability) of the leader's duels with those who were there from the start.
        """
        if leader < self.n_first:
            # By the weight of the leader, as all its duels.
            late = own + math.log(self._paired) - math.log(LATE_PAIRED * self._reserve)
            return np.where(challengers < self.n_first, own, late + self.price(challengers))
        lead = self._log_reserve + float(self.price(np.array([leader]))[0])
        first = np.full(len(challengers), lead - math.log(LATE_LEADS))
        return np.where(challengers < self.n_first, first, lead - math.log(LATE_AMONG) + self.price(challengers))


class ListLevels:
    """The table of shares of a list: by rank in the warm start, with a reserve for configurations that join later.

    Args:
        n_configs: How many configurations the race began with.
        delta: Allowed probability of a wrong certificate.
        mode: What delta covers.
        shares: The shares of delta.

    Attributes:
        named: The shares of delta, as certificates name them.
        late: Levels of statements about those who joined later.
        log_rank: ln(1 / weight) of each configuration as a leader; until there is a ranking, all have the same.
    """

    def __init__(self, n_configs: int, delta: float, mode: Mode, shares: Shares = SHARES) -> None:
        self.named = shares
        self._share = dict(shares)
        self.late = Latecomers(n_configs, delta, self._share["paired"], self._share["lower"])
        self.log_rank: FloatArray = np.full(n_configs, math.log(n_configs))
        self._delta = delta
        self._mode = mode

    def enter(self, count: int) -> None:
        """Make room for `count` configurations that join later. Their weight as leaders is not one of a rank."""
        self.log_rank = np.append(self.log_rank, np.full(count, np.inf))

    def rank(self, ranking: IntArray) -> None:
        """Fix the weights of leaders by a ranking, best first; it is never made again."""
        if self._mode == "selection":
            # The weight of rank r is 1 / ((r + 1)(r + 2)); over all ranks these would sum to 1.
            rank = np.arange(len(ranking), dtype=np.float64)
            self.log_rank[ranking] = np.log((rank + 1.0) * (rank + 2.0))

    def weigh_alike(self) -> None:
        """Give all configurations the same weight as leaders, for a race that begins with its first run."""
        if self._mode == "selection":
            # As with ranks, 1 / (n + 1) of all weight is left for configurations that join later.
            self.log_rank[:] = math.log(self.late.n_first + 1.0)

    def upper(self, config: IntArray) -> FloatArray:
        """Selection needs the upper bound of one fixed configuration only; simultaneity needs all of them."""
        union = 0.0 if self._mode == "selection" else math.log(self.late.n_first)
        own = np.full(len(config), union - math.log(self._share["upper"] * self._delta))
        return self.late.level(LATE_UPPER, config, own)

    def lower(self, config: IntArray) -> FloatArray:
        """Of lower bounds of leaders."""
        own = self.log_rank[config] - math.log(self._share["lower"] * self._delta)
        return self.late.level(LATE_LOWER, config, own)

    def duels(self, leader: int, challengers: IntArray) -> FloatArray:
        """Of the duels of a leader."""
        own = float(self.log_rank[leader]) - math.log(self._share["paired"] * self._delta)
        return self.late.duels(leader, challengers, own)

    def shown(self, config: IntArray) -> FloatArray:
        """Of the upper end shown. The warm start's scores count for it, so this level knows nothing of ranks."""
        own = np.full(len(config), math.log(self.late.n_first) - math.log(self._share["shown"] * self._delta))
        return self.late.level(LATE_SHOWN, config, own)


# What the race on a list claims beside the shared claims: who leads, late configurations, and its certificate.
#
# Everything here is about truth and nothing about schedules; docs/engine.md, steps 7 to 9, has the proofs.

# No configuration takes the lead on fewer common positions.
_ENOUGH_TO_LEAD = 8
# The first 8 ranks are considered as leaders, whenever the runs have grown by the factor 1.15. Another one leads if
# its certificate seems to cost less than this share of the leader's.
_CONSIDERED, _LOOK_AGAIN, _CHEAPER = 8, 1.15, 0.75
# One that costs no more than this, as a multiple of the leader's, may lead because its measured times are better.
_AS_CHEAP = 1.25
# Captimes are first cut as this epsilon needs it; longer ones come when epsilon has come near.
_FIRST_TRUNCATION = 0.1


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
        levels = ListLevels(n_configs, problem.delta, mode, shares_of(n_configs, problem.schedule))
        super().__init__(problem, levels, Board(n_configs, 1.0 / boost), options)
        self.candidates: BoolArray = np.ones(n_configs, dtype=np.bool_)
        self._truncated_for = max(self._aim, _FIRST_TRUNCATION)
        self._lengthened: list[tuple[int, float]] = [(0, self._longest(self._truncated_for))]
        short = problem.short_captimes and n_configs >= FEW
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
        weights = self.levels.log_rank[enough]
        order = (
            np.lexsort((-self._board.means()[enough], weights))
            if self._start == 0
            else np.argsort(weights, kind="stable")
        )
        first = enough[order][:_CONSIDERED]
        now = self._cost_to_certify(self.leader, self._epsilons())
        costs = [self._cost_to_certify(each, self._epsilons_of(each)) for each in first.tolist()]
        if costs and min(costs) < _CHEAPER * now:
            self._crown(int(first[int(np.argmin(costs))]))
        elif self._start == 0 and self._tally is not None:
            self._lead_with_fastest(first[np.array(costs, dtype=np.float64) <= _AS_CHEAP * now], self._tally)

    def _lead_with_fastest(self, config: IntArray, tally: Tally) -> None:
        """Let the one lead, of some that cost about the same, that is best by its measured times.

        A race that begins with its first run may end before a near tie has a certificate of its own.
        """
        contenders = [self.leader, *config.tolist()]
        estimates = [measured_utility(tally, each, self.problem.utility) for each in contenders]
        best = contenders[int(np.argmax(np.nan_to_num(estimates, nan=-1.0)))]
        if best != self.leader:
            self._crown(best)

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
