"""How long does it take? Runtime distributions of the leading configurations, with their captimes and the utility.

P(T < s) is the share of instances answered before s; a run that fails never answers. Runs are cut at captimes, so plain
shares would be wrong. Two answers to that:

* the estimate is the product limit (Kaplan and Meier): among runs still unanswered and not yet cut at s, the share that
  answers there. A failed run stays unanswered until the captime it was given;
* the band is certified. Whatever a cut run would have done, the share answered lies between "never" and "at once";
  around the whole sample, partly unseen, lies the band of Dvoretzky, Kiefer and Wolfowitz, time-uniform. Where chance
  drew captimes before the runs, the runs whose captime was at least κ are a sample as fair as all of them, and fewer of
  them are cut before κ; so the band is made for several κ, each paid for, and the best one counts at every s.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from captime.arrays import FloatArray, IntArray
from captime.bounds.dkw import uniform_dkw_radius
from captime.report.charts.chart import Axis, Band, Chart, FigureTable, Line, Mark, Points, View, as_numbers
from captime.report.known_runs import ANSWERED, CUT, FAILED, KnownRuns
from captime.report.ledger_data import LedgerData
from captime.report.words import printable
from captime.utilities.formula import duration_text

POINTS = 384
"""How many moments of the time axis are looked at."""
# Captimes κ for which the band is made, each twice as long as the one before; and one for all runs.
_CUTS = 10


@dataclass(frozen=True, slots=True)
class Distributions:
    """P(T < s) for many moments s, by configuration.

    Attributes:
        config: Whose, one per row.
        moments: s, increasing, in seconds.
        estimate: Product limit, by row and moment; not a number where nothing is known any more.
        lower: Certified lower end.
        upper: Certified upper end.
        delta: The band holds for all configurations, moments and sample sizes at once with probability 1 - delta.
        longest: The longest captime that a run of each configuration was given.
    """

    config: IntArray
    moments: FloatArray
    estimate: FloatArray
    lower: FloatArray
    upper: FloatArray
    delta: float
    longest: FloatArray


def distributions(
    story: LedgerData, config: Sequence[int] | None = None, extra: Sequence[float] = ()
) -> Distributions | None:
    """Distributions of these configurations, or of all; None without runs.

    Args:
        story: The campaign.
        config: Which ones. The band pays for all there are, shown or not.
        extra: Further moments that have to be among those looked at.
    """
    runs = story.runs
    if runs is None or not len(runs):
        return None
    chosen = np.arange(len(story.names)) if config is None else np.asarray(config, dtype=np.int64)
    moments = np.unique(np.concatenate((_moments(runs), np.asarray(extra, dtype=np.float64))))
    cuts = _cuts(runs) if story.lottery is not None else np.zeros(1)
    level = math.log(len(story.names) * len(cuts) / story.delta)
    shape = (len(chosen), len(moments))
    estimate, lower, upper = np.full(shape, np.nan), np.zeros(shape), np.ones(shape)
    longest = np.zeros(len(chosen))
    for row, each in enumerate(chosen.tolist()):
        own = runs.of(each)
        if len(own):
            estimate[row] = product_limit(own, moments)
            lower[row], upper[row] = band(own, moments, cuts, level)
            longest[row] = own.captime.max()
    return Distributions(chosen, moments, estimate, lower, upper, story.delta, longest)


def _moments(runs: KnownRuns) -> FloatArray:
    """Moments evenly on the logarithmic axis, from the first answer to the last captime."""
    answered = runs.seconds[(runs.kind == ANSWERED) & (runs.seconds > 0.0)]
    ends = runs.captime[np.isfinite(runs.captime)]
    last = max(float(ends.max(initial=0.0)), float(answered.max(initial=0.0)) * 1.01, 1e-6)
    first = min(float(answered.min(initial=last / 10.0)) / 1.5, last / 2.0)
    return np.geomspace(first, last, POINTS)


def _cuts(runs: KnownRuns) -> FloatArray:
    """κ = 0 for all runs, and some that are fixed by the clock alone: powers of two seconds below the longest."""
    longest = float(runs.captime[np.isfinite(runs.captime)].max(initial=1.0))
    top = math.floor(math.log2(max(longest, 1e-9)))
    return np.concatenate(([0.0], np.exp2(np.arange(top, top - _CUTS, -1))))


def product_limit(runs: KnownRuns, moments: FloatArray) -> FloatArray:
    """Kaplan and Meier's estimate of P(T < s); not a number where no run is watched any more and some are missing."""
    answered = runs.kind == ANSWERED
    # A failed run is known not to answer; had it been an unfinished one, it would have been watched until its captime.
    until = np.where(runs.kind == FAILED, runs.captime, runs.seconds)
    order = np.argsort(until, kind="stable")
    ends, events = until[order], answered[order]
    times, first = np.unique(ends[events], return_index=True)
    answers = np.diff(np.append(first, np.count_nonzero(events)))
    watched = len(ends) - np.searchsorted(ends, times, side="left")
    left: FloatArray = 1.0 - answers / watched.astype(np.float64)
    survival: FloatArray = np.concatenate((np.ones(1), np.cumprod(left)))
    # Strictly before s: an answer at s itself is not one.
    known: FloatArray = 1.0 - survival[np.searchsorted(times, moments, side="left")]
    all_ended = survival[-1] <= 0.0
    return known if all_ended else np.where(moments <= ends[-1], known, np.nan)


def band(runs: KnownRuns, moments: FloatArray, cuts: FloatArray, log_inverse: float) -> tuple[FloatArray, FloatArray]:
    """Certified ends of P(T < s).

    Args:
        runs: Of one configuration.
        moments: s.
        cuts: κ; 0 stands for all runs. Others only where chance drew the captimes.
        log_inverse: ln(1 / failure probability) of one band.
    """
    lower, upper = np.zeros(len(moments)), np.ones(len(moments))
    for cut in cuts.tolist():
        fair = runs.where(np.flatnonzero(runs.captime >= cut))
        n = len(fair)
        if n == 0:
            continue
        radius = float(uniform_dkw_radius(np.array([n]), log_inverse)[0])
        if radius >= 1.0:
            continue
        answers = np.sort(fair.seconds[fair.kind == ANSWERED])
        # A run that was capped, stopped or is under way may have answered right after it was last seen.
        unknown = np.sort(fair.seconds[(fair.kind != ANSWERED) & (fair.kind != FAILED)])
        before = np.searchsorted(answers, moments, side="left") / n
        perhaps = before + np.searchsorted(unknown, moments, side="left") / n
        lower = np.maximum(lower, before - radius)
        upper = np.minimum(upper, perhaps + radius)
    # A distribution function never falls: what is certain at one moment is so at all later ones.
    return np.maximum.accumulate(lower), np.minimum.accumulate(upper[::-1])[::-1]


def captimes_used(runs: KnownRuns) -> FloatArray:
    """Captimes of runs that were cut at them, for marks on the time axis."""
    return np.unique(runs.captime[(runs.kind == CUT) & np.isfinite(runs.captime)])


_SHOWN = 6
_TICKS = 60


def runtimes_view(stories: Sequence[LedgerData]) -> View | None:
    """The leading configurations of one campaign, or the recommended ones of several."""
    several = len(stories) > 1
    marks: list[Mark] = []
    drawn: list[tuple[LedgerData, Distributions]] = []
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
    shaded = (
        f"Shaded: band that holds for all {len(story.names):,} configurations and all moments at once, "
        f"{story.whenever}, with probability at least {100 * (1 - known.delta):g} %."
        if any(_says_something(each, 0) for _, each in drawn)
        else "No certified band is drawn: with these few runs it would cover everything."
    )
    caption = (
        "Share of instances answered before each moment. Runs were cut at their captimes, so this is the product-limit "
        "estimate (Kaplan and Meier), drawn as far as runs were watched; failed runs never answer. "
        f"{shaded} Ticks at the foot: captimes at which runs of the leader were cut."
    )
    return View("runtimes", "How long does it take?", caption, [chart], _table(story, known), numbers=_numbers(drawn))


def _says_something(known: Distributions, row: int) -> bool:
    """Return whether a band excludes anything at any moment."""
    return bool((known.lower[row] > 0.0).any() or (known.upper[row] < 1.0).any())


def _curves(story: LedgerData, known: Distributions, number: int, *, several: bool) -> list[Mark]:
    marks: list[Mark] = []
    for row, config in enumerate(known.config.tolist()):
        color = f"c{(number if several else row) % 7}"
        name = f"{story.label}: {printable(story.names[config])}" if several else printable(story.names[config])
        if row == 0 and _says_something(known, row):
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


def _table(story: LedgerData, known: Distributions) -> FigureTable:
    places = np.unique(np.linspace(0, len(known.moments) - 1, 40).astype(int)).tolist()
    rows = []
    for row, config in enumerate(known.config.tolist()):
        for place in places:
            estimate = float(known.estimate[row, place])
            ends = (float(known.lower[row, place]), float(known.upper[row, place]))
            shown = None if np.isnan(estimate) else estimate
            rows.append((story.names[config], float(known.moments[place]), shown, *ends))
    return FigureTable(("configuration", "seconds", "share_answered", "lower", "upper"), rows)


def _numbers(drawn: Sequence[tuple[LedgerData, Distributions]]) -> dict[str, object]:
    return {"campaigns": [{"name": story.label, "distributions": as_numbers(known)} for story, known in drawn]}
