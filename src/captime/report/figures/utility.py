"""The curve of a utility over time, with the moments at which it has fallen to 0.9, 0.5 and 0.1."""

import math
from pathlib import Path
from typing import Any

import numpy as np

from captime.arrays import FloatArray
from captime.report.figures.canvas import PALETTE, picture
from captime.utilities.durations import duration_text
from captime.utilities.protocol import Utility

_CURVE, _MARK = PALETTE[:2]
_FAINT = "#8A8A8A"
_WORTHS = (0.9, 0.5, 0.1)
# Round times for the axis: people read 1 min and 1 h, not 10² and 10³ seconds. The fine ones fill the gaps of
# the coarse ones when there is room.
_DAY = 86400.0
_COARSE = (
    *(10.0**k for k in range(-6, 2)),
    60.0,
    600.0,
    3600.0,
    36000.0,
    *(_DAY * 10.0**k for k in range(7)),
)
_BETWEEN = (*(3.0 * 10.0**k for k in range(-6, 2)), 180.0, 1800.0, 10800.0, 36000.0, 3.0 * _DAY, 30.0 * _DAY)
_FINE = tuple(sorted((*_COARSE, *_BETWEEN)))


def draw_utility(utility: Utility, path: Path) -> None:
    """Write a picture of the utility to `path`; its suffix (png, pdf or svg) chooses the format.

    Raises:
        MissingExtra: matplotlib is not installed.
        ScenarioError: the suffix is another one, or the file cannot be written.
    """
    with picture(path, width=6.4, height=3.9) as axes:
        _draw(axes, utility)


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


def _draw(axes: Any, utility: Utility) -> None:  # matplotlib comes without complete types
    first, last = time_window(utility)
    t = sample_times(utility, first, last)
    axes.set_xscale("log")
    axes.set_xlim(first, last)
    axes.set_ylim(-0.03, 1.06)
    axes.plot(t, utility(t), color=_CURVE, linewidth=2.0, zorder=3, solid_capstyle="round")
    _mark_worths(axes, utility, first, last)
    ticks = _ticks(first, last)
    if len(ticks) >= 2:
        axes.set_xticks(ticks, [duration_text(each) for each in ticks])
    axes.minorticks_off()  # minor ticks count tens of seconds, the labels minutes and hours
    axes.set_yticks([0.0, 0.25, 0.5, 0.75, 1.0])
    axes.grid(visible=True, which="major", color="#E4E4E4", linewidth=0.7, zorder=0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel("time until the answer (logarithmic)")
    axes.set_ylabel("worth of the answer")
    axes.set_title(_shortened(str(utility)), loc="left", fontsize=10.5)
    if math.isfinite(utility.zero_at):
        note = f"worthless from {duration_text(utility.zero_at)} on"
        axes.text(1.0, 0.99, note, transform=axes.transAxes, ha="right", va="top", fontsize=9.0, color="#5A5A5A")


def _ticks(first: float, last: float) -> list[float]:
    fine = [each for each in _FINE if first <= each <= last]
    return fine if len(fine) <= 8 else [each for each in _COARSE if first <= each <= last]


def _mark_worths(axes: Any, utility: Utility, first: float, last: float) -> None:
    """A dot and a time wherever 0.9, 0.5 and 0.1 are first reached."""
    moments = utility.inverse(np.array(_WORTHS)).tolist()
    for worth, moment in zip(_WORTHS, moments, strict=True):
        if not first < moment < last:
            continue
        drop = {"color": _FAINT, "linewidth": 0.8, "linestyle": (0, (2, 2)), "zorder": 1}
        axes.plot([moment, moment], [-0.03, worth], **drop)
        axes.plot([moment], [worth], marker="o", markersize=5.5, color=_MARK, zorder=4)
        # Above and to the right of a falling curve there is always room.
        axes.annotate(
            f"{worth:g} at {duration_text(moment)}",
            (moment, worth),
            xytext=(8.0, 4.0),
            textcoords="offset points",
            fontsize=9.0,
            zorder=5,
        )


def _shortened(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "..."
