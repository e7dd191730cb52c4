"""Where did the time go? CPU time of every configuration against its utility, and captimes over the campaign."""

from dataclasses import dataclass

import numpy as np

from captime.arrays import FloatArray, IntArray
from captime.report.charts.chart import Axis, Chart, FigureTable, Line, Mark, Points, Spans, View, as_numbers
from captime.report.known_runs import ANSWERED, CUT, FAILED, KINDS, KnownRuns, sums
from captime.report.ledger_data import LedgerData
from captime.report.words import cpu_time, printable, time_word
from captime.utilities.formula import duration_text

_STRETCHES = 60


@dataclass(frozen=True, slots=True)
class Spending:
    """Per configuration.

    Attributes:
        seconds: CPU seconds of all attempts.
        runs: Runs, each counted once however often it was tried.
        attempts: Executions.
        kinds: Runs of each kind, by configuration and `KINDS`.
    """

    seconds: FloatArray
    runs: IntArray
    attempts: IntArray
    kinds: IntArray


def spending(story: LedgerData) -> Spending | None:
    """What every configuration cost; None without runs."""
    runs, n = story.runs, len(story.names)
    if runs is None:
        return None
    kinds = np.bincount(runs.config * len(KINDS) + runs.kind, minlength=n * len(KINDS)).reshape(n, len(KINDS))
    return Spending(
        seconds=sums(runs.config, runs.cost, n),
        runs=np.bincount(runs.config, minlength=n),
        attempts=sums(runs.config, runs.attempts.astype(np.float64), n).astype(np.int64),
        kinds=kinds,
    )


@dataclass(frozen=True, slots=True)
class Captimes:
    """How long runs were allowed to take, in stretches of the campaign's CPU time.

    Attributes:
        seconds: CPU seconds of the campaign at the end of each stretch.
        median: Of the captimes of runs that came back in it.
        longest: Of them.
        steps: (CPU seconds, configuration, captime) where captimes of a configuration rose, if they rise at all.
    """

    seconds: FloatArray
    median: FloatArray
    longest: FloatArray
    steps: tuple[tuple[float, int, float], ...]


def captimes(story: LedgerData) -> Captimes | None:
    """Captimes over the campaign; None if the story says nothing about them."""
    runs = story.runs
    if runs is None or not len(runs):
        empty = np.empty(0)
        return Captimes(empty, empty, empty, tuple(story.progress.raised)) if story.progress.raised else None
    finite = np.isfinite(runs.captime)
    spent, captime = runs.spent[finite], runs.captime[finite]
    if len(spent) == 0:
        return None
    edges = np.linspace(0.0, float(spent.max()), _STRETCHES + 1)
    stretch = np.clip(np.searchsorted(edges, spent, side="left") - 1, 0, _STRETCHES - 1)
    order = np.lexsort((captime, stretch))
    ordered, values = stretch[order], captime[order]
    present, first, counts = np.unique(ordered, return_index=True, return_counts=True)
    return Captimes(
        seconds=edges[1:][present],
        median=values[first + (counts - 1) // 2],
        longest=np.maximum.reduceat(values, first),
        steps=_steps(runs, len(story.names)) if story.lottery is None else (),
    )


def _steps(runs: KnownRuns, n_configs: int) -> tuple[tuple[float, int, float], ...]:
    """Where the longest captime of a configuration rose; for plans that raise captimes."""
    found: list[tuple[float, int, float]] = []
    for config in range(n_configs):
        own = runs.of(config)
        order = np.argsort(own.spent, kind="stable")
        highest = np.maximum.accumulate(own.captime[order])
        risen = np.flatnonzero(np.diff(highest, prepend=-1.0) > 0.0)
        found += [
            (float(own.spent[order][place]), config, float(highest[place]))
            for place in risen.tolist()
            if np.isfinite(highest[place])
        ]
    return tuple(sorted(found))


_LADDERS = 7

# Purposes of CPU time as the procedures name them, and what a page calls them.
_PURPOSES = {
    "warm_start": "finding a leader",
    "pilot": "finding a leader",
    "leader": "the leader",
    "challengers": "the challengers",
    "own_bound": "challengers cleared by their own bound",
    "duel": "challengers cleared by a duel with the leader",
    "after_clearance": "challengers, after they were cleared",
    "not_cleared": "challengers that are not cleared",
}


def spending_view(story: LedgerData) -> View | None:
    """Show one mark per configuration, and one bar per purpose where the purposes are on record."""
    paid, scores, book = spending(story), story.scores, _by_purpose(story)
    if paid is None or scores is None or not paid.seconds.any():
        if book is None:
            return None
        names = FigureTable(("purpose", "cpu_seconds"), list(story.spending.items()))
        return View(
            "spending", "Where did the time go?", _largest(story), [book], names, numbers={"by_purpose": story.spending}
        )
    charts = [_by_utility(story, paid, np.nan_to_num(scores.estimate, nan=0.0))]
    if book is not None:
        charts.append(book)
    whole = float(paid.seconds.sum())
    share = float(paid.seconds[story.leader]) / whole
    caption = (
        f"{cpu_time(whole, story.clock)} in {int(paid.attempts.sum()):,} executions, {share:.0%} of it on the "
        "recommended configuration. Larger marks: more runs. Time well spent is on the right: a configuration "
        "that is clearly worse should be cheap to rule out."
    )
    caption = " ".join(part for part in (caption, _largest(story)) if part)
    rows = [
        (
            story.names[each],
            float(paid.seconds[each]),
            int(paid.runs[each]),
            int(paid.attempts[each]),
            *(int(paid.kinds[each, kind]) for kind in (ANSWERED, CUT, FAILED)),
        )
        for each in np.argsort(-paid.seconds, kind="stable").tolist()
    ]
    table = FigureTable(("configuration", "cpu_seconds", "runs", "executions", "answered", "cut", "failed"), rows)
    numbers: dict[str, object] = {"spending": as_numbers(paid), "by_purpose": dict(story.spending) or None}
    return View("spending", "Where did the time go?", caption, charts, table, numbers=numbers)


def _largest(story: LedgerData) -> str:
    """Say for which purpose most of the CPU time was spent; "" if that is not on record."""
    whole = sum(story.spending.values())
    if whole <= 0.0:
        return ""
    name, seconds = max(story.spending.items(), key=lambda each: each[1])
    return f"The largest part by purpose, {seconds / whole:.0%}, went to {_PURPOSES.get(name, name)}."


def _by_purpose(story: LedgerData) -> Chart | None:
    """Draw CPU time by purpose, in the order of a campaign; None if it is not on record."""
    order = [*_PURPOSES, *sorted(story.spending.keys() - _PURPOSES.keys())]
    spent = [(name, story.spending.get(name, 0.0)) for name in order]
    parts = [(_PURPOSES.get(name, name), seconds) for name, seconds in spent if seconds > 0.0]
    if not parts:
        return None
    seconds = np.array([each for _, each in parts])
    whole = float(seconds.sum())
    tips = [f"{label}\n{cpu_time(each, story.clock)}, {each / whole:.0%}" for label, each in parts]
    missing = np.full(len(parts), np.nan)
    bars = Spans(
        np.arange(float(len(parts))), np.zeros(len(parts)), seconds / whole, missing, "c0", "", True, 9.0, tips
    )
    return Chart(
        f"{time_word(story.clock)} by purpose",
        Axis(f"share of {time_word(story.clock)}", 0.0, 1.0),
        # The first purpose on top.
        Axis("", len(parts) - 0.4, -0.6, ticks=[(float(place), label) for place, (label, _) in enumerate(parts)]),
        [bars],
        height=84.0 + 26.0 * len(parts),
        name="purposes",
    )


def _by_utility(story: LedgerData, paid: Spending, utility: FloatArray) -> Chart:
    ran = np.flatnonzero(paid.seconds > 0.0)
    size = 3.0 + 7.0 * np.sqrt(paid.runs / max(1, int(paid.runs.max())))
    others = [config for config in ran.tolist() if config != story.leader]
    groups = (
        ("out of the race", "faint", [config for config in others if config not in story.in_race]),
        ("in the race", "c0", [config for config in others if config in story.in_race]),
        ("recommended", "c1", [story.leader] if paid.seconds[story.leader] > 0.0 else []),
    )
    marks: list[Mark] = []
    for label, color, who in groups:
        # Marks of about the same size are drawn together.
        for number, step in enumerate(sorted({round(float(size[each])) for each in who})):
            same = [each for each in who if round(float(size[each])) == step]
            tips = [
                f"{printable(story.names[each])}\n{cpu_time(float(paid.seconds[each]), story.clock)}, "
                f"{int(paid.runs[each]):,} runs, utility about {utility[each]:.3f}"
                for each in same
            ]
            shown = "" if number else label
            marks.append(Points(utility[same], paid.seconds[same], color, shown, "circle", float(step), tips))
    least, most = float(utility[ran].min()), float(utility[ran].max())
    low, high = float(paid.seconds[ran].min()), float(paid.seconds[ran].max())
    return Chart(
        f"{time_word(story.clock)} per configuration",
        Axis("estimated utility", max(0.0, least - 0.05), min(1.0, most + 0.05)),
        Axis(f"{time_word(story.clock)} (logarithmic)", low / 1.5, max(high * 1.5, low * 4.0), "time"),
        marks,
        name="spending",
    )


def captimes_view(story: LedgerData) -> View | None:
    """Captimes over the campaign."""
    known = captimes(story)
    if known is None:
        return None
    marks = _by_configuration(story, known) if known.steps else _by_stretch(known)
    heights = [value for mark in marks if isinstance(mark, Line) for value in mark.y.tolist()]
    ends = [value for mark in marks if isinstance(mark, Line) for value in mark.x.tolist()]
    chart = Chart(
        "captimes over the campaign",
        Axis(f"{time_word(story.clock)} spent", 0.0, max(ends), ticks=_clock_ticks(max(ends))),
        Axis("captime (logarithmic)", min(heights) / 1.5, max(heights) * 1.5, "time"),
        marks,
        height=280.0,
        name="captimes",
    )
    how = (
        "Captimes rise step by step, for those who need it: one staircase per configuration."
        if known.steps
        else "Chance drew captimes from the utility itself, before the runs: median and longest of each stretch."
    )
    table = FigureTable(
        ("cpu_seconds", "configuration", "captime"),
        [(seconds, story.names[config], captime) for seconds, config, captime in known.steps],
    )
    if not known.steps:
        columns = (known.seconds.tolist(), known.median.tolist(), known.longest.tolist())
        table = FigureTable(("cpu_seconds", "median_captime", "longest_captime"), list(zip(*columns, strict=True)))
    caption = f"How long runs were allowed to take. {how}"
    return View(
        "captimes", "How long may a run take?", caption, [chart], table, numbers={"captimes": as_numbers(known)}
    )


def _by_configuration(story: LedgerData, known: Captimes) -> list[Mark]:
    end = max([seconds for seconds, _, _ in known.steps] + story.progress.seconds.tolist())
    marks: list[Mark] = []
    ranking = story.ranking().tolist()
    stepped = {config for _, config, _ in known.steps}
    order = [config for config in ranking if config in stepped] or sorted(stepped)
    for place, config in reversed(list(enumerate(order))):
        own = [(seconds, captime) for seconds, who, captime in known.steps if who == config]
        x = np.array([seconds for seconds, _ in own] + [end])
        y = np.array([captime for _, captime in own] + [own[-1][1]])
        leading = place < _LADDERS
        name = printable(story.names[config])
        color = f"c{place}" if leading else "faint"
        marks.append(
            Line(x, y, color, name if leading else "others", step=True, width=1.6 if leading else 0.7, tip=name)
        )
    return marks


def _by_stretch(known: Captimes) -> list[Mark]:
    return [
        Line(known.seconds, known.longest, "c1", "longest", step=True),
        Line(known.seconds, known.median, "c0", "median", step=True),
    ]


def _clock_ticks(last: float) -> list[tuple[float, str]]:
    """Five round moments of a linear time axis."""
    unit = next((size for size in (86400.0, 3600.0, 60.0, 1.0, 1e-3) if last >= 2.0 * size), 1e-6)
    rough = last / unit / 5.0
    power = 10.0 ** np.floor(np.log10(rough))
    step = next(float(size * power) for size in (1.0, 2.0, 5.0, 10.0) if size * power >= rough) * unit
    return [(number * step, duration_text(number * step)) for number in range(int(last / step) + 1)]
