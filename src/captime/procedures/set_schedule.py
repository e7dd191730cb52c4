"""How a procedure on a fixed set of instances orders its runs: captimes, stretches of the set, and which one leads.

Nothing here can make a claim wrong: docs/fixed-sets.md allows any captime, any length of a prefix and any leader.
"""

import math

import numpy as np

from captime.arrays import FloatArray, IntArray
from captime.certificate import Orders, no_orders
from captime.errors import ScenarioError
from captime.plans import UtilityLadder
from captime.procedures.problem import FOURTH_SCHEDULE, Problem
from captime.procedures.set_claims import SetClaims
from captime.tally import Tally

# A goal below this is taken for this when captimes are chosen and leaders are compared.
_SMALLEST_GOAL = 0.005
# A first captime that is longer than this share of the longest one saves too little for what it hides.
_SHORT_SHARE = 0.75
# The same under earlier schedules, which made runs twice.
_SHORT_IF_REPEATED = 1.0 / 3.0
# An answer at the first captime is worth this share of the goal at most, so that rounding cannot hide the goal.
_BELOW_GOAL = 1.0 - 1e-6
# The worth of an answer at one captime, divided by that at the next.
_STEP = 4.0
# Without a longest captime, captimes end where an answer is worth this share of the goal.
_VANISHING = 1e-2
# A leader is replaced on at least this many positions.
_ENOUGH_TO_LEAD = 8
# An order repeats this share of the positions after the pilot.
_GROWTH = 0.05


class SetSchedule:
    """Orders of runs on a fixed set, for the list of the race and for the growing pool.

    Args:
        problem: The question; `n_instances` is the size of the set.
        claims: What is known, and what follows from it.
        captimes: The captimes by level.

    Attributes:
        problem: As given, with the goal that is in force.
        leader: The recommended configuration.
        claims: As given.
        plan: The captimes of runs.
        rounds: How often news has come.
    """

    bound = "set-duels"
    pays = True

    def __init__(self, problem: Problem, claims: SetClaims, captimes: FloatArray) -> None:
        self.problem = problem
        self.claims = claims
        self.plan = UtilityLadder(problem.utility, captimes)
        self.rounds = 0
        self.leader = 0
        n_configs = claims.n_configs
        self._ordered: IntArray = np.zeros(n_configs, dtype=np.int64)
        self._level: IntArray = np.zeros(n_configs, dtype=np.int64)
        self._pilot_seconds: FloatArray = np.zeros(n_configs)
        self._front = 0
        self._tally: Tally | None = None

    @property
    def top(self) -> int:
        """The last level of captimes."""
        return len(self.plan.rungs) - 1

    @property
    def _enough(self) -> int:
        """The first level at which runs of the whole set are certain to show the goal.

        What a captime hides of a run is worth no more than the goal there. So once all have run the whole set at this
        level, no configuration can be ahead by more than the goal of the one with the largest sum of low ends.
        """
        if self.problem.schedule < FOURTH_SCHEDULE:
            return self.top
        reach = np.flatnonzero(self.plan.worth_at_rung <= self.problem.epsilon)
        return int(reach[0]) if len(reach) else self.top

    def _start(self) -> int:
        """Return the first position that counts for most configurations."""
        raise NotImplementedError

    # ------------------------------------------------------------------ orders

    def _enter(self, count: int) -> None:
        """Make room for more configurations."""
        self.claims.enter(count)
        nothing = np.zeros(count, dtype=np.int64)
        self._ordered, self._level = np.append(self._ordered, nothing), np.append(self._level, nothing)
        self._pilot_seconds = np.append(self._pilot_seconds, np.zeros(count))

    def _place(self, config: IntArray, n: IntArray, level: IntArray) -> Orders:
        """Order these prefixes at these levels, as far as that is new."""
        n, level = np.maximum(n, self._ordered[config]), np.maximum(level, self._level[config])
        news = (n > self._ordered[config]) | (level > self._level[config])
        config, n, level = config[news], n[news], level[news]
        self._ordered[config], self._level[config] = n, level
        return Orders(config, n, level)

    def _advance(self, rivals: IntArray, slots: int) -> Orders:
        """Return the next runs of the leader and its rivals: those behind first, then captimes, then a new stretch."""
        size = self.claims.population
        behind = rivals[self._ordered[rivals] < self._front]
        if len(behind):
            # Cleared by a former leader, or new: each is taken further bit by bit, as far as the others are.
            have = self._ordered[behind]
            further = np.maximum(1, np.maximum(_GROWTH * (have - self._start()), slots // len(behind)).astype(np.int64))
            chosen, wanted = np.append(behind, self.leader), np.append(have + further, self._front)
            return self._place(chosen, np.minimum(wanted, self._front), self._level[chosen])
        levels = self._levels_for(rivals)
        if (levels > self._level[rivals]).any():
            risen = rivals[levels > self._level[rivals]]
            chosen, wanted = np.append(risen, self.leader), levels[levels > self._level[rivals]]
            wanted = np.append(wanted, max(int(wanted.max()), int(self._level[self.leader])))
            return self._place(chosen, self._ordered[chosen], wanted)
        if self._front < size:
            stretch = max(1, int(_GROWTH * (self._front - self._start())), slots // (len(rivals) + 1))
            self._front = min(size, self._front + stretch)
            chosen = np.append(self.leader, rivals)
            return self._place(chosen, np.full(len(chosen), self._front), self._level[chosen])
        level = max(self._enough, int(self._level[rivals].max(initial=0)))
        if self._level[self.leader] < level:
            # A leader that came up with shorter captimes than its rivals have.
            leader = np.array([self.leader])
            return self._place(leader, self._ordered[leader], np.full(1, level))
        return no_orders()

    def _levels_for(self, rivals: IntArray) -> IntArray:
        """Return the level of captimes at which each challenger is likely to be cleared at the least cost."""
        levels = self._level[rivals].copy()
        if self._tally is None or not self.top:
            return levels
        if self.problem.schedule >= FOURTH_SCHEDULE:
            return self._levels_at_end(rivals)
        for place, config in enumerate(rivals.tolist()):
            level, length = int(levels[place]), int(self._ordered[config])
            if level < self.top and self._tally.open[config] == 0 and self._longer_pays(config, level, length):
                levels[place] = level + 1
        return levels

    def _levels_at_end(self, rivals: IntArray) -> IntArray:
        """Return the level of captimes of each challenger: the one that is enough, longer ones only at the very end.

        Longer ones are for what the whole set does not show at that level, such as runs that were given up.
        """
        levels = np.maximum(self._level[rivals], self._enough)
        both = np.append(rivals, self.leader)
        ended = self._tally is not None and not self._tally.open[both].any()
        if ended and (self._ordered[both] >= self.claims.population).all() and (levels == self._level[rivals]).all():
            levels = np.minimum(levels + 1, self.top)
        return levels

    def _longer_pays(self, config: int, level: int, length: int) -> bool:
        """Estimate whether longer captimes clear a challenger at a smaller cost than more positions do."""
        size, tally = self.claims.population, self._tally
        if length >= size:
            return True
        if tally is None or length < _ENOUGH_TO_LEAD or self._ordered[self.leader] < length:
            return False
        low, high = self.claims.low[config, :length], self.claims.high[config, :length]
        ahead = high - self.claims.low[self.leader, :length]
        cut = high > low
        now, following = (float(self.plan.worth_at_rung[each]) for each in (level, level + 1))
        later = np.where(cut, high - (now - following), high) - self.claims.low[self.leader, :length]
        captime = float(self.plan.rungs[level + 1])
        share = float(cut.mean())
        price = float(tally.seconds[config]) / max(1, int(tally.runs[config]))
        wanted = 3.0 - math.log(self.problem.delta)
        stay = _needed(ahead, self.problem.epsilon, wanted, size)
        rise = _needed(later, self.problem.epsilon, wanted, size)
        if math.isinf(rise):
            return False
        longer = share * captime + (1.0 - share) * price
        cost_of_rise = length * share * captime + max(0.0, rise - length) * longer
        if math.isinf(stay):
            # Nothing but longer captimes can clear it in the end.
            return cost_of_rise < (size - length) * price + size * share * captime
        return cost_of_rise < max(0.0, stay - length) * price

    # ------------------------------------------------------------------ comparisons

    def _known(self, config: int) -> int:
        """Return the number of positions on which a configuration can be compared with the leader."""
        return int(min(self._ordered[config], self._ordered[self.leader]))

    def _duel(self, changed: IntArray) -> None:
        all_configs = np.arange(self.claims.n_configs)
        rivals = all_configs if self.leader in changed else changed
        self.claims.duel(self.leader, rivals, self.problem.epsilon)

    def _is_better(self, config: int) -> bool:
        """Return whether a configuration should lead: certainly better, or clearly so on the common positions."""
        leads = self.claims.certain_leads(self.leader)[config], self.claims.certain_leads(config)[self.leader]
        if leads[1] < 0.0 or (leads[1] <= 0.0 < leads[0]):
            return True
        length = self._known(config)
        if self._complete(config) and self._complete(self.leader) and self.problem.schedule >= FOURTH_SCHEDULE:
            # Nothing more will be run at this level, and what is certain decides.
            return self.claims.lower_sum(config) > self.claims.lower_sum(self.leader)
        if length < _ENOUGH_TO_LEAD:
            return False
        mean, significance = self.claims.mean_lead(config, self.leader, length)
        return mean > 0.25 * max(self.problem.epsilon, _SMALLEST_GOAL) and significance > 2.0

    def _complete(self, config: int) -> bool:
        """Return whether a configuration has run the whole set, with captimes that are enough for the goal."""
        size = self.claims.population
        return (
            self._tally is not None
            and config < len(self._tally.settled)
            and bool(self._tally.settled[config] >= size and self._level[config] >= self._enough)
        )

    def spending(self) -> dict[str, float]:
        """Return CPU seconds by purpose."""
        if self._tally is None:
            return dict.fromkeys(("pilot", "leader", "challengers"), 0.0)
        seconds = self._tally.seconds[: len(self._pilot_seconds)]
        if self._pilot_only():
            return {"pilot": float(seconds.sum()), "leader": 0.0, "challengers": 0.0}
        later = seconds - self._pilot_seconds
        return {
            "pilot": float(self._pilot_seconds.sum()),
            "leader": float(later[self.leader]),
            "challengers": float(later.sum() - later[self.leader]),
        }

    def _pilot_only(self) -> bool:
        """Return whether all CPU time so far went to the pilot."""
        return self.claims.set_standing is None


def checked_size(problem: Problem, pilot: int | None) -> int:
    """Return the number of instances of the set; refuse a question or a pilot that makes no sense there."""
    if problem.n_instances is None:
        raise ScenarioError(
            "population is 'these', but the instances have no end, so there is no set to speak about; use "
            "population = 'drawn'"
        )
    if pilot is not None and pilot < 1:
        raise ScenarioError(f"pilot is {pilot}, but every configuration has to run at least once; use 1 or more")
    return problem.n_instances


def pilot_size(instances: int) -> int:
    """Return how many positions every configuration runs before the first leader is chosen.

    >>> [pilot_size(instances) for instances in (1, 5, 20, 60, 200, 5000)]
    [1, 1, 2, 4, 7, 8]
    """
    return int(np.clip(0.2 + 0.5 * math.sqrt(instances), 1, 8))


def captimes_for(problem: Problem) -> FloatArray:
    """Return the captimes by level: as long as the goal needs them, then longer ones up to the longest there is.

    An answer at the first captime is worth epsilon, at each further one a quarter of that. They are for goals that are
    lowered later. A captime that is nearly the longest is left out.
    """
    utility, goal, longest = problem.utility, max(problem.epsilon, _SMALLEST_GOAL), problem.captime_top
    if math.isinf(longest):
        longest = float(utility.inverse(np.array(_VANISHING * goal)))
    if problem.epsilon < _SMALLEST_GOAL or not problem.short_captimes:
        return np.array([longest])
    once = problem.schedule >= FOURTH_SCHEDULE
    most = (_SHORT_SHARE if once else _SHORT_IF_REPEATED) * longest
    rungs: list[float] = []
    worth = goal * _BELOW_GOAL if once else goal
    while (captime := float(utility.inverse(np.array(worth)))) <= most:
        if not rungs or captime > rungs[-1]:
            rungs.append(captime)
        worth /= _STEP
    return np.array([*[each for each in rungs if each > 0.0], longest])


def _needed(differences: FloatArray, goal: float, wanted: float, size: int) -> float:
    """Estimate how many positions it takes to refute a lead of `goal`; infinite if the whole set would not do."""
    gap = goal - float(differences.mean())
    if gap <= 0.0:
        return math.inf
    spread = float(differences.var()) + gap * gap
    # Without replacement a sample of m from N is worth m / (1 - m / N).
    plain = 2.0 * wanted * spread / (gap * gap)
    return plain / (1.0 + plain / size)
