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
class Table:
    """Numbers to copy: not rounded.

    Attributes:
        columns: Their names.
        rows: Their values.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]


@dataclass(frozen=True, slots=True)
class View:
    """A figure.

    Attributes:
        name: One word, for commands and links.
        title: The question it answers.
        caption: How to read it, and how far it can be trusted.
        charts: One or more.
        table: The numbers; None if there are none to copy.
        choices: Labels of the charts if only one of them is shown at a time.
        numbers: Everything behind the charts, for `--json`.
    """

    name: str
    title: str
    caption: str
    charts: Sequence[Chart]
    table: Table | None = None
    choices: Sequence[str] = ()
    numbers: Mapping[str, object] = field(default_factory=dict)


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
