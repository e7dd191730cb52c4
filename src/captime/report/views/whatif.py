"""And if my utility were different? Who would be best then, what would be lost, and what of that is certain.

E[u(T)] is the integral of P(T < s) over the fall of u. So one distribution function answers for every utility, and a
band around it answers with certainty for all of them at once: no utility has to be chosen before.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from captime.arrays import BoolArray, FloatArray, IntArray
from captime.report.charts.chart import (
    Axis,
    Band,
    Chart,
    FigureTable,
    Line,
    Mark,
    Strip,
    View,
    Zone,
    as_numbers,
    round_ticks,
)
from captime.report.ledger_data import LedgerData
from captime.report.views.runtimes import Distributions, distributions
from captime.report.words import printable
from captime.utilities.formula import Utility, duration_text
from captime.utilities.formulas import LogLaplace, Parc, Step

POINTS = 97
"""Members of a family that are looked at."""
FIRST, LAST = 1.0, 3600.0
"""Deadlines that people have, in seconds: looked at whatever was measured."""
ENOUGH = 32
"""Configurations with fewer runs have no estimate here, only bounds."""
# An estimate that could be wrong by more than this, because captimes hide the rest, is not given.
_HIDDEN = 0.02


@dataclass(frozen=True, slots=True)
class Family:
    """Utilities that differ in one number.

    Attributes:
        name: `deadline`, `log-laplace`, `par10` or `parc`.
        fixed: Whether the numbers reach from `FIRST` to `LAST`, and not over what was measured.
        words: What the number is.
        parameter: The numbers.
        estimate: Estimated expected utility, by configuration and number; not a number where nothing is known.
        lower: Certified lower end.
        upper: Certified upper end.
        example: What one of them is called, `{}` standing for the number.
    """

    name: str
    fixed: bool
    words: str
    parameter: FloatArray
    estimate: FloatArray
    lower: FloatArray
    upper: FloatArray
    example: str

    def best(self, favourite: int) -> IntArray:
        """The configuration with the best estimate, for each number; the favourite among equals.

        -1 where nothing is known of the favourite: a configuration that is left then does not win by that.
        """
        known = np.nan_to_num(self.estimate, nan=-1.0)
        most, own = known.max(axis=0), known[favourite]
        return np.where(own < 0.0, -1, np.where(own >= most - 1e-9, favourite, known.argmax(axis=0)))

    def regret(self, favourite: int) -> FloatArray:
        """By how much the best estimate is better than each one's; nothing where nothing is known of the favourite."""
        known = np.where(np.isnan(self.estimate), -np.inf, self.estimate)
        found: FloatArray = known.max(axis=0) - self.estimate
        found[:, np.isnan(self.estimate[favourite])] = np.nan
        return found

    def certified_regret(self, config: int) -> FloatArray:
        """By how much any configuration may be better than this one, for certain, for each number."""
        others = np.delete(self.upper, config, axis=0)
        best = others.max(axis=0) if len(others) else np.zeros(self.upper.shape[1])
        found: FloatArray = np.maximum(best - self.lower[config], 0.0)
        return found

    def possible(self) -> BoolArray:
        """Who cannot be excluded from being the best, by configuration and number."""
        found: BoolArray = self.upper >= self.lower.max(axis=0)
        return found


@dataclass(frozen=True, slots=True)
class WhatIf:
    """Answers for several families.

    Attributes:
        families: Each with its numbers; first those of times that people have, then those of times that were measured.
        distributions: What they were computed from, all configurations.
        first: From here on some run answers.
        last: The longest time that a run was given.
    """

    families: Sequence[Family]
    distributions: Distributions
    first: float
    last: float


@lru_cache(maxsize=1)
def what_if(story: LedgerData) -> WhatIf | None:
    """The families, over times that people have and over times that the runs know something about; None without runs.

    Beyond the longest captime nothing was seen: there the certified ends are as far apart as that means.
    """
    base = distributions(story)
    if base is None or story.runs is None:
        return None
    first, last = _window(base)
    fixed, measured = np.geomspace(FIRST, LAST, POINTS), np.geomspace(first, last, POINTS)
    known = distributions(story, extra=[*fixed.tolist(), *measured.tolist()])
    if known is None:
        return None
    # A handful of runs makes a wild estimate, and the wildest of many wins every comparison.
    n = np.bincount(story.runs.config, minlength=len(story.names))
    known.estimate[n < min(ENOUGH, int(n.max()))] = np.nan
    weighed = _Weighed(known)
    families = [family for times in (fixed, measured) for family in _of_times(weighed, times, fixed=times is fixed)]
    penalties = np.geomspace(1.0, 100.0, POINTS)
    words = f"limits of {duration_text(last)} that an unsolved instance costs"
    kind = ("parc", words, f"parc({last:.4g}, {{}})")
    families.insert(2, _family(weighed, ("par10", "limit", "parc({}, 10)"), fixed, lambda limit: Parc(limit, 10.0)))
    families.append(_family(weighed, kind, penalties, lambda penalty: Parc(last, penalty), fixed=False))
    return WhatIf(families, known, first, last)


def _of_times(weighed: "_Weighed", times: FloatArray, *, fixed: bool) -> list[Family]:
    half = "time after which half the worth is gone"
    return [
        _family(weighed, ("deadline", "deadline", "step({})"), times, Step, fixed=fixed),
        _family(
            weighed,
            ("log-laplace", half, "log-laplace({}, 1)"),
            times,
            lambda scale: LogLaplace(scale, 1.0),
            fixed=fixed,
        ),
    ]


def _window(known: Distributions) -> tuple[float, float]:
    """From where a few answers are in to the longest captime: outside, the runs have nothing to say."""
    first = np.nanmax(np.nan_to_num(known.estimate), axis=0) > 0.01
    start = float(known.moments[int(first.argmax())])
    last = float(known.moments[-1])
    return min(start, last / 10.0), last


def _family(
    weighed: "_Weighed",
    kind: tuple[str, str, str],
    parameter: FloatArray,
    make: Callable[[float], Utility],
    *,
    fixed: bool = True,
) -> Family:
    estimate, lower, upper = weighed.expected([make(float(each)) for each in parameter])
    name, words, example = kind
    return Family(name, fixed, words, parameter, estimate, lower, upper, example)


class _Weighed:
    """Distributions, ready to be weighed with many utilities."""

    def __init__(self, known: Distributions) -> None:
        self._known = known
        self._seen = np.isfinite(known.estimate)
        self._share = np.where(self._seen, known.estimate, 0.0)

    def expected(self, utilities: Sequence[Utility]) -> tuple[FloatArray, FloatArray, FloatArray]:
        """See `expected`: by configuration and utility."""
        known = self._known
        worth = np.stack([utility(known.moments) for utility in utilities], axis=1)
        fall = -np.diff(worth, prepend=1.0, axis=0)
        end = worth[-1]
        lower = known.lower[:, :-1] @ fall[1:]
        upper = known.upper @ fall + end
        # How much of the fall of u happens where no run was watched any more, and which had answered by then.
        blind = ~self._seen @ fall + end
        answered = self._share.max(axis=1, keepdims=True)
        estimate = self._share @ fall + answered * blind
        estimate[(blind * (1.0 - answered) > _HIDDEN) | ~self._seen.any(axis=1, keepdims=True)] = np.nan
        return estimate, np.clip(lower, 0.0, 1.0), np.clip(upper, 0.0, 1.0)


def expected(known: Distributions, utility: Utility) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Estimate and certified ends of the expected utility, by configuration.

    P(T < s) is known at some moments s only. Between two of them the lower end takes the value of the earlier and the
    upper end that of the later one, because P(T < s) never falls: rounded outward, so still certain. Behind the last
    moment nothing is certain; the estimate assumes no further answer there, and there is none where that could
    matter.
    """
    estimate, lower, upper = _Weighed(known).expected([utility])
    return estimate[:, 0], lower[:, 0], upper[:, 0]


@dataclass(frozen=True, slots=True)
class Dominance:
    """How much the choice between two configurations can matter, over all utilities there are.

    The largest loss from taking i instead of k, over every non-increasing utility, is the largest amount by which
    P(T_k < s) exceeds P(T_i < s). If that is 0, i is at least as good as k for every user.

    Attributes:
        config: Who is compared.
        loss: Estimated largest loss from taking the row instead of the column.
        certified: The same, certified from the band: it is not more than this.
    """

    config: IntArray
    loss: FloatArray
    certified: FloatArray

    def dominates(self, tolerance: float = 1e-12) -> BoolArray:
        """Whether the row is at least as good as the column for every utility, by the estimates."""
        found: BoolArray = self.loss <= tolerance
        return found


def dominance(known: Distributions, config: Sequence[int]) -> Dominance:
    """All pairs of these configurations."""
    rows = np.asarray(config, dtype=np.int64)
    estimate = known.estimate[rows]
    lower, upper = known.lower[rows], known.upper[rows]
    # Compared as far as both were watched; P(T_k < s) at the later moment against P(T_i < s) at the earlier one.
    gap = estimate[None, :, :] - estimate[:, None, :]
    loss = np.nanmax(np.concatenate((gap, np.zeros((*gap.shape[:2], 1))), axis=2), axis=2)
    lagged = np.concatenate((np.zeros((len(rows), 1)), lower), axis=1)
    ahead = np.concatenate((upper, np.ones((len(rows), 1))), axis=1)
    certified = np.stack([np.maximum(ahead - lagged[row], 0.0).max(axis=1) for row in range(len(rows))])
    np.fill_diagonal(certified, 0.0)
    return Dominance(rows, np.maximum(loss, 0.0), np.minimum(certified, 1.0))


_LINES = 6
_ENOUGH_OVERLAP = 0.3
# Where the two strips lie below the axis, and where the chart ends, as shares of its height above.
_LIKELY, _SURELY, _FLOOR = (-0.125, -0.03), (-0.245, -0.15), -0.27


def whatif_view(story: LedgerData) -> View | None:
    """Families of utilities, on the times that people have and on those that were measured."""
    answers = what_if(story)
    if answers is None or len(story.names) < 2:
        return None
    colors = {config: f"c{place}" for place, config in enumerate(_shown(story, answers.families))}
    charts = [_chart(story, answers, family, colors) for family in answers.families]
    caption = (
        "The same runs, other utilities; no new run is needed. Lines: estimated regret, how much worse than the best "
        f"each one would be; configurations with fewer than {ENOUGH} runs have none, and lines end where captimes hide "
        "too much. Shaded, with a dashed edge: where the regret of the recommended one lies for certain, for all these "
        f"utilities, configurations and times at once, with probability at least {100 * (1 - story.delta):g} % (from "
        "the band around the whole distribution). Strips: who would be best, by estimate; and who is for certain, grey "
        f"where more than one may be. No run was given more than {duration_text(answers.last)}; what happens behind "
        "that is unknown, and shown as such."
    )
    ends = [f"from {duration_text(first)} to {duration_text(last)}" for first, last in _ends(answers)]
    labels = [f"times {ends[0]}", f"times that were measured, {ends[1]}"]
    # Times in milliseconds are shown as these first.
    first = 0 if _overlap(answers) >= _ENOUGH_OVERLAP else 1
    return View(
        "whatif",
        "And if my utility were different?",
        caption,
        charts,
        _table(story, answers),
        choices=[labels[first], labels[1 - first]],
        chosen=[int(family.fixed == bool(first)) for family in answers.families],
        numbers={"families": [_numbers(story, family, list(colors)) for family in answers.families]},
    )


def _ends(answers: WhatIf) -> list[tuple[float, float]]:
    return [(FIRST, LAST), (answers.first, answers.last)]


def _overlap(answers: WhatIf) -> float:
    """The share of the measured times, on the logarithmic axis, that lies where people have deadlines."""
    low, high = max(FIRST, answers.first), min(LAST, answers.last)
    return math.log(max(1.0, high / low)) / math.log(answers.last / answers.first)


def _numbers(story: LedgerData, family: Family, shown: Sequence[int]) -> dict[str, object]:
    return {
        "name": family.name,
        "fixed": family.fixed,
        "utility": family.example,
        "parameter": as_numbers(family.parameter),
        "best": as_numbers(family.best(story.leader)),
        "certified_regret": as_numbers(family.certified_regret(story.leader)),
        "possible": as_numbers(family.possible().sum(axis=0)),
        "configurations": {
            story.names[config]: {
                "estimate": as_numbers(family.estimate[config]),
                "lower": as_numbers(family.lower[config]),
                "upper": as_numbers(family.upper[config]),
            }
            for config in shown
        },
    }


def _shown(story: LedgerData, families: Sequence[Family]) -> list[int]:
    """The recommended one, and those who are best somewhere, by how often; then the ranking. One colour each."""
    best = np.concatenate([family.best(story.leader) for family in families])
    often = np.bincount(best[best >= 0], minlength=len(story.names))
    order = [config for config in np.argsort(-often, kind="stable").tolist() if often[config] > 0]
    blank = np.all([np.isnan(family.estimate).all(axis=1) for family in families], axis=0)
    known = [config for config in story.ranking().tolist() if not blank[config]]
    return list(dict.fromkeys([story.leader, *order, *known]))[:_LINES]


def _chart(story: LedgerData, answers: WhatIf, family: Family, colors: dict[int, str]) -> Chart:
    regret, certain = family.regret(story.leader), family.certified_regret(story.leader)
    shown = list(colors)
    # Estimates decide how much is shown; a certified regret that leaves the chart says little but that.
    top = min(1.0, max(2.5 * float(np.nanmax(regret[shown], initial=0.02)), 1.3 * float(certain.min())))
    name = printable(story.names[story.leader])
    marks: list[Mark] = [*_zones(answers, family)]
    high = np.minimum(certain, top)
    marks.append(
        Band(family.parameter, np.zeros(len(high)), high, colors[story.leader], f"{name}, for certain", light=True)
    )
    edge = np.where(certain <= top, certain, np.nan)
    marks.append(Line(family.parameter, edge, colors[story.leader], "", dashed=True, width=1.4))
    for config in shown:
        tip = printable(story.names[config])
        if not np.isnan(regret[config]).all():
            width = 2.4 if config == story.leader else 1.5
            marks.append(Line(family.parameter, regret[config], colors[config], tip, width=width, tip=tip))
    marks += _strips(story, family, colors, top)
    scale: Literal["log", "time"] = "log" if family.name == "parc" else "time"
    ticks = [
        (top * sum(_LIKELY) / 2.0, "likely best"),
        (top * sum(_SURELY) / 2.0, "surely best"),
        *round_ticks(0.0, top, 6),
    ]
    return Chart(
        f"{_TITLES[family.name]}: {family.example.format('…')}",
        Axis(f"{family.words} (logarithmic)", family.parameter[0], family.parameter[-1], scale),
        Axis("regret", _FLOOR * top, top, ticks=ticks),
        marks,
        height=360.0,
        name=f"whatif-{family.name}",
    )


_TITLES = {
    "deadline": "a deadline",
    "log-laplace": "worth that falls around some time",
    "par10": "the PAR10 score with some limit",
    "parc": "the PAR score with some penalty",
}


def _zones(answers: WhatIf, family: Family) -> list[Zone]:
    """Where the chart goes beyond what was measured."""
    if not family.fixed:
        return []
    zones = []
    if answers.first > FIRST:
        zones.append(Zone(FIRST, min(answers.first, LAST), "hardly any answer comes so soon"))
    if answers.last < LAST:
        zones.append(Zone(max(answers.last, FIRST), LAST, "no run was given so long"))
    return zones


def _strips(story: LedgerData, family: Family, colors: dict[int, str], top: float) -> list[Mark]:
    """Who is best where: by estimate, and for certain."""
    best, possible = family.best(story.leader), family.possible()
    alone = np.where(possible.sum(axis=0) == 1, possible.argmax(axis=0), -2)
    return [
        _strip(story, family, best, colors, (_LIKELY[0] * top, _LIKELY[1] * top)),
        _strip(story, family, alone, colors, (_SURELY[0] * top, _SURELY[1] * top)),
    ]


def _strip(
    story: LedgerData, family: Family, best: IntArray, colors: dict[int, str], ends: tuple[float, float]
) -> Strip:
    """Neighbouring members of the family with the same best configuration are one stretch; -1 has no colour."""
    edges = np.flatnonzero(np.diff(best, prepend=best[0] - 1, append=best[-1] - 1))
    log = np.log(family.parameter)
    middle = np.exp(np.concatenate((log[:1], (log[1:] + log[:-1]) / 2.0, log[-1:])))
    stretches = [(first, last) for first, last in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)]
    stretches = [each for each in stretches if best[each[0]] != -1]
    possible = family.possible().sum(axis=0)
    tips = []
    for first, last in stretches:
        least = int(possible[first:last].min())
        who = "none for certain" if best[first] < 0 else printable(story.names[int(best[first])])
        where = f"{family.words} from {_amount(family, middle[first])} to {_amount(family, middle[last])}"
        left = f"{least:,} or more configurations may be" if least > 1 else "all others are excluded for certain"
        tips.append(f"{who} best for {where}\n{left}")
    return Strip(
        np.array([middle[first] for first, _ in stretches]),
        np.array([middle[last] for _, last in stretches]),
        [_color(colors, int(best[first])) for first, _ in stretches],
        *ends,
        tips=tips,
    )


def _color(colors: dict[int, str], config: int) -> str:
    return "open" if config < 0 else colors.get(config, "faint")


def _amount(family: Family, value: float) -> str:
    return f"{value:.3g}" if family.name == "parc" else duration_text(float(value))


def _table(story: LedgerData, answers: WhatIf) -> FigureTable:
    """Nine members of each family: who is best, what the recommended one loses, and what of that is certain."""
    rows = []
    for family in answers.families:
        best, regret = family.best(story.leader), family.regret(story.leader)[story.leader]
        certain, possible = family.certified_regret(story.leader), family.possible().sum(axis=0)
        for place in np.linspace(0, len(family.parameter) - 1, 9).astype(int).tolist():
            number = float(family.parameter[place])
            rows.append(
                (
                    family.example.format(f"{number:.4g}"),
                    story.names[int(best[place])] if best[place] >= 0 else None,
                    None if np.isnan(regret[place]) else float(regret[place]),
                    float(certain[place]),
                    int(possible[place]),
                )
            )
    return FigureTable(
        ("utility", "best_by_estimate", "regret_of_recommended", "certified_regret", "not_excluded"), rows
    )
