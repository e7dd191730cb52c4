"""The search of a growing pool: which configuration looks best now, and which run would tell most about that.

The certificate orders runs of the challengers that keep epsilon up. With weak bounds these are nearly all of them, run
in turn, and most of those runs change nothing. A better leader is found sooner by running what looks better than the
present one. Here are two other orders. They choose what to learn next and decide nothing, so they touch the cost only:
no certificate rests on them.

`Contest` compares each configuration with the leader on the positions they have in common. `BestBets` fits all scores:
configurations of a pool are run on different stretches of the stream, and instances differ more than configurations
do, so a score is taken as a sum of what the configuration is worth and of how kind its position is, and both are fitted
to all scores at once. A mean of few scores is drawn towards the mean of all configurations of its kind, as far as it
may be luck.
"""

import math

import numpy as np

from captime.arrays import BoolArray, FloatArray, IntArray
from captime.procedures.pool_terms import Origin

# A position with few runs is kept near the middle: it counts as if this many more had run it and scored as usual.
_CAUTION = 1.0
_SWEEPS = 4
# What is left of a score's variance is never taken to be less than this, nor that between configurations.
_LEAST_VARIANCE, _LEAST_BETWEEN = 0.01, 0.0004
# An estimate is taken with this many standard deviations less when a leader is chosen.
_CAREFUL = 0.3
# Means of fewer scores than this tell less about what is usual among configurations.
_FEW = 4.0
_TINY = 1e-9
# A newcomer that is ahead of the leader is run at once, until they have this many positions in common.
_SOON = 16


class Contest:
    """How each configuration did against the leader, on the positions they have in common."""

    def __init__(self) -> None:
        self._common: IntArray = np.empty(0, dtype=np.int64)
        self._mean: FloatArray = np.empty(0)
        self._hope: FloatArray = np.empty(0)

    def enter(self) -> None:
        """One more, who has not met the leader yet."""
        self._common = np.append(self._common, 0)
        self._mean, self._hope = np.append(self._mean, 0.0), np.append(self._hope, -1.0)

    def compare(self, config: int, ahead: FloatArray) -> None:
        """Record how a configuration stands against the leader; without a position in common it takes no part.

        Args:
            config: The configuration.
            ahead: By how much it scored more than the leader, for each position in common.
        """
        count = len(ahead)
        self._common[config] = count
        self._mean[config] = float(ahead.mean()) if count else 0.0
        # A standard error more; one difference of 1 is added, since a few that are equal do not make it certain.
        error = math.sqrt(float(ahead @ ahead) + 1.0) / count if count else -1.0
        self._hope[config] = self._mean[config] + error

    def order(self, rivals: IntArray, *, turn: bool) -> IntArray:
        """Return the rivals to run next, the most promising first; newcomers only if it is not the contest's turn.

        Args:
            rivals: The configurations that take part.
            turn: Whether this round belongs to the contest.
        """
        soon = rivals[(self._mean[rivals] > 0.0) & (self._common[rivals] < _SOON)]
        if len(soon):
            return soon[np.argsort(-self._mean[soon], kind="stable")]
        hopeful = rivals[self._hope[rivals] > 0.0] if turn else rivals[:0]
        return hopeful[np.argsort(-self._hope[hopeful], kind="stable")]


class BestBets:
    """What each configuration seems to be worth, and how uncertain that is.

    Attributes:
        mean: The estimate, by configuration.
        doubt: Its standard deviation.
    """

    def __init__(self) -> None:
        self.mean: FloatArray = np.empty(0)
        self.doubt: FloatArray = np.empty(0)
        self._start: IntArray = np.empty(0, dtype=np.int64)
        self._end: IntArray = np.empty(0, dtype=np.int64)
        self._sums: FloatArray = np.empty(0)
        self._proposed: list[bool] = []
        self._by_position: FloatArray = np.zeros(64)
        self._kind: FloatArray = np.zeros(64)
        self._squares = 0.0

    def enter(self, origin: Origin) -> None:
        """One more configuration, without a score."""
        self._proposed.append(origin == "model")
        self._start, self._end = np.append(self._start, 0), np.append(self._end, 0)
        self._sums, self.mean = np.append(self._sums, 0.0), np.append(self.mean, 0.0)
        self.doubt = np.append(self.doubt, 1.0)

    @property
    def scores(self) -> IntArray:
        """How many scores each configuration has."""
        return self._end - self._start

    def first_runs(self, pilot: int) -> float:
        """Return the share of scores that are among the first ones of their configuration.

        The first positions of the stream are the same for all draws. If their captimes happen to be short, pilots cost
        next to nothing and tell next to nothing, and time alone would allow thousands of them.

        Args:
            pilot: How many count as the first ones.
        """
        n = self.scores
        return float(np.minimum(n, pilot).sum()) / max(1.0, float(n.sum()))

    def take_in(self, config: int, start: int, first: int, scores: FloatArray) -> None:
        """More scores of a configuration.

        Args:
            config: Which.
            start: Its first position.
            first: The position of the first of these scores.
            scores: In stream order.
        """
        self._add(config, first, scores, float(scores @ scores))
        self._start[config], self._end[config] = start, first + len(scores)

    def _add(self, config: int, first: int, scores: FloatArray, squares: float) -> None:
        """Add scores to all sums; scores that are taken out are negative, and so is the sum of their squares."""
        last = first + len(scores)
        if last > len(self._by_position):
            longer = max(last, 2 * len(self._by_position)) - len(self._by_position)
            self._by_position = np.append(self._by_position, np.zeros(longer))
            self._kind = np.append(self._kind, np.zeros(longer))
        self._by_position[first:last] += scores
        self._sums[config] += float(scores.sum())
        self._squares += squares

    def weigh(self) -> None:
        """Estimate anew from all scores."""
        n = self.scores
        total = int(n.sum())
        if not total:
            return
        start, end = self._start, self._end
        length = int(end.max())
        middle = float(self._sums.sum()) / total
        above, kind = self._sums - middle * n, self._kind[:length]
        runners = _over(np.ones(len(n)), start, end, length)
        by_position = self._by_position[:length] - middle * runners
        worth: FloatArray = np.zeros(len(n))
        for _ in range(_SWEEPS):
            # Each fit continues where the last one ended, so that a few sweeps are enough.
            before = np.concatenate(([0.0], np.cumsum(kind)))
            worth = (above - (before[end] - before[start])) / np.maximum(n, 1)
            kind = (by_position - _over(worth, start, end, length)) / (runners + _CAUTION)
        self._kind[:length] = kind
        left = self._squares - middle**2 * total - float(worth @ above) - float(kind @ by_position)
        noise = float(np.clip(left / max(1, total - len(n) - length // 2), _LEAST_VARIANCE, 0.25))
        known = n > 0
        proposed = np.array(self._proposed, dtype=np.bool_)
        error = noise / np.maximum(n, 1)
        for those in (known & proposed, known & ~proposed):
            if not those.any():
                continue
            weight = n[those] / (n[those] + _FEW)
            usual = float(np.average(worth[those], weights=weight))
            spread = float(np.average((worth[those] - usual) ** 2 - error[those], weights=weight))
            spread = max(spread, _LEAST_BETWEEN, 0.25 * noise / (_FEW + len(weight)))
            trust = spread / (spread + error[those])
            self.mean[those] = middle + usual + trust * (worth[those] - usual)
            self.doubt[those] = np.sqrt(trust * error[those])

    def best(self, eligible: BoolArray, present: int) -> int:
        """Return the best bet among those that may lead; the present one if none looks better.

        Args:
            eligible: Which configurations may lead.
            present: Which one leads now.
        """
        careful = np.where(eligible & (self.scores > 0), self.mean - _CAREFUL * self.doubt, -np.inf)
        best = int(careful.argmax())
        return best if careful[best] > careful[present] else present

    def order(self, rivals: IntArray, leader: int) -> IntArray:
        """Return those of the rivals that have scores, the one whose next run is worth most first.

        A run is worth what the configuration may be better than the leader, and less the better it is known.
        """
        known = rivals[self.scores[rivals] > 0]
        ahead = self.mean[known] - self.mean[leader]
        doubt = np.maximum(np.sqrt(self.doubt[known] ** 2 + self.doubt[leader] ** 2), _TINY)
        z = ahead / doubt
        gain = ahead * _below(z) + doubt * np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
        return known[np.argsort(-gain * self.doubt[known] ** 2, kind="stable")]


def _below(z: FloatArray) -> FloatArray:
    """Probability that a normal number is below z, to three digits."""
    with np.errstate(over="ignore"):  # far below the leader the probability is 0
        return np.asarray(1.0 / (1.0 + np.exp(-1.5976 * z - 0.07056 * z**3)))


def _over(values: FloatArray, start: IntArray, end: IntArray, length: int) -> FloatArray:
    """The sum, at each position, of the values of those that were run there."""
    steps = np.bincount(start, values, minlength=length + 1) - np.bincount(end, values, minlength=length + 1)
    return np.cumsum(steps)[:length]
