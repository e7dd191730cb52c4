"""Values that pages and pictures are drawn from: elements (text is escaped here alone), charts and figures."""

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Literal, TypeAlias

import numpy as np

from captime.arrays import FloatArray, IntArray
from captime.utilities.formula import duration_text

# Elements of a page or of a picture, as a tree: text is escaped when the tree is written out, here and nowhere else.
#
# No page is ever glued together from strings, so no name of a configuration, instance or host can become markup.

Child: TypeAlias = "Node | str"
Json: TypeAlias = "str | list[object]"

# Elements that have no closing tag in HTML.
_VOID = frozenset({"meta", "br", "hr", "input", "link", "col"})
# Control characters that no page can show and some parsers trip over; they are written as \xNN.
_CONTROL = {code: f"\\x{code:02x}" for code in (*range(9), 11, 12, *range(14, 32), 127)}


@dataclass(slots=True)
class Node:
    """An element.

    Attributes:
        tag: Its name; always one of ours, never data.
        attributes: By name; None and False leave one out.
        children: Elements and texts.
    """

    tag: str
    attributes: Mapping[str, str | float | bool | None] = field(default_factory=dict)
    children: list[Child] = field(default_factory=list)

    def text(self) -> str:
        """As HTML or SVG."""
        return "".join(self.parts())

    def parts(self) -> Iterator[str]:
        """As HTML or SVG, piece by piece."""
        yield f"<{self.tag}"
        for name, value in self.attributes.items():
            if value is None or value is False:
                continue
            yield f" {name}" if value is True else f' {name}="{escape(_shown(value))}"'
        yield ">"
        if self.tag in _VOID:
            return
        for child in self.children:
            if isinstance(child, Node):
                yield from child.parts()
            else:
                yield escape(visible(child), quote=False)
        yield f"</{self.tag}>"

    def json(self) -> Json:
        """As lists that JSON knows: [tag, attributes, child, …]; for a page that makes its own elements."""
        attributes = {name: _shown(value) for name, value in self.attributes.items() if value not in {None, False}}
        children = [child.json() if isinstance(child, Node) else visible(child) for child in self.children]
        return [self.tag, attributes, *children]

    def add(self, *children: Child) -> "Node":
        """Append children; returns the node."""
        self.children.extend(children)
        return self


@dataclass(slots=True)
class Raw(Node):
    """Our own style sheet or script, written as it is; never data."""

    tag: str = ""
    source: str = ""

    def parts(self) -> Iterator[str]:
        """The source."""
        yield self.source


def element(tag: str, *children: Child, **attributes: str | float | bool | None) -> Node:
    """An element; `_` in attribute names stands for `-`, and `class_` for `class`."""
    named = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
    return Node(tag, named, list(children))


def visible(text: str) -> str:
    r"""A text without characters that cannot be shown: control characters become \xNN, lone surrogates too."""
    return text.translate(_CONTROL).encode("utf-8", "backslashreplace").decode("utf-8")


def _shown(value: str | float | bool) -> str:
    if isinstance(value, str):
        return visible(value)
    # A hundredth of a pixel is finer than any screen.
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


# What a chart is: axes and marks, as values. Colours are names; each renderer knows what they look like.

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
class HeatCells:
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


Mark: TypeAlias = Line | Band | Points | Spans | Rule | Strip | Zone | Label | HeatCells


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
            label = "" if isinstance(mark, Rule | Zone | Label | HeatCells) else mark.label
            if label and label not in seen:
                seen[label] = mark
        return [(mark, label) for label, mark in seen.items()]


# Times that people know by heart; the coarse ones first.
_DECADES = tuple(10.0**k for k in range(-7, 2))
_COARSE = (*_DECADES, 60.0, 600.0, 3600.0, 36000.0, *(86400.0 * 10.0**k for k in range(5)))
_FINE = tuple(sorted((*_COARSE, *(3.0 * value for value in _DECADES), 180.0, 1800.0, 10800.0)))
_WIDEST = 10
_HALF_AND_HALF = 2.5
_STEPS = (1.0, 2.0, _HALF_AND_HALF, 5.0)


class AxisScale:
    """From values to pixels.

    Args:
        axis: The axis.
        start: Pixel of its low end.
        end: Pixel of its high end.
    """

    def __init__(self, axis: Axis, start: float, end: float) -> None:
        self._log = axis.scale != "linear"
        self._low, high = self._flat(axis.low), self._flat(axis.high)
        self._start = start
        self._factor = (end - start) / (high - self._low) if high != self._low else 0.0

    def _flat(self, value: float) -> float:
        return math.log10(max(value, 1e-300)) if self._log else value

    def __call__(self, values: FloatArray) -> FloatArray:
        """Pixels of values; what lies at infinity goes just beyond the edge."""
        flat = np.log10(np.maximum(values, 1e-300)) if self._log else np.asarray(values, dtype=np.float64)
        pixels: FloatArray = self._start + (flat - self._low) * self._factor
        return pixels

    def one(self, value: float) -> float:
        """The pixel of one value."""
        return float(self(np.array([value]))[0])


def ticks(axis: Axis, room: float) -> list[tuple[float, str]]:
    """Places and labels; fewer where there is little room, given in pixels."""
    most = max(3, min(_WIDEST, int(room / 62)))
    if axis.ticks is not None:
        low, high = min(axis.low, axis.high), max(axis.low, axis.high)
        return [tick for tick in axis.ticks if low <= tick[0] <= high]
    if axis.scale == "time":
        return [(value, duration_text(value)) for value in _times(axis.low, axis.high, most)]
    if axis.scale == "log":
        return [(value, f"{value:g}") for value in _powers(axis.low, axis.high, most)]
    return round_ticks(axis.low, axis.high, most)


def _times(low: float, high: float, most: int) -> Sequence[float]:
    for choice in (_FINE, _COARSE):
        found = [value for value in choice if low <= value <= high]
        if len(found) <= most:
            return found
    return found[:: math.ceil(len(found) / most)]


def _powers(low: float, high: float, most: int) -> Sequence[float]:
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    found = [10.0**power for power in range(first, last + 1)]
    if len(found) < 2:
        found = [digit * 10.0**power for power in range(first - 1, last + 1) for digit in (1.0, 2.0, 5.0)]
        found = [value for value in found if low <= value <= high]
    return found[:: max(1, math.ceil(len(found) / most))]


def round_ticks(low: float, high: float, most: int) -> list[tuple[float, str]]:
    """Round numbers between two ends, at most about this many, with their labels."""
    if not high > low:
        return [(low, f"{low:g}")]
    power = 10.0 ** (math.floor(math.log10((high - low) / most)) - 1)
    # The finest steps of which not too many are needed.
    for scale, size in ((scale, size) for scale in (power, 10.0 * power, 100.0 * power) for size in _STEPS):
        step = scale * size
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        if last - first < most:
            break
    digits = max(0, -math.floor(math.log10(step) + 1e-9) + (1 if size == _HALF_AND_HALF else 0))
    return [(number * step, f"{number * step:,.{digits}f}") for number in range(first, last + 1)]


# What a figure is: one or several charts, a caption that says how to read it, and the numbers as a table.

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
