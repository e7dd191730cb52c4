"""Which settings matter? The gain of every step of an ablation path, as `captime explain` has found it."""

import json
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np

from captime.arrays import FloatArray
from captime.report.charts.chart import Axis, Chart, Mark, Rule, Spans
from captime.report.story import Story
from captime.report.views.view import FigureTable, View
from captime.report.words import printable, rounded_down, rounded_up

SUFFIX = ".explained.json"
"""How the name of the file ends, beside the ledger, in which an explanation is kept."""


def ablation_view(story: Story) -> View | None:
    """Return the figure of the explanation that stands beside a ledger; None if there is none of this campaign."""
    path = story.path.with_suffix(SUFFIX)
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        if told["campaign"] != story.campaign_id:
            return None
        return view_of(told)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def view_of(told: Mapping[str, Any]) -> View:
    """Return the figure of what `captime explain --json` prints."""
    steps = told["steps"]
    labels = [_label(step["settings"]) for step in steps]
    rows = [
        (
            place,
            label,
            float(step["low"]),
            float(step["high"]),
            (step["seen_low"] + step["seen_high"]) / 2.0,
            _cell(step["share_so_far"]["low"]),
            _cell(step["share_so_far"]["high"]),
        )
        for place, (label, step) in enumerate(zip(labels, steps, strict=True), start=1)
    ]
    columns = ("step", "settings", "lower", "upper", "seen", "share_so_far_lower", "share_so_far_upper")
    caption = (
        f"{told['statement']} Each line is the gain of one step of a path from {printable(str(told['from']))} to "
        f"{printable(str(told['to']))}, on {told['n_instances']:,} instances that chose neither the configurations nor "
        "the order; all intervals hold at once. Another order would share the gain out differently: docs/explain.md."
    )
    gain = told["gain"]
    chart = _chart(labels, steps, gain)
    return View(
        "ablation",
        "Which settings matter?",
        caption,
        [chart],
        FigureTable(columns, rows),
        numbers={"explained": dict(told)},
    )


def _chart(labels: Sequence[str], steps: Sequence[Mapping[str, Any]], gain: Mapping[str, Any]) -> Chart:
    lows: FloatArray = np.array([*(step["low"] for step in steps), gain["low"]], dtype=np.float64)
    highs: FloatArray = np.array([*(step["high"] for step in steps), gain["high"]], dtype=np.float64)
    both = [*steps, gain]
    seen: FloatArray = np.array([(each["seen_low"] + each["seen_high"]) / 2.0 for each in both], dtype=np.float64)
    names = [*labels, "the whole gain"]
    marks: list[Mark] = [Rule(0.0, "x")]
    last = len(steps)
    for label, color, chosen in (("steps", "c0", np.arange(last)), ("whole", "c1", np.array([last]))):
        marks.append(
            Spans(
                chosen.astype(np.float64),
                lows[chosen],
                highs[chosen],
                seen[chosen],
                color,
                label,
                across=True,
                width=2.6,
                tips=[
                    f"{names[place]}\ngain {rounded_down(lows[place], 3)} to {rounded_up(highs[place], 3)}"
                    for place in chosen.tolist()
                ],
            )
        )
    ticks = [(float(place), name) for place, name in enumerate(names)]
    return Chart(
        "gain in expected utility of every step",
        Axis("difference of expected utilities", min(0.0, float(lows.min())) - 0.02, float(highs.max()) + 0.02),
        Axis("", float(len(names)) - 0.4, -0.6, ticks=ticks),
        marks,
        height=90.0 + 24.0 * len(names),
        name="ablation",
    )


def _label(settings: Mapping[str, Sequence[Any]]) -> str:
    names = list(settings)
    if len(names) > 2:
        return f"{printable(names[0])} and {len(names) - 1} more"
    return ", ".join(printable(name) for name in names)


def _cell(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and isfinite(value) else None
