"""A model: from what is known of some configurations to a guess about all others. Guesses only; no certainty here.

Evidence about configurations is uneven. One has two thousand scores and the next has twelve; runs that were cut leave
an interval, not a number. So each configuration comes with the variance of its mean, and the model is one that takes
such variances at their word: a Gaussian process. Its covariance is a sum: what each parameter does by itself, with a
strength of its own, and what they do together. The strengths are those that make the evidence most likely. In a wide
space most of them become next to nothing, and that is what lets a handful of configurations say something about sixty
parameters.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from captime.arrays import FloatArray
from captime.spaces.features import Basis
from captime.spaces.space import Space
from captime.spaces.values import Settings

# The variance of a score between 0 and 1 from instance to instance is about that of a uniform number.
SCORE_VARIANCE = 1.0 / 12.0
# No mean is trusted further than this: instances differ, and so do machines from hour to hour.
FLOOR = 0.015**2
# The model learns from at most this many configurations: the better half of them, and evenly spaced ones of the rest.
MOST = 200
# Steps of fitting the strengths, and the step at which the joint part of the model is told which parameters matter.
_STEPS, _TOLD_AT = 14, 7
# At first this share of all variance is put down to parameters acting together.
_TOGETHER = 0.3
# How fast configurations that differ become strangers, as far as parameters act together: rolling land, or cliffs. The
# evidence decides: who takes cliffs for rolling land has too little doubt there.
_STRANGENESS = (3.0, 10.0, 30.0)
# Scores may vary less than assumed, or a little more.
_CALMEST, _WILDEST = 0.3, 1.5
_TINY = 1e-12


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of one configuration.

    Attributes:
        settings: its settings.
        low: mean of the low ends of its scores.
        high: mean of the high ends; above low if runs were cut or are under way.
        n: number of scores behind the two.
        variance: of one score, as far as it is luck.
    """

    settings: Settings
    low: float
    high: float
    n: int
    variance: float = SCORE_VARIANCE


class Surrogate:
    """What to expect of any configuration, and with how much doubt.

    Args:
        space: The space.
        known: The evidence; configurations without a score do not count.

    Attributes:
        space: As given.
        rows: The configurations it learnt from.
        means: Their mean scores.
        weights: One over the variance of each mean.
        strength: Per parameter, the variance that it brings about by itself.
    """

    def __init__(self, space: Space, known: Sequence[Known]) -> None:
        told = _some([each for each in known if each.n > 0])
        self.space = space
        self.rows: FloatArray = np.array([space.codes(each.settings) for each in told]).reshape(-1, len(space.names))
        low, high, n, each = (
            np.array([getattr(known, name) for known in told], dtype=np.float64)
            for name in ("low", "high", "n", "variance")
        )
        self.means: FloatArray = (low + high) / 2.0
        # Half the interval at worst; as a variance, that of a uniform number in it.
        variance = FLOOR + each / np.maximum(n, 1.0) + (high - low) ** 2 / 12.0
        self.weights: FloatArray = 1.0 / variance
        self._basis = Basis(space)
        self._terms: FloatArray = self._basis(self.rows)
        self._middle = float(np.average(self.means, weights=1.0 / (variance + 0.01)))
        self._fit(self.means - self._middle, variance)

    def expected(self, codes: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean score and its standard deviation, for each of these configurations."""
        terms = self._basis(codes)
        covariance = self._covariance(terms, self._terms)
        mean = self._middle + covariance @ self._pull
        before = terms**2 @ self._spread + self._together
        left = before - np.einsum("ij,ij->i", covariance @ self._inverse, covariance)
        return mean, np.sqrt(np.maximum(left, _TINY))

    def shared_doubt(self, codes: FloatArray) -> Callable[[int], FloatArray]:
        """How much of the doubt about each of these configurations is the same as that about the one at a place.

        They are covariances. What takes time is done here, once for all places.
        """
        terms = self._basis(codes)
        learnt = self._covariance(terms, self._terms) @ self._inverse

        def with_one(place: int) -> FloatArray:
            one = terms[place : place + 1]
            return np.asarray(self._covariance(terms, one)[:, 0] - learnt @ self._covariance(self._terms, one)[:, 0])

        return with_one

    def _covariance(self, some: FloatArray, others: FloatArray) -> FloatArray:
        """Of what configurations are worth, by their terms, before anything is known."""
        return np.asarray((some * self._spread) @ others.T + self._together * self._alike(some, others))

    def _fit(self, above: FloatArray, variance: FloatArray) -> None:
        """Strengths by steps that never make the evidence less likely (they multiply, so none becomes negative)."""
        terms, whose, count = self._terms, self._basis.owners, len(self.space.names)
        overall = max(float(np.mean(above**2) - 0.5 * variance.mean()), 0.1 * float(np.mean(above**2)), 1e-4)
        strength = np.zeros(count)
        strength[np.unique(whose)] = (1.0 - _TOGETHER) * overall / len(np.unique(whose))
        together, unrest = _TOGETHER * overall, 1.0
        # A strength has to earn more than this: a mild preference for few and small ones.
        toll = 0.5 / overall
        for step in range(_STEPS + 1):
            alone = (terms * strength[whose]) @ terms.T + np.diag(unrest * variance)
            if step in (0, _TOLD_AT):
                share = strength[whose] / max(float(strength[whose].sum()), _TINY)
                self._matters, alike = self._strangers(above, alone, together, share)
            inverse = np.linalg.inv(alone + together * alike)
            pull = inverse @ above
            if step == _STEPS:
                break
            explained = np.bincount(whose, (terms.T @ pull) ** 2, minlength=count)
            room = np.bincount(whose, np.einsum("ij,ij->j", inverse @ terms, terms), minlength=count)
            strength = strength * np.sqrt(explained / (room + toll))
            together *= math.sqrt(max(float(pull @ alike @ pull), _TINY) / (float(np.sum(inverse * alike)) + toll))
            calm = np.sqrt(float(pull**2 @ variance) / float(np.diag(inverse) @ variance))
            unrest = float(np.clip(unrest * calm, _CALMEST, _WILDEST))
        self.strength: FloatArray = strength
        self._spread: FloatArray = strength[whose]
        self._together = together
        self._inverse: FloatArray = np.asarray(inverse, dtype=np.float64)
        self._pull: FloatArray = pull

    def _strangers(
        self, above: FloatArray, alone: FloatArray, together: float, share: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """How much each term counts in telling configurations apart, as the evidence likes it; who is alike then."""
        found = []
        for strangeness in _STRANGENESS:
            self._matters = strangeness * share
            alike = self._alike(self._terms, self._terms)
            found.append((_log_likelihood(above, alone + together * alike), self._matters, alike))
        _, matters, alike = max(found, key=lambda each: each[0])
        return matters, alike

    def _alike(self, some: FloatArray, others: FloatArray) -> FloatArray:
        """How alike configurations are in what matters, from 0 to 1."""
        some, others = some * np.sqrt(self._matters), others * np.sqrt(self._matters)
        apart = (some**2).sum(axis=1)[:, None] + (others**2).sum(axis=1) - 2.0 * some @ others.T
        return np.asarray(np.exp(-0.5 * np.maximum(apart, 0.0)))


def _log_likelihood(values: FloatArray, covariance: FloatArray) -> float:
    """Of normal values around 0, up to a constant."""
    root = np.linalg.cholesky(covariance)
    apart = np.linalg.solve(root, values)
    return -0.5 * float(apart @ apart) - float(np.log(np.diag(root)).sum())


def _some(told: list[Known]) -> list[Known]:
    """All of them, or those that tell most: the good ones, and a fair sample of the rest."""
    if len(told) <= MOST:
        return told
    falling = sorted(range(len(told)), key=lambda place: -(told[place].low + told[place].high))
    rest = falling[MOST // 2 :]
    chosen = falling[: MOST // 2] + [rest[place * len(rest) // (MOST - MOST // 2)] for place in range(MOST - MOST // 2)]
    return [told[place] for place in sorted(chosen)]
