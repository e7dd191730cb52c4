"""The race over a pool that grows: the default and favourites, then draws from a space too large to list.

Why it is valid, in short (docs/engine.md has the proofs): every statement of the race is made at a share that is fixed
when a configuration arrives and never changes, and the shares of all who will ever arrive sum to one (pool_shares.py).
Random draws may use all positions of the stream, because they know nothing of it; what a model proposed knows all
positions run so far, so it begins behind them. gamma counts random draws only (pool_gamma.py). When to add a
configuration, which one to run and which one leads touch only the cost.
"""

import math

import numpy as np

from captime.arrays import BoolArray, FloatArray, IntArray
from captime.certificate import Orders, no_orders
from captime.errors import ScenarioDiffers
from captime.plans import RandomCaptimes, Schedule, Stops
from captime.procedures.claims import EngineOptions
from captime.procedures.pool_bets import BestBets, Contest
from captime.procedures.pool_certificates import PoolClaims
from captime.procedures.pool_gamma import check_gamma
from captime.procedures.pool_growth import SPLITS, Stakes, looks_good_enough, newcomers_turn, runs_to_show
from captime.procedures.pool_screening import MeasuredBets
from captime.procedures.pool_terms import Effort, Stop, checked_effort, checked_stop
from captime.procedures.problem import FIFTH_SCHEDULE, SIXTH_SCHEDULE, Problem
from captime.procedures.race_claims import check_options
from captime.tally import Tally

# With an unknown or tiny goal, captimes and margins are made for this epsilon.
_SMALLEST_EPSILON = 0.02
# One rival in 32 is run at a time, or one if there are fewer.
_TOGETHER = 32
# This many common positions before a challenger takes the lead from a leader with something to lose.
_ENOUGH = 8
# And this many standard errors: of hundreds of challengers, one is always lucky. More of them if newcomers come
# without end; with a goal for gamma they do not, and a better leader that comes late makes the certificate dearer.
_CLEARLY, _CLEARLY_AMONG_ENDLESS = 1.5, 2.0
# A configuration whose first runs are stopped early begins with this many of them. Once it leads and has made this many
# of them, its captimes become as long as the draws.
_FIRST_SHORT, _SHORT_OF_LEADER = 8, 16
# About how many runs it takes to clear a newcomer.
_RUNS_TO_CLEAR = 16


class Pool(PoolClaims):
    """The race on a pool that grows: within epsilon of the best outside the top gamma of an endless space.

    Who comes when is said by the problem (`Problem.pool`); without a word every configuration is a random draw, in the
    order of their indices. The pool asks for configurations that do not exist yet by ordering runs of them: new indices
    come in order, without gaps.

    Args:
        problem: The question.
        gamma: Goal: the best fraction of the space that may be missed; 0 for "as small as it gets".
        stop: Content when `both` goals are reached, or with `epsilon` or `gamma` alone.
        boost: B of the random captimes: at least 1; larger lets more runs finish and costs more time a run.
        pilot: Positions on which newcomers are ranked; lower bounds and duels use later ones only.
        growth: How much of its past a configuration repeats at a time.
        leader_share: Give the leader at least this share of all CPU time while that still narrows its interval.
        truncation: Stop runs where u has fallen to this share of epsilon.
        effort: What CPU time is mainly spent on: better configurations (`search`), the certificate (`certify`), or both
            (`balanced`). With `search` the best bet is named at every moment, even if little is proved of it yet.
    """

    def __init__(
        self,
        problem: Problem,
        *,
        gamma: float = 0.1,
        stop: Stop = "both",
        boost: float = 1.25,
        pilot: int = 4,
        growth: float = 0.1,
        leader_share: float = 0.05,
        truncation: float = 0.1,
        effort: Effort = "balanced",
    ) -> None:
        checked_stop(stop)
        check_options(boost, "selection", pilot, growth, {"leader_share": leader_share, "truncation": truncation})
        self._split = SPLITS[checked_effort(effort)]
        screens = effort == "search" and problem.schedule >= SIXTH_SCHEDULE
        self._bets = None if effort != "search" else MeasuredBets(problem.utility) if screens else BestBets()
        super().__init__(
            problem, gamma, stop, pilot, EngineOptions(boost, growth, leader_share, truncation, _SMALLEST_EPSILON)
        )
        longest = Schedule(self._longest(self._aim))
        short = screens and problem.short_captimes and boost > 1.0
        stops = Stops.one(problem.utility, boost, self._longest(self._aim)) if short else Stops.none()
        self.plan = RandomCaptimes(problem.utility, problem.seed, Schedule(boost), longest, stops)
        self._levels: IntArray = np.empty(0, dtype=np.int64)
        # Which configurations were run for the certificate.
        self._certifying: set[int] = set()
        self._pilot_seconds: FloatArray = np.empty(0)
        self._seconds: FloatArray = np.empty(0)
        self._busy: BoolArray = np.empty(0, dtype=np.bool_)
        self._pilots: list[int] = []
        self._slots = 1
        self._asked_for = 0
        self._earliest: dict[int, int] = {}
        self._contest = Contest()
        while self.terms.room(self.size) and (self.size < 2 or self.size <= self.terms.n_listed):
            self._admit()

    # ------------------------------------------------------------------ who takes part

    @property
    def candidates(self) -> BoolArray:
        """Who is not yet cleared at the epsilon asked for, and the leader; an entry for each that exists.

        Pilots are always finished: later newcomers are ranked by them.
        """
        known: BoolArray = np.zeros(max(self.problem.n_configs, self._asked_for), dtype=np.bool_)
        rivals = self._epsilons() > self.problem.epsilon
        rivals[self.leader] = True
        rivals[self._in_pilot()] = True
        known[: self.size] = rivals[: len(known)]
        return known

    def _admit(self) -> None:
        self._pilots.append(self.size)
        super()._admit()
        self._seconds, self._pilot_seconds = np.append(self._seconds, 0.0), np.append(self._pilot_seconds, 0.0)
        self._busy, self._levels = np.append(self._busy, np.False_), np.append(self._levels, 0)
        self._contest.enter()
        if self._bets is not None:
            self._bets.enter(self.shares.origin[-1])

    def _grow(self) -> None:
        """Add newcomers as long as it is their turn; proposals of one batch come together."""
        while self.finished() is None and self._can_grow() and self._newcomers_turn():
            end = self.terms.batch_end(self.size)
            while self.size < end and self.terms.room(self.size):
                self._admit()

    def _can_grow(self) -> bool:
        """Return whether another configuration may come: a proposal must not have to begin where the stream ends."""
        late = self.terms.origin(self.size) == "model" and self._frontier() + 2 * self._pilot > self._available
        return self.terms.room(self.size) and not late

    def newcomers(self, count: int, earliest: int = 0) -> int:
        """Add `count` configurations, chosen with knowledge of the runs so far, as proposals. Return the first index.

        Certificates cover them too from now on, so what is held so far is not shown any longer, unless it covers every
        possible configuration.

        Args:
            count: How many.
            earliest: Their first position, if the pool itself has not come so far: what else has been seen by then.
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
        if self.rounds:
            self._certify()
        return first

    def _too_late(self, config: int) -> bool:
        """Return whether a configuration proposed from the runs so far would have to begin where the stream ends."""
        waits = self.shares.origin[config] == "model" and not self._agenda.ordered[config]
        return bool(waits and max(self._frontier(), self._earliest.get(config, 0)) >= self._available)

    def _in_pilot(self) -> list[int]:
        """Newcomers whose pilot scores are not all known."""
        # What has left the pilot never comes back to it. A stream that ends within the pilot ends the pilot too.
        end = min(self._pilot, self._available)
        self._pilots = [config for config in self._pilots if self._board.settled[config] < end]
        return [config for config in self._pilots if not self._too_late(config)]

    def _newcomers_turn(self) -> bool:
        """Spend on newcomers in proportion to what is at stake outside the pool; see pool_growth.py."""
        gamma = self.gammas.after(self.shares.draws)
        if self._gamma > 0.0 and gamma <= self._gamma:
            return False
        if len(self._in_pilot()) >= max(1, self._slots // self._pilot):
            return False
        if not len(self._rivals()):
            return True
        if self._alone_pays():
            return False
        if self._bets is not None and self._bets.first_runs(self._pilot) > self._split.newcomers:
            return False
        stakes = Stakes(self.certificate().epsilon, gamma, self._board.mean(self.leader))
        looked, spent = float(self._pilot_seconds.sum()), float(self._seconds.sum())
        return newcomers_turn(looked, spent, stakes, self._draws_missing() / self.shares.draws, self._split)

    # ------------------------------------------------------------------ what to learn next

    def ask(self, slots: int) -> Orders:
        """The next runs: newcomers' first, then leader and most promising rivals."""
        if self.finished() is not None:
            return no_orders()
        self._slots = max(self._slots, slots)
        orders = self._wanted(slots)
        if len(orders):
            self._asked_for = max(self._asked_for, int(orders.config.max()) + 1)
        return orders

    def _rivals(self) -> IntArray:
        return np.flatnonzero(self._epsilons() > self.problem.epsilon)

    def _wanted(self, slots: int) -> Orders:
        """Runs of the leader alone, of newcomers, or of rivals; the leader first where it has to stay ahead."""
        rivals = self._rivals()
        uncleared = len(rivals)
        if math.isfinite(self._available):
            waiting = [config for config in rivals.tolist() if not self._too_late(config)]
            rivals = np.array(waiting, dtype=np.int64)
            rivals = rivals[self._agenda.has_more(rivals) | (self._agenda.level[rivals] < self.plan.stops.top)]
        if not uncleared and self._in_pilot():
            return no_orders()  # another configuration is admitted once the runs of these are known
        rivals = rivals[np.argsort(-self.upper[rivals], kind="stable")]
        # Who may be better than the leader comes first when it is their turn, who keeps epsilon up fills the slots.
        turn = self._contests()
        if self._bets is None:
            promising = self._contest.order(rivals, turn=turn)
        else:
            promising = self._bets.order(rivals, self.leader) if turn else rivals[:0]
        rivals = np.concatenate((promising, rivals[~np.isin(rivals, promising)]))
        idle = rivals[~self._busy[rivals]]
        leader = np.array([self.leader])
        unfinished = self._agenda.has_more(leader) | (self._agenda.level[leader] < self.plan.stops.top)
        leader_waits = not self._busy[self.leader] and bool(unfinished[0])
        alone = self._leader_pays(uncleared, self._seconds) or self._alone_pays() or not len(rivals)
        if leader_waits and alone:
            level = np.array([self._level_of(self.leader)])
            return self._agenda.place(leader, np.array([self._next(self.leader, slots)]), level)
        # Newcomers are ordered all at once: proposals that are made at the same moment may begin at the same position.
        new = np.sort(idle[self._agenda.ordered[idle] == 0])
        # With many slots and few rivals, deeper orders; even for those at work already, rather than none.
        together = 1 if len(promising) else len(idle) // _TOGETHER
        chosen = new if len(new) else (idle if len(idle) else rivals)[: max(1, slots, together)]
        share = math.ceil(slots / (len(chosen) + 1)) if slots > 1 else 1
        certify = not turn and not len(new)
        levels = [self._level_of(config, certify=certify) for config in chosen.tolist()]
        wanted = [
            (config, self._next(config, share), level) for config, level in zip(chosen.tolist(), levels, strict=True)
        ]
        # Every batch of proposals begins where the leader ends. A leader that repeated a share of its past for each of
        # them would soon take most of the CPU time.
        no_further = self._bets is not None and self.problem.schedule >= FIFTH_SCHEDULE
        leader_level = self._level_of(self.leader)
        return self._agenda.with_leader(self.leader, wanted, lambda _: (leader_level, False), no_further=no_further)

    def _contests(self) -> bool:
        """Return whether this decision belongs to the contest for the lead rather than to the certificate."""
        if not self.plan.stops.top:
            return self._split.contests(self.rounds)
        # Runs that are made again cost as much as many short ones: here CPU time is split, and not rounds.
        again, spent = float(self._seconds[list(self._certifying)].sum()), float(self._seconds.sum())
        return again * self._split.out_of > (self._split.out_of - self._split.contest) * spent

    def _level_of(self, config: int, *, certify: bool = False) -> int:
        """Return the level of captimes at which a configuration is run from now on.

        Args:
            config: The configuration.
            certify: Whether it is run for the certificate, which needs complete scores.
        """
        top, now = self.plan.stops.top, int(self._agenda.level[config])
        if certify:
            self._certifying.add(config)
        if now == top or self.shares.origin[config] == "random":
            return top
        known = int(self._board.settled[config] - self._board.start[config])
        leads = config == self.leader and known >= _SHORT_OF_LEADER
        ended = self._agenda.ordered[config] >= self._available
        return top if certify or leads or ended else now

    def _next(self, config: int, least: int) -> int:
        """Return where this configuration's prefix should end next, at least `least` positions further."""
        have = int(self._agenda.ordered[config])
        if have == 0:
            if self.shares.origin[config] == "model":
                # The proposal may rest on every position up to here, and on none behind.
                have = max(self._frontier(), self._earliest.get(config, 0))
                self._board.begin_at(config, have)
            return have + max(least, self._first_runs(config))
        return self._agenda.further(config, least)

    def _first_runs(self, config: int) -> int:
        """Return how many runs a configuration makes when it comes."""
        return self._pilot if self.shares.origin[config] == "random" or not self.plan.stops.top else _FIRST_SHORT

    def _frontier(self) -> int:
        """Return the first position behind the pilot that no configuration has been ordered to run."""
        return max(self._pilot, int(self._agenda.ordered.max()))

    def _alone_pays(self) -> bool:
        """Return whether the leader's lower bound alone may soon reach the goal, whatever is drawn later."""
        board, leader = self._board, self.leader
        level = float(self.levels.lower(np.array([leader]))[0])
        if self.problem.epsilon <= 0.0 or math.isinf(level):
            return False
        needed = runs_to_show(1.0 - self.problem.epsilon, board.mean(leader), board.variance(leader), level)
        left = len(self._rivals()) + self._draws_missing()
        return looks_good_enough(board.raced(leader), needed, _RUNS_TO_CLEAR * left)

    def _draws_missing(self) -> int:
        if self._gamma <= 0.0:
            return 0
        return max(0, self.gammas.draws_for(self._gamma) - self.shares.draws)

    # ------------------------------------------------------------------ what became known

    def tell(self, tally: Tally, changed: IntArray) -> None:
        """Take in new scores, rank newcomers, change the leader, renew the certificate, let the pool grow."""
        n = min(self.size, len(tally.seconds))
        self._seconds[:n] = tally.seconds[:n]
        self._busy[:n] = tally.open[:n] > 0
        fresh = [int(config) for config in changed if config < n and self._take_in(tally, int(config))]
        if not fresh:
            return
        self.rounds += 1
        self._rank_newcomers()
        self._tighten(np.array(fresh))
        self._consider_leaders(fresh)
        self._certify()
        self._grow()

    def _take_in(self, tally: Tally, config: int) -> bool:
        if tally.level[config] > self._levels[config]:
            # All its scores may have changed.
            self._levels[config] = tally.level[config]
            self._board.forget(config)
            if config == self.leader:
                self._duels.restart(self._board, config)
            else:
                self._duels.forget(self._board, self.leader, config)
        start, before = int(self._board.start[config]), int(self._board.settled[config])
        news = super()._take_in(tally, config)
        now = int(self._board.settled[config])
        if isinstance(self._bets, MeasuredBets) and now > before and tally.times is not None:
            seconds, ended = tally.times(config, now)
            self._bets.take_in_times(config, start, seconds[start:], ended[start:])
        elif self._bets is not None and now > before:
            low, high = tally.samples(config, before, now)
            self._bets.take_in(config, start, before, (low + high) / 2.0)
        if now <= start + self._first_runs(config):
            self._pilot_seconds[config] = self._seconds[config]
        return news

    def _consider_leaders(self, fresh: list[int]) -> None:
        """Who clearly beats the leader on their common positions takes over; validity does not care."""
        if self._bets is not None:
            self._name_best_bet(self._bets)
            return
        for config in fresh:
            if config == self.leader or math.isinf(self.shares.log_leader[config]):
                continue
            ahead = self._board.ahead(config, self.leader, open_too=False)
            self._contest.compare(config, ahead)
            total = float(ahead.sum())
            if not self._board.raced(self.leader):
                # Nothing is lost yet by a wrong choice.
                better = len(ahead) >= self._pilot and total > 0.0
            else:
                # Ahead by more than a quarter of epsilon, and by more than luck.
                errors = _CLEARLY if self._gamma > 0.0 else _CLEARLY_AMONG_ENDLESS
                clear = total > errors * math.sqrt(float(ahead @ ahead))
                better = len(ahead) >= _ENOUGH and total > 0.25 * self._aim * len(ahead) and clear
            if better:
                self._crown(config)

    def _name_best_bet(self, bets: BestBets) -> None:
        """Name what looks best now: a certificate about it may be weak, and is about it and nothing else."""
        bets.weigh()
        best = bets.best(np.isfinite(np.array(self.shares.log_leader)), self.leader)
        if best != self.leader:
            self._crown(best)

    def _crown(self, config: int) -> None:
        super()._crown(config)
        for each in range(self.size):
            self._contest.compare(each, self._board.ahead(each, config, open_too=False))

    def retarget(self, epsilon: float, gamma: float | None = None, stop: str | None = None) -> None:
        """Other goals from now on. Bounds, shares and what was bet on gamma stay; one event serves every epsilon."""
        if gamma is not None:
            check_gamma(gamma)
            self._gamma = gamma
        if stop is not None:
            self._stop = checked_stop(stop)
        self._aim_at(epsilon)
        if self._frontier() > self.plan.longest.last_change:
            self.plan.longest.change_from(self._frontier(), self._longest(self._aim))
        if self.rounds:
            self._fight()
            self._certify()
            self._grow()

    # ------------------------------------------------------------------ how it stands

    def finished(self) -> str | None:
        """See the protocol; `configurations` if no configuration is left to draw."""
        if self.size == 1 and not self.terms.room(1):
            return "single"
        if self.reached(self.problem.epsilon, self._gamma, self._stop):
            return "epsilon"
        rivals = self._rivals()
        if not len(rivals) and self.rounds:
            if self._can_grow():
                return None
            return "instances" if self.terms.room(self.size) else "configurations"
        if math.isinf(self._available):
            return None
        rivals = np.append(rivals, self.leader)
        # The search ends with the first that has positions left, and there nearly always is one among the first few.
        ended = all(self._too_late(each) or self._at_end(each) for each in rivals.tolist())
        return "instances" if ended else None

    def _at_end(self, config: int) -> bool:
        """Return whether all is known of a configuration that a stream with an end can tell."""
        level = int(self._agenda.level[config])
        return bool(self._board.settled[config] >= self._available and level >= self.plan.stops.top)
