"""Mixture betting on a fixed set of instances, drawn without replacement: what was seen tells about what is left.

Only for programs whose runs repeat: one score per instance. The target is then the mean over the N instances of the
set, not over a distribution they were drawn from.
"""

import numpy as np

from captime.arrays import FloatArray, IntArray
from captime.bounds.betting import check_log_inverse, check_nodes, check_scores, rounding_allowance, sine_nodes
from captime.errors import ScenarioError

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
