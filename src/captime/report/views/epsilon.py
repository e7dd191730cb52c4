"""How sure, when? Certified epsilon against CPU time, for one or several campaigns."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from captime.arrays import FloatArray, IntArray
from captime.report.charts.chart import Axis, Chart, Line, Mark, Points, Rule
from captime.report.story import ProgressCurve, Story
from captime.report.views.view import FigureTable, View, as_numbers
from captime.report.words import printable, time_word
from captime.utilities.durations import duration_text

_MOST = 500


def certified(story: Story) -> ProgressCurve:
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


def epsilon_view(stories: Sequence[Story]) -> View | None:
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


def _staircase(story: Story, steps: ProgressCurve, color: str, *, several: bool) -> list[Mark]:
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


def _some(story: Story, who: tuple[int, ...]) -> str:
    named = ", ".join(printable(story.names[config]) for config in who[:4])
    return named + (f" and {len(who) - 4} more" if len(who) > 4 else "")
