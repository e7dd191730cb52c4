"""Figures, one file each: its numbers, then its charts, caption and table. `FIGURES` is the register."""

from captime.report.views.figures import FIGURES, figures_of
from captime.report.views.view import Table, View

__all__ = ["FIGURES", "Table", "View", "figures_of"]
