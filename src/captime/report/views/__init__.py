"""Figures, one file each: its numbers, then its charts, caption and table. `FIGURES` is the register."""

from collections.abc import Callable, Sequence

from captime.report.charts.chart import FigureTable, View
from captime.report.ledger_data import LedgerData
from captime.report.views.dominance import dominance_view, heat_view
from captime.report.views.duel import duel_view
from captime.report.views.importance import ablation_view, importance_view
from captime.report.views.intervals import epsilon_view, intervals_view
from captime.report.views.parameters import parallel_view, parameters_view
from captime.report.views.runtimes import runtimes_view
from captime.report.views.spending import captimes_view, spending_view
from captime.report.views.whatif import whatif_view

__all__ = ["FIGURES", "FigureTable", "View", "figures_of"]


# The register of figures, in the order in which a report shows them.

Maker = Callable[[Sequence[LedgerData]], View | None]


def _of_one(make: Callable[[LedgerData], View | None]) -> Maker:
    return lambda stories: make(stories[0])


FIGURES: dict[str, Maker] = {
    "epsilon": epsilon_view,
    "intervals": _of_one(intervals_view),
    "runtimes": runtimes_view,
    "duel": _of_one(duel_view),
    "whatif": _of_one(whatif_view),
    "dominance": _of_one(dominance_view),
    "parameters": _of_one(parameters_view),
    "parallel": _of_one(parallel_view),
    "ablation": _of_one(ablation_view),
    "importance": _of_one(importance_view),
    "heat": _of_one(heat_view),
    "spending": _of_one(spending_view),
    "captimes": _of_one(captimes_view),
}
"""By name; None where a story has nothing to say about it."""
OVERLAYS = ("epsilon", "runtimes")
"""Figures that can show several campaigns."""


def figures_of(story: LedgerData) -> list[View]:
    """All figures of a campaign that it has something to say about."""
    found = [make([story]) for make in FIGURES.values()]
    return [view for view in found if view is not None]
