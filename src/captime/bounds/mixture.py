"""Mixture betting, the recommended bound: monotone, good at all sample sizes at once, narrow where scores vary little.

The relatives live in files of their own and are offered here too: on binned scores, on pairs, on finite sets, in regret
form and from moments alone.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from captime.arrays import BoolArray, FloatArray, IntArray
from captime.bounds.betting import (
    CHUNK,
    BinnedMixture,
    PairedMixture,
    check_log_inverse,
    check_nodes,
    check_scores,
    climb,
    counted,
    log_mean,
    rounding_allowance,
    sine_nodes,
)
from captime.bounds.from_sums import fan_lower, regret, regret_lower
from captime.errors import ScenarioError


def mixture_lower(
    samples: FloatArray, log_inverse: float, nodes: FloatArray | None = None, counts: IntArray | None = None
) -> float:
    """The largest mean q that the mixture refutes: Σ_k ∏_t (1 - b_k + b_k·x_t / q) / K >= exp(log_inverse).

    Computed from below, so never above the exact value; 0 if nothing is refuted. Valid for any nodes that were fixed
    before the data: the mixture is a bet, not an approximation of an integral.

    Args:
        samples: Scores in [0, 1], in any order.
        log_inverse: ln(1 / failure probability).
        nodes: Shares b_k that are bet, with equal weights; `sine_nodes()` if left out.
        counts: How often each score occurs; once each if left out.
    """
    scores = check_scores(samples)
    check_log_inverse(log_inverse)
    shares = check_nodes(sine_nodes() if nodes is None else nodes)
    values, times = counted(scores, counts)
    n = float(times.sum())
    total = float(times @ values)
    if not (total > 0.0 and shares.max() > 0.0):
        return 0.0
    target = log_inverse + rounding_allowance(n)
    # At the mean the wealth is at most 1, so the root lies below.
    return climb(lambda s: _log_wealth_and_slope(values, times, shares, s), target, log_mean(total, n))


def mixture_upper(
    samples: FloatArray, log_inverse: float, nodes: FloatArray | None = None, counts: IntArray | None = None
) -> float:
    """The smallest mean that mixture betting leaves possible: the lower bound of 1 - x, seen from the other side."""
    return 1.0 - mixture_lower(1.0 - np.asarray(samples, dtype=np.float64), log_inverse, nodes, counts)


def log_wealth(samples: FloatArray, q: float, nodes: FloatArray | None = None) -> float:
    """The logarithm of what the mixture has won against the mean q, 0 < q <= 1: the evidence itself."""
    if not 0.0 < q <= 1.0:
        raise ScenarioError(f"the mean to bet against is {q}, but it has to lie in (0, 1]")
    values, times = counted(check_scores(samples), None)
    return _log_wealth_and_slope(values, times, check_nodes(sine_nodes() if nodes is None else nodes), math.log(q))[0]


def _log_wealth_and_slope(values: FloatArray, times: FloatArray, shares: FloatArray, s: float) -> tuple[float, float]:
    """The logarithm of the wealth and its derivative by s, at q = e^s."""
    won, slope = np.zeros(len(shares)), np.zeros(len(shares))
    rows = max(1, CHUNK // len(shares))
    for start in range(0, len(values), rows):
        stake = np.multiply.outer(values[start : start + rows] * math.exp(-s), shares)
        factor = stake + (1.0 - shares)
        part = times[start : start + rows]
        # The plain logarithm is right to 1e-16 a factor, which is all that a sum of many needs, and much faster than
        # log1p. Everything bet on a score of 0 is ruin, ln 0.
        with np.errstate(divide="ignore"):
            won += part @ np.log(factor)
        slope -= part @ np.divide(stake, factor, out=stake, where=factor > 0.0)
    top = float(won.max())
    if top == -math.inf:
        return top, -1.0
    weight = np.exp(won - top)
    whole = float(weight.sum())
    return top + math.log(whole / len(shares)), float(weight @ slope) / whole


class Mixture:
    """Mixture betting on the scores one by one. What the default procedure trusts.

    Args:
        nodes: How many bets are mixed, at the shares of `sine_nodes`.
    """

    monotone: ClassVar[bool] = True
    time_uniform: ClassVar[bool] = True
    needs: ClassVar[str] = "samples"
    summary: ClassVar[str] = (
        "mixture betting, used by fixed-captimes and reports: all n at once, any captimes, narrow for small variances"
    )

    def __init__(self, nodes: int = 64) -> None:
        self.nodes = sine_nodes(nodes)

    def __call__(self, low: FloatArray, high: FloatArray, log_inverse: float, /) -> tuple[float, float]:
        """See the protocol of sample bounds."""
        return mixture_lower(low, log_inverse, self.nodes), mixture_upper(high, log_inverse, self.nodes)


__all__ = [
    "BinnedMixture",
    "Mixture",
    "PairedMixture",
    "fan_lower",
    "log_wealth",
    "mixture_lower",
    "mixture_lower_finite",
    "mixture_upper",
    "mixture_upper_finite",
    "regret",
    "regret_lower",
    "sine_nodes",
]


# Mixture betting on a fixed set of instances, drawn without replacement: what was seen tells about what is left.
#
# Only for programs whose runs repeat: one score per instance. The target is then the mean over the N instances of the
# set, not over a distribution they were drawn from.

# Halving [0, 1] this often leaves 1e-12.
_HALVINGS = 40


def mixture_lower_finite(
    samples: FloatArray,
    population: int,
    log_inverse: float,
    known_sum: FloatArray | None = None,
    *,
    positions: IntArray | None = None,
    nodes: FloatArray | None = None,
) -> float:
    """Lower bound on the mean utility over a fixed set of instances, walked through in random order.

    If the mean over the set is q and the first j instances are together worth S, the others have the mean
    (N·q - S) / (N - j): that is what the bet on position j is made against. What is certain without betting counts too:
    the mean is at least S / N, with all that is known.

    Args:
        samples: Scores (low ends) in the order of the stream.
        population: N, how many instances there are.
        log_inverse: ln(1 / failure probability).
        known_sum: Before each sample, and once more after the last: the sum of the low ends of the *utilities* over all
            positions of the stream so far, those without a sample included. Needed when scores are lotteries whose mean
            is the utility, as under random captimes: the sum of the scores may not stand for it. Left out: the scores
            are the utilities, and there were no positions without a sample.
        positions: Stream position of each sample, counted from 0. Left out: 0, 1, 2, …
        nodes: Shares that are bet; `sine_nodes()` if left out.
    """
    scores = check_scores(samples)
    check_log_inverse(log_inverse)
    shares = check_nodes(sine_nodes() if nodes is None else nodes)
    place = np.arange(len(scores)) if positions is None else np.asarray(positions)
    _check_places(place, len(scores), population)
    before = _known(scores, place, known_sum)
    certain = float(before[-1]) / population
    if len(scores) == 0:
        return certain
    left = population - place
    target = log_inverse + rounding_allowance(len(scores))

    def refuted(q: float) -> bool:
        mean_left = np.minimum(1.0, (population * q - before[:-1]) / left)
        if not (mean_left > 0.0).all():
            return True
        with np.errstate(divide="ignore", over="ignore"):
            wealth = np.log1p(shares[:, None] * (scores / mean_left - 1.0)).sum(axis=1)
        return bool(np.logaddexp.reduce(wealth) - np.log(len(shares)) >= target)

    low, high = certain, 1.0
    if known_sum is None:
        # The mean cannot be more than this; with the whole set seen it is the mean itself.
        high = min(1.0, (float(before[-1]) + population - len(scores)) / population)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if low < middle and refuted(middle) else (low, middle)
    return low


def mixture_upper_finite(
    samples: FloatArray,
    population: int,
    log_inverse: float,
    known_sum: FloatArray | None = None,
    *,
    positions: IntArray | None = None,
    nodes: FloatArray | None = None,
) -> float:
    """Upper bound on the mean utility over a fixed set of instances: the lower bound seen from the other side.

    Args:
        samples: Scores (high ends) in the order of the stream.
        population: As in `mixture_lower_finite`.
        log_inverse: As there.
        known_sum: As there, of the *high* ends of the utilities; a position about which nothing is known counts 1.
        positions: As there.
        nodes: As there.
    """
    scores = check_scores(samples)
    place = np.arange(len(scores)) if positions is None else np.asarray(positions)
    missing = None
    if known_sum is not None:
        _check_places(place, len(scores), population)
        known = np.asarray(known_sum, dtype=np.float64)
        _check_known(known, place)
        missing = np.maximum(_counted_places(place) - known, 0.0)  # sums are rounded
    return 1.0 - mixture_lower_finite(1.0 - scores, population, log_inverse, missing, positions=place, nodes=nodes)


def _counted_places(place: IntArray) -> FloatArray:
    """How many positions lie before each sample, and how many there are up to the last one."""
    after = place[-1:] + 1 if len(place) else np.zeros(1, dtype=np.int64)
    return np.concatenate((place, after)).astype(np.float64)


def _known(scores: FloatArray, place: IntArray, known_sum: FloatArray | None) -> FloatArray:
    if known_sum is not None:
        known = np.asarray(known_sum, dtype=np.float64)
        _check_known(known, place)
        return known
    if not np.array_equal(place, np.arange(len(place))):
        raise ScenarioError(
            "the samples do not stand at the positions 0, 1, 2, …, so the sums of the utilities cannot be read off "
            "them; give known_sum, with all positions counted"
        )
    return np.concatenate((np.zeros(1), np.cumsum(scores)))


def _check_places(place: IntArray, n: int, population: int) -> None:
    if len(place) != n or (n and (place[0] < 0 or place[-1] >= population or not (np.diff(place) > 0).all())):
        raise ScenarioError(
            f"{n} samples stand at the positions {place} of a set of {population} instances, but positions increase, "
            f"one per sample, from 0 to at most {population - 1}; a set drawn without replacement has no more"
        )
    if population < 1:
        raise ScenarioError(f"the set has {population} instances, but a mean needs at least 1")


def _check_known(known: FloatArray, place: IntArray) -> None:
    counted = _counted_places(place)
    slack = 1e-9 * (1.0 + counted[-1])  # sums are rounded
    fits = known.shape == counted.shape and bool(((known >= 0.0) & (known <= counted + slack)).all())
    if not fits or not (np.diff(known) >= -slack).all():
        raise ScenarioError(
            f"known_sum has the shape {known.shape} and the values {known}, but it has to hold one sum before each of "
            f"the {len(place)} samples and one after the last, never falling, each between 0 and the number of "
            "positions so far"
        )


# Duels on a fixed set of instances: by how much may a challenger be ahead of the leader on exactly these instances?
#
# The order of the N instances is uniformly random. D_j is the difference of the two *utilities* on position j,
# challenger less leader, and S_j the sum of the differences on all positions before j. If the mean difference over
# the set is at least ε, then the positions from j on have a mean of at least m_j = (N·ε - S_j) / (N - j), and the
# next of them has that mean too, given everything before it. So the bet 1 - f + f·y_j / μ_j with y_j = (1 - D_j) / 2
# and μ_j = (1 - m_j) / 2 is fair or loses. Great wealth refutes ε. docs/fixed-sets.md has the proof.
#
# Known intervals of utilities take the place of utilities: every factor falls when D_j rises and when S_j rises, so
# the high end of a difference is safe in both. The same bets with μ = (1 - ε) / 2 are those for instances that are
# drawn from a distribution.

# Numbers in one temporary table.
_CELLS = 1 << 20
# Halvings of the interval in which the smallest margin is searched for.
_DUEL_HALVINGS = 20


@dataclass(frozen=True, slots=True)
class PairedBets:
    """Bets of several challengers against one leader, one row each; the columns are stream positions.

    Attributes:
        gain: y_j = (1 - D_j) / 2 from high ends of differences.
        base: μ_j at ε = 0.
        slope: By how much μ_j falls per unit of ε, by position.
        counts: Positions on which the row bets.
        log_inverse: ln(1 / failure probability) of each row.
        nodes: Shares of the wealth that are bet, mixed with equal weights.
    """

    gain: FloatArray
    base: FloatArray
    slope: FloatArray
    counts: BoolArray
    log_inverse: FloatArray
    nodes: FloatArray

    @classmethod
    def on_set(
        cls,
        differences: FloatArray,
        population: int,
        counts: BoolArray,
        log_inverse: FloatArray,
        nodes: FloatArray,
    ) -> "PairedBets":
        """Bet about the mean over exactly these instances.

        Args:
            differences: High ends of the differences of *utilities* on the positions 0, 1, …, by row. Positions on
                which a row does not bet count in the sums all the same, so none is left out.
            population: N, the number of instances of the set.
            counts: Positions on which each row bets; decided without a look at them.
            log_inverse: ln(1 / failure probability) of each row.
            nodes: Shares that are bet.
        """
        length = differences.shape[1]
        left = (population - np.arange(length)).astype(np.float64)
        before = np.cumsum(differences, axis=1) - differences
        # Sums are rounded: a little more than the rounding of the sum of `length` numbers in [-1, 1].
        before += 1e-15 * np.arange(length) * np.arange(1, length + 1)
        return cls(
            (1.0 - differences) / 2.0,
            0.5 + 0.5 * before / left,
            np.asarray(0.5 * population / left),
            counts,
            log_inverse,
            nodes,
        )

    @classmethod
    def on_draws(
        cls, differences: FloatArray, counts: BoolArray, log_inverse: FloatArray, nodes: FloatArray
    ) -> "PairedBets":
        """Bet about the distribution from which the instances were drawn; arguments as for `on_set`."""
        half = np.full(differences.shape[1], 0.5)
        return cls(
            (1.0 - differences) / 2.0,
            np.broadcast_to(half, differences.shape),
            half,
            counts,
            log_inverse,
            nodes,
        )

    def refutes(self, margin: FloatArray, rows: IntArray | None = None) -> BoolArray:
        """Return for which rows a lead of `margin` or more is refuted, at some length of the prefix.

        Args:
            margin: ε of each row asked for.
            rows: Indices of the rows asked for; all if left out.
        """
        which = np.arange(len(self.gain)) if rows is None else np.asarray(rows, dtype=np.int64)
        found = np.zeros(len(which), dtype=np.bool_)
        width = max(1, self.gain.shape[1] * len(self.nodes))
        at_once = max(1, _CELLS // width)
        for first in range(0, len(which), at_once):
            part = slice(first, first + at_once)
            found[part] = self._refutes(which[part], margin[part])
        return found

    def _refutes(self, rows: IntArray, margin: FloatArray) -> BoolArray:
        counts, length = self.counts[rows], self.gain.shape[1]
        if not length:
            return np.zeros(len(rows), dtype=np.bool_)
        mean = np.minimum(self.base[rows] - margin[:, None] * self.slope, 1.0)
        # What is left cannot make up for what was seen: refuted without a bet.
        impossible = counts & (mean <= 0.0)
        ratio = np.where(counts & (mean > 0.0), self.gain[rows] / np.where(mean > 0.0, mean, 1.0) - 1.0, 0.0)
        wealth = np.empty((len(self.nodes), *ratio.shape))
        np.multiply(self.nodes[:, None, None], ratio, out=wealth)
        with np.errstate(divide="ignore"):
            np.log1p(wealth, out=wealth)
        np.cumsum(wealth, axis=2, out=wealth)
        top = wealth.max(axis=0)
        top = np.where(np.isfinite(top), top, 0.0)
        np.subtract(wealth, top, out=wealth)
        np.exp(wealth, out=wealth)
        with np.errstate(divide="ignore"):
            mixed = np.log(wealth.mean(axis=0)) + top
        needed = self.log_inverse[rows] + rounding_allowance(length)
        reached: BoolArray = (mixed >= needed[:, None]).any(axis=1) | impossible.any(axis=1)
        return reached

    def margins(self, held: FloatArray, goal: float) -> FloatArray:
        """Return refuted margins, one for each row and none above `held`; `goal` where that is refuted.

        The largest of them is found to a precision of 1e-6. The others may be larger than necessary.

        Args:
            held: Margins that are known already.
            goal: The margin that is good enough.
        """
        best = np.minimum(held, 1.0)
        open_rows = np.flatnonzero(best > goal)
        if not len(open_rows):
            return best
        at_goal = self.refutes(np.full(len(open_rows), goal), open_rows)
        best[open_rows[at_goal]] = goal
        open_rows = open_rows[~at_goal]
        low = goal
        for _ in range(_DUEL_HALVINGS):
            if not len(open_rows):
                break
            middle = 0.5 * (low + float(best[open_rows].max()))
            asked = open_rows[best[open_rows] > middle]
            shown = self.refutes(np.full(len(asked), middle), asked)
            best[asked[shown]] = middle
            if not shown.all():
                # The rows that hold the largest margin up.
                low, open_rows = middle, asked[~shown]
        return best
