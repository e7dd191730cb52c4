"""How long does it take? Runtime distributions of the leading configurations, with their captimes and the utility."""

from collections.abc import Sequence

import numpy as np

from captime.report.charts.chart import Axis, Band, Chart, Line, Mark, Points
from captime.report.numbers.distributions import Distributions, captimes_used, distributions
from captime.report.story import Story
from captime.report.views.view import Table, View, as_numbers
from captime.report.words import printable
from captime.utilities.durations import duration_text

_SHOWN = 6
_TICKS = 60


def runtimes_view(stories: Sequence[Story]) -> View | None:
    """The leading configurations of one campaign, or the recommended ones of several."""
    several = len(stories) > 1
    marks: list[Mark] = []
    drawn: list[tuple[Story, Distributions]] = []
    for story in stories:
        wanted = [story.leader] if several else story.ranking()[:_SHOWN].tolist()
        known = distributions(story, wanted)
        if known is not None:
            drawn.append((story, known))
    if not drawn:
        return None
    first, last = (extreme(each.moments[place] for _, each in drawn) for extreme, place in ((min, 0), (max, -1)))
    for number, (story, known) in enumerate(drawn):
        marks += _curves(story, known, number, several=several)
    story, known = drawn[0]
    if story.utility is not None:
        worth = story.utility(known.moments)
        marks.append(Line(known.moments, worth, "text", f"utility {story.utility}", dashed=True, width=1.3))
    chart = Chart(
        "share of instances answered in time",
        Axis("time (logarithmic)", float(first), float(last), "time"),
        Axis("share answered, worth of an answer", 0.0, 1.0),
        marks,
        height=380.0,
        name="runtimes",
    )
    caption = (
        "Share of instances answered before each moment. Runs were cut at their captimes, so this is the product-limit "
        "estimate (Kaplan and Meier), drawn as far as anybody was watched; failed runs never answer. Shaded: band that "
        f"holds for all {len(story.names):,} configurations and all moments at once, {story.whenever}, with "
        f"probability at least {100 * (1 - known.delta):g} %. Ticks at the foot: captimes at which runs of the leader "
        "were cut."
    )
    return View("runtimes", "How long does it take?", caption, [chart], _table(story, known), numbers=_numbers(drawn))


def _curves(story: Story, known: Distributions, number: int, *, several: bool) -> list[Mark]:
    marks: list[Mark] = []
    for row, config in enumerate(known.config.tolist()):
        color = f"c{(number if several else row) % 7}"
        name = f"{story.label}: {printable(story.names[config])}" if several else printable(story.names[config])
        if row == 0:
            label = "" if several else "certified band of the leader"
            marks.insert(0, Band(known.moments, known.lower[row], known.upper[row], color, label, step=True))
        tip = f"{name}\nlongest captime {duration_text(float(known.longest[row]))}"
        marks.append(Line(known.moments, known.estimate[row], color, name, step=True, tip=tip))
    if story.runs is not None and not several:
        cut = captimes_used(story.runs.of(story.leader))
        cut = cut[(cut >= known.moments[0]) & (cut <= known.moments[-1])]
        shown = cut[:: max(1, -(-len(cut) // _TICKS))]
        marks.append(Points(shown, np.full(len(shown), 0.012), "c0", "", "up", 2.6))
    return marks


def _table(story: Story, known: Distributions) -> Table:
    places = np.unique(np.linspace(0, len(known.moments) - 1, 40).astype(int)).tolist()
    rows = []
    for row, config in enumerate(known.config.tolist()):
        for place in places:
            estimate = float(known.estimate[row, place])
            ends = (float(known.lower[row, place]), float(known.upper[row, place]))
            shown = None if np.isnan(estimate) else estimate
            rows.append((story.names[config], float(known.moments[place]), shown, *ends))
    return Table(("configuration", "seconds", "share_answered", "lower", "upper"), rows)


def _numbers(drawn: Sequence[tuple[Story, Distributions]]) -> dict[str, object]:
    return {"campaigns": [{"name": story.label, "distributions": as_numbers(known)} for story, known in drawn]}
