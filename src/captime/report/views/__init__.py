"""Figures: from the numbers to charts, captions and tables, one file each. `FIGURES` is the register."""

from captime.report.views.figures import FIGURES, figures_of
from captime.report.views.view import Table, View

__all__ = ["FIGURES", "Table", "View", "figures_of"]
