"""Tables of the page of results: what a certificate costs, how good answers are by then, what is guaranteed when."""

import math
from collections.abc import Iterable, Iterator, Sequence
from statistics import median

from page_claims import Curves, short

from captime.utilities.formula import duration_text
from captime_research.experiments.contenders import PANELS, RUNTIME, RUNTIME_CUT, RUNTIME_EPSILON, UTILITY
from captime_research.experiments.gap import CERTIFIED, IN_FORCE, PATIENCE
from captime_research.experiments.paper import LOG_LAPLACE, RACE, UNIFORM
from captime_research.experiments.rows import Band, Row

GOALS = (0.25, 0.16, 0.1)
CERTIFIED_GOALS = (0.5, 0.25, 0.1, 0.05)
_PROMISES = dict(zip(PANELS, ("on utility", "on mean runtime", "none", "none"), strict=True))


def relative_costs(rows: dict[str, dict[str, list[Row]]]) -> Iterator[str]:
    """Yield how many times the race's cost each method's is at equal epsilon and delta, seed by seed; table by table.

    Args:
        rows: By table and experiment.
    """
    sources = [("follow-up-1", LOG_LAPLACE), ("follow-up-6", LOG_LAPLACE), ("follow-up-1", UNIFORM)]
    for table, made in rows.items():
        yield f"### On {table}\n"
        yield f"| | utility | {' | '.join(f'ε = {goal:g}' for goal in GOALS)} |\n|---|---|{'---|' * len(GOALS)}"
        seen = set()
        for experiment, utility in sources:
            found = [row for row in made[experiment] if row.panel == utility]
            for label in dict.fromkeys(row.label for row in found):
                name = {"OUP": "OUP, old rule", "UP": "UP, old rule"}.get(label, label)
                if label != RACE and f"{name} {utility}" not in seen:
                    seen.add(f"{name} {utility}")
                    cells = [_ratio_cell(found, label, goal) for goal in GOALS]
                    yield f"| {name} | {utility.removesuffix(' utility')} | {' | '.join(cells)} |"
        yield ""


def _ratio_cell(rows: Sequence[Row], label: str, goal: float) -> str:
    costs = {
        (row.label, row.seed): row.y
        for row in rows
        if math.isclose(row.x, goal, rel_tol=1e-6) and not math.isnan(row.y)
    }
    seeds = [seed for who, seed in costs if who == label and (RACE, seed) in costs]
    ratios = [costs[label, seed] / costs[RACE, seed] for seed in seeds]
    return f"**{short(median(ratios))}** [{short(min(ratios))}, {short(max(ratios))}]" if ratios else "-"


def costs(curves: Curves) -> Iterator[str]:
    """CPU time to certify, by method and epsilon."""
    for panel, methods in curves.items():
        yield f"{panel}; median over seeds, extremes in brackets:\n"
        yield f"| | {' | '.join(f'ε = {goal:g}' for goal in GOALS)} |\n|---|{'---|' * len(GOALS)}"
        for label, band in methods.items():
            yield f"| {label} | {' | '.join(_cost_cell(band, goal) for goal in GOALS)} |"
        yield ""


def _cost_cell(band: Band, goal: float) -> str:
    place = next((at for at, x in enumerate(band.x) if math.isclose(x, goal, rel_tol=1e-6)), None)
    if place is None or math.isnan(band.middle[place]):
        return "-"
    extremes = f"{duration_text(band.low[place])} to {duration_text(band.high[place])}"
    return f"{duration_text(band.middle[place])} [{extremes}]"


def gaps(curves: Curves) -> Iterator[str]:
    """Relative gap at four budgets, by method."""
    moments = curves[UTILITY][RACE].x
    last = len(moments) - 1
    chosen = [moments[place] for place in (last // 4, last // 2, 3 * last // 4, last)]
    times = ", ".join(short(PATIENCE * moment / moments[-1]) for moment in chosen)
    yield (
        "Relative gap to the best configuration, 1 - U / max U, mean over seeds with extremes in brackets, after "
        f"these CPU times: {times} times what the race needs to certify 0.1.\n"
    )
    yield f"| | guarantee | {' | '.join(map(duration_text, chosen))} |\n|---|---|{'---|' * len(chosen)}"
    for panel in PANELS:
        for label, band in curves.get(panel, {}).items():
            cells = [_gap_cell(band, moment) for moment in chosen]
            yield f"| {label} | {_PROMISES[panel]} | {' | '.join(cells)} |"


def _gap_cell(band: Band, moment: float) -> str:
    """What was known by then."""
    place = next((at for at in reversed(range(len(band.x))) if band.x[at] <= moment * (1 + 1e-5)), None)
    if place is None or math.isnan(band.middle[place]):
        return "-"
    return f"{band.middle[place]:.3f} [{band.low[place]:.3f}, {band.high[place]:.3f}]"


def promises(rows: Sequence[Row]) -> Iterator[str]:
    """Yield from when on which guarantee holds, for every method that has one."""
    moments = [row.x for row in rows if row.panel == CERTIFIED and not math.isnan(row.x)]
    if not moments:
        return
    never = f"not within {duration_text(max(moments))}"
    headings = [f"within {goal:g} of the best utility" for goal in CERTIFIED_GOALS]
    promised = f"mean runtime within {RUNTIME_EPSILON:.0%} of the best, {RUNTIME_CUT:.0%} of the instances cut"
    yield f"| | {' | '.join(headings)} | {promised} |\n|---|{'---|' * (len(headings) + 1)}"
    for label in _labels(rows, UTILITY):
        cells = [_when(_first_moments(rows, label, goal), never) for goal in CERTIFIED_GOALS]
        yield f"| {label} | {' | '.join(cells)} | |"
    for label in _labels(rows, RUNTIME):
        ends = [row.y for row in rows if row.panel == IN_FORCE and row.label == label]
        told = _when(ends, never) if ends else "at any time, for a share of cut instances that shrinks"
        yield f"| {label} | {' | '.join('' for _ in CERTIFIED_GOALS)} | {told} |"
    yield "\nCOUP's epsilon is about a space of which the table's configurations are draws, its luckiest part left out."


def _labels(rows: Iterable[Row], panel: str) -> list[str]:
    return list(dict.fromkeys(row.label for row in rows if row.panel == panel))


def _first_moments(rows: Iterable[Row], label: str, goal: float) -> list[float]:
    """Seed by seed, the first of the moments at which so small an epsilon was certified; NaN if there is none."""
    found: dict[int, float] = {}
    for row in rows:
        if row.panel == CERTIFIED and row.label == label:
            earlier = found.get(row.seed, math.nan)
            found[row.seed] = row.x if math.isnan(earlier) and row.y <= goal else earlier
    return list(found.values())


def _when(moments: Sequence[float], never: str) -> str:
    known = [each for each in moments if not math.isnan(each)]
    if 2 * len(known) <= len(moments):
        return never
    return f"{duration_text(median(known))} [{duration_text(min(known))} to {duration_text(max(known))}]"
