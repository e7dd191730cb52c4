"""Rules of thumb of a growing pool: when to look at newcomers, and when one configuration alone may be good enough.

Nothing here can make a certificate wrong; it only changes what one costs.
"""

import math
from dataclasses import dataclass

from captime.procedures.pool_terms import Effort

# A leader is only judged by its mean after this many runs.
_ENOUGH = 12
# Needed draws get this share of the time, and all of it once they cost this part of what has been spent.
_NEEDED, _ALL_AT_ONCE = 0.5, 1.0


@dataclass(frozen=True, slots=True)
class Split:
    """How CPU time is split between newcomers, the contest for the lead and the certificate.

    Attributes:
        newcomers: Newcomers get at least this share of the time while more of them may come and no goal for gamma sets
            the pace.
        contest: Of every `out_of` rounds, this many belong to the contest for the lead, the others to the certificate.
        out_of: See `contest`.
    """

    newcomers: float
    contest: int
    out_of: int

    def contests(self, rounds: int) -> bool:
        """Whether this round belongs to the contest."""
        return rounds % self.out_of >= self.out_of - self.contest


SPLITS: dict[Effort, Split] = {
    "search": Split(0.6, 7, 8),
    "balanced": Split(0.4, 1, 2),
    "certify": Split(0.15, 1, 8),
}
"""By effort. Without a goal for gamma a search has no end, so even for a certificate newcomers get some of the time."""
_USUAL = SPLITS["balanced"]


@dataclass(frozen=True, slots=True)
class Stakes:
    """What could still be lost inside the pool, and outside of it.

    Attributes:
        epsilon: How far the best of the pool may be above the leader.
        gamma: How much of the space the draws may have missed.
        mean: Mean score of the leader: a newcomer can be better by 1 - mean at most.
    """

    epsilon: float
    gamma: float
    mean: float

    def outside(self) -> float:
        """The share of all CPU time that newcomers should get: what is at stake outside, of everything at stake.

        A fresh draw is better than the best of the pool with a probability of about gamma, and then by 1 - mean at
        most; the best of the pool is better than the leader by epsilon at most, and by 1 - mean at most, too.

        >>> Stakes(epsilon=0.3, gamma=0.2, mean=0.5).outside()
        0.25
        >>> Stakes(epsilon=1.0, gamma=1.0, mean=0.7).outside()
        0.5
        """
        above = 1.0 - self.mean
        return self.gamma * above / (self.gamma * above + min(self.epsilon, above)) if above > 0.0 else 0.0


def newcomers_turn(looked: float, spent: float, stakes: Stakes, missing: float, split: Split = _USUAL) -> bool:
    """Whether the next second should go to a newcomer.

    Args:
        looked: CPU seconds spent on pilots of newcomers so far.
        spent: CPU seconds spent in all.
        stakes: What could be lost inside and outside.
        missing: Draws that the goal for gamma still needs, per draw made; 0 if there is no goal.
        split: How CPU time is split.
    """
    if missing <= 0.0:
        return looked <= max(split.newcomers, stakes.outside()) * spent
    # Draws that are needed anyway are better looked at early: a good leader clears the others for less. So they get
    # half of the time, and all of it once what is missing costs no more than what has been spent.
    return missing * looked <= _ALL_AT_ONCE * spent or looked <= max(_NEEDED, stakes.outside()) * spent


def runs_to_show(goal: float, mean: float, variance: float, log_inverse: float) -> float:
    """About how many runs it takes to show that a mean is at least `goal`; infinite if it does not look like it.

    Args:
        goal: What the lower bound has to reach.
        mean: The mean as it looks now.
        variance: Variance of the scores.
        log_inverse: ln(1 / failure probability) of the lower bound.
    """
    gap = mean - goal
    if gap <= 0.0:
        return math.inf
    # Leading order of a betting bound; the 2 stands for not knowing the best bet.
    return (2.0 * variance / gap**2 + 1.0 / gap) * (log_inverse + 2.0)


def looks_good_enough(raced: int, needed: float, alternative: float) -> bool:
    """Whether running the leader alone is likely to end things for less than `alternative` runs."""
    return raced >= _ENOUGH and needed - raced < alternative
