"""The terms of a growing pool: the order of arrivals, and how delta is shared out. Numbers only; nothing is decided.

The source of configurations (a space, a table) and the race must agree on one thing: which index is a random
draw. Only random draws say anything about the space outside the pool.
"""

from dataclasses import dataclass, replace
from typing import Literal, get_args

from captime.errors import ScenarioError

Origin = Literal["listed", "random", "model"]
Stop = Literal["both", "epsilon", "gamma"]
Effort = Literal["search", "balanced", "certify"]
"""What CPU time is mainly spent on: finding better configurations, both, or the certificate."""

# Shares of delta: that the draws missed the best gamma; upper bounds; duels; lower bounds; the upper end shown.
# The number of draws grows with the logarithm of its share, and so do the runs of each draw with that of theirs.
DRAWS, UPPER, PAIRED, LOWER, SHOWN = 0.4, 0.22, 0.23, 0.1, 0.05
SHARES = (("draws", DRAWS), ("upper", UPPER), ("paired", PAIRED), ("lower", LOWER), ("shown", SHOWN))

# The same on a fixed set of instances, where there are no upper bounds beside duels.
ON_SET_PAIRED, ON_SET_LOWER, ON_SET_SHOWN = 0.47, 0.1, 0.03
ON_SET_SHARES = (("draws", DRAWS), ("paired", ON_SET_PAIRED), ("lower", ON_SET_LOWER), ("shown", ON_SET_SHOWN))


@dataclass(frozen=True, slots=True)
class PoolTerms:
    """Who comes when: those listed by the user, then random draws, and model-proposed ones between them.

    Attributes:
        n_listed: The default configuration and the user's favourites: indices 0, …, n_listed - 1. Fixed before the
            first run.
        model: Whether some newcomers are proposed by a model; a random draw comes first.
        draws_first: This many random draws come before the first proposal, to learn from.
        proposals: After them, this many proposals follow each random draw. If there are several, they come together.
        limit: How many configurations can be drawn or proposed by the model; None if the space does not end.
        singly: With one proposal for each draw, the first `singly` come one by one, the next `singly` in pairs, and so
            on.
        late: Indices of those that were added after the first run. Their choice may rest on all runs so far, just
            as a model's may, so they are proposals: of the user, not of the model.

    >>> [PoolTerms(1, model=True).origin(index) for index in range(4)]
    ['listed', 'random', 'model', 'random']
    >>> [PoolTerms(1, model=True, proposals=2).origin(index) for index in range(5)]
    ['listed', 'random', 'model', 'model', 'random']
    >>> [PoolTerms(1, late=(2,)).origin(index) for index in range(4)]
    ['listed', 'random', 'model', 'random']
    """

    n_listed: int = 0
    model: bool = False
    draws_first: int = 0
    limit: int | None = None
    singly: int = 8
    late: tuple[int, ...] = ()
    proposals: int = 1

    def __post_init__(self) -> None:
        if self.n_listed < 0 or self.draws_first < 0 or self.singly < 1 or self.proposals < 1:
            raise ScenarioError(
                f"a pool with {self.n_listed} listed configurations, {self.draws_first} first draws, {self.singly} "
                f"proposals one by one and {self.proposals} proposals for each draw was asked for; the first two "
                "cannot be negative, the others are at least 1"
            )
        if self.limit is not None and self.limit < max(1, self.n_listed):
            raise ScenarioError(
                f"the pool may hold {self.limit} configurations, but {max(1, self.n_listed)} have to be in it from the "
                "start"
            )

    def origin(self, index: int) -> Origin:
        """Where the configuration of that index comes from; `model` for all who may know earlier runs."""
        if index < self.n_listed:
            return "listed"
        if index in self.late:
            return "model"
        place = self._place(index)
        return "model" if self.model and place >= 0 and place % (1 + self.proposals) else "random"

    def _place(self, index: int) -> int:
        """Return how many arrivals of the model's part of the order come before this one; negative before it."""
        return index - sum(late < index for late in self.late) - self.n_listed - self.draws_first

    def batch_end(self, index: int) -> int:
        """The first index that does not come together with this one, if this one comes next.

        Proposals come in batches: all of a batch are made from the same lessons at the same moment, so all of them may
        begin at the same position, and the leader meets them there once. A model that has learnt from few
        configurations is asked again soon; later ones change less and less.

        >>> terms = PoolTerms(1, model=True)
        >>> [terms.batch_end(index) - index for index in (1, 2, 16, 18, 34)]
        [1, 1, 1, 3, 5]
        >>> [PoolTerms(1, model=True, proposals=3).batch_end(index) for index in (1, 2, 3, 5, 6)]
        [2, 5, 5, 6, 9]
        """
        if self.origin(index) != "model" or index in self.late:
            return index + 1
        place = self._place(index)
        if self.proposals > 1:
            return index + 1 + self.proposals - place % (1 + self.proposals)
        # A random draw stands between any two of them.
        return index + 1 + 2 * (place // 2 // self.singly)

    def room(self, size: int) -> bool:
        """Whether a pool of that size can still grow."""
        return self.limit is None or size < self.limit + len(self.late)

    def joined(self, index: int, count: int) -> "PoolTerms":
        """Return the same terms with `count` more configurations that were added late, from this index on."""
        return replace(self, late=(*self.late, *range(index, index + count)))


def checked_stop(stop: str) -> Stop:
    """Which goals have to be reached, as one of the words there are."""
    for known in get_args(Stop):
        if stop == known:
            word: Stop = known
            return word
    raise ScenarioError(f"pool has no stop {stop!r}; there are {', '.join(get_args(Stop))}")


def checked_effort(effort: str) -> Effort:
    """What CPU time is mainly spent on, as one of the words there are."""
    for known in get_args(Effort):
        if effort == known:
            word: Effort = known
            return word
    raise ScenarioError(f"pool has no effort {effort!r}; there are {', '.join(get_args(Effort))}")
