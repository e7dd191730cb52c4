"""A chart on matplotlib's axes: for papers. The same marks as on the page, in the style of `figures.canvas`."""

from functools import singledispatch
from pathlib import Path
from typing import Any

import numpy as np

from captime.report.charts.chart import (
    Axis,
    Band,
    Cells,
    Chart,
    Color,
    Label,
    Line,
    Mark,
    Points,
    Rule,
    Shape,
    Spans,
    Strip,
    Zone,
)
from captime.report.charts.nodes import visible
from captime.report.charts.scales import ticks
from captime.report.figures.canvas import PALETTE, sheet

# Pixels of a page to an inch of paper: a chart that fills the page fits a double column.
_PIXELS = 140.0
_PAGE = 1000.0
_COLORS = {
    **{f"c{place}": color for place, color in enumerate(PALETTE)},
    **{f"s{place}": color for place, color in enumerate(("#C9D3DE", "#9FB8D1", "#6F9BC3", "#3F7DB3", "#084A8C"))},
    "text": "#1B1F24",
    "faint": "#9AA3AD",
    "good": "#2F9E78",
    "cut": "#E8C06A",
    "bad": "#C2402A",
    "stopped": "#B9A3CF",
    "open": "#C4CCD4",
}
_MARKERS: dict[Shape, str] = {"circle": "o", "ring": "o", "up": "^", "right": ">", "cross": "x"}
_HOLLOW = ("ring",)
_NAME = 28


def print_charts(charts: list[Chart], path: Path) -> None:
    """Write the charts, wide ones below each other; the suffix (png, pdf or svg) chooses the format."""
    widest = max(chart.width for chart in charts)
    rows = -(-len(charts) // max(1, int(_PAGE / widest)))
    width = widest * -(-len(charts) // rows) / _PIXELS
    height = rows * max(chart.height + 30.0 for chart in charts) / (_PIXELS * 0.8)
    with sheet([path], width=width, height=height, panels=len(charts), rows=rows, font_size=8.5) as axes:
        for panel, chart in zip(axes, charts, strict=True):
            print_chart(chart, panel)


def print_chart(chart: Chart, axes: Any) -> None:  # matplotlib comes without complete types
    """Draw it."""
    _scale(axes, chart)
    for mark in chart.marks:
        _printed(mark, axes, chart)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_axisbelow(True)
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        # Above the axes, where no curve can run through it.
        axes.legend(
            handles,
            labels,
            frameon=False,
            loc="lower left",
            bbox_to_anchor=(0.0, 1.0),
            # So many entries of the longest one fit beside each other.
            ncols=max(1, min(len(labels), int(chart.width / (9.0 * (max(map(len, labels)) + 5))))),
            borderaxespad=0.2,
            handlelength=1.6,
            columnspacing=1.2,
        )


def _scale(axes: Any, chart: Chart) -> None:
    for axis, which in ((chart.x, "x"), (chart.y, "y")):
        if axis.scale != "linear":
            getattr(axes, f"set_{which}scale")("log")
        getattr(axes, f"set_{which}lim")(axis.low, axis.high)
        room = 0.8 * chart.width if which == "x" else 1.4 * chart.height
        places = ticks(axis, room)
        labels = [_plain(label) for _, label in places]
        getattr(axes, f"set_{which}ticks")([value for value, _ in places], labels)
        getattr(axes, f"set_{which}label")(_plain(axis.label))
    axes.minorticks_off()
    cells = any(isinstance(mark, Cells) for mark in chart.marks)
    if not cells:
        named = _named(chart.y)
        axes.grid(visible=True, axis="x" if named else "both", color="#E6E8EB", linewidth=0.6)
    if _named(chart.y):
        axes.tick_params(axis="y", length=0)


def _named(axis: Axis) -> bool:
    return axis.ticks is not None and not axis.label


def _plain(text: str) -> str:
    """A name that matplotlib takes for neither mathematics nor markup."""
    shown = visible(text)
    shown = shown if len(shown) <= _NAME or " " in shown else shown[: _NAME - 1] + "…"
    return shown.replace("$", r"\$")


def _label(text: str) -> dict[str, str]:
    # A label that begins with an underscore is one that matplotlib hides.
    return {"label": _plain(text) if not text.startswith("_") else f"\u200b{_plain(text)}"} if text else {}


def _color(name: Color) -> str:
    return _COLORS[name]


@singledispatch
def _printed(mark: Mark, axes: Any, chart: Chart) -> None:
    raise TypeError(f"no way to draw {mark} of {chart.name} on {axes}")


@_printed.register
def _(mark: Line, axes: Any, chart: Chart) -> None:  # noqa: ARG001 (one signature for all marks)
    style = "--" if mark.dashed else "-"
    how = {"color": _color(mark.color), "linestyle": style, "linewidth": 0.75 * mark.width, **_label(mark.label)}
    if mark.step:
        axes.step(mark.x, mark.y, where="post", **how)
    else:
        axes.plot(mark.x, mark.y, **how)


@_printed.register
def _(mark: Band, axes: Any, chart: Chart) -> None:  # noqa: ARG001
    step = "post" if mark.step else None
    how = {"color": _color(mark.color), "alpha": 0.08 if mark.light else 0.15, "linewidth": 0, **_label(mark.label)}
    axes.fill_between(mark.x, mark.low, mark.high, step=step, **how)


@_printed.register
def _(mark: Points, axes: Any, chart: Chart) -> None:  # noqa: ARG001
    hollow = mark.shape in _HOLLOW
    axes.plot(
        mark.x,
        mark.y,
        linestyle="none",
        marker=_MARKERS[mark.shape],
        markersize=1.4 * mark.size,
        color=_color(mark.color),
        markerfacecolor="none" if hollow else _color(mark.color),
        markeredgewidth=0.9 if hollow or mark.shape == "cross" else 0.0,
        clip_on=False,
        **_label(mark.label),
    )


@_printed.register
def _(mark: Spans, axes: Any, chart: Chart) -> None:  # noqa: ARG001
    lines = axes.hlines if mark.across else axes.vlines
    lines(mark.at, mark.low, mark.high, color=_color(mark.color), linewidth=0.7 * mark.width, **_label(mark.label))
    middle = (mark.middle, mark.at) if mark.across else (mark.at, mark.middle)
    axes.plot(*middle, "o", color=_color(mark.color), markersize=min(3.2, 1.4 * mark.width + 0.6))


@_printed.register
def _(mark: Rule, axes: Any, chart: Chart) -> None:  # noqa: ARG001
    draw = axes.axhline if mark.along == "y" else axes.axvline
    draw(mark.value, color=_color(mark.color), linewidth=0.8, linestyle=":", zorder=1)
    if mark.label and mark.along == "y":
        at = {"xycoords": ("axes fraction", "data"), "xytext": (3, 3), "textcoords": "offset points"}
        axes.annotate(_plain(mark.label), (0.0, mark.value), fontsize=7.5, color="#57606A", **at)


@_printed.register
def _(mark: Strip, axes: Any, chart: Chart) -> None:  # noqa: ARG001
    for start, end, color in zip(mark.start.tolist(), mark.end.tolist(), mark.colors, strict=True):
        axes.fill_between([start, end], mark.bottom, mark.top, color=_color(color), linewidth=0)


@_printed.register
def _(mark: Zone, axes: Any, chart: Chart) -> None:
    axes.axvspan(mark.start, mark.end, color="#F0F2F4", linewidth=0, zorder=0)
    scale = np.log if chart.x.scale != "linear" else np.asarray
    left, right, low, high = (float(scale(each)) for each in (mark.start, mark.end, chart.x.low, chart.x.high))
    share = (min(right, high) - max(left, low)) / (high - low)
    if share * chart.width >= 11.0 * len(mark.text):
        middle = ((max(left, low) + min(right, high)) / 2.0 - low) / (high - low)
        how = {"xycoords": "axes fraction", "ha": "center", "va": "top", "fontsize": 7.5, "color": "#57606A"}
        axes.annotate(_plain(mark.text), (middle, 0.97), **how)


@_printed.register
def _(mark: Label, axes: Any, chart: Chart) -> None:  # noqa: ARG001
    from matplotlib.patheffects import withStroke  # noqa: PLC0415 (an optional package)

    halo = [withStroke(linewidth=2.0, foreground="white")]
    align = {"start": "left", "middle": "center", "end": "right"}[mark.anchor]
    axes.text(
        mark.x, mark.y, _plain(mark.text), ha=align, va="center", fontsize=7.0, color="#57606A", path_effects=halo
    )


@_printed.register
def _(mark: Cells, axes: Any, chart: Chart) -> None:
    from matplotlib.colors import BoundaryNorm, ListedColormap  # noqa: PLC0415 (an optional package)

    colors = ListedColormap([_color(color) for color, _ in mark.kinds])
    norm = BoundaryNorm(np.arange(len(mark.kinds) + 1) - 0.5, len(mark.kinds))
    shown = np.ma.masked_less(mark.codes, 0)
    extent = (chart.x.low, chart.x.high, chart.y.low, chart.y.high)
    axes.imshow(shown, cmap=colors, norm=norm, aspect="auto", interpolation="nearest", extent=extent, origin="upper")
