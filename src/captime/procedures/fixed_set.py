"""The race on a fixed set of instances: which configuration is best on exactly these?

The set is walked through in a uniformly random order. Utilities themselves are bet on, without replacement, so a run
may be stopped at any captime: what is then known is an interval. Captimes are as long as the goal needs them, and
longer ones follow where these hide too much. When everything has been run, epsilon is 0 and the configuration is the
best. docs/fixed-sets.md has the proofs; how runs are scheduled touches only the cost.
"""

import math
from dataclasses import replace
from enum import StrEnum

import numpy as np

from captime.arrays import BoolArray, FloatArray, IntArray
from captime.certificate import Certificate
from captime.errors import ScenarioError
from captime.plans.ladder import UtilityLadder
from captime.procedures.problem import Problem
from captime.procedures.set_claims import NODES, PAIRED, SHARES, SetClaims, Standing
from captime.tally import Tally
from captime.targets import Targets, no_targets
from captime.utilities.protocol import Utility

# A goal below this is taken for this when captimes are chosen and leaders are compared.
_SMALLEST_GOAL = 0.005
# A first captime that is longer than this share of the longest one saves too little: its runs would be made twice.
_SHORT_SHARE = 1.0 / 3.0
# The worth of an answer at one captime, divided by that at the next.
_STEP = 4.0
# Without a longest captime, captimes end where an answer is worth this share of the goal.
_VANISHING = 1e-2
# The ranking may be made once this share of the pilot's runs has ended, if slots are free.
_HEARD = 0.75
# A leader is replaced on at least this many positions.
_ENOUGH_TO_LEAD = 8
# An order repeats this share of the positions after the pilot.
_GROWTH = 0.05


class Way(StrEnum):
    """How a race on a set goes about it."""

    SAMPLE = "sample"
    """Positions one after the other, until the claim follows."""
    EVERYTHING = "everything"
    """All runs at once with the longest captime: with so few instances that is the cheapest way."""


class FixedSetRace:
    """Every configuration on a few positions, then the leader against the others, until epsilon is reached.

    Args:
        problem: The question; `n_instances` is the size of the set.
        pilot: Positions that every configuration runs before the first leader is chosen; by default about half the
            root of the number of instances, at most 8.

    Attributes:
        leader: The recommended configuration.
        candidates: Configurations that are not cleared yet, and the leader.
        way: How the race goes about it.
    """

    bound = "set-duels"
    pays = True

    def __init__(self, problem: Problem, *, pilot: int | None = None) -> None:
        if problem.n_instances is None:
            raise ScenarioError(
                "population is 'these', but the instances have no end, so there is no set to speak about; use "
                "population = 'drawn'"
            )
        if pilot is not None and pilot < 1:
            raise ScenarioError(f"pilot is {pilot}, but every configuration has to run at least once; use 1 or more")
        size, n_configs = problem.n_instances, problem.n_configs
        self.problem = problem
        self.plan = UtilityLadder(problem.utility, captimes_for(problem))
        self.rounds = 0
        self.leader = 0
        self.way = Way.SAMPLE
        self.candidates: BoolArray = np.ones(n_configs, dtype=np.bool_)
        self.claims = SetClaims(n_configs, size, problem.delta)
        self._pilot = min(size, pilot_size(size) if pilot is None else pilot)
        # Positions before this one were met in an order that is not uniform over the whole set.
        self._earliest = 0
        self._ordered: IntArray = np.zeros(n_configs, dtype=np.int64)
        self._level: IntArray = np.zeros(n_configs, dtype=np.int64)
        self._front = 0
        self._tally: Tally | None = None
        self._pilot_seconds: FloatArray = np.zeros(n_configs)
        self._stale: BoolArray = np.zeros(n_configs, dtype=np.bool_)
        self._best: Certificate | None = None
        self._stated = 0
        self._other_at = (-1, 0)
        if n_configs == 1:
            self._begin()

    @property
    def top(self) -> int:
        """The last level of captimes."""
        return len(self.plan.rungs) - 1

    # ------------------------------------------------------------------ what to learn next

    def ask(self, slots: int) -> Targets:
        """Return the next runs: the pilot's, then one more stretch of the set for all that are not cleared."""
        if self.finished() is not None:
            return no_targets()
        if self.claims.set_standing is None and not self._pilot_over():
            return self._pilot_order()
        size = self.claims.population
        rivals = self._rivals()
        if self.way is Way.EVERYTHING:
            everyone = np.append(rivals, self.leader)
            return self._place(everyone, np.full(len(everyone), size), np.full(len(everyone), self.top))
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
        return no_targets()

    def _place(self, config: IntArray, n: IntArray, level: IntArray) -> Targets:
        """Order these prefixes at these levels, as far as that is new."""
        n, level = np.maximum(n, self._ordered[config]), np.maximum(level, self._level[config])
        news = (n > self._ordered[config]) | (level > self._level[config])
        config, n, level = config[news], n[news], level[news]
        self._ordered[config], self._level[config] = n, level
        return Targets(config, n, level)

    def _pilot_order(self) -> Targets:
        everyone = np.arange(self.problem.n_configs)
        return self._place(everyone, np.full(len(everyone), self._pilot), self._level[everyone])

    def _pilot_over(self) -> bool:
        """Make the ranking if the pilot's runs have ended, or enough of them while slots are free."""
        tally = self._tally
        if tally is None or (self._ordered < self._pilot).any():
            return False
        ended = int((tally.n - tally.open)[: len(self._ordered)].sum())
        if ended < _HEARD * self._pilot * len(self._ordered):
            return False
        self._begin()
        self._judge()
        self._certify()
        return True

    def _start(self) -> int:
        standing = self.claims.set_standing
        return 0 if standing is None else standing.start

    def _rivals(self) -> IntArray:
        rivals = self.candidates.copy()
        rivals[self.leader] = False
        return np.flatnonzero(rivals)

    def _levels_for(self, rivals: IntArray) -> IntArray:
        """Return the level of captimes at which each challenger is likely to be cleared at the least cost."""
        levels = self._level[rivals].copy()
        if self._tally is None or not self.top:
            return levels
        for place, config in enumerate(rivals.tolist()):
            level, length = int(levels[place]), int(self._ordered[config])
            if level < self.top and self._tally.open[config] == 0 and self._longer_pays(config, level, length):
                levels[place] = level + 1
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

    # ------------------------------------------------------------------ what became known

    def tell(self, tally: Tally, changed: IntArray) -> None:
        """Take in new results, make the ranking after the pilot, change the leader, renew the certificate."""
        self._tally = tally
        fresh = [config for config in changed.tolist() if self.claims.read(tally, config)]
        if not fresh:
            return
        self.rounds += 1
        self._stale[fresh] = True
        open_runs = int(tally.open[: len(self._ordered)].sum())
        if self.claims.set_standing is None and not open_runs and bool((self._ordered >= self._pilot).all()):
            self._begin()
        if self.claims.set_standing is not None:
            self._judge()
        self._certify()

    def _begin(self) -> None:
        """Make the ranking from what the pilot has shown; bets begin behind every position that was ordered."""
        start = max(self._earliest, int(self._ordered.max()))
        n_configs = self.problem.n_configs
        seen = max(1, int(self._ordered.min()))
        means = self.claims.middles()[:, :seen].mean(axis=1)
        ranking = np.argsort(-means, kind="stable")
        self.claims.set_standing = Standing(start, ranking, [])
        if self.claims.drawn_standing is None:
            self.claims.drawn_standing = Standing(start, ranking, [])
            if self._tally is not None:
                self._pilot_seconds = self._tally.seconds[:n_configs].copy()
        self.leader = int(ranking[0])
        self._front = max(self._front, min(start, self.claims.population), seen)
        self._stale[:] = True
        if not self._bets_can_win(start):
            self.way = Way.EVERYTHING

    def _bets_can_win(self, start: int) -> bool:
        """Return whether the positions that are left could refute the goal by bets, if all went the leader's way."""
        left = self.claims.population - start
        wanted = -math.log(PAIRED * self.problem.delta)
        return left * math.log(2.0 / (1.0 - self.problem.epsilon)) > wanted

    def _judge(self) -> None:
        """Weigh the duels with news, and let a configuration that is clearly better lead."""
        stale = np.flatnonzero(self._stale)
        self._stale[:] = False
        self._duel(stale)
        led = {self.leader}
        while (better := self._better()) is not None and better not in led:
            self.leader = better
            led.add(better)
            self._duel(np.arange(self.problem.n_configs))

    def _better(self) -> int | None:
        """Return the configuration that should lead in place of the leader, the best of them; None if none should."""
        leads = self.claims.leads(self.leader)
        rivals = np.flatnonzero(leads > 0.0)
        better = [config for config in rivals[rivals != self.leader].tolist() if self._is_better(config)]
        return max(
            better, key=lambda config: (self.claims.lower_mean(config, self._known(config)), -config), default=None
        )

    def _known(self, config: int) -> int:
        """Return the number of positions on which a configuration can be compared with the leader."""
        return int(min(self._ordered[config], self._ordered[self.leader]))

    def _duel(self, changed: IntArray) -> None:
        everyone = np.arange(self.problem.n_configs)
        rivals = everyone if self.leader in changed else changed
        self.claims.duel(self.leader, rivals, self.problem.epsilon)

    def _is_better(self, config: int) -> bool:
        """Return whether a configuration should lead: certainly better, or clearly so on the common positions."""
        leads = self.claims.certain_leads(self.leader)[config], self.claims.certain_leads(config)[self.leader]
        if leads[1] < 0.0 or (leads[1] <= 0.0 < leads[0]):
            return True
        length = self._known(config)
        if length < _ENOUGH_TO_LEAD:
            return False
        mean, significance = self.claims.mean_lead(config, self.leader, length)
        return mean > 0.25 * max(self.problem.epsilon, _SMALLEST_GOAL) and significance > 2.0

    def _open(self, leads: FloatArray) -> BoolArray:
        open_: BoolArray = leads > self.problem.epsilon
        open_[self.leader] = True
        return open_

    def _certify(self) -> None:
        leads = self.claims.leads(self.leader)
        self.candidates = self._open(leads)
        worst = int(leads.argmax())
        epsilon, best = float(leads[worst]), self._best
        known = self.claims.exact(self.leader)
        grown = known >= self._stated + max(1, self._stated // 10)
        ended = epsilon <= self.problem.epsilon or self._used_up()
        if (
            best is None
            or epsilon < best.epsilon
            or (epsilon == best.epsilon and (best.config != self.leader or grown or (ended and known != self._stated)))
        ):
            self._stated = known
            other = self._other(best, known, ended=ended)
            self._best = self.claims.statement(self.leader, epsilon, worst if worst != self.leader else None, other)

    def _other(self, best: Certificate | None, known: int, *, ended: bool) -> Certificate:
        """Return the claim about the distribution; weighed anew when noticeably more is known, or at the end."""
        config, before = self._other_at
        old = None if best is None else best.other
        if old is not None and config == self.leader and known < before + max(1, before // 5) and not ended:
            return old
        self._other_at = (self.leader, known)
        return self.claims.drawn_statement(self.leader, self.problem.epsilon)

    # ------------------------------------------------------------------ changes on the way

    def retarget(self, epsilon: float) -> None:
        """Take another goal from now on; what is known counts as before."""
        self.problem = replace(self.problem, epsilon=epsilon)
        if self.claims.set_standing is not None:
            self._stale[:] = True
            self._judge()
            self._certify()

    def more_instances(self, length: int) -> None:
        """Speak about a larger set: the new instances stand in a random order behind the others."""
        self._earliest = self.claims.population
        self.claims.lengthen(length)
        self.problem = replace(self.problem, n_instances=length)
        self._best, self._stated = None, 0
        if int(self._ordered.min()) >= self._pilot:
            self._begin()
            self._judge()
        self._certify()

    def newcomers(self, count: int, earliest: int = 0) -> int:
        """Let more configurations take part, which may have been chosen with a look at every run so far.

        Args:
            count: How many.
            earliest: No position before this one counts for them.
        """
        first = self.problem.n_configs
        self.problem = replace(self.problem, n_configs=first + count)
        self.claims.enter(count)
        nothing = np.zeros(count, dtype=np.int64)
        self._ordered, self._level = np.append(self._ordered, nothing), np.append(self._level, nothing)
        self.candidates = np.append(self.candidates, np.ones(count, dtype=np.bool_))
        self._stale = np.append(self._stale, np.zeros(count, dtype=np.bool_))
        self._pilot_seconds = np.append(self._pilot_seconds, np.zeros(count))
        frontier = max(int(self._ordered.max()), earliest)
        for standing in (self.claims.set_standing, self.claims.drawn_standing):
            if standing is not None:
                entry = max(frontier, standing.start)
                standing.joined += [(config, entry) for config in range(first, first + count)]
        if self.claims.set_standing is None:
            self._earliest = max(self._earliest, earliest)
        self._best, self._stated = None, 0
        self._certify()
        return first

    # ------------------------------------------------------------------ how it stands

    def facts(self) -> dict[str, object] | None:
        """Return what a checker needs and cannot read off the runs; None before the ranking is made.

        Keys: `population`, `instances` (N), `way`, `nodes`, `shares`, and for each of the two claims `set` and `drawn`
        the terms `start`, `ranking` and `joined`.
        """
        of_set, drawn = self.claims.set_standing, self.claims.drawn_standing
        if of_set is None or drawn is None:
            return None
        return {
            "population": str(self.problem.population),
            "instances": self.claims.population,
            "way": str(self.way),
            "nodes": NODES,
            "shares": dict(SHARES),
            "set": _terms(of_set),
            "drawn": _terms(drawn),
        }

    def spending(self) -> dict[str, float]:
        """Return CPU seconds by purpose."""
        if self._tally is None:
            return dict.fromkeys(("pilot", "leader", "challengers"), 0.0)
        seconds = self._tally.seconds[: len(self._pilot_seconds)]
        if self.claims.set_standing is None:
            return {"pilot": float(seconds.sum()), "leader": 0.0, "challengers": 0.0}
        later = seconds - self._pilot_seconds
        return {
            "pilot": float(self._pilot_seconds.sum()),
            "leader": float(later[self.leader]),
            "challengers": float(later.sum() - later[self.leader]),
        }

    def certificate(self) -> Certificate:
        """Return the best claim so far; a leader is always named, with epsilon 1 before anything is shown."""
        if self._best is None:
            epsilon = 1.0 if self.problem.n_configs > 1 else 0.0
            return self.claims.statement(self.leader, epsilon, None, None)
        return self._best

    def finished(self) -> str | None:
        """See the protocol."""
        if self.problem.n_configs == 1:
            return "single"
        if self._best is not None and self._best.epsilon <= self.problem.epsilon:
            return "epsilon"
        return "instances" if self._used_up() else None

    def _used_up(self) -> bool:
        """Return whether all runs that could change the claim have ended at the longest captime."""
        if self._tally is None or self.claims.set_standing is None:
            return False
        needed = self.candidates.copy()
        needed[self.leader] = True
        which = np.flatnonzero(needed)
        ordered = (self._ordered[which] >= self.claims.population) & (self._level[which] >= self.top)
        return bool(ordered.all()) and bool((self._tally.settled[which] >= self.claims.population).all())


def _terms(standing: Standing) -> dict[str, object]:
    return {
        "start": standing.start,
        "ranking": standing.ranking.tolist(),
        "joined": [list(each) for each in standing.joined],
    }


def pilot_size(instances: int) -> int:
    """Return how many positions every configuration runs before the first leader is chosen.

    >>> [pilot_size(instances) for instances in (1, 5, 20, 60, 200, 5000)]
    [1, 1, 2, 4, 7, 8]
    """
    return int(np.clip(0.2 + 0.5 * math.sqrt(instances), 1, 8))


def captimes_for(problem: Problem) -> FloatArray:
    """Return the captimes by level: as long as the goal needs them, then longer ones up to the longest there is.

    An answer at the first captime is worth epsilon, at each further one a quarter of that. A captime that is nearly
    the longest is left out, since runs that it stops are repeated.
    """
    return _captimes(problem.utility, problem.epsilon, problem.captime_top, repeat=problem.short_captimes)


def _captimes(utility: Utility, epsilon: float, longest: float, *, repeat: bool) -> FloatArray:
    goal = max(epsilon, _SMALLEST_GOAL)
    if math.isinf(longest):
        longest = float(utility.inverse(np.array(_VANISHING * goal)))
    if epsilon < _SMALLEST_GOAL or not repeat:
        return np.array([longest])
    rungs: list[float] = []
    worth = goal
    while (captime := float(utility.inverse(np.array(worth)))) <= _SHORT_SHARE * longest:
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
