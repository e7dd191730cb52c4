"""Epsilon against CPU time: what is certified when, for one or several campaigns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from captime.arrays import FloatArray
from captime.report.figures.canvas import PALETTE, picture
from captime.trace import Trace

# The largest unit in which the longest curve has at least two of them.
_UNITS = ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes"), (1.0, "seconds"))


@dataclass(frozen=True, slots=True)
class Curve:
    """What was certified when.

    Attributes:
        seconds: CPU seconds spent.
        epsilon: Certified by then.
        joined: False for a procedure that certifies only at its end: one mark per run of it.
    """

    seconds: FloatArray
    epsilon: FloatArray
    joined: bool = True


def curve_of(trace: Trace) -> Curve:
    """The curve of a story."""
    made = trace.decisions()
    return Curve(made.seconds, made.epsilon)


def draw_epsilon(curves: Mapping[str, Curve], path: Path, note: str, goals: Sequence[float] = ()) -> None:
    """Write the picture; the suffix (png, pdf or svg) chooses the format.

    Args:
        curves: By label.
        path: Where to.
        note: What the curves have in common, in small print.
        goals: Epsilons that were asked for, as thin lines.
    """
    with picture(path, width=6.4, height=3.9) as axes:
        _draw(axes, curves, note, goals)


def _draw(axes: Any, curves: Mapping[str, Curve], note: str, goals: Sequence[float]) -> None:
    longest = max((float(curve.seconds.max(initial=0.0)) for curve in curves.values()), default=0.0)
    size, unit = next((each for each in _UNITS if longest >= 2 * each[0]), _UNITS[-1])
    for color, (label, curve) in zip(PALETTE, curves.items(), strict=False):
        spent = np.maximum(curve.seconds, 1e-3) / size
        if curve.joined:
            axes.step(spent, curve.epsilon, where="post", label=label, color=color, linewidth=1.8)
        else:
            axes.plot(spent, curve.epsilon, "o--", label=label, color=color, linewidth=1.2, markersize=4.5)
    for goal in goals:
        axes.axhline(goal, color="#8A8A8A", linewidth=0.9, linestyle=":", zorder=1)
        axes.annotate(
            f"asked for: {goal:g}",
            (0.0, goal),
            xycoords=("axes fraction", "data"),
            xytext=(6, 3),
            textcoords="offset points",
            ha="left",
            fontsize=8.5,
            color="#5A5A5A",
        )
    axes.set_xscale("log")
    axes.set_ylim(0.0, 1.02)
    axes.set_xlabel(f"CPU time spent, {unit} (logarithmic)")
    axes.set_ylabel("certified epsilon")
    axes.grid(visible=True, which="major", color="#E4E4E4", linewidth=0.7, zorder=0)
    axes.spines[["top", "right"]].set_visible(False)
    # Lower left: curves come down on the right.
    axes.text(0.015, 0.03, note, transform=axes.transAxes, va="bottom", fontsize=9.0, color="#5A5A5A")
    # Above the axes, where no curve can run through it.
    axes.legend(frameon=False, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2, borderaxespad=0.0, fontsize=9.0)
