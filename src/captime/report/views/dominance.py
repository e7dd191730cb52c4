"""Two figures over all configurations: the largest loss over every utility, pair by pair, and how each run ended."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from captime.arrays import BoolArray, FloatArray, IntArray
from captime.report.charts.chart import (
    Axis,
    Chart,
    Color,
    FigureTable,
    HeatCells,
    Mark,
    Points,
    Spans,
    View,
    as_numbers,
)
from captime.report.known_runs import ANSWERED, CUT, FAILED, KINDS, OPEN, STOPPED
from captime.report.ledger_data import LedgerData
from captime.report.views.whatif import Dominance, dominance, what_if
from captime.report.words import printable, rounded_up

# Does it depend on the utility at all? The largest loss over every utility there is, pair by pair.

_COMPARED = 12


def dominance_view(story: LedgerData) -> View | None:
    """Losses over all utilities there are, pair by pair; None if too little is known of the recommended one.

    A figure about the next configuration would look as if it were about the recommended one.
    """
    answers = what_if(story)
    if answers is None or len(story.names) < 2:
        return None
    known = answers.distributions
    ranked = [config for config in story.ranking().tolist() if not np.isnan(known.estimate[config]).all()]
    if story.leader not in ranked:
        return None
    found = dominance(known, ranked[:_COMPARED])
    if len(found.config) < 2:
        return None
    names = [story.names[config] for config in found.config.tolist()]
    beaten = found.dominates()
    rows = [
        (
            names[row],
            names[column],
            float(found.loss[row, column]),
            float(found.certified[row, column]),
            "yes" if beaten[row, column] else "no",
        )
        for row in range(len(names))
        for column in range(len(names))
        if row != column
    ]
    columns = ("instead_of_second", "second", "largest_loss", "certified_largest_loss", "dominates_by_estimate")
    return View(
        "dominance",
        "Does it depend on the utility at all?",
        _dominance_caption(story, found, beaten[0]),
        [_dominance_chart(story, found)],
        FigureTable((columns[0].replace("_of_second", ""), *columns[1:]), rows),
        numbers={"dominance": as_numbers(found)},
    )


def _dominance_caption(story: LedgerData, found: Dominance, beaten: BoolArray) -> str:
    leader = printable(story.names[int(found.config[0])])
    count = int(beaten[1:].sum())
    worst = float(found.certified[0, 1:].max())
    return (
        f"The largest loss, over every utility there is, from taking {leader} instead of another: the most by which "
        "the other one's runtime distribution is ever ahead. 0 means that it is at least as good for every user "
        f"(first-order dominance): by estimate that is so against {count} of {len(found.config) - 1} shown. "
        f"Certified for all utilities at once, with probability at least {100 * (1 - story.delta):g} %: whatever the "
        f"utility, taking {leader} loses at most {rounded_up(worst, 3)} against any of them."
    )


def _dominance_chart(story: LedgerData, found: Dominance) -> Chart:
    rivals = np.arange(1, len(found.config))
    at: FloatArray = np.arange(len(rivals), dtype=np.float64)
    certain, estimate = found.certified[0, rivals], found.loss[0, rivals]
    tips = [
        f"{printable(story.names[int(found.config[rival])])}\n"
        f"largest loss about {found.loss[0, rival]:.3f}, for certain at most {_up(found, rival)}"
        for rival in rivals.tolist()
    ]
    ticks = [(float(place), printable(story.names[int(found.config[place + 1])])) for place in range(len(rivals))]
    return Chart(
        "largest loss over all utilities",
        Axis("estimated (dot) and certified (end of the line)", 0.0, 1.0),
        Axis("", len(rivals) - 0.4, -0.6, ticks=ticks),
        [Spans(at, np.zeros(len(rivals)), certain, estimate, "c0", tips=tips)],
        height=84.0 + 20.0 * len(rivals),
        name="dominance",
    )


def _up(found: Dominance, rival: int) -> str:
    return rounded_up(float(found.certified[0, rival]), 3)


# What became of the runs? Configuration by stream position, with colours for how each ended.


@dataclass(frozen=True, slots=True)
class Heat:
    """The grid.

    Attributes:
        config: Who stands in each row.
        first: First stream position of each column; one more for the end.
        kind: What is shown in each cell, a number into `KINDS`; -1 where nothing ran.
        counts: Runs of each kind in each cell.
    """

    config: IntArray
    first: IntArray
    kind: IntArray
    counts: IntArray


def heat(story: LedgerData, config: Sequence[int], columns: int = 120) -> Heat | None:
    """The runs of these configurations on all positions, at most this many columns; None without runs."""
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


_ROWS = 80
_NAMED = 40
_COLORS: tuple[Color, ...] = ("good", "cut", "bad", "stopped", "open")


def heat_view(story: LedgerData) -> View | None:
    """The leading configurations, best first; all positions, joined to stretches where there are many."""
    grid = heat(story, story.ranking()[:_ROWS].tolist())
    if grid is None:
        return None
    n_rows, n_columns = grid.kind.shape
    named = [printable(story.names[config]) for config in grid.config.tolist()]
    columns = [_column(story, grid, column) for column in range(n_columns)]
    ticks = [(place + 0.5, name) for place, name in enumerate(named)] if n_rows <= _NAMED else []
    length = int(grid.first[-1])
    marks: list[Mark] = [
        HeatCells(grid.kind, list(zip(_COLORS, KINDS, strict=True)), named, columns),
        *(_legend(color, kind) for color, kind in zip(_COLORS, KINDS, strict=True)),
    ]
    chart = Chart(
        "runs by configuration and stream position",
        Axis("position in the stream of instances", 0.0, float(max(1, length))),
        Axis("" if ticks else "configurations, best first", float(n_rows), 0.0, ticks=ticks),
        marks,
        height=84.0 + max(160.0, min(16.0, 560.0 / n_rows) * n_rows),
        name="heat",
    )
    per_cell = int(grid.first[1] - grid.first[0])
    joined = (
        ""
        if per_cell == 1
        else (f" A cell stands for {per_cell:,} positions and shows what most runs came to, but any failure shows.")
    )
    left_out = len(story.names) - n_rows
    rest = f" {left_out:,} more configurations are not shown." if left_out > 0 else ""
    caption = (
        "Rows: configurations, the recommended one on top. Empty: never run there, because it was not needed."
        + joined
        + rest
    )
    numbers = {"heat": as_numbers(grid), "kinds": list(KINDS)}
    return View("heat", "What became of the runs?", caption, [chart], _failures(story), numbers=numbers)


def _legend(color: Color, kind: str) -> Points:
    """An entry in the legend without a mark in the chart."""
    return Points(np.empty(0), np.empty(0), color, kind)


def _column(story: LedgerData, grid: Heat, column: int) -> str:
    first, last = int(grid.first[column]), int(grid.first[column + 1]) - 1
    if first >= last:
        return f"position {first}: {printable(story.instances.get(first, ''))}"
    return f"positions {first:,} to {last:,}"


def _failures(story: LedgerData) -> FigureTable | None:
    """The last runs that failed, with their last words."""
    if not story.failures:
        return None
    rows = []
    for outcome in story.failures:
        measured, request = outcome.measured, outcome.request
        words = outcome.detail
        if measured is not None:
            said = measured.stderr_tail or measured.stdout_tail
            words = f"{words} {said.decode('utf-8', 'backslashreplace')}".strip()
        rows.append(
            (
                story.names[request.config],
                story.instances.get(request.instance, ""),
                outcome.status.value if outcome.verdict is None else outcome.verdict.value,
                outcome.runtime,
                "" if measured is None else measured.host,
                ""
                if measured is None or measured.answer is None
                else measured.answer.decode("utf-8", "backslashreplace"),
                words[-300:],
            )
        )
    return FigureTable(("configuration", "instance", "verdict", "seconds", "host", "answer", "last_words"), rows)
