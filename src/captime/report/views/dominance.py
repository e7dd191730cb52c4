"""Does it depend on the utility at all? The largest loss over every utility there is, pair by pair."""

import numpy as np

from captime.arrays import BoolArray, FloatArray
from captime.report.charts.chart import Axis, Chart, Spans
from captime.report.story import Story
from captime.report.views.view import FigureTable, View, as_numbers
from captime.report.views.whatif import Dominance, dominance, what_if
from captime.report.words import printable, rounded_up

_COMPARED = 12


def dominance_view(story: Story) -> View | None:
    """Losses over all utilities there are, pair by pair; None if too little is known of the recommended one.

    A figure about the next configuration would look as if it were about the recommended one.
    """
    answers = what_if(story)
    if answers is None or len(story.names) < 2:
        return None
    known = answers.distributions
    ranked = [config for config in story.ranking().tolist() if not np.isnan(known.estimate[config]).all()]
    if story.leader not in ranked:
        return None
    found = dominance(known, ranked[:_COMPARED])
    if len(found.config) < 2:
        return None
    names = [story.names[config] for config in found.config.tolist()]
    beaten = found.dominates()
    rows = [
        (
            names[row],
            names[column],
            float(found.loss[row, column]),
            float(found.certified[row, column]),
            "yes" if beaten[row, column] else "no",
        )
        for row in range(len(names))
        for column in range(len(names))
        if row != column
    ]
    columns = ("instead_of_second", "second", "largest_loss", "certified_largest_loss", "dominates_by_estimate")
    return View(
        "dominance",
        "Does it depend on the utility at all?",
        _dominance_caption(story, found, beaten[0]),
        [_dominance_chart(story, found)],
        FigureTable((columns[0].replace("_of_second", ""), *columns[1:]), rows),
        numbers={"dominance": as_numbers(found)},
    )


def _dominance_caption(story: Story, found: Dominance, beaten: BoolArray) -> str:
    leader = printable(story.names[int(found.config[0])])
    count = int(beaten[1:].sum())
    worst = float(found.certified[0, 1:].max())
    return (
        f"The largest loss, over every utility there is, from taking {leader} instead of another: the most by which "
        "the other one's runtime distribution is ever ahead. 0 means that it is at least as good for every user "
        f"(first-order dominance): by estimate that is so against {count} of {len(found.config) - 1} shown. "
        f"Certified for all utilities at once, with probability at least {100 * (1 - story.delta):g} %: whatever the "
        f"utility, taking {leader} loses at most {rounded_up(worst, 3)} against any of them."
    )


def _dominance_chart(story: Story, found: Dominance) -> Chart:
    rivals = np.arange(1, len(found.config))
    at: FloatArray = np.arange(len(rivals), dtype=np.float64)
    certain, estimate = found.certified[0, rivals], found.loss[0, rivals]
    tips = [
        f"{printable(story.names[int(found.config[rival])])}\n"
        f"largest loss about {found.loss[0, rival]:.3f}, for certain at most {_up(found, rival)}"
        for rival in rivals.tolist()
    ]
    ticks = [(float(place), printable(story.names[int(found.config[place + 1])])) for place in range(len(rivals))]
    return Chart(
        "largest loss over all utilities",
        Axis("estimated (dot) and certified (end of the line)", 0.0, 1.0),
        Axis("", len(rivals) - 0.4, -0.6, ticks=ticks),
        [Spans(at, np.zeros(len(rivals)), certain, estimate, "c0", tips=tips)],
        height=84.0 + 20.0 * len(rivals),
        name="dominance",
    )


def _up(found: Dominance, rival: int) -> str:
    return rounded_up(float(found.certified[0, rival]), 3)
