"""Which parameters matter: over the whole space, by the model, and step by step along an ablation path."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np

from captime.arrays import FloatArray, IntArray
from captime.errors import CaptimeError
from captime.report.charts.chart import Axis, Chart, FigureTable, Mark, Rule, Spans, View, as_numbers
from captime.report.ledger_data import LedgerData
from captime.report.words import printable, rounded_down, rounded_up
from captime.spaces.formats.section import read_section
from captime.spaces.model import Known, Surrogate
from captime.spaces.model_cost import one_thread
from captime.spaces.space import Space

# Which parameters matter over the whole space, as a model of the recorded configurations has it.
#
# The importance of a parameter is its total effect: how much of the variance of expected utility over the space goes
# away once that parameter is known beside all others. It is estimated by exchange (Jansen): take two independent
# random configurations, give the first one the second one's value of the parameter alone, and compare what the model
# expects; half the mean squared difference, divided by the variance of all expectations, is the total effect.
# Parameters that act together are counted in each of their effects, so these may sum to more than 1. The model has
# seen some configurations only. So it is fitted again and again to a bootstrap sample of them, and the effects are
# given as a range over the fits.

FEWEST = 8
"""With fewer configurations than this, nothing is said."""
FITS = 16
"""Bootstrap samples."""
_PAIRS = 256
_KEY = 0x1A907
_TINY = 1e-12


@dataclass(frozen=True, slots=True)
class Importance:
    """What the fits say about one parameter.

    Attributes:
        name: Of the parameter.
        effect: Its total effect, the median of all fits.
        low: The smallest effect but for a tenth of the fits.
        high: The largest effect but for a tenth of the fits.
    """

    name: str
    effect: float
    low: float
    high: float


def importances(space: Space, known: Sequence[Known], seed: int = 0, fits: int = FITS) -> list[Importance]:
    """Return the parameters of a space, the most important first; none if too little is known.

    Args:
        space: The space.
        known: What is known of some of its configurations.
        seed: Of the bootstrap samples and of the exchanged configurations.
        fits: How many samples.
    """
    told = [each for each in known if each.n > 0]
    if len(told) < FEWEST:
        return []
    rng = np.random.default_rng([_KEY, seed])
    first, second = space.drawn(rng, _PAIRS), space.drawn(rng, _PAIRS)
    count = min(len(first), len(second))
    first, second = first[:count], second[:count]
    changed = [_exchanged(space, first, second, place) for place in range(len(space.names))]
    effects = []
    for _ in range(fits):
        sample = [told[place] for place in rng.integers(len(told), size=len(told)).tolist()]
        with one_thread():
            effects.append(_effects(Surrogate(space, sample), first, changed))
    low, middle, high = np.quantile(np.array(effects), (0.1, 0.5, 0.9), axis=0)
    order = np.argsort(-middle, kind="stable").tolist()
    return [Importance(space.names[at], float(middle[at]), float(low[at]), float(high[at])) for at in order]


def _exchanged(space: Space, first: FloatArray, second: FloatArray, place: int) -> FloatArray:
    """The first configurations with one value of the second ones; what that makes inactive or active follows."""
    # An inactive parameter has its default, in case another one makes it active.
    rows = np.where(np.isnan(first), space.default_row, first)
    there = second[:, place]
    rows[:, place] = np.where(np.isnan(there), rows[:, place], there)
    return np.asarray(space.deactivated(rows))


def _effects(model: Surrogate, first: FloatArray, changed: Sequence[FloatArray]) -> FloatArray:
    before, _ = model.expected(first)
    spread = float(np.var(before))
    if spread <= _TINY:
        return np.zeros(len(changed))
    found = []
    for rows in changed:
        after, _ = model.expected(rows)
        found.append(float(np.mean((after - before) ** 2)) / 2.0 / spread)
    return np.array(found)


# Which parameters matter over the whole space, by the model: total effects, with their ranges over bootstrap samples.
#
# The ablation walks one path from the default to the winner, with intervals that hold. This figure is about all of
# the space, and an estimate: it says which parameters a model of the recorded configurations needs.

_SHOWN = 20
# A position with few runs is kept near the middle, as if one more had run it and scored as usual.
_CAUTION, _SWEEPS = 1.0, 8
_LEAST_VARIANCE = 0.01


def importance_view(story: LedgerData) -> View | None:
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


def space_of(story: LedgerData) -> Space | None:
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


def known_of(story: LedgerData) -> list[Known]:
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


# Which settings matter? The gain of every step of an ablation path, as `captime explain` has found it.

SUFFIX = ".explained.json"
"""How the name of the file ends, beside the ledger, in which an explanation is kept."""


def ablation_view(story: LedgerData) -> View | None:
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
    chart = _ablation_chart(labels, steps, gain)
    return View(
        "ablation",
        "Which settings matter?",
        caption,
        [chart],
        FigureTable(columns, rows),
        numbers={"explained": dict(told)},
    )


def _ablation_chart(labels: Sequence[str], steps: Sequence[Mapping[str, Any]], gain: Mapping[str, Any]) -> Chart:
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
