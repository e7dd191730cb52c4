"""Curves with bands over seeds, in panels side by side: the pictures of the experiments."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from captime.report.charts.mpl import PALETTE, sheet
from captime_research.experiments.paper import RACE
from captime_research.experiments.rows import Band

_UNITS = ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes"), (1.0, "seconds"), (1e-3, "milliseconds"))
# Colour, dashes and mark together tell curves apart, so that more of them than colours stay distinct, in grey too.
_DASHES = ("-", (0, (5, 1.5)), (0, (3, 1, 1, 1)), (0, (1, 1)))
_MARKS = ("o", "s", "^", "D", "v", "P", "X")
Unit = tuple[float, str]


@dataclass(frozen=True, slots=True)
class View:
    """How curves are shown.

    Attributes:
        x: Label of the horizontal axis; `{unit}` stands for the unit of time, and makes it an axis of time.
        y: Label of the vertical axis, likewise.
        log_x: Whether the horizontal axis is logarithmic.
        log_y: The vertical axis is logarithmic above this value, and linear below it; None for linear everywhere.
        cloud: Draw single marks instead of curves.
        other: Panels with a vertical axis of their own, linear, and its label.
    """

    x: str
    y: str
    log_x: bool = False
    log_y: float | None = 0.0
    cloud: bool = False
    other: Mapping[str, str] = field(default_factory=dict)


def draw_bands(
    panels: Mapping[str, Mapping[str, Band]],
    paths: Sequence[Path],
    view: View,
    note: str,
    marks: Mapping[str, Mapping[str, tuple[float, float]]] | None = None,
) -> None:
    """Write the pictures; the suffixes (png, pdf or svg) choose the formats.

    Args:
        panels: Curves by title and label.
        paths: Where to.
        view: How.
        note: What all curves have in common, in small print.
        marks: Places on curves, by title and label, to be marked with a star.
    """
    labels = list(dict.fromkeys(label for curves in panels.values() for label in curves))
    many = len(labels) > 6
    rows = -(-len(panels) // 2) if len(panels) > 3 else 1
    width, height = (4.6 if len(panels) == 1 else 7.2), (3.4 if rows == 1 else 3.3 * rows)
    with sheet(paths, width=width, height=height, panels=len(panels), rows=rows, font_size=8.5) as drawn:
        units = _units(panels, view)
        for axes, (title, curves) in zip(drawn, panels.items(), strict=True):
            # Many curves: each panel explains its own, in its own colours.
            known = list(curves) if many else labels
            _panel(axes, curves, known, view, (*units, view.other.get(title)))
            for label, (x, y) in (marks or {}).get(title, {}).items():
                color, _, _ = _look(label, known)
                axes.plot(x / units[0][0], y / units[1][0], "*", color=color, markersize=11.0, markeredgecolor="white")
            axes.set_title(title, fontsize=9.0, loc="left")
            if many:
                # Above the axes, where no curve can run through it.
                axes.legend(
                    frameon=False, fontsize=7.0, loc="lower left", bbox_to_anchor=(-0.02, 1.07), ncols=2,
                    handlelength=2.4, columnspacing=1.0, borderaxespad=0.0,
                )  # fmt: skip
        if rows > 1 and len(panels) % 2:
            # An odd one has the last row to itself.
            drawn[-1].set_subplotspec(drawn[-1].get_gridspec()[rows - 1, :])
        _label_once(drawn, -(-len(panels) // rows))
        _share([axes for axes, title in zip(drawn, panels, strict=True) if title not in view.other], "ylim")
        if view.log_x:
            _share(drawn, "xlim")
        figure = drawn[0].figure
        if not many:
            pairs = [zip(*axes.get_legend_handles_labels(), strict=True) for axes in drawn]
            found = {name: line for pair in pairs for line, name in pair}
            figure.legend(
                found.values(), found.keys(), loc="outside upper center", ncols=2 if width < 5 else 4, frameon=False,
                fontsize=8.0, handlelength=2.6, columnspacing=1.2,
            )  # fmt: skip
        figure.supxlabel(note, fontsize=7.0, color="#5A5A5A")
    for path in paths:
        if path.suffix.lower() == ".png":
            _with_fewer_colours(path)


def _with_fewer_colours(path: Path) -> None:
    """Reduce the colours of a picture of lines: less than half the size, and no visible difference."""
    from PIL import Image  # noqa: PLC0415 (it comes with matplotlib, an optional package)

    with Image.open(path) as picture:
        picture.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)


def _panel(
    axes: Any, curves: Mapping[str, Band], labels: Sequence[str], view: View, units: tuple[Unit, Unit, str | None]
) -> None:
    (x_size, x_text), (y_size, y_text), other = units
    for label, band in curves.items():
        color, mark, place = _look(label, labels)
        x = np.array(band.x) / x_size
        middle, low, high = (np.array(each) / y_size for each in (band.middle, band.low, band.high))
        if view.cloud:
            axes.plot(x, middle, mark, color=color, label=label, markersize=4.0, alpha=0.8, markeredgewidth=0)
            continue
        axes.fill_between(x, low, high, color=color, alpha=0.09 if len(curves) > 4 else 0.16, linewidth=0)
        every = max(1, len(x) // 8)
        axes.plot(
            x, middle, linestyle=_DASHES[place % len(_DASHES)], color=color, label=label, marker=mark, markersize=3.4,
            linewidth=2.0 if place == 0 else 1.4, markevery=(place % every, every),
        )  # fmt: skip
    if view.log_x:
        axes.set_xscale("log")
    else:
        axes.locator_params(axis="x", nbins=5)
    if other is None and view.log_y == 0:
        axes.set_yscale("log")
    elif other is None and view.log_y is not None:
        axes.set_yscale("symlog", linthresh=view.log_y)
        axes.set_ylim(bottom=0.0)
    axes.set_xlabel(x_text)
    axes.set_ylabel(other or y_text)
    axes.grid(visible=True, which="major", color="#E4E4E4", linewidth=0.7, zorder=0)
    axes.spines[["top", "right"]].set_visible(False)


def _look(label: str, labels: Sequence[str]) -> tuple[str, str, int]:
    """Return colour, mark and place of a curve. A method that is in every picture looks the same in all of them."""
    place = 0 if label == RACE else 1 + [each for each in labels if each != RACE].index(label)
    return PALETTE[place % len(PALETTE)], _MARKS[place % len(_MARKS)], place


def _units(panels: Mapping[str, Mapping[str, Band]], view: View) -> tuple[Unit, Unit]:
    """One unit for an axis in all panels."""
    every = [band for curves in panels.values() for band in curves.values()]
    return (
        _unit(view.x, [value for band in every for value in band.x]),
        _unit(view.y, [value for band in every for value in band.high]),
    )


def _unit(label: str, values: Sequence[float]) -> Unit:
    """What to divide by and the label with the unit: the largest of which the largest value has at least two."""
    if "{unit}" not in label:
        return 1.0, label
    most = max((each for each in values if math.isfinite(each)), default=1.0)
    size, name = next((each for each in _UNITS if most >= 2 * each[0]), _UNITS[-1])
    return size, label.format(unit=name)


def _label_once(drawn: Sequence[Any], columns: int) -> None:
    """What the axis to the left in the same row says already is not said again."""
    for place, axes in enumerate(drawn):
        first = drawn[place - place % columns]
        if axes is not first and axes.get_ylabel() == first.get_ylabel():
            axes.set_ylabel("")


def _share(drawn: Sequence[Any], limit: str) -> None:
    """The same range (`xlim` or `ylim`) in all panels, so that they can be compared across."""
    ranges = [axes.properties()[limit] for axes in drawn]
    for axes in drawn:
        axes.set(**{limit: (min(low for low, _ in ranges), max(high for _, high in ranges))})
