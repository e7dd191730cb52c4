"""Which steps of a path carry the gain: intervals for every step and for the share of every beginning of the path.

A path leads from one configuration to another, c_0, c_1, …, c_d, some settings changed at each step. All its
configurations were run on the same instances, and the path was chosen on others. Then all intervals below hold at once,
for all numbers of instances, with probability at least 1 - delta; docs/explain.md has the argument.
"""

from dataclasses import dataclass

import numpy as np

from captime.arrays import FloatArray
from captime.bounds.mixture import log_wealth
from captime.budget import check_delta
from captime.campaign.paired import difference, log_inverse_of
from captime.campaign.validation import Worth

# Shares that are refuted one after the other, from each end; fixed beforehand. Finer where sentences are made of them.
_SHARES = np.concatenate((np.arange(-20, -2) / 10.0, np.arange(-20, 121) / 100.0, np.arange(13, 31) / 10.0))
# What rounding may have added to the logarithm of the wealth, for each run; far more than it has.
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Share:
    """Which share of the whole gain the first steps of a path carry.

    Attributes:
        seen: On the instances run, in the middle of what is possible; None while the gain seen is not positive.
        low: Lower bound; None if no share is too small to be refuted.
        high: Upper bound; None likewise.
    """

    seen: float | None
    low: float | None
    high: float | None

    @property
    def width(self) -> float:
        """How far the ends are apart; infinite if one is missing."""
        return np.inf if self.low is None or self.high is None else self.high - self.low


@dataclass(frozen=True, slots=True)
class Ablation:
    """What is known of a path.

    Attributes:
        n_instances: On how many instances all its configurations were run.
        delta: Allowed probability that any of the intervals is wrong.
        gain: By how much the last configuration exceeds the first.
        steps: By how much each configuration exceeds the one before it.
        shares: Which share of the gain the first 1, 2, …, d - 1 steps carry.
        named: The number of first steps that a sentence is made of; d if none of the beginnings carries enough.
    """

    n_instances: int
    delta: float
    gain: Worth
    steps: tuple[Worth, ...]
    shares: tuple[Share, ...]
    named: int

    @property
    def share(self) -> Share:
        """The share of the steps that are named."""
        return self.shares[self.named - 1] if self.named <= len(self.shares) else Share(1.0, 1.0, 1.0)


def ablation(low: FloatArray, high: FloatArray, delta: float, carry: float) -> Ablation:
    """Bound the gain, every step, and the share of every beginning of the path.

    Args:
        low: Low ends of the utilities, by configuration of the path and position.
        high: High ends.
        delta: Allowed probability that any of the intervals is wrong.
        carry: A beginning of the path is named if this share of the gain is seen in it.
    """
    check_delta(delta)
    steps = len(low) - 1
    level = _level(delta, steps)
    gain = difference(low, high, steps, 0, level)
    return Ablation(
        n_instances=low.shape[1],
        delta=delta,
        gain=gain,
        steps=tuple(difference(low, high, row, row - 1, level) for row in range(1, steps + 1)),
        shares=tuple(share_of(low, high, row, level) for row in range(1, steps)),
        named=named_steps(low, high, carry),
    )


def is_decided(low: FloatArray, high: FloatArray, delta: float, *, carry: float, within: float, least: float) -> bool:
    """Tell whether enough is known: there is hardly a gain, or the share of the named steps is known closely.

    Args:
        low: As in `ablation`.
        high: As in `ablation`.
        delta: As in `ablation`.
        carry: As in `ablation`.
        within: How wide the interval of the share may be.
        least: A gain below this needs no explanation.
    """
    steps = len(low) - 1
    level = _level(delta, steps)
    gain = difference(low, high, steps, 0, level)
    if gain.high < least:
        return True
    if gain.low <= 0.0:
        return False
    named = named_steps(low, high, carry)
    return named == steps or share_of(low, high, named, level).width <= within


def named_steps(low: FloatArray, high: FloatArray, carry: float) -> int:
    """Return how many first steps are seen to carry the wanted share of the gain; all if there is no gain."""
    means = ((low + high) / 2.0).mean(axis=1)
    whole = means[-1] - means[0]
    if whole <= 0.0:
        return len(low) - 1
    return 1 + int(np.argmax(means[1:] - means[0] >= min(carry, 1.0) * whole - 1e-12))


def share_of(low: FloatArray, high: FloatArray, row: int, log_inverse: float) -> Share:
    """Bound the share (U(c_row) - U(c_0)) / (U(c_d) - U(c_0)), where U(c_d) > U(c_0).

    "The share is at most r" says that x_row - (1 - r)·x_0 - r·x_d has a mean of at most 0, a claim about one mean of
    numbers in a known range, which betting can refute. The claims contain each other, so they are refuted one after the
    other from the smallest r on, each at the full level, until one stands. The other end likewise.

    Args:
        low: Low ends of the utilities, by configuration of the path and position.
        high: High ends.
        row: The last configuration of the beginning in question.
        log_inverse: ln(1 / failure probability) of each end.
    """
    enough = log_inverse + _ROUNDING * low.shape[1]

    def refuted(share: float, *, too_small: bool) -> bool:
        """Tell whether "at most this share" is refuted, or else "at least this share"."""
        # The second claim is the first one about the same numbers with their signs changed.
        sign = 1.0 if too_small else -1.0
        weights = {row: sign, 0: sign * (share - 1.0), len(low) - 1: -sign * share}
        least = sum(min(weight, 0.0) for weight in weights.values())
        width = sum(map(abs, weights.values()))
        # From below: what helps the claim counts with its high end, what speaks against it with its low end.
        total = np.zeros(low.shape[1])
        for place, weight in weights.items():
            total += weight * (low if weight > 0 else high)[place]
        return bool(log_wealth(np.clip((total - least) / width, 0.0, 1.0), -least / width) >= enough)

    from_below = next((at for at, share in enumerate(_SHARES) if not refuted(share, too_small=True)), len(_SHARES))
    downwards = _SHARES[::-1]
    from_above = next((at for at, share in enumerate(downwards) if not refuted(share, too_small=False)), len(_SHARES))
    middle = ((low + high) / 2.0).mean(axis=1)
    whole = float(middle[-1] - middle[0])
    return Share(
        seen=float(middle[row] - middle[0]) / whole if whole > 0.0 else None,
        low=float(_SHARES[from_below - 1]) if from_below else None,
        high=float(downwards[from_above - 1]) if from_above else None,
    )


def _level(delta: float, steps: int) -> float:
    """Return ln(1 / failure probability) of one end: two for the gain, two a step, and two a beginning share delta."""
    return log_inverse_of(delta, 2 + 2 * steps + 2 * (steps - 1))
