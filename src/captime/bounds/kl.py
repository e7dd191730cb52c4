"""Chernoff's bound in its exact form, by the Kullback-Leibler divergence of two coins."""

from typing import ClassVar

import numpy as np
from scipy.special import rel_entr

from captime.arrays import FloatArray, IntArray
from captime.bounds.betting import check_log_inverse
from captime.bounds.regret import regret

# Newton's method climbs to the root from the safe side and doubles its right digits; it stops long before this.
_STEPS = 100


def kl_divergence(p: FloatArray, q: FloatArray) -> FloatArray:
    """kl(p, q) = p ln(p/q) + (1 - p) ln((1 - p)/(1 - q)), natural logarithms, 0·ln 0 = 0; infinite where q rules p out.

    >>> float(kl_divergence(np.array(0.5), np.array(0.25)).round(6))
    0.143841
    """
    return np.asarray(rel_entr(p, q) + rel_entr(1.0 - p, 1.0 - q))


def kl_lower(n: IntArray | FloatArray, total: FloatArray, log_inverse: FloatArray) -> FloatArray:
    """The smallest q with n·kl(mean, q) <= log_inverse, not above the mean. Arrays of any shapes that broadcast.

    Holds for any scores in [0, 1], not only for coins, because a coin is the least favourable law with its mean.

    Args:
        n: Number of scores; 0 gives 0.
        total: Sums of the scores.
        log_inverse: ln(1 / failure probability).
    """
    check_log_inverse(log_inverse)
    n, total, log_inverse = np.broadcast_arrays(
        np.asarray(n, dtype=np.float64), np.asarray(total, dtype=np.float64), np.asarray(log_inverse, dtype=np.float64)
    )
    mean = np.clip(np.divide(total, n, out=np.zeros(n.shape), where=n > 0), 0.0, 1.0)
    price = np.divide(log_inverse, n, out=np.full(n.shape, np.inf), where=n > 0)
    # Below such a mean the bound is 0 for any number of scores that could be counted, and quotients could overflow.
    solvable = (mean > 1e-12) & np.isfinite(price)
    result = np.zeros(n.shape)
    result[solvable] = _root(mean[solvable], price[solvable])
    return result


def _root(mean: FloatArray, price: FloatArray) -> FloatArray:
    """The q below the mean with kl(mean, q) = price, from below.

    As a function of s = ln q the divergence is convex and falls up to the mean, so Newton's steps from the left stay on
    the left. Two starts lie there: Pinsker's inequality, kl >= 2(mean - q)², and leaving out the term in ln(1 - q).
    """
    with np.errstate(divide="ignore"):
        pinsker = np.log(np.maximum(mean - np.sqrt(price / 2.0), 0.0))
    entropy = -rel_entr(mean, 1.0) - rel_entr(1.0 - mean, 1.0)
    s = np.maximum(pinsker, -(price + entropy) / mean)
    rest = rel_entr(mean, 1.0)
    for _ in range(_STEPS):
        q = np.exp(s)
        excess = rest - mean * s + rel_entr(1.0 - mean, -np.expm1(s)) - price
        with np.errstate(divide="ignore", invalid="ignore"):
            step = excess * -np.expm1(s) / (mean - q)
        step = np.where((step > 0.0) & np.isfinite(step), step, 0.0)
        s = s + step
        if not (step > 1e-14).any():
            break
    return np.minimum(np.exp(s), mean)


class Kl:
    """Chernoff's bound at one number of samples, paid by a union over n like Hoeffding's; never wider than that."""

    monotone: ClassVar[bool] = True
    time_uniform: ClassVar[bool] = False
    needs: ClassVar[str] = "sums"
    summary: ClassVar[str] = (
        "Chernoff's bound by KL divergence, an option of up: sums only, sharper than Hoeffding near 0 and 1"
    )

    def __call__(
        self, n: IntArray, low: FloatArray, high: FloatArray, log_inverse: FloatArray, floor: FloatArray, /
    ) -> tuple[FloatArray, FloatArray]:
        """See the protocol."""
        lower = kl_lower(n, low, log_inverse)
        # The high ends lie in [floor, 1]: stretch what they lack to [0, 1], bound it, shrink it back.
        span, missing = np.broadcast_arrays(1.0 - floor, n - high)
        lacking = np.divide(missing, span, out=np.zeros(span.shape), where=span > 0)
        upper: FloatArray = 1.0 - span * kl_lower(n, lacking, log_inverse)
        return lower, upper


class KlSequence(Kl):
    """Chernoff's bound at all numbers of samples at once: the price is R(n) more, the regret of mixing over coins."""

    time_uniform: ClassVar[bool] = True
    summary: ClassVar[str] = (
        "the time-uniform form of kl, an option of up: one event covers all n, for a price of about half of ln(πn)"
    )

    def __call__(
        self, n: IntArray, low: FloatArray, high: FloatArray, log_inverse: FloatArray, floor: FloatArray, /
    ) -> tuple[FloatArray, FloatArray]:
        """See the protocol."""
        return super().__call__(n, low, high, log_inverse + regret(n), floor)
