"""Which parameters matter over the whole space, by the model: total effects, with their ranges over bootstrap samples.

The ablation walks one path from the default to the winner, with intervals that hold. This figure is about all of the
space, and an estimate: it says which parameters a model of the recorded configurations needs.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from captime.arrays import FloatArray, IntArray
from captime.errors import CaptimeError
from captime.report.charts.chart import Axis, Chart, Spans
from captime.report.story import Story
from captime.report.views.view import FigureTable, View, as_numbers
from captime.report.words import printable
from captime.spaces import Known, Space
from captime.spaces.formats.section import read_section
from captime.spaces.importance import FITS, Importance, importances

_SHOWN = 20
# A position with few runs is kept near the middle, as if one more had run it and scored as usual.
_CAUTION, _SWEEPS = 1.0, 8
_LEAST_VARIANCE = 0.01


def importance_view(story: Story) -> View | None:
    """Return the figure of a campaign on a space; None without a space, or with too few configurations that ran."""
    space = space_of(story)
    known = known_of(story) if space is not None else []
    if space is None or not known:
        return None
    found = importances(space, known)
    if not found:
        return None
    ran = sum(each.n > 0 for each in known)
    caption = (
        "Total effect of each parameter: how much of the variance of expected utility over the space, by the model, "
        "goes away once the parameter is known beside all others. Parameters that act together are counted in each of "
        f"their effects. The bars span the middle 80 % of {FITS} models, each fitted to a bootstrap sample of the "
        f"{ran:,} configurations that ran. These are estimates and no part of the certificate."
    )
    rows = [(each.name, each.effect, each.low, each.high) for each in found]
    return View(
        "importance",
        "Which parameters matter over the whole space?",
        caption,
        [_chart(found[:_SHOWN])],
        FigureTable(("parameter", "total_effect", "lower", "upper"), rows),
        numbers={"importance": as_numbers(found), "configurations": ran, "bootstrap_samples": FITS},
    )


def space_of(story: Story) -> Space | None:
    """Return the space of a campaign, as its ledger describes it; None if it has none that can be read."""
    section = story.scenario.get("space")
    if not isinstance(section, Mapping) or not section:
        return None
    order = story.scenario.get("space_order")
    place = {str(name): number for number, name in enumerate(order)} if isinstance(order, list) else {}
    tables = section.get("parameters")
    ordered = dict(section)
    if isinstance(tables, Mapping):
        ordered["parameters"] = dict(sorted(tables.items(), key=lambda each: place.get(each[0], len(place))))
    else:
        ordered = dict(sorted(section.items(), key=lambda each: place.get(each[0], len(place))))
    try:
        return read_section(ordered, "the space on record")
    except CaptimeError:
        return None


def known_of(story: Story) -> list[Known]:
    """Return what the runs say about each configuration, adjusted for the positions that it was run on."""
    scores, runs = story.scores, story.runs
    if scores is None or runs is None or not len(runs) or len(story.settings) != len(story.names):
        return []
    values = (scores.low + scores.high) / 2.0
    n = np.bincount(runs.config, minlength=len(story.names)).astype(np.int64)
    worth, left = _adjusted(values, runs.config, runs.position, n)
    half = np.bincount(runs.config, scores.high - scores.low, minlength=len(n)) / 2.0 / np.maximum(n, 1)
    freedom = max(1, len(values) - int((n > 0).sum()) - len(np.unique(runs.position)) // 2)
    variance = float(np.clip(float(left @ left) / freedom, _LEAST_VARIANCE, 0.25))
    return [
        Known(dict(settings), float(worth[at] - half[at]), float(worth[at] + half[at]), int(n[at]), variance)  # type: ignore[arg-type] # a ledger of a space holds its settings
        for at, settings in enumerate(story.settings)
    ]


def _adjusted(values: FloatArray, config: IntArray, position: IntArray, n: IntArray) -> tuple[FloatArray, FloatArray]:
    """Fit a worth to each configuration and a kindness to each position; return the worths, and what is left over."""
    middle, there = float(values.mean()), np.bincount(position)
    kind: FloatArray = np.zeros(len(there))
    worth: FloatArray = np.zeros(len(n))
    for _ in range(_SWEEPS):
        worth = np.bincount(config, values - middle - kind[position], minlength=len(n)) / np.maximum(n, 1)
        kind = np.bincount(position, values - middle - worth[config], minlength=len(there)) / (there + _CAUTION)
    return middle + worth, np.asarray(values - middle - worth[config] - kind[position])


def _chart(found: Sequence[Importance]) -> Chart:
    at = np.arange(len(found), dtype=np.float64)
    low, high, middle = (np.array([getattr(each, name) for each in found]) for name in ("low", "high", "effect"))
    tips = [f"{each.name}\ntotal effect {each.effect:.3f}, {each.low:.3f} to {each.high:.3f}" for each in found]
    ticks = [(float(place), printable(each.name)) for place, each in enumerate(found)]
    return Chart(
        "total effects of parameters",
        Axis("share of the variance of expected utility", 0.0, max(0.05, float(high.max()) * 1.05)),
        Axis("", len(found) - 0.4, -0.6, ticks=ticks),
        [Spans(at, low, high, middle, "c0", across=True, width=2.6, tips=tips)],
        height=90.0 + 24.0 * len(found),
        name="importance",
    )
