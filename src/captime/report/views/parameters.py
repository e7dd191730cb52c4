"""Which settings matter? The effect of each parameter on the utility, and all configurations at one glance.

All configurations' intervals hold at once, so their averages do too: the mean of the lower ends and the mean of the
upper ends hold the mean utility of the group. A parameter that a configuration does not have is inactive there, and
that is a group of its own.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from captime.arrays import FloatArray, IntArray
from captime.report.charts.chart import Axis, Chart, FigureTable, Label, Line, Mark, Rule, Spans, View, as_numbers
from captime.report.ledger_data import LedgerData
from captime.report.words import printable, rounded_down, rounded_up

_BINS = 6
_MOST_VALUES = 12
_MOST_PARAMETERS = 24
INACTIVE = "inactive"


@dataclass(frozen=True, slots=True)
class Effect:
    """Utility by the value of one parameter.

    Attributes:
        name: Of the parameter.
        numeric: Whether the groups are ranges of numbers.
        groups: What the groups are, in order.
        members: Configurations in each group.
        lower: Mean lower bound of each group.
        upper: Mean upper bound.
        estimate: Mean estimate.
    """

    name: str
    numeric: bool
    groups: Sequence[str]
    members: Sequence[IntArray]
    lower: FloatArray
    upper: FloatArray
    estimate: FloatArray

    def rows(self) -> list[tuple[str, int, float, float, float]]:
        """Group, how many configurations, mean estimate, mean lower bound, mean upper bound; one row per group."""
        ends = (self.estimate.tolist(), self.lower.tolist(), self.upper.tolist())
        return list(zip(self.groups, map(len, self.members), *ends, strict=True))

    @property
    def spread(self) -> float:
        """Largest minus smallest group estimate, inactive left out: how much the parameter seems to matter."""
        active = [value for group, value in zip(self.groups, self.estimate.tolist(), strict=True) if group != INACTIVE]
        known = [value for value in active if not math.isnan(value)]
        return max(known) - min(known) if known else 0.0


@dataclass(frozen=True, slots=True)
class ParameterColumn:
    """One parameter of all configurations, on a common scale from 0 to 1.

    Attributes:
        name: Of the parameter.
        place: Where each configuration stands; not a number where the parameter is inactive.
        ticks: (place, label) beside the axis.
    """

    name: str
    place: FloatArray
    ticks: Sequence[tuple[float, str]]


def parameter_order(story: LedgerData, names: Iterable[str]) -> list[str]:
    """These names in the order of the space; those that it does not have come last, as they are met."""
    order = story.scenario.get("space_order")
    place = {str(name): number for number, name in enumerate(order)} if isinstance(order, list) else {}
    return sorted(dict.fromkeys(names), key=lambda name: place.get(name, len(place)))


def _choices(story: LedgerData, name: str) -> list[str]:
    """The values that a parameter can have, in their own order; none where they are no list, or not on record."""
    space = story.scenario.get("space")
    tables = space.get("parameters", space) if isinstance(space, dict) else {}
    table = tables.get(name) if isinstance(tables, dict) else None
    choices = table.get("choices") if isinstance(table, dict) else None
    return [value_text(choice) for choice in choices] if isinstance(choices, list) else []


def _in_order(met: Iterable[str], choices: Sequence[str]) -> list[str]:
    """What was met, in the order of the choices; the rest behind them, as it was met."""
    place = {choice: number for number, choice in enumerate(choices)}
    return sorted(dict.fromkeys(met), key=lambda text: place.get(text, len(place)))


def parameter_names(story: LedgerData) -> list[str]:
    """Parameters that differ between configurations, in the order of the space."""
    names = parameter_order(story, (name for settings in story.settings for name in settings))
    return [name for name in names if len({value_text(settings.get(name)) for settings in story.settings}) > 1]


def effects(story: LedgerData) -> list[Effect]:
    """The effect of each parameter, the strongest first; empty without settings or scores."""
    scores = story.scores
    if scores is None:
        return []
    found = []
    for name in parameter_names(story)[: 4 * _MOST_PARAMETERS]:
        values = [settings.get(name) for settings in story.settings]
        groups = _groups(values, _choices(story, name))
        if groups is None:
            continue
        labels, members, numeric = groups
        with np.errstate(invalid="ignore"):
            ends = [
                np.array([np.mean(column[who]) for who in members])
                for column in (scores.lower, scores.upper, np.nan_to_num(scores.estimate, nan=0.5))
            ]
        found.append(Effect(name, numeric, labels, members, *ends))
    return sorted(found, key=lambda effect: -effect.spread)[:_MOST_PARAMETERS]


def _groups(values: Sequence[object], choices: Sequence[str]) -> tuple[list[str], list[IntArray], bool] | None:
    """Labels and members of the groups, and whether they are ranges of numbers; None if there are too many values."""
    inactive = np.array([index for index, value in enumerate(values) if value is None], dtype=np.int64)
    active = [index for index, value in enumerate(values) if value is not None]
    numbers = [values[index] for index in active]
    numeric = all(isinstance(value, int | float) and not isinstance(value, bool) for value in numbers)
    distinct = _in_order((value_text(value) for value in numbers), choices)
    if numeric and len(distinct) > _BINS:
        labels, members = _ranges(np.array(numbers, dtype=np.float64), np.array(active))
    elif len(distinct) <= _MOST_VALUES:
        by_key = {key: [index for index in active if value_text(values[index]) == key] for key in distinct}
        order = sorted(by_key, key=lambda key: float(key) if numeric else distinct.index(key))
        labels, members = order, [np.array(by_key[key]) for key in order]
    else:
        return None
    if len(inactive):
        labels, members = [*labels, INACTIVE], [*members, inactive]
    return labels, members, numeric


def _ranges(numbers: FloatArray, active: IntArray) -> tuple[list[str], list[IntArray]]:
    """Ranges with about equally many configurations each."""
    edges = np.unique(np.quantile(numbers, np.linspace(0.0, 1.0, _BINS + 1)))
    place = np.clip(np.searchsorted(edges, numbers, side="right") - 1, 0, len(edges) - 2)
    present = np.unique(place).tolist()
    labels = [f"{_number(float(edges[each]))} to {_number(float(edges[each + 1]))}" for each in present]
    return labels, [active[place == each] for each in present]


def columns(story: LedgerData, most: int = 12) -> list[ParameterColumn]:
    """Parameters as axes of parallel coordinates, the strongest first."""
    strongest = [effect.name for effect in effects(story)]
    found = []
    for name in strongest[:most]:
        values = [settings.get(name) for settings in story.settings]
        known = [value for value in values if value is not None]
        numeric = all(isinstance(value, int | float) and not isinstance(value, bool) for value in known)
        found.append(_scaled(name, values) if numeric else _listed(name, values, _choices(story, name)))
    return found


def _scaled(name: str, values: Sequence[object]) -> ParameterColumn:
    numbers = np.array([math.nan if value is None else float(str(value)) for value in values])
    low, high = float(np.nanmin(numbers)), float(np.nanmax(numbers))
    # Numbers that span orders of magnitude are compared by their logarithms.
    logarithmic = low > 0.0 and high / low >= 100.0
    flat = np.log(numbers) if logarithmic else numbers
    first, last = float(np.nanmin(flat)), float(np.nanmax(flat))
    place = (flat - first) / (last - first) if last > first else np.where(np.isnan(flat), np.nan, 0.5)
    return ParameterColumn(name, place, [(0.0, _number(low)), (1.0, _number(high))])


def _listed(name: str, values: Sequence[object], choices: Sequence[str]) -> ParameterColumn:
    distinct = _in_order((value_text(value) for value in values if value is not None), choices)
    step = 1.0 / max(1, len(distinct) - 1)
    place = np.array([math.nan if value is None else distinct.index(value_text(value)) * step for value in values])
    return ParameterColumn(name, place, [(index * step, label) for index, label in enumerate(distinct)])


def _number(value: float) -> str:
    """Three digits, or whole numbers where they are large."""
    return f"{value:,.0f}" if 1000.0 <= abs(value) < 1e9 else f"{value:.3g}"


def value_text(value: object) -> str:
    """A value in words; nothing for none."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={each}" for name, each in value.items())
    if isinstance(value, list | tuple):
        return " ".join(map(str, value)) or "(none)"
    return str(value)


_MOST_LINES = 400
_LEVELS = 5
# Where a configuration crosses the axis of a parameter that it does not have: below it.
_BELOW = -0.14


def parameters_view(story: LedgerData) -> View | None:
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
    table = FigureTable(("parameter", "value", "configurations", "utility", "lower", "upper"), rows)
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


def parallel_view(story: LedgerData) -> View | None:
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
        "parallel",
        "What do the good ones share?",
        caption,
        [chart],
        FigureTable(("configuration", "utility", *names), rows),
    )


def _polyline(story: LedgerData, axes: list[ParameterColumn], config: int, color: str, width: float) -> Line:
    y: FloatArray = np.array([axis.place[config] for axis in axes])
    settings = "\n".join(
        f"{axis.name} = {value_text(story.settings[config].get(axis.name)) or INACTIVE}" for axis in axes
    )
    estimate = 0.0 if story.scores is None else float(np.nan_to_num(story.scores.estimate[config]))
    tip = f"{printable(story.names[config])}, utility about {estimate:.3f}\n{printable(settings)}"
    x = np.arange(len(axes), dtype=np.float64)
    return Line(x, np.where(np.isnan(y), _BELOW, y), color, width=width, tip=tip)


def _tick_labels(place: int, column: ParameterColumn) -> list[Mark]:
    few = column.ticks if len(column.ticks) <= 8 else [column.ticks[0], column.ticks[-1]]
    return [Label(place + 0.03, at, printable(label)[:18], "start", "text") for at, label in few]
