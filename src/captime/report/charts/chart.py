"""What a chart is: axes and marks, as values. Colours are names; each renderer knows what they look like."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from captime.arrays import FloatArray, IntArray

Color = str
"""`c0` to `c6` (categories), `s0` to `s4` (from poor to good), `text`, `faint`, `good`, `cut`, `bad`, `open`."""
Shape = Literal["circle", "ring", "up", "right", "cross"]


@dataclass(frozen=True, slots=True)
class Axis:
    """One side of a chart.

    Attributes:
        label: What it shows, with the unit.
        low: Where it begins.
        high: Where it ends.
        scale: `time` is logarithmic and labelled with seconds, minutes and hours.
        ticks: Places and labels, where the usual ones will not do.
    """

    label: str
    low: float
    high: float
    scale: Literal["linear", "log", "time"] = "linear"
    ticks: Sequence[tuple[float, str]] | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """A line through points; `step`: each value holds until the next one."""

    x: FloatArray
    y: FloatArray
    color: Color = "c0"
    label: str = ""
    step: bool = False
    dashed: bool = False
    width: float = 1.8
    tips: Sequence[str] = ()
    tip: str = ""


@dataclass(frozen=True, slots=True)
class Band:
    """An area between two curves over the same places; a light one for much that is unknown."""

    x: FloatArray
    low: FloatArray
    high: FloatArray
    color: Color = "c0"
    label: str = ""
    step: bool = False
    light: bool = False

    @property
    def kind(self) -> str:
        """The class of the area on a page."""
        return "band light" if self.light else "band"


@dataclass(frozen=True, slots=True)
class Points:
    """Marks at places, each with its own words."""

    x: FloatArray
    y: FloatArray
    color: Color = "c0"
    label: str = ""
    shape: Shape = "circle"
    size: float = 3.0
    tips: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Spans:
    """Intervals, one per place, lying (`across`) or standing, with a mark at the middle unless that is not a number."""

    at: FloatArray
    low: FloatArray
    high: FloatArray
    middle: FloatArray
    color: Color = "c0"
    label: str = ""
    across: bool = True
    width: float = 2.0
    tips: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Rule:
    """A straight line across the chart at one value."""

    value: float
    along: Literal["x", "y"]
    label: str = ""
    color: Color = "faint"


@dataclass(frozen=True, slots=True)
class Strip:
    """Coloured stretches along the horizontal axis, between two heights: who is the best where."""

    start: FloatArray
    end: FloatArray
    colors: Sequence[Color]
    bottom: float
    top: float
    label: str = ""
    tips: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Zone:
    """A stretch of the horizontal axis that is different from the rest, with words at its top."""

    start: float
    end: float
    text: str = ""


@dataclass(frozen=True, slots=True)
class Label:
    """A few words at a place."""

    x: float
    y: float
    text: str
    anchor: Literal["start", "middle", "end"] = "start"
    color: Color = "text"


@dataclass(frozen=True, slots=True)
class Cells:
    """A grid of coloured cells, row 0 on top; it fills the chart from edge to edge.

    Attributes:
        codes: Number of the kind of each cell, by row and column; -1 for none.
        kinds: Colour and words of each kind.
        rows: What the rows are.
        columns: What the columns are.
    """

    codes: IntArray
    kinds: Sequence[tuple[Color, str]]
    rows: Sequence[str]
    columns: Sequence[str]


Mark: TypeAlias = Line | Band | Points | Spans | Rule | Strip | Zone | Label | Cells


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart.

    Attributes:
        title: In a few words.
        x: The horizontal axis.
        y: The vertical axis.
        marks: In the order in which they are painted.
        width: In pixels of a page; a paper's column is narrower by a fixed factor.
        height: Likewise.
        name: For file names and tests.
    """

    title: str
    x: Axis
    y: Axis
    marks: Sequence[Mark] = field(default_factory=tuple)
    width: float = 960.0
    height: float = 340.0
    name: str = "chart"

    def legend(self) -> list[tuple[Mark, str]]:
        """Marks that have a label, each label once."""
        seen: dict[str, Mark] = {}
        for mark in self.marks:
            label = "" if isinstance(mark, Rule | Zone | Label | Cells) else mark.label
            if label and label not in seen:
                seen[label] = mark
        return [(mark, label) for label, mark in seen.items()]
