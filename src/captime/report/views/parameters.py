"""Which settings matter? The effect of each parameter on the utility, and all configurations at one glance."""

from dataclasses import replace

import numpy as np

from captime.arrays import FloatArray
from captime.report.charts.chart import Axis, Chart, Label, Line, Mark, Rule, Spans
from captime.report.numbers.parameters import INACTIVE, Column, Effect, columns, effects, value_text
from captime.report.story import Story
from captime.report.views.view import Table, View, as_numbers
from captime.report.words import printable, rounded_down, rounded_up

_MOST_LINES = 400
_LEVELS = 5
# Where a configuration crosses the axis of a parameter that it does not have: below it.
_BELOW = -0.14


def parameters_view(story: Story) -> View | None:
    """One small chart per parameter, the strongest first."""
    found = effects(story)
    if not found or story.scores is None:
        return None
    low = min(float(effect.lower.min()) for effect in found)
    high = max(float(effect.upper.max()) for effect in found)
    charts = [_effect(effect, low, high) for effect in found]
    rows = [
        (effect.name, group, members, estimate, lower, upper)
        for effect in found
        for group, members, estimate, lower, upper in effect.rows()
    ]
    caption = (
        "Average utility of the configurations that share a value; the strongest parameter first. The bars hold all at "
        f"once with probability at least {100 * (1 - story.delta):g} %, because every configuration's interval does. "
        "An average says what these configurations have in common, not what changing one parameter alone would do. "
        f"“{INACTIVE}”: the parameter does not apply there."
    )
    table = Table(("parameter", "value", "configurations", "utility", "lower", "upper"), rows)
    return View("parameters", "Which settings matter?", caption, charts, table, numbers={"effects": as_numbers(found)})


def _effect(effect: Effect, low: float, high: float) -> Chart:
    at = np.arange(len(effect.groups), dtype=np.float64)
    tips = [
        f"{effect.name} {group}: {members} configurations\n"
        f"mean utility {estimate:.3f}, in [{rounded_down(lower, 3)}, {rounded_up(upper, 3)}]"
        for group, members, estimate, lower, upper in effect.rows()
    ]
    ticks = [(float(place), printable(group)) for place, group in enumerate(effect.groups)]
    return Chart(
        f"effect of {effect.name}",
        Axis(printable(effect.name), max(0.0, low - 0.02), min(1.0, high + 0.02)),
        Axis("", len(effect.groups) - 0.4, -0.6, ticks=ticks),
        [Spans(at, effect.lower, effect.upper, effect.estimate, "c0", tips=tips)],
        width=330.0,
        height=84.0 + 20.0 * len(effect.groups),
        name="effect",
    )


def parallel_view(story: Story) -> View | None:
    """One line per configuration, from the poorest to the best."""
    axes = columns(story)
    scores = story.scores
    if len(axes) < 2 or scores is None:
        return None
    estimate = np.nan_to_num(scores.estimate, nan=0.0)
    order = np.argsort(estimate, kind="stable")
    # Too many lines hide each other: the best stay, of the others an even choice.
    if len(order) > _MOST_LINES:
        order = np.concatenate(
            (order[: -_MOST_LINES // 2 : max(1, 2 * len(order) // _MOST_LINES)], order[-_MOST_LINES // 2 :])
        )
    marks: list[Mark] = [Rule(float(place), "x") for place in range(len(axes))]
    for rank, config in enumerate(order.tolist()):
        if config != story.leader:
            level = min(_LEVELS - 1, _LEVELS * rank // len(order))
            marks.append(_polyline(story, axes, config, f"s{level}", 1.0))
    marks.append(replace(_polyline(story, axes, story.leader, "c1", 3.0), label="recommended"))
    marks += [Line(np.empty(0), np.empty(0), "s0", "low utility"), Line(np.empty(0), np.empty(0), "s4", "high utility")]
    for place, column in enumerate(axes):
        marks += _tick_labels(place, column)
    chart = Chart(
        "all configurations in parallel coordinates",
        Axis(
            "", -0.35, len(axes) - 0.65, ticks=[(float(place), printable(axis.name)) for place, axis in enumerate(axes)]
        ),
        Axis("", _BELOW - 0.06, 1.06, ticks=[(_BELOW, INACTIVE)]),
        marks,
        height=380.0,
        name="parallel",
    )
    caption = (
        "One line per configuration, coloured by its estimated utility; the recommended one is drawn thick. Where good "
        "lines run together, a value matters. Lines that dip below an axis do not have that parameter."
    )
    names = [axis.name for axis in axes]
    rows = [
        (
            story.names[config],
            float(estimate[config]),
            *(value_text(story.settings[config].get(name)) for name in names),
        )
        for config in scores.ranking().tolist()
    ]
    return View(
        "parallel", "What do the good ones share?", caption, [chart], Table(("configuration", "utility", *names), rows)
    )


def _polyline(story: Story, axes: list[Column], config: int, color: str, width: float) -> Line:
    y: FloatArray = np.array([axis.place[config] for axis in axes])
    settings = "\n".join(
        f"{axis.name} = {value_text(story.settings[config].get(axis.name)) or INACTIVE}" for axis in axes
    )
    estimate = 0.0 if story.scores is None else float(np.nan_to_num(story.scores.estimate[config]))
    tip = f"{printable(story.names[config])}, utility about {estimate:.3f}\n{printable(settings)}"
    x = np.arange(len(axes), dtype=np.float64)
    return Line(x, np.where(np.isnan(y), _BELOW, y), color, width=width, tip=tip)


def _tick_labels(place: int, column: Column) -> list[Mark]:
    few = column.ticks if len(column.ticks) <= 8 else [column.ticks[0], column.ticks[-1]]
    return [Label(place + 0.03, at, printable(label)[:18], "start", "text") for at, label in few]
