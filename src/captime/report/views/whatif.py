"""And if my utility were different? Who would be best then, what would be lost, and what of that is certain."""

import numpy as np

from captime.arrays import BoolArray, FloatArray, IntArray
from captime.report.charts.chart import Axis, Chart, Line, Mark, Spans, Strip
from captime.report.charts.scales import round_ticks
from captime.report.numbers.whatif import ENOUGH, Dominance, Family, WhatIf, dominance, what_if
from captime.report.story import Story
from captime.report.views.view import Table, View, as_numbers
from captime.report.words import printable, rounded_up
from captime.utilities.durations import duration_text

_LINES = 6
_COMPARED = 12


def whatif_view(story: Story) -> View | None:
    """Three families of utilities."""
    answers = what_if(story)
    if answers is None or len(story.names) < 2:
        return None
    charts = [_chart(story, family) for family in answers.families]
    caption = (
        "The same runs, other utilities; no new run is needed. Lines: estimated regret, how much worse than the best "
        "each one would be. Coloured strip: who would be best, by estimate. Dashed: certified regret of the "
        "recommended one, as far as it fits into the chart; it is not more than that for all these utilities, "
        f"configurations and times at once, with probability at least {100 * (1 - story.delta):g} % (from the band "
        f"around the whole distribution). Configurations with fewer than {ENOUGH} runs have no line."
    )
    names = {"families": [_numbers(story, family) for family in answers.families]}
    return View("whatif", "And if my utility were different?", caption, charts, _table(story, answers), numbers=names)


def _numbers(story: Story, family: Family) -> dict[str, object]:
    shown = _shown(story, family)
    return {
        "name": family.name,
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


def _shown(story: Story, family: Family) -> list[int]:
    """The recommended one, and those who are best somewhere, by how often; then the ranking."""
    best = family.best(story.leader)
    often = np.bincount(best[best >= 0], minlength=len(story.names))
    order = [config for config in np.argsort(-often, kind="stable").tolist() if often[config] > 0]
    known = [config for config in story.ranking().tolist() if not np.isnan(family.estimate[config]).all()]
    return list(dict.fromkeys([story.leader, *order, *known]))[:_LINES]


def _chart(story: Story, family: Family) -> Chart:
    shown, regret, best = _shown(story, family), family.regret(), family.best(story.leader)
    certain = family.certified_regret(story.leader)
    # Estimates decide how much is shown; a certified regret that leaves the chart says too little to be drawn.
    top = min(1.0, max(2.5 * float(np.nanmax(regret[shown], initial=0.02)), 1.3 * float(certain.min())))
    certain = np.where(certain <= top, certain, np.nan)
    colors = {config: f"c{place}" for place, config in enumerate(shown)}
    marks: list[Mark] = [_strip(story, family, best, colors, top)]
    for config in reversed(shown):
        tip = printable(story.names[config])
        width = 2.4 if config == story.leader else 1.5
        marks.append(Line(family.parameter, regret[config], colors[config], tip, width=width, tip=tip))
    label = f"certified, {printable(story.names[story.leader])}"
    marks.append(Line(family.parameter, certain, colors[story.leader], label, dashed=True, width=1.6))
    if family.name != "parc":
        axis = Axis(f"{family.words} (logarithmic)", family.parameter[0], family.parameter[-1], "time")
    else:
        axis = Axis(f"{family.words} (logarithmic)", family.parameter[0], family.parameter[-1], "log")
    return Chart(
        f"{family.name}: utilities {family.example.format('…')}",
        axis,
        Axis("regret", -0.16 * top, top, ticks=round_ticks(0.0, top, 6)),
        marks,
        height=340.0,
        name=f"whatif-{family.name}",
    )


def _strip(story: Story, family: Family, best: IntArray, colors: dict[int, str], top: float) -> Strip:
    """Neighbouring members of the family with the same best configuration are one stretch."""
    edges = np.flatnonzero(np.diff(best, prepend=best[0] - 1, append=best[-1] - 1))
    log = np.log(family.parameter)
    middle = np.exp(np.concatenate((log[:1], (log[1:] + log[:-1]) / 2.0, log[-1:])))
    stretches = [(first, last) for first, last in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)]
    stretches = [each for each in stretches if best[each[0]] >= 0]
    possible = family.possible().sum(axis=0)
    tips = [
        f"{printable(story.names[int(best[first])])} best by estimate for {family.words} from "
        f"{_amount(family, middle[first])} to {_amount(family, middle[last])}\n"
        f"{int(possible[first:last].min()):,} or more configurations cannot be excluded for certain"
        for first, last in stretches
    ]
    return Strip(
        np.array([middle[first] for first, _ in stretches]),
        np.array([middle[last] for _, last in stretches]),
        [colors.get(int(best[first]), "faint") for first, _ in stretches],
        -0.14 * top,
        -0.03 * top,
        tips=tips,
    )


def _amount(family: Family, value: float) -> str:
    return f"{value:.3g}" if family.name == "parc" else duration_text(float(value))


def _table(story: Story, answers: WhatIf) -> Table:
    """Nine members of each family: who is best, what the recommended one loses, and what of that is certain."""
    rows = []
    for family in answers.families:
        best, regret = family.best(story.leader), family.regret()[story.leader]
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


def dominance_view(story: Story) -> View | None:
    """Losses over all utilities there are, pair by pair."""
    answers = what_if(story)
    if answers is None or len(story.names) < 2:
        return None
    known = answers.distributions
    ranked = [config for config in story.ranking().tolist() if not np.isnan(known.estimate[config]).all()]
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
        Table((columns[0].replace("_of_second", ""), *columns[1:]), rows),
        numbers={"dominance": as_numbers(found)},
    )


def _dominance_caption(story: Story, found: Dominance, beaten: BoolArray) -> str:
    leader = printable(story.names[int(found.config[0])])
    count = int(beaten[1:].sum())
    worst = float(found.certified[0, 1:].max())
    return (
        f"The largest loss, over every utility there is, from taking {leader} instead of another: the most by which "
        "the other one's runtime distribution is ever ahead. 0 means that it is at least as good for everybody "
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
        Axis("largest loss over all utilities, estimate (dot) and certified (end of the line)", 0.0, 1.0),
        Axis("", len(rivals) - 0.4, -0.6, ticks=ticks),
        [Spans(at, np.zeros(len(rivals)), certain, estimate, "c0", tips=tips)],
        height=84.0 + 20.0 * len(rivals),
        name="dominance",
    )


def _up(found: Dominance, rival: int) -> str:
    return rounded_up(float(found.certified[0, rival]), 3)
