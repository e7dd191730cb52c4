"""And if my utility were different? Who would be best then, what would be lost, and what of that is certain."""

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from captime.arrays import IntArray
from captime.report.charts.chart import Axis, Band, Chart, Line, Mark, Strip, Zone
from captime.report.charts.scales import round_ticks
from captime.report.numbers.whatif import ENOUGH, FIRST, LAST, Family, WhatIf, what_if
from captime.report.story import Story
from captime.report.views.view import Table, View, as_numbers
from captime.report.words import printable
from captime.utilities.durations import duration_text

_LINES = 6
_ENOUGH_OVERLAP = 0.3
# Where the two strips lie below the axis, and where the chart ends, as shares of its height above.
_LIKELY, _SURELY, _FLOOR = (-0.125, -0.03), (-0.245, -0.15), -0.27


def whatif_view(story: Story) -> View | None:
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
    # Whoever measured milliseconds is shown these first.
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


def _numbers(story: Story, family: Family, shown: Sequence[int]) -> dict[str, object]:
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


def _shown(story: Story, families: Sequence[Family]) -> list[int]:
    """The recommended one, and those who are best somewhere, by how often; then the ranking. One colour each."""
    best = np.concatenate([family.best(story.leader) for family in families])
    often = np.bincount(best[best >= 0], minlength=len(story.names))
    order = [config for config in np.argsort(-often, kind="stable").tolist() if often[config] > 0]
    blank = np.all([np.isnan(family.estimate).all(axis=1) for family in families], axis=0)
    known = [config for config in story.ranking().tolist() if not blank[config]]
    return list(dict.fromkeys([story.leader, *order, *known]))[:_LINES]


def _chart(story: Story, answers: WhatIf, family: Family, colors: dict[int, str]) -> Chart:
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


def _strips(story: Story, family: Family, colors: dict[int, str], top: float) -> list[Mark]:
    """Who is best where: by estimate, and for certain."""
    best, possible = family.best(story.leader), family.possible()
    alone = np.where(possible.sum(axis=0) == 1, possible.argmax(axis=0), -2)
    return [
        _strip(story, family, best, colors, (_LIKELY[0] * top, _LIKELY[1] * top)),
        _strip(story, family, alone, colors, (_SURELY[0] * top, _SURELY[1] * top)),
    ]


def _strip(story: Story, family: Family, best: IntArray, colors: dict[int, str], ends: tuple[float, float]) -> Strip:
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
        who = "nobody for certain" if best[first] < 0 else printable(story.names[int(best[first])])
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


def _table(story: Story, answers: WhatIf) -> Table:
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
    return Table(("utility", "best_by_estimate", "regret_of_recommended", "certified_regret", "not_excluded"), rows)
