"""Duels: the leader against every other configuration, on the positions both have run."""

import numpy as np

from captime.arrays import FloatArray, IntArray
from captime.bounds.mixture import PairedMixture, sine_nodes
from captime.procedures.race_terms import COARSEST_STEP, difference_grid
from captime.procedures.scoreboard import Scoreboard, cuts, grown

_FRACTIONS = 16


class Duels:
    """Paired evidence against each challenger of one leader.

    Args:
        n_configs: How many configurations.
        margins: The epsilons at which evidence is weighed, increasing.
        grid: The values to which differences are rounded up; multiples of 1/256 if it is left out.

    Attributes:
        fractions: Fractions that are bet.
    """

    def __init__(self, n_configs: int, margins: FloatArray, grid: FloatArray | None = None) -> None:
        grid = difference_grid(COARSEST_STEP, 0.0) if grid is None else grid
        self.fractions: FloatArray = sine_nodes(_FRACTIONS)
        self._mixture = PairedMixture(grid, margins, self.fractions)
        self._counts: IntArray = np.zeros((n_configs, len(grid)), dtype=np.int64)
        self._common: IntArray = np.zeros(n_configs, dtype=np.int64)
        self._weighed: IntArray = np.zeros(n_configs, dtype=np.int64)

    def enter(self, count: int) -> None:
        """Make room for `count` more configurations."""
        self._counts = np.concatenate((self._counts, np.zeros((count, self._counts.shape[1]), dtype=np.int64)))
        self._common, self._weighed = (
            np.append(each, np.zeros(count, dtype=np.int64)) for each in (self._common, self._weighed)
        )

    def restart(self, board: Scoreboard, leader: int) -> None:
        """Another leader: what was shown against the old one does not count for the new one.

        Args:
            board: Has the first position of each configuration; a duel begins at the later of the two.
            leader: The configuration that leads.
        """
        self._counts[:] = 0
        self._common = _later(board, leader)
        self._weighed[:] = 0

    def forget(self, board: Scoreboard, leader: int, challenger: int) -> None:
        """Weigh a challenger anew: longer captimes have changed its scores."""
        self._counts[challenger] = 0
        self._common[challenger] = _later(board, leader)[challenger]
        self._weighed[challenger] = 0

    def due(self, board: Scoreboard, leader: int, longest: float = np.inf) -> IntArray:
        """Return the challengers with noticeably more evidence than when their duel was last weighed.

        Args:
            board: The scores.
            leader: The configuration that leads.
            longest: How many positions the race can have. A challenger that was ordered to run all is always weighed.
        """
        now = np.maximum(np.minimum(board.sure, board.sure[leader]) - _later(board, leader), 0)
        now[leader] = 0
        due = np.flatnonzero(grown(now, self._weighed) | ((now > self._weighed) & (board.total >= longest)))
        self._weighed[due] = now[due]
        return due

    def margins(
        self, board: Scoreboard, leader: int, challengers: IntArray, log_inverse: float | FloatArray
    ) -> FloatArray:
        """By how much each challenger may be ahead of the leader at most; 1 where nothing is shown yet.

        Evidence is right at every length of the prefix, so it is weighed at several: with settled runs only, and with
        more or less of what is known now of the runs behind them, as the intervals they are.
        """
        settled = np.minimum(board.count[challengers], board.count[leader])
        total = np.minimum(board.total[challengers], board.total[leader])
        for place in np.flatnonzero(settled > self._common[challengers]).tolist():
            challenger, last = int(challengers[place]), int(settled[place])
            self._counts[challenger] += self._counted(board, leader, challenger, last)
            self._common[challenger] = last
        places, behind = self._behind(board, leader, challengers, settled, total)
        rows, level = self._counts[challengers], np.broadcast_to(log_inverse, challengers.shape)
        if places:
            rows = np.concatenate((rows, rows[places] + np.array(behind)))
            level = np.concatenate((level, level[places]))
        margin = self._mixture.smallest_margin(rows, level)
        shown = margin[: len(challengers)]
        np.minimum.at(shown, places, margin[len(challengers) :])
        return shown

    def _behind(
        self, board: Scoreboard, leader: int, challengers: IntArray, settled: IntArray, total: IntArray
    ) -> tuple[list[int], list[IntArray]]:
        """By place, differences on common positions behind the settled ones, in bins, at several lengths."""
        places: list[int] = []
        counts: list[IntArray] = []
        for place in np.flatnonzero(total > settled).tolist():
            challenger, n = int(challengers[place]), int(total[place])
            through = board.through(challenger, n) & board.through(leader, n)
            for last in cuts(through, int(settled[place])):
                places.append(place)
                counts.append(self._counted(board, leader, challenger, last))
        return places, counts

    def _counted(self, board: Scoreboard, leader: int, challenger: int, last: int) -> IntArray:
        """Binned differences on common positions from those already taken in up to `last`."""
        first = int(self._common[challenger])
        worst = board.high(challenger, first, last) - board.low(leader, first, last)
        return np.bincount(self._mixture.bin_up(worst), minlength=self._counts.shape[1])


def lead(board: Scoreboard, config: int, leader: int) -> FloatArray:
    """By how much a configuration scored more than the leader, on the common positions that both are through with."""
    n, first = int(min(board.total[config], board.total[leader])), int(_later(board, leader)[config])
    through = board.through(config, n) & board.through(leader, n)
    return (board.low(config, first, n) - board.low(leader, first, n))[through[first:]]


def _later(board: Scoreboard, leader: int) -> IntArray:
    """Where the later of each and the leader began, in positions of the race."""
    later: IntArray = np.maximum(board.offset, board.offset[leader])
    return later
