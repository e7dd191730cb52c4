"""A growing pool, proved again: the statement about the first N, about the space, and what both rest on.

What the proof (docs/pools.md) needs is checked, not how the engine came to its decisions: random draws are made again
from the space and the seed, none missing; who was proposed begins behind everything that had been run by then; prefixes
have no gaps; ranks at arrival follow from pilots alone. Then the claim is shown with the documented bets at the
documented levels.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import numpy as np

from captime.errors import LedgerDamaged, ScenarioError
from captime.skeptic.agreement import Trust
from captime.skeptic.arrivals import Arrival, ArrivalShares, Gammas, arrivals
from captime.skeptic.check import Check
from captime.skeptic.directed import Bets, above
from captime.skeptic.lottery import Lottery
from captime.skeptic.scores import Scores
from captime.spaces.formats import read_space_section

# Shares of delta, docs/pools.md step 6. They sum to 1.
_SHARES = {"draws": 40, "upper": 22, "paired": 23, "lower": 10, "shown": 5}
_SHARE = {name: Fraction(share, 100) for name, share in _SHARES.items()}
_MEANS, _LEADS = Bets.documented(24), Bets.documented(16)
_BOOST, _PILOT, _GAMMA = 1.25, 4, 0.1
# Sums of doubles are rounded; nearer sums are equal, and a newcomer stands behind its equals.
_TIE = 1e-9


@dataclass(slots=True)
class PoolCheck(Check):
    """A check of one certificate about a growing pool."""

    _scores: Scores = field(init=False)
    _who: list[Arrival] = field(init=False)
    _shares: ArrivalShares = field(init=False)
    _gammas: Gammas = field(init=False)
    _begin: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        options = self.question.options
        boost, goal = float(options.get("boost", _BOOST)), float(options.get("gamma", _GAMMA))
        self._scores = Scores(self.books, Lottery(self.question.utility, self.question.seed, boost))
        self._who = arrivals(self.books, self.question)
        self._gammas = Gammas(float(_SHARE["draws"] * self.question.delta), goal)
        n_listed = self.books.n_first if self.question.n_listed is None else self.question.n_listed
        self._shares = ArrivalShares(self.question, self._gammas, goal, n_listed)

    def check(self) -> None:
        """Refuse the certificate if the rows do not support it."""
        self._check_terms()
        check_draws(self, self._who)
        self._check_positions()
        self.account.append(self._scores.check_captimes())
        if self.held.epsilon >= 1.0:
            self.account.append("the certificate claims nothing about others yet")
            # A leader that claims nothing about itself either may have no rank yet.
            self._check_interval(self._lower(self._leader_share()) if self.held.utility_low > 0.0 else 0.0)
            return
        leader = self._leader_share()
        lower = self._lower(leader)
        if self.held.gamma == 0.0:
            self._check_anyone(lower)
        else:
            self._check_gamma()
            self._check_everyone(leader, lower)
        self._check_interval(lower)

    # ------------------------------------------------------------------ what it rests on

    def _check_terms(self) -> None:
        held = self.held
        if Fraction(held.delta) != self.question.delta:
            raise LedgerDamaged(f"the certificate's delta is {held.delta}, but {float(self.question.delta)} was asked")
        if {name: Fraction(repr(share)) for name, share in held.shares} != _SHARE:
            raise LedgerDamaged(f"the certificate shares delta out as {dict(held.shares)}, which is not documented")
        if held.mode != "selection":
            raise LedgerDamaged(f"the certificate's mode is {held.mode}, but pools cover the selection only")
        if held.gamma is None or held.config >= self.books.n_configs:
            raise LedgerDamaged("the certificate names no gamma, or a configuration that was not registered")

    def _check_positions(self) -> None:
        """Check that no position is stepped over, and that proposals begin behind what could be known by then."""
        pilot = self._pilot
        for config, who in enumerate(self._who):
            places = sorted(self.books.runs[config])
            begin = places[0] if places and who.kind == "proposal" else 0
            if places != list(range(begin, begin + len(places))):
                raise LedgerDamaged(f"configuration {config} does not run all positions from {begin} on in order")
            if places and who.kind == "proposal" and begin < max(pilot, who.known):
                raise LedgerDamaged(
                    f"configuration {config} was proposed when positions up to {who.known} had been run, and begins at "
                    f"{begin}: it may have been made for what it is judged on"
                )
            self._begin.append(begin)
        self.account.append("no position is stepped over; proposals begin behind everything run before they were made")

    @property
    def _pilot(self) -> int:
        return int(self.question.options.get("pilot", _PILOT))

    def _leader_share(self) -> Fraction:
        """The recommended configuration's share as a leader, by its rank at arrival if it was drawn."""
        who = self._who[self.held.config]
        if who.kind != "draw":
            return self._shares.leader(who)
        draws = [config for config, each in enumerate(self._who) if each.kind == "draw"][: who.number]
        *before, own = [self._pilot_sum(config) for config in draws]
        return self._shares.leader(who, sum(earlier >= own - _TIE for earlier in before))

    def _pilot_sum(self, config: int) -> float:
        ends, pilot = self._scores.of(config), self._pilot
        if len(ends.low) < pilot or not ends.story.settled[:pilot].all():
            raise LedgerDamaged(
                f"number {self.held.config} is recommended, but has no rank yet: the pilot of {config} is not over"
            )
        return float(ends.low[:pilot].sum())

    # ------------------------------------------------------------------ the claim

    def _level(self, kind: str, share: Fraction) -> Fraction:
        """1 / failure probability of a statement."""
        return 1 / (_SHARE[kind] * self.question.delta * share)

    def _from(self, config: int) -> int:
        """From where on its runs count for lower bounds and duels."""
        return max(self._pilot, self._begin[config])

    def _lower(self, leader: Fraction) -> float:
        config = self.held.config
        return _MEANS.lower_bound(self._scores.of(config).since(self._from(config)).low, self._level("lower", leader))

    def _check_anyone(self, lower: float) -> None:
        if np.nextafter(lower + self.held.epsilon, -1.0) < 1.0:
            raise LedgerDamaged(
                f"the certificate says that number {self.held.config} is within epsilon of the best possible, 1, "
                f"which takes a lower bound of {1.0 - self.held.epsilon!r}; the rows show {lower!r}"
            )
        self.account.append(
            f"the recommended configuration is within epsilon of the best possible, 1: at least {lower:.4f}"
        )

    def _check_gamma(self) -> None:
        gamma = 1.0 if self.held.gamma is None else self.held.gamma
        draws = sum(who.kind == "draw" for who in self._who[: self.held.n_configs])
        if not self._gammas.shown(gamma, draws):
            raise LedgerDamaged(f"the certificate leaves out a share of {gamma!r}, but {draws} draws do not show that")
        self.account.append(f"{draws:,} random draws miss a share of {gamma:.6g} at most")

    def _check_everyone(self, leader: Fraction, lower: float) -> None:
        bound = float(np.nextafter(lower + self.held.epsilon, -1.0))
        by_bound, by_duel = 0, 0
        for config in range(self.held.n_configs):
            if config == self.held.config:
                continue
            if config < self.books.n_configs and self._wins_duel(config, leader):
                by_duel += 1
            elif bound >= 1.0 or (config < self.books.n_configs and self._shown_below(config, bound)):
                by_bound += 1
            else:
                raise LedgerDamaged(
                    f"the certificate says that none of the first {self.held.n_configs} is better than number "
                    f"{self.held.config} by more than {self.held.epsilon!r}, but the rows do not show it for {config}"
                )
        self.account.append(
            f"number {self.held.config} is within {self.held.epsilon:.6g} of the first {self.held.n_configs:,}: "
            f"{by_bound:,} shown by bounds, {by_duel:,} by duels"
        )

    def _shown_below(self, config: int, bound: float) -> bool:
        wanted = self._level("upper", self._shares.best(self._who[config]))
        return _MEANS.shows_at_most(self._scores.of(config).high, bound, wanted)

    def _wins_duel(self, config: int, leader: Fraction) -> bool:
        begin = max(self._from(config), self._from(self.held.config))
        challenger, ours = self._scores.of(config).since(begin), self._scores.of(self.held.config).since(begin)
        # Where the challenger was not run it could not have scored more than 1, which may be less than the leader's
        # score and epsilon together. So such positions speak for the leader, too.
        theirs = np.ones(len(ours.low))
        common = min(len(challenger.high), len(theirs))
        theirs[:common] = challenger.high[:common]
        differences = np.minimum(above(theirs - ours.low), 1.0)
        wanted = self._level("paired", leader * self._shares.best(self._who[config]))
        return _LEADS.shows_no_lead(differences, self.held.epsilon, wanted)

    def _check_interval(self, lower: float) -> None:
        held = self.held
        if held.utility_low > lower:
            raise LedgerDamaged(
                f"the certificate says that number {held.config} is worth at least {held.utility_low!r}; the rows show "
                f"{lower!r}"
            )
        wanted = self._level("shown", self._shares.shown(self._who[held.config]))
        if not _MEANS.shows_at_most(self._scores.of(held.config).high, held.utility_high, wanted):
            raise LedgerDamaged(
                f"the certificate says that number {held.config} is worth at most {held.utility_high!r}, which the "
                "rows do not show"
            )
        self.account.append(f"its expected utility is between {held.utility_low:.6g} and {held.utility_high:.6g}")


def check_draws(check: Check, who: Sequence[Arrival]) -> None:
    """Check that random draws are what the space and the seed make them, in order, none left out.

    Args:
        check: The check that this is part of; what is found is added to its account.
        who: All configurations, in the order in which they came.
    """
    question = check.question
    if question.space is None:
        check.left_open[Trust.DRAWS] = "its configurations are a list, and no row shows that it was drawn at random"
        return
    try:
        space = read_space_section(question.space, "the ledger's space", Path())
    except ScenarioError as error:
        raise LedgerDamaged(f"the space of this ledger cannot be read: {error}") from error
    for (row, config), each in zip(check.books.configs, who, strict=True):
        if each.kind == "draw" and config.settings.get("settings") != space.draw(question.seed, each.number - 1):
            raise LedgerDamaged(
                f"row {row} registers configuration {config.index} as random draw number {each.number}, but the "
                "space and the seed give another one"
            )
    kinds = [each.kind for each in who]
    check.account.append(
        f"{kinds.count('draw'):,} random draws are those that the space and the seed give, in order; "
        f"{kinds.count('proposal'):,} proposals count nothing for gamma"
    )
