"""Pictures by matplotlib, in one style: charts with the marks of the page, epsilon over time, and a utility."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import singledispatch
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from captime.arrays import FloatArray
from captime.errors import MissingExtra, ScenarioError
from captime.report.charts.chart import (
    Axis,
    Band,
    Chart,
    Color,
    HeatCells,
    Label,
    Line,
    Mark,
    Points,
    Rule,
    Shape,
    Spans,
    Strip,
    Zone,
    ticks,
    visible,
)
from captime.trace import Trace
from captime.utilities.formula import Utility, duration_text

# The Okabe-Ito palette: told apart also with colour blindness, and mostly in grey print.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
SUFFIXES = (".png", ".pdf", ".svg")
_NO_DATE = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}}


def check_picture_path(path: Path) -> None:
    """Refuse a path whose suffix does not name a picture, or any if pictures cannot be drawn; before work is done."""
    if path.suffix.lower() not in SUFFIXES:
        raise ScenarioError(
            f"the picture {path} has the suffix {path.suffix or '(none)'!r}, expected one of {', '.join(SUFFIXES)}"
        )
    if find_spec("matplotlib") is None:
        raise MissingExtra("a picture", "plot")


@contextmanager
def sheet(
    paths: Sequence[Path], *, width: float, height: float, panels: int = 1, rows: int = 1, font_size: float = 10.0
) -> Iterator[list[Any]]:
    """Axes side by side to draw on; the files are written when the block ends, one per path, the same picture in each.

    The global state of pyplot is not touched.

    Raises:
        MissingExtra: matplotlib is not installed.
        ScenarioError: the suffix is not a picture's, or the file cannot be written.
    """
    for path in paths:
        check_picture_path(path)
    from matplotlib import rc_context  # noqa: PLC0415 (an optional package, looked for above)
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    # Text stays text in PDF and SVG, so that a journal's fonts and a reader's search work.
    with rc_context({"pdf.fonttype": 42, "svg.fonttype": "none", "font.size": font_size}):
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(figure)
        yield [figure.add_subplot(rows, -(-panels // rows), number + 1) for number in range(panels)]
        for path in paths:
            try:
                # No date inside, so that the same picture is the same file.
                figure.savefig(path, dpi=200, metadata=_NO_DATE.get(path.suffix.lower()))
            except OSError as error:
                raise ScenarioError(
                    f"the picture {path} cannot be written ({error.strerror or error}); choose a folder that exists "
                    "and is yours"
                ) from error


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
            # This many entries of the longest one fit beside each other.
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
    cells = any(isinstance(mark, HeatCells) for mark in chart.marks)
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
def _(mark: HeatCells, axes: Any, chart: Chart) -> None:
    from matplotlib.colors import BoundaryNorm, ListedColormap  # noqa: PLC0415 (an optional package)

    colors = ListedColormap([_color(color) for color, _ in mark.kinds])
    norm = BoundaryNorm(np.arange(len(mark.kinds) + 1) - 0.5, len(mark.kinds))
    shown = np.ma.masked_less(mark.codes, 0)
    extent = (chart.x.low, chart.x.high, chart.y.low, chart.y.high)
    axes.imshow(shown, cmap=colors, norm=norm, aspect="auto", interpolation="nearest", extent=extent, origin="upper")


def draw_epsilon(traces: Mapping[str, Trace], path: Path, note: str, goal: float) -> None:
    """Write what was certified when; the suffix (png, pdf or svg) chooses the format.

    Args:
        traces: By label.
        path: Where to.
        note: What the curves have in common, in small print.
        goal: The epsilon that was asked for.
    """
    made = {label: trace.decisions() for label, trace in traces.items()}
    spent = [np.maximum(each.seconds, 1e-3) for each in made.values()]
    low = min((float(each[0]) for each in spent if len(each)), default=1e-3)
    high = 1.25 * max((float(each[-1]) for each in spent if len(each)), default=1.0)
    marks: list[Mark] = [
        *(
            Line(seconds, each.epsilon, f"c{place % len(PALETTE)}", label, step=True, width=2.4)
            for place, (seconds, (label, each)) in enumerate(zip(spent, made.items(), strict=True))
        ),
        Rule(goal, "y", f"asked for: {goal:g}"),
        # Lower left: curves come down on the right.
        Label(low * (high / low) ** 0.01, 0.03, note),
    ]
    x = Axis("CPU time spent (logarithmic)", low, max(high, 2.0 * low), "time")
    _write(Chart("certified epsilon", x, Axis("certified epsilon", 0.0, 1.02), marks), path)


def _write(chart: Chart, path: Path) -> None:
    with sheet([path], width=6.4, height=3.9) as (axes,):
        print_chart(replace(chart, width=500.0), axes)


_WORTHS = (0.9, 0.5, 0.1)


def draw_utility(utility: Utility, path: Path) -> None:
    """Write a picture of the utility to `path`; its suffix (png, pdf or svg) chooses the format.

    Raises:
        MissingExtra: matplotlib is not installed.
        ScenarioError: the suffix is another one, or the file cannot be written.
    """
    first, last = time_window(utility)
    t = sample_times(utility, first, last)
    text = str(utility)
    marks: list[Mark] = [Line(t, utility(t), "c0", text if len(text) <= 80 else text[:77] + "...", width=2.6)]
    for worth, moment in zip(_WORTHS, utility.inverse(np.array(_WORTHS)).tolist(), strict=True):
        if first < moment < last:
            at = np.array([moment, moment])
            marks += [
                Line(at, np.array([-0.03, worth]), "faint", dashed=True, width=1.0),
                Points(at[:1], np.array([worth]), "c1", size=4.0),
                # Above and to the right of a falling curve there is always room.
                Label(moment * (last / first) ** 0.015, worth + 0.02, f"{worth:g} at {duration_text(moment)}"),
            ]
    if math.isfinite(utility.zero_at):
        marks.append(Label(last, 1.04, f"worthless from {duration_text(utility.zero_at)} on", "end"))
    x = Axis("time until the answer (logarithmic)", first, last, "time")
    _write(Chart(text, x, Axis("worth of the answer", -0.03, 1.06), marks), path)


def time_window(utility: Utility) -> tuple[float, float]:
    """The part of the time axis on which something happens: from almost full worth to almost none."""
    first, half, last = (float(each) for each in utility.inverse(np.array([0.98, 0.5, 0.02])))
    half = half if 0.0 < half < math.inf else 1.0
    first = max(min(first, half) / 2.0, half * 1e-4)
    last = min(max(last, half), half * 1e4) * 2.0
    if math.isfinite(utility.zero_at):
        last = min(last, utility.zero_at)
    # At least a decade on the early side, so that a step is seen to have been flat, and room for the labels.
    first = min(first, half / 10.0)
    return first, max(last, half) * (last / first) ** 0.3


def sample_times(utility: Utility, first: float, last: float) -> FloatArray:
    """Where the curve is computed: evenly on the logarithmic axis, and on both sides of every breakpoint."""
    at = np.array([each for each in utility.breakpoints if first < each < last])
    return np.unique(np.concatenate([np.geomspace(first, last, 600), at, np.nextafter(at, 0.0)]))
