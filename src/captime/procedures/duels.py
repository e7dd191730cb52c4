"""Duels: the leader against every other configuration, on the positions both have run."""

from functools import lru_cache

import numpy as np

from captime.arrays import FloatArray, IntArray
from captime.bounds.mixture import PairedMixture, sine_nodes
from captime.procedures.board import Board, grown, joined, with_rows

FRACTIONS = 16
"""Number of shares of the wealth that are bet in duels."""
COARSEST_STEP = 1.0 / 256.0
"""Differences of scores are rounded up to multiples of this, or of less; ledgers that name no step have this one."""
# A finer step than this would save less than a thousandth of the CPU time and cost more memory than it is worth.
_FINEST_STEP = 1.0 / 4096.0
# Rounding up costs about half a step of every difference, and the runs that takes grow with its share of epsilon.
_STEP_SHARE = 1.0 / 16.0


@lru_cache(maxsize=8)
def _bets(margins: tuple[float, ...], step: float, least: float) -> PairedMixture:
    """Return the bets on differences of scores; tables never change, so all duels with these margins share them."""
    return PairedMixture(difference_grid(step, least), np.array(margins), sine_nodes(FRACTIONS))


class Duels:
    """Paired evidence against each challenger of one leader.

    Args:
        n_configs: How many configurations.
        margins: The epsilons at which evidence is weighed, increasing.
        step: Differences of two scores are rounded up to multiples of this.
        least: The smallest positive score, 1/B.
    """

    def __init__(self, n_configs: int, margins: FloatArray, step: float = COARSEST_STEP, least: float = 0.0) -> None:
        self._mixture = _bets(tuple(margins.tolist()), step, least)
        self._counts: IntArray = np.zeros((n_configs, len(self._mixture.differences)), dtype=np.int64)
        # Up to which position differences are in the counts, and how many were known when a duel was last weighed.
        self._common: IntArray = np.zeros(n_configs, dtype=np.int64)
        self._weighed: IntArray = np.zeros(n_configs, dtype=np.int64)

    def enter(self, count: int) -> None:
        """Make room for `count` more configurations."""
        nothing: IntArray = np.zeros(count, dtype=np.int64)
        self._common, self._weighed = np.append(self._common, nothing), np.append(self._weighed, nothing)
        self._counts = with_rows(self._counts, len(self._common))

    def restart(self, board: Board, leader: int) -> None:
        """Another leader: what was shown against the old one does not count for the new one.

        Args:
            board: Has the first position that counts of each configuration; a duel begins at the later of the two.
            leader: The configuration that leads.
        """
        self._counts[:] = 0
        self._common = _later(board, leader)
        self._weighed[:] = 0

    def forget(self, board: Board, leader: int, challenger: int) -> None:
        """Weigh a challenger anew: longer captimes have changed its scores."""
        self._counts[challenger] = 0
        self._common[challenger] = _later(board, leader)[challenger]
        self._weighed[challenger] = 0

    def due(self, board: Board, leader: int, longest: float = np.inf) -> IntArray:
        """Return the challengers with noticeably more evidence than when their duel was last weighed.

        Args:
            board: The scores.
            leader: The configuration that leads.
            longest: Length of the stream. A challenger that was ordered to run all of it is always weighed.
        """
        now = np.maximum(np.minimum(board.sure, board.sure[leader]) - _later(board, leader), 0)
        now[leader] = 0
        due = np.flatnonzero(grown(now, self._weighed) | ((now > self._weighed) & (board.ends >= longest)))
        self._weighed[due] = now[due]
        return due

    def with_news(self, board: Board, leader: int) -> IntArray:
        """Return the challengers with positions in common with the leader that are not in the counts, open or not."""
        news = np.minimum(board.ends, board.ends[leader]) > np.maximum(self._common, _later(board, leader))
        news[leader] = False
        return np.flatnonzero(news)

    def margins(self, board: Board, leader: int, challengers: IntArray, log_inverse: float | FloatArray) -> FloatArray:
        """By how much each challenger may be ahead of the leader at most; 1 where nothing is shown yet.

        Evidence is right at every length of the prefix, so it is weighed at several: with settled runs only, and with
        more or less of what is known now of the runs behind them, as the intervals they are.
        """
        self._common = np.maximum(self._common, _later(board, leader))
        settled = np.minimum(board.settled[challengers], board.settled[leader])
        for place in (settled > self._common[challengers]).nonzero()[0].tolist():
            challenger, last = int(challengers[place]), int(settled[place])
            self._counts[challenger] += self._counted(board, leader, challenger, last)
            self._common[challenger] = last
        places, behind = self._behind(board, leader, challengers, settled)
        level = np.broadcast_to(log_inverse, challengers.shape)
        margin = self._mixture.smallest_margin(*joined(self._counts[challengers], level, places, behind))
        shown = margin[: len(challengers)]
        if places:
            np.minimum.at(shown, places, margin[len(challengers) :])
        return shown

    def _behind(
        self, board: Board, leader: int, challengers: IntArray, settled: IntArray
    ) -> tuple[list[int], list[IntArray]]:
        """By place, differences on common positions behind the settled ones, in bins, at several lengths."""
        places: list[int] = []
        counts: list[IntArray] = []
        ends = np.minimum(board.ends[challengers], board.ends[leader])
        for place in (ends > settled).nonzero()[0].tolist():
            challenger, first, last = int(challengers[place]), int(settled[place]), int(ends[place])
            for length in board.cuts((challenger, leader), first, last):
                places.append(place)
                counts.append(self._counted(board, leader, challenger, first + length))
        return places, counts

    def _counted(self, board: Board, leader: int, challenger: int, last: int) -> IntArray:
        """Binned differences on common positions from those already taken in up to `last`."""
        first = int(self._common[challenger])
        last = max(first, last)
        worst = board.high(challenger, first, last) - board.low(leader, first, last)
        return np.bincount(self._mixture.bin_up(worst), minlength=self._counts.shape[1])


def _later(board: Board, leader: int) -> IntArray:
    """Where the later of each and the leader begins to count."""
    later: IntArray = np.maximum(board.counted, board.counted[leader])
    return later


# At which epsilons duels are weighed, and how finely differences are rounded. Any choice is valid.


def margins(aim: float) -> FloatArray:
    """The epsilons at which duels are weighed: the goal itself, and ever coarser steps above it."""
    steps = [aim]
    while steps[-1] < 0.9:
        steps.append(1.12 * steps[-1] + 0.002)
    return np.array([step for step in steps if step < 0.95] or [aim])


def difference_step(aim: float) -> float:
    """Return the step to which differences of scores are rounded up: a power of two, a small share of the goal.

    Any step is valid, and it may change on the way: the differences that are bet on are never below the true ones.

    >>> [round(1.0 / difference_step(aim)) for aim in (0.3, 0.0625, 0.05, 0.02, 0.005)]
    [256, 256, 512, 1024, 4096]
    """
    step = COARSEST_STEP
    while step > _STEP_SHARE * aim and step > _FINEST_STEP:
        step *= 0.5
    return step


def difference_grid(step: float, least: float) -> FloatArray:
    """Return the values to which differences of two scores are rounded up.

    Args:
        step: The distance between neighbours.
        least: The smallest positive score. Scores are 0 or at least that large, so that their differences are near -1,
            0 or 1; between these there need not be any value.
    """
    steps = round(1.0 / step)
    grid: FloatArray = np.linspace(-1.0, 1.0, 2 * steps + 1)
    if step >= COARSEST_STEP:
        return grid
    size = np.abs(grid)
    return grid[(size <= 1.0 - least + step) | (size >= least - step)]
