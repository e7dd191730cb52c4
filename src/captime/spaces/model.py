"""A surrogate: from what is known of some configurations to a guess about all others. Guesses only; no certainty here.

Evidence about configurations is uneven. One has two thousand scores and the next has twelve; runs that were cut leave
an interval, not a number. So each configuration counts with a weight: the inverse of how far its mean may be off.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from captime.arrays import FloatArray
from captime.errors import MissingExtra
from captime.spaces.features import features
from captime.spaces.space import Space
from captime.spaces.values import Settings

# A score between 0 and 1 varies about so much from instance to instance: the variance of a uniform number.
_SCORE_VARIANCE = 1.0 / 12.0
# No mean is trusted further than this: instances differ, and so do machines from hour to hour.
_FLOOR = 0.02**2
_TREES = 30
# With fewer configurations than this, leaves of two would leave hardly a tree.
_ENOUGH_FOR_PAIRS = 12


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of one configuration.

    Attributes:
        settings: its settings.
        low: mean of the low ends of its scores.
        high: mean of the high ends; above low if runs were cut or are under way.
        n: number of scores behind the two.
    """

    settings: Settings
    low: float
    high: float
    n: int


class Surrogate:
    """An ensemble of randomised trees over the parameters; every tree has an opinion, their spread is the doubt.

    Args:
        space: The space.
        known: The evidence; configurations without a score do not count.
        seed: Of the trees.
    """

    def __init__(self, space: Space, known: Sequence[Known], seed: int) -> None:
        told = [each for each in known if each.n > 0]
        self.space = space
        self.rows: FloatArray = np.array([space.codes(each.settings) for each in told]).reshape(-1, len(space.names))
        low, high, n = (
            np.array([getattr(each, name) for each in told], dtype=np.float64) for name in ("low", "high", "n")
        )
        self.means: FloatArray = (low + high) / 2.0
        # Half the interval at worst; as a variance, that of a uniform number in it.
        variance = _SCORE_VARIANCE / np.maximum(n, 1.0) + (high - low) ** 2 / 12.0
        self.weights: FloatArray = 1.0 / (_FLOOR + variance)
        self._trees = _grown(features(space, self.rows), self.means, self.weights / self.weights.max(), seed)

    def opinions(self, codes: FloatArray) -> FloatArray:
        """What every tree expects of these configurations: a row per tree."""
        inputs = features(self.space, codes).astype(np.float32)
        return np.stack([tree.predict(inputs)[:, 0] for tree in self._trees])


def _grown(inputs: FloatArray, outputs: FloatArray, weights: FloatArray, seed: int) -> list[Any]:
    try:
        # Imported here: it is optional, and takes a second.
        from sklearn.ensemble import ExtraTreesRegressor  # noqa: PLC0415 (see above)
    except ImportError:
        raise MissingExtra("a model that proposes configurations (left out with model = false)", "model") from None
    forest = ExtraTreesRegressor(
        _TREES,
        min_samples_leaf=2 if len(outputs) >= _ENOUGH_FOR_PAIRS else 1,
        max_features=0.7,
        random_state=seed % 2**32,
    )
    forest.fit(inputs, outputs, sample_weight=weights)
    return [tree.tree_ for tree in forest.estimators_]
