"""Bounds of other authors that captime measures itself against; no procedure may use them on open runs.

Maurer and Pontil's empirical Bernstein bound, and Waudby-Smith and Ramdas's bets that follow the earlier scores. Both
are narrow, and neither is monotone: a cut run that counts as 0 can raise them.
"""

import math
from typing import ClassVar

import numpy as np

from captime.arrays import FloatArray
from captime.bounds.betting import check_log_inverse, check_scores, rounding_allowance
from captime.bounds.protocol import Moments

# Halving [0, 1] this often leaves 1e-12.
_HALVINGS = 40
_CAUTION = 0.5


def empirical_bernstein_lower(scores: Moments, log_inverse: FloatArray) -> FloatArray:
    """The mean less sqrt(2·V·ln(2/δ) / n) + 7·ln(2/δ) / (3(n - 1)), V the variance with divisor n - 1.

    Nothing is known below two samples.

    Args:
        scores: Moments of scores in [0, 1].
        log_inverse: ln(1/δ); broadcasts with the moments.
    """
    check_log_inverse(log_inverse)
    n, total, squares = scores
    m = np.maximum(np.asarray(n, dtype=np.float64), 2.0)
    mean = total / m
    variance = np.maximum(squares - m * mean**2, 0.0) / (m - 1.0)
    price = log_inverse + math.log(2.0)
    lower = mean - np.sqrt(2.0 * variance * price / m) - 7.0 * price / (3.0 * (m - 1.0))
    return np.where(np.asarray(n) < 2, 0.0, np.clip(lower, 0.0, 1.0))


class EmpiricalBernstein:
    """Maurer and Pontil's bound. Its width moves with the variance, so it is not monotone.

    Where captimes follow the data, or runs are open, it may not be used: a cut run counted as 0 can *raise* the lower
    bound of the others through a smaller variance. It is sound at captime levels that were paid for one by one.
    """

    monotone: ClassVar[bool] = False
    time_uniform: ClassVar[bool] = False
    needs: ClassVar[str] = "moments"
    summary: ClassVar[str] = (
        "empirical Bernstein (Maurer-Pontil): variance-adaptive, one n at a time, settled runs only"
    )

    def __call__(self, low: Moments, high: Moments, log_inverse: FloatArray, /) -> tuple[FloatArray, FloatArray]:
        """See the protocol of moment bounds."""
        return empirical_bernstein_lower(low, log_inverse), 1.0 - empirical_bernstein_lower(
            high.mirrored(), log_inverse
        )


def advised_bets(scores: FloatArray, log_inverse: float) -> FloatArray:
    """λ_t = sqrt(2·ln(1/δ) / (σ̂²_{t-1}·t·ln(1 + t))), from the scores before t only."""
    t = np.arange(1, len(scores) + 1)
    mean = (0.5 + np.cumsum(scores)) / (t + 1.0)
    variance = (0.25 + np.cumsum((scores - mean) ** 2)) / (t + 1.0)
    earlier = np.concatenate((np.full(1, 0.25), variance))[: len(scores)]
    bets: FloatArray = np.sqrt(2.0 * log_inverse / (earlier * t * np.log1p(t)))
    return bets


def plug_in_betting_lower(samples: FloatArray, log_inverse: float, caution: float = _CAUTION) -> float:
    """The largest mean q against which ∏(1 + λ_t(q)(x_t - q)) has reached exp(log_inverse); 0 if none.

    λ_t(q) = min(λ_t, caution / q), so that no score can ruin the gambler.

    Args:
        samples: Scores in [0, 1], in the order of the stream.
        log_inverse: ln(1 / failure probability).
        caution: The largest share of the wealth at stake, strictly between 0 and 1.
    """
    scores = check_scores(samples)
    check_log_inverse(log_inverse)
    if not scores.any():
        return 0.0
    bets = advised_bets(scores, log_inverse)
    target = log_inverse + rounding_allowance(len(scores))
    # The wealth against q falls with q: both x - q and, where it is cut, the bet do. At q = 1 nothing can be gained.
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        q = (low + high) / 2.0
        wealth = float(np.log1p(np.minimum(bets, caution / q) * (scores - q)).sum())
        low, high = (q, high) if wealth >= target else (low, q)
    return low


def plug_in_bernstein_lower(samples: FloatArray, log_inverse: float, caution: float = _CAUTION) -> float:
    """The same bets under an empirical-Bernstein inequality: a closed form, a little wider, cheap to carry on.

    (Σ λ_t·x_t - ln(1/δ) - Σ v_t·ψ(λ_t)) / Σ λ_t with ψ(λ) = -ln(1 - λ) - λ and v_t = (x_t - μ̂_{t-1})².

    Args:
        samples: Scores in [0, 1], in the order of the stream.
        log_inverse: ln(1 / failure probability).
        caution: The largest bet, strictly between 0 and 1.
    """
    scores = check_scores(samples)
    check_log_inverse(log_inverse)
    if len(scores) == 0:
        return 0.0
    bets = np.minimum(advised_bets(scores, log_inverse), caution)
    counted = np.arange(1, len(scores) + 1)
    expected = (0.5 + np.concatenate((np.zeros(1), np.cumsum(scores)[:-1]))) / counted
    price = float(((scores - expected) ** 2 * (-np.log1p(-bets) - bets)).sum())
    bound = (float(bets @ scores) - log_inverse - price) / float(bets.sum())
    return min(1.0, max(0.0, bound))


class PlugInBetting:
    """Betting what the past advises (hedged capital): narrow at moderate n, good at all n at once, not monotone.

    A raised early score changes all later bets, so it can lower the bound.
    """

    monotone: ClassVar[bool] = False
    time_uniform: ClassVar[bool] = True
    needs: ClassVar[str] = "samples"
    summary: ClassVar[str] = "predictable plug-in betting (Waudby-Smith, Ramdas): all n at once, settled runs only"

    def __call__(self, low: FloatArray, high: FloatArray, log_inverse: float, /) -> tuple[float, float]:
        """See the protocol of sample bounds."""
        missing: FloatArray = 1.0 - np.asarray(high, dtype=np.float64)
        return self._lower(low, log_inverse), 1.0 - self._lower(missing, log_inverse)

    def _lower(self, samples: FloatArray, log_inverse: float) -> float:
        return plug_in_betting_lower(samples, log_inverse)


class PlugInBernstein(PlugInBetting):
    """Predictable plug-in empirical Bernstein: the cheap relative of `PlugInBetting`."""

    summary: ClassVar[str] = "predictable plug-in empirical Bernstein: all n at once, closed form, settled runs only"

    def _lower(self, samples: FloatArray, log_inverse: float) -> float:
        return plug_in_bernstein_lower(samples, log_inverse)
