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
from captime.certificate import Certificate, Orders, no_orders
from captime.procedures.problem import Problem
from captime.procedures.set_claims import NODES, PAIRED, SHARES, SetClaims, Standing
from captime.procedures.set_schedule import SetSchedule, captimes_for, checked_size, pilot_size
from captime.tally import Tally

# The ranking may be made once this share of the pilot's runs has ended, if slots are free.
_HEARD = 0.75


class Way(StrEnum):
    """How a race on a set goes about it."""

    SAMPLE = "sample"
    """Positions one after the other, until the claim follows."""
    EVERYTHING = "everything"
    """All runs at once, with captimes that are enough: on a set this small that is the cheapest way."""


class FixedSetRace(SetSchedule):
    """Every configuration on a few positions, then the leader against the others, until epsilon is reached.

    Args:
        problem: The question; `n_instances` is the size of the set.
        pilot: Positions that every configuration runs before the first leader is chosen; by default about half the
            root of the number of instances, at most 8.

    Attributes:
        candidates: Configurations that are not cleared yet, and the leader.
        way: How the race goes about it.
    """

    def __init__(self, problem: Problem, *, pilot: int | None = None) -> None:
        size, n_configs = checked_size(problem, pilot), problem.n_configs
        super().__init__(problem, SetClaims(n_configs, size, problem.delta), captimes_for(problem))
        self.way = Way.SAMPLE
        self.candidates: BoolArray = np.ones(n_configs, dtype=np.bool_)
        self._pilot = min(size, pilot_size(size) if pilot is None else pilot)
        # Positions before this one were met in an order that is not uniform over the whole set.
        self._earliest = 0
        # Shares of the two claims: about these instances, and about the distribution; None before the ranking.
        self._of_set: Standing | None = None
        self._of_draws: Standing | None = None
        self._stale: BoolArray = np.zeros(n_configs, dtype=np.bool_)
        self._best: Certificate | None = None
        self._stated = 0
        self._other_at = (-1, 0)
        if n_configs == 1:
            self._begin()

    # ------------------------------------------------------------------ what to learn next

    def ask(self, slots: int) -> Orders:
        """Return the next runs: the pilot's, then one more stretch of the set for all that are not cleared."""
        if self.finished() is not None:
            return no_orders()
        if self._of_set is None and not self._pilot_over():
            return self._pilot_order()
        size = self.claims.population
        rivals = self._rivals()
        if self.way is Way.EVERYTHING:
            all_configs = np.append(rivals, self.leader)
            orders = self._place(all_configs, np.full(len(all_configs), size), np.full(len(all_configs), self._enough))
            if len(orders) or self._level[all_configs].min() >= self.top:
                return orders
        return self._advance(rivals, slots)

    def _pilot_order(self) -> Orders:
        all_configs = np.arange(self.problem.n_configs)
        return self._place(all_configs, np.full(len(all_configs), self._pilot), self._level[all_configs])

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
        return 0 if self._of_set is None else self._of_set.start

    def _rivals(self) -> IntArray:
        rivals = self.candidates.copy()
        rivals[self.leader] = False
        return np.flatnonzero(rivals)

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
        if self._of_set is None and not open_runs and bool((self._ordered >= self._pilot).all()):
            self._begin()
        if self._of_set is not None:
            self._judge()
        self._certify()

    def _begin(self) -> None:
        """Make the ranking from what the pilot has shown; bets begin behind every position that was ordered."""
        start = max(self._earliest, int(self._ordered.max()))
        n_configs = self.problem.n_configs
        seen = max(1, int(self._ordered.min()))
        means = self.claims.middles()[:, :seen].mean(axis=1)
        ranking = np.argsort(-means, kind="stable")
        self._of_set = self.claims.set_standing = Standing(start, ranking, [])
        if self._of_draws is None:
            self._of_draws = self.claims.drawn_standing = Standing(start, ranking, [])
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
        if self._of_set is not None:
            self._stale[:] = True
            self._judge()
            self._certify()

    def more_instances(self, length: int) -> None:
        """Speak about a larger set: the new instances stand in a random order behind the others."""
        self._earliest = self.claims.population
        self.claims.lengthen(length)
        self._of_set = None
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
        self._enter(count)
        self.candidates = np.append(self.candidates, np.ones(count, dtype=np.bool_))
        self._stale = np.append(self._stale, np.zeros(count, dtype=np.bool_))
        frontier = max(int(self._ordered.max()), earliest)
        for standing in (self._of_set, self._of_draws):
            if standing is not None:
                entry = max(frontier, standing.start)
                standing.joined += [(config, entry) for config in range(first, first + count)]
        if self._of_set is None:
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
        of_set, drawn = self._of_set, self._of_draws
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

    @property
    def runs_everything(self) -> bool:
        """Whether all runs of the set were ordered at once, because on a set this small nothing is cheaper."""
        return self.way is Way.EVERYTHING

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
        if self._tally is None or self._of_set is None:
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
