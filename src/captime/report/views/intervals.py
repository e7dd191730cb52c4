"""How sure? The interval of every configuration, and certified epsilon against CPU time."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from captime.arrays import FloatArray, IntArray
from captime.report.charts.chart import (
    Axis,
    Chart,
    Color,
    FigureTable,
    Line,
    Mark,
    Points,
    Rule,
    Spans,
    View,
    as_numbers,
)
from captime.report.known_runs import ScoreIntervals
from captime.report.ledger_data import LedgerData, ProgressCurve
from captime.report.views.spending import spending
from captime.report.words import printable, rounded_down, rounded_up, time_word
from captime.utilities.formula import duration_text

# Which is best? The interval of every configuration's expected utility, sorted; hundreds stay readable.

_NAMED = 45
"""Up to this many configurations each have a line of their own with the name beside it."""


def intervals_view(story: LedgerData) -> View | None:
    """All configurations, by what is certain of them."""
    scores = story.scores
    if scores is None:
        return None
    order = scores.ranking()
    chart = _lying(story, scores, order) if len(order) <= _NAMED else _standing(story, scores, order)
    caption = (
        f"Expected utility under {story.utility}: all {len(order):,} intervals hold at once, {story.whenever}, with "
        f"probability at least {100 * (1 - scores.delta):g} % (mixture betting on the runs, a statement beside the "
        "certificate, which compares runs in pairs and can be sharper). Dot: mean of what the runs "
        "scored; after few runs it is mostly chance, so the order is that of the lower ends."
    )
    return View("intervals", "Which is best?", caption, [chart], _table(story, scores, order))


def _table(story: LedgerData, scores: ScoreIntervals, order: IntArray) -> FigureTable:
    paid = spending(story)
    rows = []
    for rank, config in enumerate(order.tolist(), start=1):
        estimate = float(scores.estimate[config])
        rows.append(
            (
                rank,
                story.names[config],
                None if np.isnan(estimate) else estimate,
                float(scores.lower[config]),
                float(scores.upper[config]),
                int(scores.n[config]),
                0.0 if paid is None else float(paid.seconds[config]),
                _standing_word(story, config),
            )
        )
    columns = ("rank", "configuration", "utility", "lower", "upper", "runs", "cpu_seconds", "standing")
    return FigureTable(columns, rows)


def _standing_word(story: LedgerData, config: int) -> str:
    if config == story.leader:
        return "recommended"
    return "in the race" if config in story.in_race else "out"


def _tip(story: LedgerData, scores: ScoreIntervals, config: int) -> str:
    interval = f"[{rounded_down(scores.lower[config], 3)}, {rounded_up(scores.upper[config], 3)}]"
    estimate = "no runs" if scores.n[config] == 0 else f"mean {scores.estimate[config]:.3f}"
    word = _standing_word(story, config)
    return (
        f"{printable(story.names[config])} ({word})\nutility in {interval}, {estimate}, {int(scores.n[config]):,} runs"
    )


def _groups(story: LedgerData, order: IntArray) -> list[tuple[str, Color, float, list[int]]]:
    """Label, colour, width and places of those out of the race, in it, and the recommended one."""
    kinds: dict[str, list[int]] = {"out": [], "in the race": [], "recommended": []}
    for place, config in enumerate(order.tolist()):
        kinds[_standing_word(story, config)].append(place)
    looks = {"out": ("faint", 1.6), "in the race": ("c0", 2.2), "recommended": ("c1", 3.0)}
    labels = {"out": "out of the race"}
    return [(labels.get(kind, kind), *looks[kind], places) for kind, places in kinds.items() if places]


def _lying(story: LedgerData, scores: ScoreIntervals, order: IntArray) -> Chart:
    ticks = [(float(place), printable(story.names[config])) for place, config in enumerate(order.tolist())]
    return Chart(
        "expected utility of every configuration",
        _utilities(scores),
        # Row 0 on top.
        Axis("", float(len(order)) - 0.4, -0.6, ticks=[(at, label) for at, label in ticks]),
        _spans(story, scores, order, across=True),
        height=84.0 + 17.0 * len(order),
        name="intervals",
    )


def _standing(story: LedgerData, scores: ScoreIntervals, order: IntArray) -> Chart:
    return Chart(
        "expected utility of every configuration",
        Axis("rank by lower end", -1.0, float(len(order))),
        _utilities(scores),
        _spans(story, scores, order, across=False),
        height=380.0,
        name="intervals",
    )


def _utilities(scores: ScoreIntervals) -> Axis:
    return Axis(
        "expected utility", max(0.0, float(scores.lower.min()) - 0.03), min(1.0, float(scores.upper.max()) + 0.03)
    )


def _spans(story: LedgerData, scores: ScoreIntervals, order: IntArray, *, across: bool) -> list[Mark]:
    thin = min(1.0, 260.0 / len(order)) if not across else 1.0
    marks: list[Mark] = []
    for label, color, width, places in _groups(story, order):
        chosen = order[places]
        marks.append(
            Spans(
                np.array(places, dtype=np.float64),
                scores.lower[chosen],
                scores.upper[chosen],
                scores.estimate[chosen],
                color,
                label,
                across=across,
                width=max(0.6, width * thin),
                tips=[_tip(story, scores, config) for config in chosen.tolist()],
            )
        )
    marks.append(Rule(float(scores.lower[story.leader]), "x" if across else "y", "", "c1"))
    return marks


# How sure, when? Certified epsilon against CPU time, for one or several campaigns.

_MOST = 500


def certified(story: LedgerData) -> ProgressCurve:
    """The staircase of a campaign: first, last and evenly chosen steps on the logarithmic axis between them."""
    made = story.progress
    keep = thinned(made.seconds, _MOST)
    columns = ("seconds", "epsilon", "gamma", "config", "candidates")
    return replace(made, **{name: getattr(made, name)[keep] for name in columns})


def epsilon_at(steps: ProgressCurve, seconds: FloatArray) -> FloatArray:
    """What was certified at these moments; 1 before the first certificate."""
    place = np.searchsorted(steps.seconds, seconds, side="right") - 1
    found: FloatArray = np.where(place >= 0, steps.epsilon[np.maximum(place, 0)], 1.0)
    return found


def thinned(seconds: FloatArray, most: int) -> IntArray:
    """Return places of at most this many values, spread evenly over the logarithm; all of them if they are few."""
    if len(seconds) <= most:
        return np.arange(len(seconds))
    first = max(float(seconds[0]), float(seconds[-1]) * 1e-6, 1e-9)
    wanted = np.geomspace(first, max(float(seconds[-1]), first), most - 2)
    places = np.searchsorted(seconds, wanted, side="right") - 1
    return np.unique(np.concatenate(([0], np.maximum(places, 0), [len(seconds) - 1])))


_CAPTION = (
    "Every point of the staircase is a certificate that was valid at that moment: with probability at least 1 - delta "
    "none of them was ever wrong. Where it rises, another configuration took the lead, of which less is known yet, or "
    "one was added; what was certified before stays true. Small marks: configurations that left the race then."
)
_GAMMA = (
    " Gamma is the best fraction of the space that is left out; at 0 the certificate is about every configuration, "
    "in this space or any other, and rests on the leader's own bound alone."
)
_MOST_MARKS = 150


def epsilon_view(stories: Sequence[LedgerData]) -> View | None:
    """The staircase of each campaign."""
    told = [(story, certified(story)) for story in stories]
    told = [(story, steps) for story, steps in told if len(steps.seconds)]
    if not told:
        return None
    marks: list[Mark] = []
    goals = {story.goal for story, _ in told if story.goal > 0.0}
    marks += [Rule(goal, "y", f"asked for: {goal:g}") for goal in sorted(goals)]
    for place, (story, steps) in enumerate(told):
        marks += _staircase(story, steps, f"c{place % 7}", several=len(told) > 1)
    first = min(_start(steps) for _, steps in told)
    last = max(float(steps.seconds[-1]) for _, steps in told)
    clocks = {time_word(story.clock) for story, _ in told}
    spent = clocks.pop() if len(clocks) == 1 else "time"
    chart = Chart(
        f"certified epsilon against {spent}",
        Axis(f"{spent} spent (logarithmic)", first, max(last * 1.05, first * 2.0), "time"),
        Axis("certified epsilon", 0.0, 1.0),
        marks,
        name="epsilon",
    )
    story, steps = told[0]
    table = FigureTable(
        ("cpu_seconds", "epsilon", "gamma", "configuration", "candidates"),
        [
            (seconds, epsilon, None if np.isnan(gamma) else gamma, story.names[config], candidates)
            for seconds, epsilon, gamma, config, candidates in zip(
                steps.seconds.tolist(),
                steps.epsilon.tolist(),
                _gamma(steps).tolist(),
                steps.config.tolist(),
                steps.candidates.tolist(),
                strict=True,
            )
        ],
    )
    numbers = {"campaigns": [{"name": story.label, **_dictionary(steps)} for story, steps in told]}
    on_space = len(told) == 1 and bool(np.isfinite(_gamma(steps)).any())
    caption = _CAPTION + _GAMMA if on_space else _CAPTION
    return View("epsilon", "How sure, when?", caption, [chart], table, numbers=numbers)


def _dictionary(steps: ProgressCurve) -> dict[str, object]:
    found = as_numbers(steps)
    return found if isinstance(found, dict) else {}


def _start(steps: ProgressCurve) -> float:
    """Where the axis begins: before the first certificate that says something, but not at the dawn of time."""
    told = steps.seconds[steps.epsilon < 1.0]
    last = float(steps.seconds[-1])
    return max(float(told[0] if len(told) else last) / 3.0, last * 1e-4, 1e-6)


def _staircase(story: LedgerData, steps: ProgressCurve, color: str, *, several: bool) -> list[Mark]:
    seconds = np.maximum(steps.seconds, _start(steps))
    label = story.label if several else "epsilon"
    tips = [
        f"epsilon {epsilon:.4f} after {duration_text(spent)}\n{printable(story.names[config])} leads, {left:,} left"
        for spent, epsilon, config, left in zip(
            steps.seconds.tolist(),
            steps.epsilon.tolist(),
            steps.config.tolist(),
            steps.candidates.tolist(),
            strict=True,
        )
    ]
    marks: list[Mark] = [Line(seconds, steps.epsilon, color, label, step=True, tips=tips)]
    if np.isfinite(_gamma(steps)).any() and not several:
        marks.append(Line(seconds, _gamma(steps), "c1", "gamma", step=True, dashed=True))
    if steps.out:
        # Many marks are thinned; the table of configurations has every one.
        shown = list(steps.out)[:: -(-len(steps.out) // _MOST_MARKS)]
        at: FloatArray = np.array([max(moment, _start(steps)) for moment, _ in shown])
        words = [f"{_some(story, who)} out after {duration_text(moment)}" for moment, who in shown]
        height = epsilon_at(steps, np.array([moment for moment, _ in shown]))
        marks.append(Points(at, height, color, "" if several else "left the race", "up", 3.2, words))
    return marks


def _gamma(steps: ProgressCurve) -> FloatArray:
    """Not a number where epsilon is 1 too: where nothing is claimed, gamma says nothing."""
    return np.where(steps.epsilon < 1.0, steps.gamma, np.nan)


def _some(story: LedgerData, who: tuple[int, ...]) -> str:
    named = ", ".join(printable(story.names[config]) for config in who[:4])
    return named + (f" and {len(who) - 4} more" if len(who) > 4 else "")
