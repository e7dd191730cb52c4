"""Bounds computed from sums of scores and of their squares: Hoeffding's, Chernoff's, and closed forms of betting."""

import math
from typing import ClassVar

import numpy as np
from scipy.special import gammaln, rel_entr

from captime.arrays import FloatArray, IntArray
from captime.bounds.betting import check_log_inverse, check_scores, climb, counted, log_mean, rounding_allowance
from captime.bounds.protocol import Moments

# Hoeffding's bound, in the form the paper uses it: one radius for both ends, a shorter range for the upper one.


def hoeffding_radius(n: IntArray, log_inverse: FloatArray) -> FloatArray:
    """The paper's α: the mean of n values in [0, 1] errs by more with probability at most exp(-log_inverse)."""
    radius: FloatArray = log_inverse / (2.0 * n)
    return np.sqrt(radius, out=radius)


class Hoeffding:
    """The paper's LCB and UCB.

    The low ends lie in [0, 1]. The high ends lie in [u(κ), 1], because a run that is not done by its captime counts
    u(κ) there; so the upper radius is shorter by the factor 1 - u(κ). A crash is a run that never finishes: it must
    count u(κ) at its high end, not 0, or the range would be wrong.
    """

    monotone: ClassVar[bool] = True
    time_uniform: ClassVar[bool] = False
    needs: ClassVar[str] = "sums"
    summary: ClassVar[str] = (
        "the paper's bound, the default of up: sums only, one radius per (n, captime level), paid by a union"
    )

    def __call__(
        self, n: IntArray, low: FloatArray, high: FloatArray, log_inverse: FloatArray, floor: FloatArray, /
    ) -> tuple[FloatArray, FloatArray]:
        """See the protocol."""
        radius = hoeffding_radius(n, log_inverse)
        # [UAC] Lemma 4. mean(low) = Û - u(κ)(1 - F̂) and mean(high) = Û, so these are the paper's LCB and UCB exactly.
        lower, upper = low / n, high / n
        lower -= radius
        upper += (1.0 - floor) * radius
        return lower, upper


# The price of not knowing the best bet, and the bounds that pay it outright instead of mixing over bets.

# Halving alone would settle the best share to 16 digits in this many steps; Newton's method needs far fewer.
_STEPS = 60


def regret(n: IntArray | FloatArray | float) -> FloatArray:
    """R(n) = ½ ln π + lnΓ(n + 1) - lnΓ(n + ½): what the best constant bet gains over the Beta(½, ½) mixture at most.

    About ½ ln(πn).

    >>> regret(np.array([1, 100, 1000])).round(4).tolist()
    [0.6931, 2.8762, 4.0264]
    """
    m = np.asarray(n, dtype=np.float64)
    return np.asarray(0.5 * math.log(math.pi) + gammaln(m + 1.0) - gammaln(m + 0.5), dtype=np.float64)


def regret_lower(samples: FloatArray, log_inverse: float, counts: IntArray | None = None) -> float:
    """The regret form of mixture betting: the best share in hindsight, less what hindsight can be worth.

    Valid and monotone like the mixture over all shares, and a little below it.

    Args:
        samples: Scores in [0, 1], in any order.
        log_inverse: ln(1 / failure probability).
        counts: How often each score occurs; once each if left out.
    """
    scores = check_scores(samples)
    check_log_inverse(log_inverse)
    values, times = counted(scores, counts)
    n = float(times.sum())
    total = float(times @ values)
    if not total > 0.0:
        return 0.0
    target = log_inverse + float(regret(n)) + rounding_allowance(n)

    def best_bet(s: float) -> tuple[float, float]:
        gain = values * math.exp(-s) - 1.0
        share = _best_share(gain, times)
        with np.errstate(divide="ignore"):
            value = float(times @ np.log1p(share * gain))
        # The slope of the best bet is the slope of the bet that is best here.
        slope = -float(times @ (share * (gain + 1.0) / (1.0 + share * gain)))
        return value, slope

    # At the mean no bet gains anything; just below it the best one does, and has a slope.
    return climb(best_bet, target, log_mean(total, n) - 1.0)


def _best_share(gain: FloatArray, times: FloatArray) -> float:
    """Where Σ ln(1 + b·gain) is largest on [0, 1]: it is concave, so Newton's steps within a shrinking interval do.

    Any share would give a valid bound; a worse one gives a lower one.
    """
    if gain.min() > -1.0 and float(times @ (gain / (1.0 + gain))) >= 0.0:
        return 1.0
    low, high, share = 0.0, 1.0, 0.5
    for _ in range(_STEPS):
        relative = gain / (1.0 + share * gain)
        weighed = times * relative
        slope, bend = float(weighed.sum()), float(weighed @ relative)
        low, high = (share, high) if slope > 0.0 else (low, share)
        following = share + slope / bend if bend > 0.0 else low
        if not low < following < high:
            following = (low + high) / 2.0
        if abs(following - share) <= 1e-13:
            break
        share = following
    return share


class RegretBetting:
    """The regret form of mixture betting (the idea of PRECiSE): no nodes to choose, a little wider than the mixture."""

    monotone: ClassVar[bool] = True
    time_uniform: ClassVar[bool] = True
    needs: ClassVar[str] = "samples"
    summary: ClassVar[str] = (
        "the best bet in hindsight less its regret, where the search for the mixture begins: a little wider, no nodes"
    )

    def __call__(self, low: FloatArray, high: FloatArray, log_inverse: float, /) -> tuple[float, float]:
        """See the protocol of sample bounds."""
        return regret_lower(low, log_inverse), 1.0 - regret_lower(1.0 - np.asarray(high), log_inverse)


# Chernoff's bound in its exact form, by the Kullback-Leibler divergence of two coins.

# Newton's method climbs to the root from the safe side and doubles its right digits; it stops long before this.
_KL_STEPS = 100


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
    for _ in range(_KL_STEPS):
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


# A cheap floor under the regret form: from the number of scores, their sum and the sum of their squares alone.

# Halving [0, 1] this often leaves 1e-12.
_HALVINGS = 40


def fan_lower(scores: Moments, log_inverse: FloatArray) -> FloatArray:
    """Lower bounds from moments: the better of KL and of Fan's inequality ln(1 + λy) >= λy + (ln(1 - λ) + λ)y².

    Never above the regret form on the same scores.

    Args:
        scores: Moments of scores in [0, 1].
        log_inverse: ln(1 / failure probability); broadcasts with the moments.
    """
    check_log_inverse(log_inverse)
    n, total, squares, log_inverse = np.broadcast_arrays(
        *(np.asarray(given, dtype=np.float64) for given in (*scores, log_inverse))
    )
    mean = np.clip(np.divide(total, n, out=np.zeros(n.shape), where=n > 0), 0.0, 1.0)
    # A variance that rounding made too small would overstate the gain; the allowance covers it.
    variance = np.clip(np.divide(squares, n, out=np.zeros(n.shape), where=n > 0) - mean**2, 0.0, 0.25) + 1e-15
    target = log_inverse + regret(n) + rounding_allowance(float(n.max(initial=0)))
    # The KL bound is refuted by the statistic itself, so the search starts there and only climbs.
    low: FloatArray = kl_lower(n, total, target)
    high = mean.copy()
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        enough = np.maximum(_fan(mean, variance, middle), kl_divergence(mean, middle)) * n >= target
        low, high = np.where(enough, middle, low), np.where(enough, high, middle)
    return low


def _fan(mean: FloatArray, variance: FloatArray, q: FloatArray) -> FloatArray:
    """What a bet against q gains at least, per score. A and B are the mean and mean square of x / q - 1."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        a = (mean - q) / q
        b = (variance + (mean - q) ** 2) / q**2
        share = a / (a + b)
        gain = a * share + (np.log1p(-share) + share) * b
    return np.where(np.isfinite(gain) & (a > 0.0), gain, 0.0)


class Fan:
    """Fan's inequality under the regret form: a screen for many configurations, from three sums each.

    Not monotone itself, so declared so. Still, `fan_lower` is valid on low ends of any origin, because what it computes
    never exceeds the statistic of the regret form, which is monotone: good for a first look, not for an interval.
    """

    monotone: ClassVar[bool] = False
    time_uniform: ClassVar[bool] = True
    needs: ClassVar[str] = "moments"
    summary: ClassVar[str] = (
        "a cheap floor under mixture-regret, inside mixture: from n, the sum and the sum of squares"
    )

    def __call__(self, low: Moments, high: Moments, log_inverse: FloatArray, /) -> tuple[FloatArray, FloatArray]:
        """See the protocol of moment bounds."""
        return fan_lower(low, log_inverse), 1.0 - fan_lower(high.mirrored(), log_inverse)
