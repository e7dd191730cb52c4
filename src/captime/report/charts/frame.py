"""Where a chart's own area lies in its picture, and where values, ticks and the legend go."""

from captime.report.charts.chart import Chart, Mark
from captime.report.charts.nodes import Node, element
from captime.report.charts.scales import Scale, ticks

# Widths of characters of the page's font at 12 pixels, on the safe side; only used to leave enough room.
_NARROW, _WIDE, _OTHER = 4.2, 11.0, 7.1
_NARROW_ONES, _WIDE_ONES = frozenset("fijlrtI.,:;'|()[]! -"), frozenset("mwMW%@—…")
LINE_HEIGHT = 17.0
_LONGEST_LABEL = 30
_INDENT = 40.0


class Frame:
    """Where the chart's own area lies in the picture, and where values go in it.

    Args:
        chart: The chart.
        width: Of the picture, in pixels.
    """

    def __init__(self, chart: Chart, width: float) -> None:
        self.chart = chart
        self.legend = _laid_out(chart, width)
        # Labels above each other need less room than beside each other.
        self.y_ticks = ticks(chart.y, 1.6 * chart.height)
        longest = max((text_width(cut(label)) for _, label in self.y_ticks), default=0.0)
        self.left = min(18.0 + longest, 0.45 * width) + (14.0 if chart.y.label else 0.0)
        self.right = width - 14.0
        self.top = 8.0 + LINE_HEIGHT * (1 + max((row for _, _, _, row in self.legend), default=-1))
        self.bottom = self.top + chart.height - 60.0
        self.width, self.height = width, self.bottom + 46.0
        self.x = Scale(chart.x, self.left, self.right)
        self.y = Scale(chart.y, self.bottom, self.top)
        self.x_ticks = ticks(chart.x, self.right - self.left)


def _laid_out(chart: Chart, width: float) -> list[tuple[Mark, str, float, int]]:
    """Where each entry of the legend goes: its left edge, and its line."""
    placed, at, row = [], _INDENT, 0
    for mark, label in chart.legend():
        needed = 40.0 + text_width(cut(label))
        if at > _INDENT and at + needed > width - 10.0:
            at, row = _INDENT, row + 1
        placed.append((mark, label, at, row))
        at += needed
    return placed


def text_width(text: str) -> float:
    """How many pixels a text takes, about."""
    return sum(_NARROW if c in _NARROW_ONES else _WIDE if c in _WIDE_ONES or ord(c) > 0x2E80 else _OTHER for c in text)


def words(text: str, x: float, y: float, anchor: str, kind: str) -> Node:
    """A text at a place; `kind` is its class."""
    return element("text", text, x=x, y=y, text_anchor=anchor, class_=kind)


def fitted(label: str, room: float) -> str:
    """As much of a label as fits into so many pixels."""
    if text_width(label) <= room:
        return label
    shown = label
    while len(shown) > 1 and text_width(shown) + text_width("…") > room:
        shown = shown[:-1]
    return shown + "…"


def cut(label: str) -> str:
    """A label that fits beside an axis."""
    return label if len(label) <= _LONGEST_LABEL else label[: _LONGEST_LABEL - 1] + "…"
