"""A chart as SVG: a tree of elements with classes for colours, so that a page can be light or dark.

No style attributes and no links: the tree passes any content security policy. Words for hovering are in `data-tip`.
"""

import math
from itertools import pairwise

from captime.report.charts.chart import Band, Cells, Chart, Line, Mark, Points, Strip
from captime.report.charts.frame import LINE_HEIGHT, Frame, cut, fitted, text_width, words
from captime.report.charts.nodes import Node, element
from captime.report.charts.svg_marks import drawn, ring, shape_path


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
    grid = not any(isinstance(mark, Cells) for mark in chart.marks)
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
