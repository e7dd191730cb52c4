"""Which is best? The interval of every configuration's expected utility, sorted; hundreds stay readable."""

import numpy as np

from captime.arrays import IntArray
from captime.report.charts.chart import Axis, Chart, Color, Mark, Rule, Spans
from captime.report.known_runs import ScoreIntervals
from captime.report.story import Story
from captime.report.views.spending import spending
from captime.report.views.view import FigureTable, View
from captime.report.words import printable, rounded_down, rounded_up

_NAMED = 45
"""Up to this many configurations each have a line of their own with the name beside it."""


def intervals_view(story: Story) -> View | None:
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


def _table(story: Story, scores: ScoreIntervals, order: IntArray) -> FigureTable:
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


def _standing_word(story: Story, config: int) -> str:
    if config == story.leader:
        return "recommended"
    return "in the race" if config in story.in_race else "out"


def _tip(story: Story, scores: ScoreIntervals, config: int) -> str:
    interval = f"[{rounded_down(scores.lower[config], 3)}, {rounded_up(scores.upper[config], 3)}]"
    estimate = "no runs" if scores.n[config] == 0 else f"mean {scores.estimate[config]:.3f}"
    word = _standing_word(story, config)
    return (
        f"{printable(story.names[config])} ({word})\nutility in {interval}, {estimate}, {int(scores.n[config]):,} runs"
    )


def _groups(story: Story, order: IntArray) -> list[tuple[str, Color, float, list[int]]]:
    """Label, colour, width and places of those out of the race, in it, and the recommended one."""
    kinds: dict[str, list[int]] = {"out": [], "in the race": [], "recommended": []}
    for place, config in enumerate(order.tolist()):
        kinds[_standing_word(story, config)].append(place)
    looks = {"out": ("faint", 1.6), "in the race": ("c0", 2.2), "recommended": ("c1", 3.0)}
    labels = {"out": "out of the race"}
    return [(labels.get(kind, kind), *looks[kind], places) for kind, places in kinds.items() if places]


def _lying(story: Story, scores: ScoreIntervals, order: IntArray) -> Chart:
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


def _standing(story: Story, scores: ScoreIntervals, order: IntArray) -> Chart:
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


def _spans(story: Story, scores: ScoreIntervals, order: IntArray, *, across: bool) -> list[Mark]:
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
