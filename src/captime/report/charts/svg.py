"""A chart as SVG: a tree of elements with classes for colours, so that a page can be light or dark.

No style attributes and no links: the tree passes any content security policy. Words for hovering are in `data-tip`.
"""

import json
import math
from functools import singledispatch
from itertools import pairwise

import numpy as np

from captime.arrays import BoolArray, FloatArray
from captime.report.charts.chart import (
    AxisScale,
    Band,
    Chart,
    HeatCells,
    Label,
    Line,
    Mark,
    Node,
    Points,
    Rule,
    Spans,
    Strip,
    Zone,
    element,
    ticks,
)

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
        self.x = AxisScale(chart.x, self.left, self.right)
        self.y = AxisScale(chart.y, self.bottom, self.top)
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
    """As much of a label as fits into this many pixels."""
    if text_width(label) <= room:
        return label
    shown = label
    while len(shown) > 1 and text_width(shown) + text_width("…") > room:
        shown = shown[:-1]
    return shown + "…"


def cut(label: str) -> str:
    """A label that fits beside an axis."""
    return label if len(label) <= _LONGEST_LABEL else label[: _LONGEST_LABEL - 1] + "…"


_HIT = 7.0


@singledispatch
def drawn(mark: Mark, frame: Frame) -> Node:
    """The element, or a group of them."""
    raise TypeError(f"no way to draw {mark} in {frame}")


@drawn.register
def _(mark: Line, frame: Frame) -> Node:
    x, y = frame.x(mark.x), frame.y(mark.y)
    classes = f"line line-{mark.color}" + (" dashed" if mark.dashed else "")
    path = element(
        "path", class_=classes, d=_path(x, y, step=mark.step), stroke_width=mark.width, data_tip=mark.tip or None
    )
    if not mark.tips:
        return path
    group = element("g", path)
    for a, b, tip in zip(x.tolist(), y.tolist(), mark.tips, strict=True):
        group.add(element("circle", class_="hit", cx=a, cy=b, r=_HIT, data_tip=tip))
    return group


@drawn.register
def _(mark: Band, frame: Frame) -> Node:
    x, low, high = frame.x(mark.x), frame.y(mark.low), frame.y(mark.high)
    back = _stepped(x, low) if mark.step else (x, low)
    there = _stepped(x, high) if mark.step else (x, high)
    corners = np.concatenate((there[0], back[0][::-1])), np.concatenate((there[1], back[1][::-1]))
    return element("path", class_=f"{mark.kind} fill-{mark.color}", d=_path(*corners, step=False) + "Z")


@drawn.register
def _(mark: Points, frame: Frame) -> Node:
    x, y = frame.x(mark.x).tolist(), frame.y(mark.y).tolist()
    if x and not mark.tips:
        shapes = "".join(shape_path(mark.shape, a, b, mark.size) for a, b in zip(x, y, strict=True))
        return element("path", class_=f"points fill-{mark.color}" + ring(mark), d=shapes)
    group = element("g", class_=f"points fill-{mark.color}" + ring(mark))
    for a, b, tip in zip(x, y, mark.tips, strict=True):
        group.add(element("path", d=shape_path(mark.shape, a, b, mark.size), data_tip=tip))
    return group


@drawn.register
def _(mark: Spans, frame: Frame) -> Node:
    along, over = (frame.x, frame.y) if mark.across else (frame.y, frame.x)
    low, high, middle, at = along(mark.low), along(mark.high), along(mark.middle), over(mark.at)
    group = element("g", class_=f"spans line-{mark.color} fill-{mark.color}")
    tips = mark.tips or [""] * len(at)
    for a, b, m, place, tip in zip(low.tolist(), high.tolist(), middle.tolist(), at.tolist(), tips, strict=True):
        ends = f"M{a:.1f} {place:.1f}H{b:.1f}" if mark.across else f"M{place:.1f} {a:.1f}V{b:.1f}"
        center = (m, place) if mark.across else (place, m)
        one = element(
            "g",
            element("path", class_="hit-line", d=ends),
            element("path", class_="span", d=ends, stroke_width=mark.width),
            data_tip=tip or None,
        )
        if math.isfinite(m):
            one.add(element("path", class_="dot", d=shape_path("circle", *center, min(3.2, mark.width + 1.0))))
        group.add(one)
    return group


@drawn.register
def _(mark: Rule, frame: Frame) -> Node:
    if mark.along == "y":
        at = frame.y.one(mark.value)
        line = element("line", class_=f"rule line-{mark.color}", x1=frame.left, x2=frame.right, y1=at, y2=at)
        return element("g", line, words(mark.label, frame.left + 4.0, at - 4.0, "start", "note"))
    at = frame.x.one(mark.value)
    line = element("line", class_=f"rule line-{mark.color}", x1=at, x2=at, y1=frame.top, y2=frame.bottom)
    left = at > (frame.left + frame.right) / 2.0
    side, anchor = (-4.0, "end") if left else (4.0, "start")
    return element("g", line, words(mark.label, at + side, frame.top + 11.0, anchor, "note"))


@drawn.register
def _(mark: Strip, frame: Frame) -> Node:
    group = element("g", class_="strips")
    top, bottom = frame.y.one(mark.top), frame.y.one(mark.bottom)
    tips = mark.tips or [""] * len(mark.colors)
    for a, b, color, tip in zip(
        frame.x(mark.start).tolist(), frame.x(mark.end).tolist(), mark.colors, tips, strict=True
    ):
        group.add(
            element(
                "rect",
                class_=f"strip fill-{color}",
                x=a,
                y=top,
                width=max(0.0, b - a),
                height=bottom - top,
                data_tip=tip or None,
            )
        )
    return group


@drawn.register
def _(mark: Zone, frame: Frame) -> Node:
    left, right = max(frame.left, frame.x.one(mark.start)), min(frame.right, frame.x.one(mark.end))
    box = element(
        "rect",
        class_="zone",
        x=left,
        y=frame.top,
        width=max(0.0, right - left),
        height=frame.bottom - frame.top,
        data_tip=mark.text or None,
    )
    # Words that do not fit appear under the pointer only.
    fits = right - left >= text_width(mark.text) + 8.0
    told = [words(mark.text, (left + right) / 2.0, frame.top + 14.0, "middle", "note")] if fits else []
    return element("g", box, *told)


@drawn.register
def _(mark: Label, frame: Frame) -> Node:
    return words(mark.text, frame.x.one(mark.x), frame.y.one(mark.y), mark.anchor, f"note text-{mark.color}")


@drawn.register
def _(mark: HeatCells, frame: Frame) -> Node:
    """One path per kind of cell, neighbours joined; what a cell says is worked out from where the pointer is."""
    n_rows, n_columns = mark.codes.shape
    wide = (frame.right - frame.left) / max(1, n_columns)
    high = (frame.bottom - frame.top) / max(1, n_rows)
    gap = 0.5 if high > 6.0 else 0.0
    group = element("g", class_="cells")
    for code, (color, _) in enumerate(mark.kinds):
        parts = [
            f"M{frame.left + first * wide:.1f} {frame.top + row * high + gap:.1f}"
            f"h{(last - first) * wide:.1f}v{high - 2 * gap:.1f}h{(first - last) * wide:.1f}z"
            for row in range(n_rows)
            for first, last in _stretches(mark.codes[row] == code)
        ]
        if parts:
            group.add(element("path", class_=f"cell fill-{color}", d="".join(parts), data_kind=str(code)))
    facts = {
        "box": [round(each, 1) for each in (frame.left, frame.top, wide, high)],
        "rows": list(mark.rows),
        "columns": list(mark.columns),
        "kinds": [words for _, words in mark.kinds],
        "codes": ["".join(chr(ord("a") + code) if code >= 0 else "." for code in row) for row in mark.codes.tolist()],
    }
    group.attributes = {**group.attributes, "data-grid": json.dumps(facts)}
    return group


def _stretches(wanted: BoolArray) -> list[tuple[int, int]]:
    """Neighbouring cells of one kind: where each stretch begins and ends."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], wanted.astype(np.int8), [0]))))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def _stepped(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Corners of a staircase: each value holds until the next place."""
    return np.repeat(x, 2)[1:], np.repeat(y, 2)[:-1]


def _path(x: FloatArray, y: FloatArray, *, step: bool) -> str:
    if step and len(x) > 1:
        x, y = _stepped(x, y)
    known = np.isfinite(x) & np.isfinite(y)
    parts: list[str] = []
    begun = False
    for a, b, drawn in zip(x.tolist(), y.tolist(), known.tolist(), strict=True):
        if drawn:
            parts.append(f"{'L' if begun else 'M'}{a:.1f} {b:.1f}")
        begun = drawn
    return "".join(parts)


def ring(mark: Points) -> str:
    """The class of marks that are not filled."""
    return " ring" if mark.shape in {"ring", "cross"} else ""


def shape_path(shape: str, x: float, y: float, size: float) -> str:
    """The outline of a mark."""
    if shape in {"circle", "ring"}:
        return (
            f"M{x - size:.1f} {y:.1f}a{size:g} {size:g} 0 1 0 {2 * size:g} 0a{size:g} {size:g} 0 1 0 {-2 * size:g} 0z"
        )
    if shape == "cross":
        return f"M{x - size:.1f} {y - size:.1f}l{2 * size:g} {2 * size:g}m0 {-2 * size:g}l{-2 * size:g} {2 * size:g}"
    if shape == "up":
        return f"M{x - size:.1f} {y + size:.1f}h{2 * size:g}l{-size:g} {-2 * size:g}z"
    return f"M{x - size:.1f} {y - size:.1f}v{2 * size:g}l{2 * size:g} {-size:g}z"


def draw(chart: Chart, width: float | None = None) -> Node:
    """The picture.

    Args:
        chart: What to draw.
        width: In pixels; the chart's own if left out. Text keeps its size.
    """
    frame = Frame(chart, chart.width if width is None else width)
    picture = Node(
        "svg",
        {
            "viewBox": f"0 0 {frame.width:g} {frame.height:g}",
            "width": frame.width,
            "height": frame.height,
            "class": f"chart chart-{chart.name}",
            "role": "img",
            "aria-label": chart.title,
        },
    )
    picture.add(_axes(frame))
    area = element("g", class_="marks")
    for mark in chart.marks:
        area.add(drawn(mark, frame))
    return picture.add(area, _legend(frame))


# ------------------------------------------------------------------ around the marks


def _axes(frame: Frame) -> Node:
    chart, group = frame.chart, element("g", class_="axes")
    grid = not any(isinstance(mark, HeatCells) for mark in chart.marks)
    for value, label in frame.y_ticks:
        at = frame.y.one(value)
        # Names beside an axis need no lines.
        if grid and chart.y.label:
            group.add(element("line", class_="grid", x1=frame.left, x2=frame.right, y1=at, y2=at))
        group.add(words(cut(label), frame.left - 7.0, at + 4.0, "end", "tick"))
    room = _room(frame)
    for value, label in frame.x_ticks:
        at = frame.x.one(value)
        if grid:
            group.add(element("line", class_="grid", x1=at, x2=at, y1=frame.top, y2=frame.bottom))
        shown = fitted(label, room)
        tick = words(shown, at, frame.bottom + 16.0, "middle", "tick")
        if shown != label:
            tick.attributes = {**tick.attributes, "data-tip": label}
        group.add(tick)
    group.add(element("line", class_="axis", x1=frame.left, x2=frame.right, y1=frame.bottom, y2=frame.bottom))
    label = _axis_label(chart.x.label, frame.width)
    middle = (frame.left + frame.right) / 2.0
    # Below the axes if it fits there, below the whole picture otherwise.
    middle = middle if text_width(label) <= 2.0 * (frame.width - middle) else frame.width / 2.0
    group.add(words(label, middle, frame.bottom + 37.0, "middle", "axis-label"))
    if chart.y.label:
        height = (frame.top + frame.bottom) / 2.0
        turned = words(chart.y.label, 12.0, height, "middle", "axis-label")
        turned.attributes = {**turned.attributes, "transform": f"rotate(-90 12 {height:.1f})"}
        group.add(turned)
    return group


def _axis_label(label: str, room: float) -> str:
    """Without its afterthought, or even cut, if there is too little room."""
    return label if text_width(label) <= room else fitted(label.removesuffix(" (logarithmic)"), room)


def _room(frame: Frame) -> float:
    """Pixels for each word below the axis: names may be many and long, numbers were chosen to fit."""
    if frame.chart.x.ticks is None or len(frame.x_ticks) < 2:
        return math.inf
    places = [frame.x.one(value) for value, _ in frame.x_ticks]
    return min(after - before for before, after in pairwise(places)) - 6.0


def _legend(frame: Frame) -> Node:
    group = element("g", class_="legend")
    for mark, label, at, row in frame.legend:
        height = 10.0 + LINE_HEIGHT * row
        group.add(_swatch(mark, at, height), words(cut(label), at + 21.0, height + 4.0, "start", "legend-text"))
    return group


def _swatch(mark: Mark, at: float, height: float) -> Node:
    color = mark.colors[0] if isinstance(mark, Strip) else getattr(mark, "color", "text")
    if isinstance(mark, Points):
        return element("path", class_=f"fill-{color}" + ring(mark), d=shape_path(mark.shape, at + 8.0, height, 4.0))
    if isinstance(mark, Band | Strip):
        kind = mark.kind if isinstance(mark, Band) else "strip"
        return element("rect", class_=f"{kind} fill-{color}", x=at, y=height - 5.0, width=16.0, height=10.0)
    dashes = " dashed" if isinstance(mark, Line) and mark.dashed else ""
    return element(
        "line", class_=f"line line-{color}{dashes}", x1=at, x2=at + 16.0, y1=height, y2=height, stroke_width=1.8
    )
