"""What a figure is: one or several charts, a caption that says how to read it, and the numbers as a table."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from captime.report.charts.chart import Chart

Cell: TypeAlias = str | int | float | None


@dataclass(frozen=True, slots=True)
class FigureTable:
    """Numbers to copy: not rounded.

    Attributes:
        columns: Their names.
        rows: Their values.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]


@dataclass(frozen=True, slots=True)
class Versus:
    """Any two of several, chosen on the page: a chart of two of them, and what is needed to draw the others.

    Attributes:
        chart: The first two, on axes that suit all.
        names: Who can be chosen.
        first: Who is on the vertical axis, by place in `names`.
        second: Who is on the horizontal one.
        data: For the script of the page, as JSON knows it.
    """

    chart: Chart
    names: Sequence[str]
    first: int
    second: int
    data: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class View:
    """A figure.

    Attributes:
        name: One word, for commands and links.
        title: The question it answers.
        caption: How to read it, and how far it can be trusted.
        charts: One or more.
        table: The numbers; None if there are none to copy.
        choices: What there is to choose from, if not all charts are shown at a time.
        chosen: To which of the choices each chart belongs; one after the other if left out.
        numbers: Everything behind the charts, for `--json`.
        versus: What a page shows in place of the charts, if any two of several can be compared on it.
    """

    name: str
    title: str
    caption: str
    charts: Sequence[Chart]
    table: FigureTable | None = None
    choices: Sequence[str] = ()
    chosen: Sequence[int] = ()
    numbers: Mapping[str, object] = field(default_factory=dict)
    versus: Versus | None = None

    def shown(self, choice: int = 0) -> list[Chart]:
        """The charts that are shown together."""
        if not self.choices:
            return list(self.charts)
        chosen = self.chosen or range(len(self.charts))
        return [chart for chart, place in zip(self.charts, chosen, strict=True) if place == choice]


def as_numbers(value: object) -> object:
    """A value as JSON knows it: arrays become lists, what is not finite becomes null."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {each.name: as_numbers(getattr(value, each.name)) for each in dataclasses.fields(value)}
    if isinstance(value, np.ndarray):
        return as_numbers(value.tolist())
    if isinstance(value, Mapping):
        return {str(name): as_numbers(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [as_numbers(each) for each in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value
