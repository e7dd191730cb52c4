"""A growing pool, proved again: the statement about the first N, about the space, and what both rest on.

What the proof (docs/engine.md) needs is checked, not how the engine came to its decisions: random draws are made again
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
from captime.skeptic.claims import ClaimCheck
from captime.spaces.formats import read_space_section

# Shares of delta, docs/engine.md, step 16. They sum to 1.
_SHARES = {"draws": 40, "upper": 22, "paired": 23, "lower": 10, "shown": 5}
_SHARE = {name: Fraction(share, 100) for name, share in _SHARES.items()}
_PILOT, _GAMMA = 4, 0.1
# Sums of doubles are rounded; nearer sums are equal, and a newcomer stands behind its equals.
_TIE = 1e-9


@dataclass(frozen=True, slots=True)
class ArrivalTable:
    """The table of shares of a pool: by arrival, and by rank at arrival.

    Attributes:
        who: All configurations, in the order in which they came.
        shares: Their shares.
        lead: Share of the recommended configuration as a leader; None if no statement about it is made.
        pilot: Positions on which draws are ranked.
        begins: First position of each configuration.
    """

    who: list[Arrival]
    shares: ArrivalShares
    lead: Fraction | None
    pilot: int
    begins: list[int]

    def begin(self, config: int) -> int:
        """Behind the pilot, and not before it was made."""
        return max(self.pilot, self.begins[config])

    def upper(self, config: int) -> Fraction:
        """By its share as the best."""
        return _SHARE["upper"] * self.shares.best(self.who[config])

    def duel(self, leader: int, config: int) -> Fraction | None:  # noqa: ARG002 (one leader is recommended)
        """By the shares of the leader as such, and of the challenger as the best."""
        return None if self.lead is None else _SHARE["paired"] * self.lead * self.shares.best(self.who[config])

    def ends(self, leader: int) -> tuple[Fraction | None, Fraction]:
        """By the share as a leader, and by the share of its arrival alone."""
        lower = None if self.lead is None else _SHARE["lower"] * self.lead
        return lower, _SHARE["shown"] * self.shares.shown(self.who[leader])


@dataclass(slots=True)
class PoolCheck(ClaimCheck):
    """A check of one certificate about a growing pool."""

    _who: list[Arrival] = field(init=False)
    _shares: ArrivalShares = field(init=False)
    _gammas: Gammas = field(init=False)
    _begin: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        super(PoolCheck, self).__post_init__()
        goal = float(self.question.options.get("gamma", _GAMMA))
        self._who = arrivals(self.books, self.question)
        self._gammas = Gammas(float(_SHARE["draws"] * self.question.delta), goal)
        n_listed = self.books.n_first if self.question.n_listed is None else self.question.n_listed
        self._shares = ArrivalShares(self.question, self._gammas, goal, n_listed)

    def check(self) -> None:
        """Refuse the certificate if the rows do not support it."""
        self._check_terms()
        check_draws(self, self._who)
        self._check_positions()
        self._check_captimes()
        held = self.held
        # A leader that claims nothing, about others or about itself, may have no rank yet.
        lead = self._leader_share() if held.epsilon < 1.0 or held.utility_low > 0.0 else None
        if lead is not None:
            self._check_equal_captimes()
        table = ArrivalTable(self._who, self._shares, lead, self._pilot, self._begin)
        lower = self._lower(table)
        if held.epsilon >= 1.0:
            self.account.append("the certificate claims nothing about others yet")
        elif held.gamma == 0.0:
            self._check_anyone(lower)
        else:
            self._check_gamma()
            self._check_everyone(table, lower, f"the first {held.n_configs:,}")
        self._check_interval(table, lower)

    # ------------------------------------------------------------------ what it rests on

    def _check_terms(self) -> None:
        held = self.held
        self._check_delta(_SHARE)
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

    def _check_equal_captimes(self) -> None:
        """Check that no draw was stopped earlier than another one in the pilot: that would move ranks."""
        who = self._who[self.held.config]
        if who.kind != "draw":
            return
        draws = [config for config, each in enumerate(self._who) if each.kind == "draw"][: who.number]
        pilots = [(config, self._of(config), slice(0, self._pilot)) for config in draws]
        longest = np.max([ends.story.captime[first] for _, ends, first in pilots], axis=0) * (1.0 - _TIE)
        for config, ends, first in pilots:
            if ((ends.high[first] > ends.low[first]) & (ends.story.captime[first] < longest)).any():
                raise LedgerDamaged(
                    f"number {self.held.config} is recommended, and its rank at arrival compares it with {config}, "
                    "which was stopped earlier than other draws on the positions that ranks are made from"
                )

    def _pilot_sum(self, config: int) -> float:
        ends, pilot = self._of(config), self._pilot
        if len(ends.low) < pilot or not ends.story.settled[:pilot].all():
            raise LedgerDamaged(
                f"number {self.held.config} is recommended, but has no rank yet: the pilot of {config} is not over"
            )
        return float(ends.low[:pilot].sum())

    # ------------------------------------------------------------------ the claim

    def _check_anyone(self, lower: float) -> None:
        if not self._near_the_best_possible(lower):
            raise LedgerDamaged(
                f"the certificate says that number {self.held.config} is within epsilon of the best possible, 1, "
                f"which takes a lower bound of {1.0 - self.held.epsilon!r}; the rows show {lower!r}"
            )

    def _check_gamma(self) -> None:
        gamma = 1.0 if self.held.gamma is None else self.held.gamma
        draws = sum(who.kind == "draw" for who in self._who[: self.held.n_configs])
        if not self._gammas.shown(gamma, draws):
            raise LedgerDamaged(f"the certificate leaves out a share of {gamma!r}, but {draws} draws do not show that")
        self.account.append(f"{draws:,} random draws miss a share of {gamma:.6g} at most")


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
