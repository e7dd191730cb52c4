"""Epsilon against CPU time: what is certified when, for one or several procedures on the same table."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from captime.report.figures.canvas import PALETTE, picture
from captime.simulation import Simulation

_DAY = 86400.0


def draw_epsilon(
    results: Mapping[str, Simulation], path: Path, points: Mapping[str, list[Simulation]] | None = None
) -> None:
    """Write the picture; the suffix (png, pdf or svg) chooses the format.

    Args:
        results: Anytime procedures by label: each becomes a falling curve.
        path: Where to.
        points: Procedures that certify only at their end, by label: one mark per run, joined by a line.
    """
    with picture(path, width=6.4, height=3.9) as axes:
        _draw(axes, results, points or {})


def _draw(axes: Any, results: Mapping[str, Simulation], points: Mapping[str, list[Simulation]]) -> None:
    labels = iter(PALETTE)
    for label, result in results.items():
        made = result.outcome.trace.decisions()
        days = np.maximum(made.seconds, 1e-3) / _DAY
        axes.step(days, made.epsilon, where="post", label=label, color=next(labels), linewidth=1.8)
    for label, runs in points.items():
        spent = [run.cpu_seconds / _DAY for run in runs]
        axes.plot(
            spent,
            [run.certificate.epsilon for run in runs],
            "o--",
            label=label,
            color=next(labels),
            linewidth=1.2,
            markersize=4.5,
        )
    axes.set_xscale("log")
    axes.set_ylim(0.0, 1.02)
    axes.set_xlabel("CPU time spent, days (logarithmic)")
    axes.set_ylabel("certified epsilon")
    axes.grid(visible=True, which="major", color="#E4E4E4", linewidth=0.7, zorder=0)
    axes.spines[["top", "right"]].set_visible(False)
    first = next(iter(results.values()))
    note = f"{first.table.name}, {first.utility}, delta = {first.delta:g}"
    # Lower left: curves come down on the right.
    axes.text(0.015, 0.03, note, transform=axes.transAxes, va="bottom", fontsize=9.0, color="#5A5A5A")
    # Above the axes, where no curve can run through it.
    axes.legend(frameon=False, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2, borderaxespad=0.0, fontsize=9.0)
