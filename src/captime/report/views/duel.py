"""Is it really better? Two configurations on the same instances, run against run."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from captime.arrays import BoolArray, FloatArray, IntArray
from captime.bounds.mixture import mixture_lower
from captime.report.charts.chart import Axis, Chart, FigureTable, Line, Mark, Points, Shape, Versus, View, as_numbers
from captime.report.known_runs import ANSWERED, CUT, FAILED, KINDS
from captime.report.ledger_data import LedgerData
from captime.report.words import printable, rounded_down, rounded_up
from captime.utilities.formula import duration_text

# Differences are rounded up to this many steps, which keeps the bound valid and makes it fast.
_STEPS = 500


@dataclass(frozen=True, slots=True)
class Duel:
    """One configuration against another, on positions that both ran.

    Attributes:
        first: One of them.
        second: The other.
        position: Where both ran.
        seconds: Times of the first and of the second, rows 0 and 1.
        kind: What became of the runs, likewise.
        lower: Certified lower end of the first's expected utility minus the second's.
        upper: Certified upper end.
        estimate: Mean difference of the scores; not a number without common positions.
        delta: The intervals of all pairs there are hold at all times at once with probability 1 - delta.
    """

    first: int
    second: int
    position: IntArray
    seconds: FloatArray
    kind: IntArray
    lower: float
    upper: float
    estimate: float
    delta: float


def duel(story: LedgerData, first: int, second: int) -> Duel | None:
    """The comparison; None without runs or without a utility.

    Who is compared may depend on the data (the leader does), so the interval pays for all pairs there are.
    """
    runs, scores = story.runs, story.scores
    if runs is None or scores is None:
        return None
    ends = runs.bounds(len(story.names))
    slices = [slice(int(ends[config]), int(ends[config + 1])) for config in (first, second)]
    position, here, there = np.intersect1d(
        runs.position[slices[0]], runs.position[slices[1]], assume_unique=True, return_indices=True
    )
    rows = (here + slices[0].start, there + slices[1].start)
    low = scores.low[rows[0]] - scores.high[rows[1]]
    high = scores.high[rows[0]] - scores.low[rows[1]]
    n = len(story.names)
    log_inverse = math.log(max(2, n * (n - 1)) / story.delta)
    return Duel(
        first=first,
        second=second,
        position=position,
        seconds=np.stack([runs.seconds[row] for row in rows]),
        kind=np.stack([runs.kind[row] for row in rows]),
        lower=-_at_most(-low, log_inverse),
        upper=_at_most(high, log_inverse),
        estimate=float((low + high).mean() / 2.0) if len(position) else math.nan,
        delta=story.delta,
    )


def _at_most(differences: FloatArray, log_inverse: float) -> float:
    """An upper bound on a mean difference D, from a lower bound on the mean of (1 - D) / 2, which lies in [0, 1]."""
    if len(differences) == 0:
        return 1.0
    rounded = np.ceil(differences * _STEPS - 1e-9) / _STEPS
    values, counts = np.unique(np.clip((1.0 - rounded) / 2.0, 0.0, 1.0), return_counts=True)
    return 1.0 - 2.0 * mixture_lower(values, log_inverse, counts=counts)


_RIVALS = 6
_MOST_POINTS = 1500
# How many can be chosen on a page, and how many instances of each pair go into it at most.
_CONTENDERS = 12
_KEPT = 1000
_SHORTEST = 1e-9


def rivals(story: LedgerData) -> list[int]:
    """Who is worth comparing with the recommended one: the default, the challenger, and the next best."""
    found = [config for config, origin in enumerate(story.origins) if origin == "default"]
    found += [config for config, name in enumerate(story.names) if name.lower() == "default"]
    held = story.certificate
    if held is not None and held.challenger is not None:
        found.append(held.challenger)
    found += story.ranking().tolist()
    return [config for config in dict.fromkeys(found) if config != story.leader][:_RIVALS]


def contenders(story: LedgerData, pairs: Sequence[tuple[int, int]]) -> list[int]:
    """Who can be chosen on a page: those who were asked for, and those who were run most often."""
    runs = story.runs
    n = np.zeros(len(story.names)) if runs is None else np.bincount(runs.config, minlength=len(story.names))
    asked = [config for pair in pairs for config in pair]
    often = [config for config in np.argsort(-n, kind="stable").tolist() if n[config] > 0]
    return list(dict.fromkeys([*asked, *often]))[: max(_CONTENDERS, len(set(asked)))]


def duel_view(story: LedgerData, pairs: Sequence[tuple[int, int]] | None = None) -> View | None:
    """The recommended configuration against others, or any pairs; and on a page any two of those that were run most."""
    wanted = [(story.leader, rival) for rival in rivals(story)] if pairs is None else list(pairs)
    fought = [each for each in (duel(story, *pair) for pair in wanted) if each is not None and len(each.position)]
    if not fought:
        return None
    charts = [_chart(story, each, _ends(each.seconds)) for each in fought]
    choices = [f"{printable(story.names[each.first])} against {printable(story.names[each.second])}" for each in fought]
    compared = _all_compared(story, contenders(story, wanted), fought)
    rows = [
        (story.names[each.first], story.names[each.second], len(each.position), each.estimate, each.lower, each.upper)
        for each in compared
    ]
    caption = (
        "Every mark is an instance that both were run on, with the time each took; below the diagonal the vertical one "
        "was faster. Open marks: cut at the captime, so the true time is longer, or stopped early (at "
        "the edge if it took no time); crosses: failed. The interval is for the difference of expected utilities, from "
        "scores on the same instances; it holds for all pairs of "
        f"configurations at once, {story.whenever}, with probability at least {100 * (1 - story.delta):g} %."
    )
    columns = ("configuration", "against", "common_instances", "difference", "lower", "upper")
    return View(
        "duel",
        "Is it really better?",
        caption,
        charts,
        FigureTable(columns, rows),
        choices,
        numbers={"duels": as_numbers(fought)},
        versus=_versus(story, fought[0], compared),
    )


def _all_compared(story: LedgerData, config: Sequence[int], fought: Sequence[Duel]) -> list[Duel]:
    """All pairs of these that have met, those that were asked for first."""
    known = {frozenset((each.first, each.second)): each for each in fought}
    for pair in combinations(config, 2):
        if frozenset(pair) not in known and (made := duel(story, *pair)) is not None and len(made.position):
            known[frozenset(pair)] = made
    return list(known.values())


def _versus(story: LedgerData, first: Duel, compared: Sequence[Duel]) -> Versus:
    config = list(dict.fromkeys(side for each in compared for side in (each.first, each.second)))
    place = {each: number for number, each in enumerate(config)}
    ends = _ends(np.concatenate([each.seconds.ravel() for each in compared]))
    # An even choice from each pair: a pair with few instances in common keeps them.
    position = np.unique(np.concatenate([each.position[:: _every(each, _KEPT)] for each in compared]))
    return Versus(
        chart=_chart(story, first, ends, every_kind=True),
        names=[story.names[each] for each in config],
        first=place[first.first],
        second=place[first.second],
        data={
            "names": [printable(story.names[each]) for each in config],
            "ends": [math.log10(end) for end in ends],
            "instances": [printable(story.instances.get(each, f"position {each}")) for each in position.tolist()],
            "runs": [_runs_at(story, each, position) for each in config],
            "kinds": KINDS,
            "pairs": [
                [place[each.first], place[each.second], *_rounded(each), len(each.position)] for each in compared
            ],
        },
    )


def _runs_at(story: LedgerData, config: int, position: IntArray) -> list[object]:
    """Where in the list of instances, how many seconds, and what became of it; the places as steps, which are short."""
    if story.runs is None:
        return [[], [], ""]
    own = story.runs.of(config)
    _, here, at = np.intersect1d(own.position, position, assume_unique=True, return_indices=True)
    seconds = [float(f"{each:.4g}") for each in own.seconds[here].tolist()]
    return [np.diff(at, prepend=0).tolist(), seconds, "".join(map(str, own.kind[here].tolist()))]


def _rounded(fought: Duel) -> tuple[float, float, float]:
    """The interval, rounded outward, and the mean."""
    return float(rounded_down(fought.lower, 3)), float(rounded_up(fought.upper, 3)), round(fought.estimate, 3)


def _ends(seconds: FloatArray) -> tuple[float, float]:
    """A run that was stopped before it began took no time: that is drawn at the edge, and must not move the edge."""
    positive = seconds[seconds > _SHORTEST] if (seconds > _SHORTEST).any() else np.array([_SHORTEST])
    return float(positive.min()) / 1.3, float(positive.max()) * 1.3


def _every(fought: Duel, most: int) -> int:
    """An even choice of many marks shows the same cloud."""
    return max(1, -(-len(fought.position) // most))


def _chart(story: LedgerData, fought: Duel, ends: tuple[float, float], *, every_kind: bool = False) -> Chart:
    first, second = (printable(story.names[config]) for config in (fought.first, fought.second))
    positive = np.maximum(fought.seconds, ends[0])
    diagonal = np.array(ends)
    marks: list[Mark] = [Line(diagonal, diagonal, "faint", "", dashed=True, width=1.0)]
    if fought.lower > 0.0:
        words = "the first is better, for certain"
    elif fought.upper < 0.0:
        words = "the second is better, for certain"
    else:
        words = "not decided"
    for label, color, shape, chosen in _kinds(fought):
        places = np.flatnonzero(chosen)[:: _every(fought, _MOST_POINTS)]
        if len(places) or every_kind:
            tips = [_tip(story, fought, place, (first, second)) for place in places.tolist()]
            marks.append(Points(positive[1, places], positive[0, places], color, label, shape, 2.8, tips))
    lower, upper, mean = _rounded(fought)
    n = len(fought.position)
    thinned = ", an even choice of them shown" if _every(fought, _MOST_POINTS) > 1 else ""
    return Chart(
        f"difference in [{lower:.3f}, {upper:.3f}], mean {mean:.3f}: {words}. {n:,} common instances{thinned}",
        Axis(f"time of {second}", *ends, "time"),
        Axis(f"time of {first}", *ends, "time"),
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


def _tip(story: LedgerData, fought: Duel, place: int, names: tuple[str, str]) -> str:
    position = int(fought.position[place])
    lines = [printable(story.instances.get(position, f"position {position}"))]
    for side, name in enumerate(names):
        kind = int(fought.kind[side, place])
        lines.append(f"{name}: {duration_text(float(fought.seconds[side, place]))}, {KINDS[kind]}")
    return "\n".join(lines)
