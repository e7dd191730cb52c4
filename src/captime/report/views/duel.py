"""Is it really better? Two configurations on the same instances, run against run."""

from collections.abc import Sequence

import numpy as np

from captime.arrays import BoolArray
from captime.report.charts.chart import Axis, Chart, Line, Mark, Points, Shape
from captime.report.known_runs import ANSWERED, CUT, FAILED, KINDS
from captime.report.numbers.duel import Duel, duel
from captime.report.story import Story
from captime.report.views.view import Table, View, as_numbers
from captime.report.words import printable, rounded_down, rounded_up
from captime.utilities.durations import duration_text

_RIVALS = 6
_MOST_POINTS = 1500


def rivals(story: Story) -> list[int]:
    """Who is worth comparing with the recommended one: the default, the challenger, and the next best."""
    found = [config for config, origin in enumerate(story.origins) if origin == "default"]
    found += [config for config, name in enumerate(story.names) if name.lower() == "default"]
    held = story.certificate
    if held is not None and held.challenger is not None:
        found.append(held.challenger)
    found += story.ranking().tolist()
    return [config for config in dict.fromkeys(found) if config != story.leader][:_RIVALS]


def duel_view(story: Story, pairs: Sequence[tuple[int, int]] | None = None) -> View | None:
    """The recommended configuration against others, or any pairs."""
    wanted = [(story.leader, rival) for rival in rivals(story)] if pairs is None else list(pairs)
    fought = [each for each in (duel(story, *pair) for pair in wanted) if each is not None and len(each.position)]
    if not fought:
        return None
    charts = [_chart(story, each) for each in fought]
    choices = [f"{printable(story.names[each.first])} against {printable(story.names[each.second])}" for each in fought]
    rows = [
        (story.names[each.first], story.names[each.second], len(each.position), each.estimate, each.lower, each.upper)
        for each in fought
    ]
    caption = (
        "Every mark is an instance that both were run on, with the time each took; below the diagonal the vertical one "
        "was faster. Open marks: cut at the captime, so the true time is longer; crosses: failed. The interval is for "
        "the difference of expected utilities, from scores on the same instances; it holds for all pairs of "
        f"configurations at once, at all times, with probability at least {100 * (1 - story.delta):g} %."
    )
    columns = ("configuration", "against", "common_instances", "difference", "lower", "upper")
    return View(
        "duel", "Is it really better?", caption, charts, Table(columns, rows), choices, {"duels": as_numbers(fought)}
    )


def _chart(story: Story, fought: Duel) -> Chart:
    first, second = (printable(story.names[config]) for config in (fought.first, fought.second))
    positive = np.maximum(fought.seconds, 1e-9)
    low, high = float(positive.min()) / 1.3, float(positive.max()) * 1.3
    marks: list[Mark] = [Line(np.array([low, high]), np.array([low, high]), "faint", "", dashed=True, width=1.0)]
    if fought.lower > 0.0:
        words = "the first is better, for certain"
    elif fought.upper < 0.0:
        words = "the second is better, for certain"
    else:
        words = "not decided"
    # An even choice of many marks shows the same cloud.
    every = max(1, -(-len(fought.position) // _MOST_POINTS))
    for label, color, shape, chosen in _kinds(fought):
        places = np.flatnonzero(chosen)[::every]
        if len(places):
            tips = [_tip(story, fought, place, (first, second)) for place in places.tolist()]
            marks.append(Points(positive[1, places], positive[0, places], color, label, shape, 2.8, tips))
    ends = f"[{rounded_down(fought.lower, 3)}, {rounded_up(fought.upper, 3)}]"
    return Chart(
        f"difference in {ends}, mean {fought.estimate:.3f}: {words}",
        Axis(f"{second}, time", low, high, "time"),
        Axis(f"{first}, time", low, high, "time"),
        marks,
        width=680.0,
        height=560.0,
        name="duel",
    )


def _kinds(fought: Duel) -> list[tuple[str, str, Shape, BoolArray]]:
    kind = fought.kind
    failed = (kind == FAILED).any(axis=0)
    both = (kind == ANSWERED).all(axis=0)
    cut = ~failed & ~both & (kind == CUT).any(axis=0)
    return [
        ("both answered", "c0", "circle", both),
        ("one or both cut", "c4", "ring", cut),
        ("one or both failed", "c1", "cross", failed),
        ("open or stopped early", "faint", "ring", ~failed & ~both & ~cut),
    ]


def _tip(story: Story, fought: Duel, place: int, names: tuple[str, str]) -> str:
    position = int(fought.position[place])
    lines = [printable(story.instances.get(position, f"position {position}"))]
    for side, name in enumerate(names):
        kind = int(fought.kind[side, place])
        lines.append(f"{name}: {duration_text(float(fought.seconds[side, place]))}, {KINDS[kind]}")
    return "\n".join(lines)
