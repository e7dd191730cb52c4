"""The pool that grows, on a fixed set of instances: the best of a space on exactly these?

Configurations come as in `pool`: the default and favourites, random draws, proposals. Each is run on the positions of
one uniformly random order of the set, and utilities are bet on without replacement, as in the race on a set. Shares of
delta are fixed at arrival. docs/fixed-sets.md, step 11, has the proof; when a configuration is added, which one is run
and which one leads touch only the cost.
"""

import math
from dataclasses import replace

import numpy as np

from captime.arrays import BoolArray, FloatArray, IntArray
from captime.certificate import Certificate, Orders, no_orders
from captime.errors import ScenarioDiffers
from captime.procedures.pool_certificates import PoolGoals
from captime.procedures.pool_gamma import GammaBets, check_gamma
from captime.procedures.pool_growth import Stakes, looks_good_enough, newcomers_turn, runs_to_show
from captime.procedures.pool_shares import ArrivalTable, PoolShares
from captime.procedures.pool_terms import DRAWS, ON_SET_PAIRED, ON_SET_SHARES, PoolTerms, Stop
from captime.procedures.pool_terms import checked_stop as checked
from captime.procedures.problem import Problem
from captime.procedures.set_claims import NODES, SetClaims
from captime.procedures.set_schedule import SetSchedule, captimes_for, checked_size, pilot_size
from captime.tally import Tally

# Without a goal for gamma, this many draws are expected.
_EXPECTED_DRAWS = 50
# About how many runs it takes to clear a newcomer.
_RUNS_TO_CLEAR = 16
# ln(1 / share) of a usual duel, without delta; only says whether bets can win at all.
_USUAL_PRICE = 2.0


class FixedSetPool(SetSchedule):
    """A pool on a fixed set: within epsilon of the best outside the top gamma, on exactly these instances.

    Args:
        problem: The question; `n_instances` is the size of the set, `pool` says which configurations come when.
        gamma: Goal: the best fraction of the space that may be missed; 0 for "as small as it gets".
        stop: Content when `both` goals are reached, or with `epsilon` or `gamma` alone.
        pilot: Positions on which random draws are ranked; bets use later ones only. By default about half the root of
            the number of instances, at most 8.

    Attributes:
        terms: The order of arrivals.
        shares: The share of delta of each arrival.
        gammas: gamma by number of draws.
    """

    def __init__(self, problem: Problem, *, gamma: float = 0.1, stop: Stop = "both", pilot: int | None = None) -> None:
        size = checked_size(problem, pilot)
        checked(stop)
        self._pilot = min(size, pilot_size(size) if pilot is None else pilot)
        super().__init__(problem, SetClaims(0, size, problem.delta, ON_SET_SHARES), self._captimes(problem, size))
        self.terms = PoolTerms(limit=problem.n_configs) if problem.pool is None else problem.pool
        self.gammas = GammaBets(DRAWS * problem.delta, gamma)
        expected = self.gammas.draws_for(gamma) if gamma > 0.0 else _EXPECTED_DRAWS
        self.shares = PoolShares(self.terms, min(expected, self.terms.limit or expected))
        self._goals = PoolGoals(problem.epsilon, gamma, stop)
        self._of_set = self.claims.set_standing = ArrivalTable(self.shares, self._pilot)
        self._of_draws = self.claims.drawn_standing = ArrivalTable(self.shares, self._pilot)
        self._front = self._pilot
        self._draws: IntArray = np.empty(0, dtype=np.int64)
        # Sums of utilities on the pilot's positions at the first captime; not a number before all of them are known.
        self._pilot_sums: FloatArray = np.empty(0)
        self._leads: FloatArray = np.empty(0)
        self._lower = 0.0
        self._upper = 1.0
        self._slots = 1
        self._asked_for = 0
        self._earliest: dict[int, int] = {}
        self._best: Certificate | None = None
        self._stated = self._other_at = (-1, 0)
        while self.terms.room(self.size) and (self.size < 2 or self.size <= self.terms.n_listed):
            self._admit()

    def _captimes(self, problem: Problem, size: int) -> FloatArray:
        """Return the captimes by level; one alone where everything has to be run anyway."""
        wanted = _USUAL_PRICE - math.log(ON_SET_PAIRED * problem.delta)
        if (size - self._pilot) * math.log(2.0 / (1.0 - problem.epsilon)) > wanted:
            return captimes_for(problem)
        return captimes_for(problem)[-1:]

    @property
    def size(self) -> int:
        """Number of configurations that have come."""
        return self.claims.n_configs

    def _start(self) -> int:
        return max(self._pilot, self._of_set.earliest)

    # ------------------------------------------------------------------ which configurations take part

    @property
    def candidates(self) -> BoolArray:
        """The configurations that are not cleared, those in the pilot, and the leader; one entry for each that exists.

        Pilots are always finished: later newcomers are ranked by them.
        """
        known: BoolArray = np.zeros(max(self.problem.n_configs, self._asked_for), dtype=np.bool_)
        rivals = (self._leads > self.problem.epsilon) | np.isnan(self._pilot_sums)
        rivals[self.leader] = True
        known[: self.size] = rivals[: len(known)]
        return known

    def _rivals(self) -> IntArray:
        return np.flatnonzero(self._leads > self.problem.epsilon)

    def _in_pilot(self) -> IntArray:
        return np.flatnonzero(np.isnan(self._pilot_sums))

    def _admit(self) -> None:
        """Admit one more configuration: its shares are fixed now, and those of all others stay as they are."""
        self.shares.arrive()
        self._enter(1)
        self._draws = np.append(self._draws, self.shares.draws)
        self._pilot_sums = np.append(self._pilot_sums, np.nan)
        self._leads = np.append(self._leads, 1.0)
        if self.size == 1:
            self._leads[0] = 0.0

    def _grow(self) -> None:
        """Add newcomers as long as it is their turn; proposals of one batch come together."""
        while self.finished() is None and self.terms.room(self.size) and self._newcomers_turn():
            end = self.terms.batch_end(self.size)
            while self.size < end and self.terms.room(self.size):
                self._admit()

    def _newcomers_turn(self) -> bool:
        """Spend on newcomers in proportion to what is at stake outside the pool; see pool_growth.py."""
        gamma = self.gammas.after(self.shares.draws)
        if self._goals.gamma > 0.0 and gamma <= self._goals.gamma:
            return False
        if len(self._in_pilot()) >= max(1, self._slots // self._pilot):
            return False
        if self._alone_pays():
            return False
        if not len(self._rivals()) or self._used_up():
            return True
        stakes = Stakes(self.certificate().epsilon, gamma, self._mean(self.leader))
        looked = float(self._pilot_seconds.sum())
        spent = 0.0 if self._tally is None else float(self._tally.seconds.sum())
        return newcomers_turn(looked, spent, stakes, self._draws_missing() / max(1, self.shares.draws))

    def _draws_missing(self) -> int:
        if self._goals.gamma <= 0.0:
            return 0
        return max(0, self.gammas.draws_for(self._goals.gamma) - self.shares.draws)

    def newcomers(self, count: int, earliest: int = 0) -> int:
        """Add `count` configurations, chosen with knowledge of the runs so far, as proposals. Return the first index.

        Certificates cover them too from now on, so what is held so far is not shown any longer, unless it covers every
        possible configuration.

        Args:
            count: How many.
            earliest: No position before this one counts for them.
        """
        if not self.shares.takes_late:
            raise ScenarioDiffers(
                "this pool has no share of delta left for configurations that are added later; take them out again, or "
                "begin a new ledger"
            )
        while self.problem.pool is None and self.terms.room(self.size):
            # Indices of a list are those of its members; an added configuration stands behind them all.
            self._admit()
        first = self.size
        self.terms = self.shares.terms = self.terms.joined(first, count)
        for config in range(first, first + count):
            self._earliest[config] = earliest
            self._admit()
        self._asked_for = self.size
        if self._best is not None and self._best.gamma != 0.0:
            self._best = None
        self._certify()
        return first

    # ------------------------------------------------------------------ what to learn next

    def ask(self, slots: int) -> Orders:
        """Return the next runs: newcomers' pilots first, then the leader and the rivals that are not cleared."""
        self._slots = max(self._slots, slots)
        self._grow()
        if self.finished() is not None:
            return no_orders()
        orders = self._wanted(slots)
        if len(orders):
            self._asked_for = max(self._asked_for, int(orders.config.max()) + 1)
        return orders

    def _wanted(self, slots: int) -> Orders:
        new = np.flatnonzero(self._ordered == 0)
        if len(new):
            self._fix_begins(new)
            return self._place(new, np.full(len(new), self._pilot), self._level[new])
        in_pilot = self._in_pilot()
        rivals = self._rivals()
        rivals = rivals[~np.isin(rivals, in_pilot)]
        if self.leader in in_pilot or not (len(rivals) or self._alone_pays()):
            return no_orders()
        if self._alone_pays():
            alone = self._further(slots)
            if len(alone):
                return alone
        return self._advance(rivals, slots)

    def _fix_begins(self, new: IntArray) -> None:
        """Fix where bets on proposals begin: at the first position that no configuration has been ordered to run."""
        frontier = max(self._pilot, int(self._ordered.max()))
        for config in new.tolist():
            if self.shares.origin[config] == "model":
                begin = max(frontier, self._earliest.get(config, 0))
                self._of_set.begins[config] = self._of_draws.begins[config] = begin

    def first_counted(self, config: int) -> int:
        """Return the first position that counts for a configuration; 0 if it knew nothing of any position."""
        return self._of_set.begins.get(config, 0)

    def _further(self, slots: int) -> Orders:
        """Run the leader alone on more positions, and then with longer captimes."""
        leader, size = np.array([self.leader]), self.claims.population
        have = int(self._ordered[self.leader])
        if have < size:
            return self._place(leader, np.array([min(size, have + max(1, slots))]), self._level[leader])
        return self._place(leader, self._ordered[leader], np.array([self._enough]))

    def _alone_pays(self) -> bool:
        """Return whether the leader's lower bound alone may soon reach the goal, whatever is drawn later."""
        leader, length = self.leader, int(self.claims.lengths[self.leader])
        level = self._of_set.log_ends(leader, self.problem.delta)[0]
        if self.problem.epsilon <= 0.0 or not length or math.isinf(level):
            return False
        if length >= self.claims.population and self._level[leader] >= self._enough:
            return False
        lows = self.claims.low[leader, :length]
        size = self.claims.population
        needed = runs_to_show(1.0 - self.problem.epsilon, float(lows.mean()), float(lows.var()), level)
        # Without replacement a sample of m from N is worth m / (1 - m / N), and all N leave nothing to chance.
        needed = needed / (1.0 + needed / size) if math.isfinite(needed) else needed
        left = len(self._rivals()) + self._draws_missing()
        return looks_good_enough(length, needed, _RUNS_TO_CLEAR * left)

    def _mean(self, config: int) -> float:
        return self.claims.lower_mean(config, int(self.claims.lengths[config]))

    # ------------------------------------------------------------------ what became known

    def tell(self, tally: Tally, changed: IntArray) -> None:
        """Take in new results, rank newcomers, change the leader, renew the certificate."""
        self._tally = tally
        fresh = [config for config in changed.tolist() if config < self.size and self.claims.read(tally, config)]
        self._take_pilots(tally)
        if not fresh:
            return
        self.rounds += 1
        self._judge(np.array(fresh, dtype=np.int64))
        self._certify()

    def _take_pilots(self, tally: Tally) -> None:
        """Record pilots that are over, and rank random draws by them in the order of arrival.

        The sum is made of what the first captime shows. Captimes rise later than that, so it does not depend on when
        anything happens.
        """
        known = min(self.size, len(tally.n))
        for config in self._in_pilot().tolist():
            if config >= known:
                continue
            self._pilot_seconds[config] = tally.seconds[config]
            if tally.settled[config] >= self._pilot:
                self._pilot_sums[config] = math.fsum(self.claims.low[config, : self._pilot].tolist())
        while (config := self.shares.next_unranked) is not None and not math.isnan(self._pilot_sums[config]):
            self.shares.rank(config, float(self._pilot_sums[config]))

    def _judge(self, fresh: IntArray) -> None:
        """Weigh the duels with news, and let a configuration that is clearly better lead."""
        self._duel(fresh)
        led = {self.leader}
        while (better := self._better(fresh)) is not None and better not in led:
            self.leader = better
            led.add(better)
            fresh = np.arange(self.size)
            self._duel(fresh)
            self._lower, self._upper = 0.0, 1.0

    def _better(self, fresh: IntArray) -> int | None:
        """Return the configuration that should lead in place of the leader, the best of them; None if none should."""
        among = np.arange(self.size) if self.leader in fresh else fresh
        better = [config for config in among.tolist() if config != self.leader and self._should_lead(config)]
        return max(
            better, key=lambda config: (self.claims.lower_mean(config, self._known(config)), -config), default=None
        )

    def _should_lead(self, config: int) -> bool:
        if math.isinf(self.shares.log_leader[config]) or math.isnan(self._pilot_sums[config]):
            return False
        if self.claims.lengths[self.leader] <= self._pilot and not math.isnan(self._pilot_sums[self.leader]):
            # Nothing is lost yet by a wrong choice.
            return bool(self._pilot_sums[config] > self._pilot_sums[self.leader])
        return self._is_better(config)

    # ------------------------------------------------------------------ what is certain

    def _certify(self) -> None:
        """Of all statements about the leader that hold now, and the one held, keep the one nearest to the goals."""
        self._leads = self.claims.leads(self.leader)
        known = (self.leader, self.claims.exact(self.leader))
        low, high = self.claims.interval(self.leader)
        self._lower, self._upper = max(self._lower, low), min(self._upper, high)
        gamma = np.append(self.gammas.after_each(self._draws), 0.0)
        epsilon = np.append(np.maximum.accumulate(self._leads), max(0.0, 1.0 - self._lower))
        least = max(self.terms.late, default=-1) + 1
        place, distance = self._goals.nearest(epsilon, gamma, least, self._best, self.leader)
        held = self._best
        if math.isinf(distance) or (held and self._goals.keeps(held, distance, self.leader, self.shares.draws)):
            return
        count, about = min(place + 1, self.size), (float(epsilon[place]), float(gamma[place]))
        ended = self._goals.distance(np.array(about[:1]), np.array(about[1:]))[0] < 1e-5 or self._used_up()
        said = None if held is None else (held.epsilon, held.gamma)
        if said == about and self._stated[0] == self.leader and known[1] < 1.1 * self._stated[1] and not ended:
            return
        self._stated = known
        self._best = self._statement(*about, count, self._other(known, about[1], count, ended=ended))

    def _statement(self, epsilon: float, gamma: float, count: int, other: Certificate | None) -> Certificate:
        """Make the statement about the leader and the first `count` of the pool; about all there are if gamma is 0."""
        each = self._leads[:count]
        worst = int(each.argmax())
        rival = worst if gamma > 0.0 and epsilon < 1.0 and each[worst] > 0.0 else None
        said = self.claims.statement(self.leader, epsilon, rival, other, interval=(self._lower, self._upper))
        return replace(said, n_configs=count, gamma=gamma)

    def _other(self, known: tuple[int, int], gamma: float, count: int, *, ended: bool) -> Certificate:
        """Return the claim about the distribution, about the same configurations with the same gamma.

        It is weighed anew when noticeably more is known, when it is about others, or at the end.
        """
        old = None if self._best is None else self._best.other
        leader, before = self._other_at
        same = old is not None and (old.n_configs, old.gamma) == (count, gamma) and leader == known[0]
        if old is not None and same and known[1] < before + max(1, before // 5) and not ended:
            return old
        self._other_at = known
        drawn = replace(self.claims.drawn_statement(self.leader, self.problem.epsilon, count), gamma=gamma)
        if gamma == 0.0:
            return replace(drawn, epsilon=max(0.0, 1.0 - drawn.utility_low), challenger=None)
        return drawn

    def certificate(self) -> Certificate:
        """Return the best statement so far; a leader is always named, with epsilon 1 before anything is shown."""
        if self._best is None:
            return self._statement(1.0 if self.size > 1 else 0.0, 1.0, self.size, None)
        return self._best

    def reached(self, epsilon: float, gamma: float, stop: str) -> bool:
        """Return whether the certificate held is as good as these goals want it."""
        return PoolGoals(epsilon, gamma, checked(stop)).reached(self._best, self.shares.draws)

    # ------------------------------------------------------------------ changes on the way

    def more_instances(self, length: int) -> None:
        """Speak about a larger set: the new instances stand in a random order behind the others."""
        begins = self._of_set.begins
        self._of_set = ArrivalTable(self.shares, self._pilot, self.claims.population)
        self._of_set.begins.update(begins)
        self.claims.lengthen(length)
        self.claims.set_standing = self._of_set
        self.problem = replace(self.problem, n_instances=length)
        self._best, self._lower, self._upper = None, 0.0, 1.0
        self._certify()

    def retarget(self, epsilon: float, gamma: float | None = None, stop: str | None = None) -> None:
        """Take other goals from now on; what is known, all shares and what was bet on gamma stay."""
        if gamma is not None:
            check_gamma(gamma)
        goals = self._goals
        self._goals = PoolGoals(
            epsilon, goals.gamma if gamma is None else gamma, goals.stop if stop is None else checked(stop)
        )
        self.problem = replace(self.problem, epsilon=epsilon)
        if self.rounds:
            self._duel(np.arange(self.size))
            self._certify()

    # ------------------------------------------------------------------ how it stands

    def facts(self) -> dict[str, object]:
        """Return what a checker needs and cannot read off the runs.

        Keys: `population`, `instances` (N), `nodes`, `shares`, `pilot` with its number of positions and its captime,
        and `begins`: proposals, each with the first position that counts for it.
        """
        return {
            "population": str(self.problem.population),
            "instances": self.claims.population,
            "nodes": NODES,
            "shares": dict(ON_SET_SHARES),
            "pilot": {"positions": self._pilot, "captime": float(self.plan.rungs[0])},
            "begins": [[config, begin] for config, begin in sorted(self._of_set.begins.items())],
        }

    def finished(self) -> str | None:
        """See the protocol; `configurations` if no configuration is left to draw."""
        if self.size == 1 and not self.terms.room(1):
            return "single"
        if self.reached(self._goals.epsilon, self._goals.gamma, self._goals.stop):
            return "epsilon"
        if not self.rounds:
            return None
        room = self.terms.room(self.size)
        if not len(self._rivals()):
            return None if room or len(self._in_pilot()) or self._alone_pays() else "configurations"
        if not self._used_up() or (room and self._draws_missing()):
            return None
        return "instances"

    def _used_up(self) -> bool:
        """Return whether all runs that could change the claim have ended at the longest captime."""
        if self._tally is None or (self._ordered == 0).any():
            return False
        which = np.append(self._rivals(), self.leader)
        size = self.claims.population
        ordered = (self._ordered[which] >= size) & (self._level[which] >= self.top)
        return bool(ordered.all()) and bool((self._tally.settled[which] >= size).all())
