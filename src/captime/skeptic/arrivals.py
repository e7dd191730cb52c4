"""Who came into a pool when, from where, and which shares of delta that gives: docs/engine.md, steps 11 to 13, again.

Fractions throughout, so that sums that have to stay within 1 do.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from captime.errors import LedgerDamaged
from captime.skeptic.books import Books, frontier
from captime.skeptic.late import additions, listed
from captime.skeptic.question import Question

Kind = Literal["listed", "draw", "proposal"]

# Parts of the whole: listed ones, proposals of a model, proposals of the user where there is no model.
_LISTED, _MODEL, _ADDED = Fraction(1, 10), Fraction(35, 100), Fraction(2, 100)
# The arrivals that are expected share this evenly; blocks that double in length share the rest.
_EXPECTED = Fraction(85, 100)
_WITHOUT_GOAL = 50
# gamma: weight of the goal; of the rest, weight of the first shares of the grid 0.9, 0.81, …; how many of how many.
_GOAL, _USUAL_WEIGHT, _USUAL, _ALL, _RATIO = 0.8, 0.85, 66, 131, 0.9
_ROUNDED = 1e-9


@dataclass(frozen=True, slots=True)
class Arrival:
    """One member of the pool.

    Attributes:
        kind: Where it came from.
        number: Which of its kind, counted from 1.
        known: The first position without a started run when it was proposed; 0 if it was listed or drawn.
    """

    kind: Kind
    number: int
    known: int = 0


def arrivals(books: Books, question: Question) -> list[Arrival]:
    """Return all configurations, in the order in which they came."""
    n_listed = books.n_first if question.n_listed is None else question.n_listed
    late = [note.sequence for note in additions(books) for _ in listed(note)]
    found: list[Arrival] = []
    counts: dict[Kind, int] = {"listed": 0, "draw": 0, "proposal": 0}
    for index, (row, config) in enumerate(books.configs):
        kind: Kind = "draw"
        since = row
        # A list counts as random draws; a configuration added to it, or to the favourites of a space, is a proposal.
        if index >= n_listed and (question.space is None or config.origin == "favourite"):
            if not late:
                raise LedgerDamaged(f"configuration {index} was added later, but no row says so")
            kind, since = "proposal", late.pop(0)
        elif question.space is not None and index < n_listed:
            kind = "listed"
        elif config.origin == "model":
            if question.space is not None and not question.space.get("model", True):
                raise LedgerDamaged(f"row {row} registers a proposal of a model, but the scenario has no model")
            kind = "proposal"
        counts[kind] += 1
        found.append(Arrival(kind, counts[kind], frontier(books, since) if kind == "proposal" else 0))
    return found


class Gammas:
    """How much of the space a number of draws may have missed.

    Args:
        alpha: Failure probability.
        goal: The gamma that was asked for at first; 0 for none.
    """

    def __init__(self, alpha: float, goal: float) -> None:
        grid = [_RATIO**power for power in range(1, _ALL + 1)]
        weights = [_USUAL_WEIGHT / _USUAL] * _USUAL + [(1.0 - _USUAL_WEIGHT) / (_ALL - _USUAL)] * (_ALL - _USUAL)
        scale = 1.0 - _GOAL if goal > 0.0 else 1.0
        self._bets = [(gamma, scale * weight) for gamma, weight in zip(grid, weights, strict=True)]
        if goal > 0.0:
            self._bets.append((goal, _GOAL))
        self._wanted = 1.0 / alpha

    def shown(self, gamma: float, draws: int) -> bool:
        """Return whether `draws` draws show that no more than this share is missed, up to rounding."""
        worth = math.fsum(
            weight * math.exp(min(700.0, -draws * math.log1p(-share)))
            for share, weight in self._bets
            if share <= gamma * (1.0 + _ROUNDED)
        )
        return worth >= self._wanted * (1.0 - _ROUNDED)

    def draws_for(self, gamma: float) -> int:
        """How many draws it takes."""
        draws = 0
        while not self.shown(gamma, draws):
            draws += 1
        return draws


class ArrivalShares:
    """Shares of delta of all configurations that came.

    Args:
        question: What was asked.
        gammas: Says how many draws the goal for gamma needs.
        goal: That goal; 0 for none.
        n_listed: How many are listed; on a list, how many draws there can be.
    """

    def __init__(self, question: Question, gammas: Gammas, goal: float, n_listed: int) -> None:
        expected = gammas.draws_for(goal) if goal > 0.0 else _WITHOUT_GOAL
        self._n_listed = n_listed
        if question.space is None:
            self._expected = min(expected, n_listed)
            drawn = sum((self.by_arrival(number) for number in range(1, n_listed + 1)), Fraction(0))
            self._of = {"listed": Fraction(0), "draw": Fraction(1), "proposal": 1 - drawn}
        else:
            self._expected = expected
            proposals = _MODEL if question.space.get("model", True) else _ADDED
            self._of = {"listed": _LISTED, "draw": 1 - _LISTED - proposals, "proposal": proposals}

    def by_arrival(self, number: int) -> Fraction:
        """The b of arrival 1, 2, …; over all arrivals these sum to 1."""
        if number <= self._expected:
            return _EXPECTED / self._expected
        block, end = 1, 2 * self._expected
        while number > end:
            block, end = block + 1, 2 * end
        return (1 - _EXPECTED) / (block * (block + 1)) / (end // 2)

    def best(self, who: Arrival) -> Fraction:
        """As the best."""
        whole = self._of[who.kind]
        if who.kind == "listed":
            return whole
        return whole * self.by_arrival(who.number) * (who.number if who.kind == "draw" else 1)

    def shown(self, who: Arrival) -> Fraction:
        """For the upper end of the interval that is shown."""
        each = Fraction(1, self._n_listed) if who.kind == "listed" else self.by_arrival(who.number)
        return self._of[who.kind] * each

    def leader(self, who: Arrival, rank: int = 0) -> Fraction:
        """As a leader; `rank` at arrival, for a draw."""
        if who.kind != "draw":
            return self.shown(who)
        i = who.number
        return self.best(who) * Fraction(i + 1, i * (rank + 1) * (rank + 2))
