"""Which parameters matter over the whole space, as a model of the recorded configurations has it.

The importance of a parameter is its total effect: how much of the variance of expected utility over the space goes away
once that parameter is known beside all others. It is estimated by exchange (Jansen): take two independent random
configurations, give the first one the second one's value of the parameter alone, and compare what the model expects;
half the mean squared difference, divided by the variance of all expectations, is the total effect. Parameters that act
together are counted in each of their effects, so these may sum to more than 1. The model has seen some configurations
only. So it is fitted again and again to a bootstrap sample of them, and the effects are given as a range over the fits.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from captime.arrays import FloatArray
from captime.spaces.model import Known, Surrogate
from captime.spaces.one_thread import one_thread
from captime.spaces.space import Space

FEWEST = 8
"""With fewer configurations than this, nothing is said."""
FITS = 16
"""Bootstrap samples."""
_PAIRS = 256
_KEY = 0x1A907
_TINY = 1e-12


@dataclass(frozen=True, slots=True)
class Importance:
    """What the fits say about one parameter.

    Attributes:
        name: Of the parameter.
        effect: Its total effect, the median of all fits.
        low: The smallest effect but for a tenth of the fits.
        high: The largest effect but for a tenth of the fits.
    """

    name: str
    effect: float
    low: float
    high: float


def importances(space: Space, known: Sequence[Known], seed: int = 0, fits: int = FITS) -> list[Importance]:
    """Return the parameters of a space, the most important first; none if too little is known.

    Args:
        space: The space.
        known: What is known of some of its configurations.
        seed: Of the bootstrap samples and of the exchanged configurations.
        fits: How many samples.
    """
    told = [each for each in known if each.n > 0]
    if len(told) < FEWEST:
        return []
    rng = np.random.default_rng([_KEY, seed])
    first, second = space.drawn(rng, _PAIRS), space.drawn(rng, _PAIRS)
    count = min(len(first), len(second))
    first, second = first[:count], second[:count]
    changed = [_exchanged(space, first, second, place) for place in range(len(space.names))]
    effects = []
    for _ in range(fits):
        sample = [told[place] for place in rng.integers(len(told), size=len(told)).tolist()]
        with one_thread():
            effects.append(_effects(Surrogate(space, sample), first, changed))
    low, middle, high = np.quantile(np.array(effects), (0.1, 0.5, 0.9), axis=0)
    order = np.argsort(-middle, kind="stable").tolist()
    return [Importance(space.names[at], float(middle[at]), float(low[at]), float(high[at])) for at in order]


def _exchanged(space: Space, first: FloatArray, second: FloatArray, place: int) -> FloatArray:
    """The first configurations with one value of the second ones; what that makes inactive or active follows."""
    # An inactive parameter has its default, in case another one makes it active.
    rows = np.where(np.isnan(first), space.default_row, first)
    there = second[:, place]
    rows[:, place] = np.where(np.isnan(there), rows[:, place], there)
    return np.asarray(space.deactivated(rows))


def _effects(model: Surrogate, first: FloatArray, changed: Sequence[FloatArray]) -> FloatArray:
    before, _ = model.expected(first)
    spread = float(np.var(before))
    if spread <= _TINY:
        return np.zeros(len(changed))
    found = []
    for rows in changed:
        after, _ = model.expected(rows)
        found.append(float(np.mean((after - before) ** 2)) / 2.0 / spread)
    return np.array(found)
