"""Marks of a chart as SVG elements: one function per kind of mark."""

import json
import math
from functools import singledispatch

import numpy as np

from captime.arrays import BoolArray, FloatArray
from captime.report.charts.chart import Band, Cells, Label, Line, Mark, Points, Rule, Spans, Strip, Zone
from captime.report.charts.frame import Frame, text_width, words
from captime.report.charts.nodes import Node, element

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
def _(mark: Cells, frame: Frame) -> Node:
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
