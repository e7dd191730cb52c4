"""Runs as a grid, configuration by stream position: what became of each, to spot crashes and patterns."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from captime.arrays import IntArray
from captime.report.known_runs import ANSWERED, CUT, FAILED, KINDS, OPEN, STOPPED
from captime.report.story import Story


@dataclass(frozen=True, slots=True)
class Heat:
    """The grid.

    Attributes:
        config: Who stands in each row.
        first: First stream position of each column; one more for the end.
        kind: What is shown in each cell, a number into `KINDS`; -1 where nobody ran.
        counts: Runs of each kind in each cell.
    """

    config: IntArray
    first: IntArray
    kind: IntArray
    counts: IntArray


def heat(story: Story, config: Sequence[int], columns: int = 120) -> Heat | None:
    """The runs of these configurations on all positions, at most so many columns; None without runs."""
    runs = story.runs
    if runs is None or not len(runs):
        return None
    length = int(runs.position.max()) + 1
    width = -(-length // columns)
    first = np.arange(0, length + width, width)
    row = np.full(len(story.names), -1)
    row[np.asarray(config, dtype=np.int64)] = np.arange(len(config))
    shown = row[runs.config] >= 0
    cell = row[runs.config[shown]] * (len(first) - 1) + runs.position[shown] // width
    n_cells = len(config) * (len(first) - 1)
    counts = np.bincount(cell * len(KINDS) + runs.kind[shown], minlength=n_cells * len(KINDS))
    counts = counts.reshape(len(config), len(first) - 1, len(KINDS))
    return Heat(np.asarray(config, dtype=np.int64), np.minimum(first, length), _kinds(counts), counts)


def _kinds(counts: IntArray) -> IntArray:
    """What a cell shows: most answered or most cut; but any failure shows, so that no crash is hidden by a crowd."""
    kind = np.where(counts[..., ANSWERED] >= counts[..., CUT], ANSWERED, CUT)
    settled = counts[..., ANSWERED] + counts[..., CUT]
    for each in (STOPPED, OPEN):
        kind = np.where(counts[..., each] > settled, each, kind)
    kind = np.where(counts[..., FAILED] > 0, FAILED, kind)
    return np.where(counts.sum(axis=-1) == 0, -1, kind)
