"""Observations of the papers, each checked by the numbers of one table: whether it holds there, and by how much."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from captime.arrays import FloatArray, IntArray
from captime_research.experiments.contenders import PANELS
from captime_research.experiments.growing import COUP, OUP_AFRESH, SCHEDULES
from captime_research.experiments.paper import LOG_LAPLACE, RACE, UP
from captime_research.experiments.rows import Band

Curves = dict[str, dict[str, Band]]
Found = dict[str, Curves]
"""Curves of every experiment on one table."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether an observation holds on a table, and the numbers behind that; None if there are none."""

    holds: bool | None
    numbers: str

    def __str__(self) -> str:
        word = {True: "**yes**", False: "**no**", None: "cannot be told"}[self.holds]
        return f"{word}: {self.numbers}" if self.numbers else word


def interior_minimum(found: Found) -> Verdict:
    """Of the three goals, at how many the cheapest captime lies between the extremes that are possible."""
    inside = []
    for curves in found["figure-1"].values():
        cost, known = _known(curves["Naive"])
        if len(known) > 2:
            inside.append(bool(known[0] < known[np.argmin(cost[known])] < known[-1]))
    if not inside:
        return Verdict(None, "no captime is possible")
    return Verdict(all(inside), f"at {sum(inside)} of {len(inside)} goals")


def explodes(found: Found) -> Verdict:
    """How much faster Naive's cost grows towards small epsilon at the captime where u(κ) = 0.1 than at twice that."""
    curves = found["figure-2"][LOG_LAPLACE]
    near, far = (np.array(curves[f"Naive, κ = {times} κ0"].middle) for times in (5, 10))
    known = np.flatnonzero(~np.isnan(near) & ~np.isnan(far))
    if len(known) < 2:
        return Verdict(None, "Naive is hardly possible")
    grown = [float(cost[known[0]] / cost[known[-1]]) for cost in (near, far)]
    goals = [curves[UP].x[place] for place in (known[-1], known[0])]
    told = f"from ε = {goals[0]:g} to {goals[1]:g} {short(grown[0])} times at 5 κ0, {short(grown[1])} times at 10 κ0"
    return Verdict(grown[0] >= 2.0 * grown[1], told)


def up_below_naive(found: Found) -> Verdict:
    """UP against the cheaper of Naive's two captimes at the smallest epsilon; where neither is possible, UP wins."""
    curves = found["figure-2"][LOG_LAPLACE]
    up, naive = np.array(curves[UP].middle), _least(curves, "Naive")
    if math.isnan(up[0]):
        return Verdict(None, "UP does not get there")
    ratio = "Naive cannot" if math.isinf(naive[0]) else f"Naive costs {short(naive[0] / up[0])} times as much"
    cheaper = int(np.count_nonzero(up < naive))
    return Verdict(bool(up[0] < naive[0]), f"{ratio}; UP is cheaper at {cheaper} of {len(up)} values of ε")


def naive_keeps_up(found: Found) -> Verdict:
    """Uniform utility, Naive at the captime after which nothing has any worth."""
    times = ratios(found["figure-3"]["Naive at κ = κ0"], "Naive, κ = κ0", UP)
    return Verdict(max(times) <= 1.2 if times else None, _range(times, "times UP's cost"))


def naive_far_worse(found: Found) -> Verdict:
    """Uniform utility, Naive at ten times that captime."""
    times = ratios(found["figure-3"]["Naive at κ = 10 κ0"], "Naive, κ = 10 κ0", UP)
    return at_least(times, 1.5, "times UP's cost")


def oup_below_up(found: Found) -> Verdict:
    """At every epsilon, both utilities, the old rule for both."""
    times = [each for curves in found["follow-up-1"].values() for each in ratios(curves, UP, "OUP")]
    return at_least(times, 1.0, "times OUP's cost")


def oup_spares_the_bad(found: Found) -> Verdict:
    """How much less of its time OUP spends on the worse half of the configurations than UP."""
    shares = {}
    for label in (UP, "OUP"):
        spent = np.array(found["follow-up-2"][LOG_LAPLACE][label].middle)
        shares[label] = float(spent[: len(spent) // 2].sum() / spent.sum())
    told = f"{shares['OUP']:.0%} of its time, UP {shares[UP]:.0%}"
    return Verdict(shares["OUP"] < shares[UP], told)


def new_rule_pays(found: Found) -> Verdict:
    """Old rule against new one, for UP and for OUP, at every epsilon."""
    curves = found["follow-up-6"][LOG_LAPLACE]
    times = [each for who in (UP, "OUP") for each in ratios(curves, f"{who}, old rule", f"{who}, new rule")]
    return at_least(times, 1.0, "times the new rule's cost")


def coup_keeps_its_past(found: Found) -> Verdict:
    """COUP until the end of its last phase, against OUP run afresh on all pools up to then together."""
    curves = found["follow-up-3"].get(SCHEDULES[0].title, {})
    if COUP not in curves or OUP_AFRESH not in curves:
        return Verdict(None, "there are too few configurations")
    # Goals fall from phase to phase, and x rises.
    ratio = float(np.nansum(curves[OUP_AFRESH].middle)) / curves[COUP].middle[0]
    told = f"{len(curves[COUP].x)} phases fit; afresh each time costs {short(ratio)} times as much"
    return Verdict(ratio >= 1.0, told)


def race_cheapest(found: Found) -> Verdict:
    """Against the cheapest of all others, at every epsilon, both utilities."""
    times: list[float] = []
    for curves in found["follow-up-1"].values():
        for other in curves.keys() - {RACE}:
            times += ratios(curves, other, RACE)
    return at_least(times, 1.0, "times the race's cost")


def answers_before_guarantees(found: Found) -> Verdict:
    """When the first of the methods without a guarantee has a mean gap of 2 %, and when the race certifies 0.1."""
    curves, enough = found["gap"], 0.02
    soonest = {
        label: next((x for x, gap in zip(band.x, band.middle, strict=True) if gap <= enough), math.inf)
        for panel in PANELS[2:]
        for label, band in curves.get(panel, {}).items()
    }
    race = curves["certified epsilon"][RACE]
    certain = next((x for x, epsilon in zip(race.x, race.middle, strict=True) if epsilon <= 0.1), math.inf)
    if not soonest or not math.isfinite(certain):
        return Verdict(None, "")
    who = min(soonest, key=soonest.__getitem__)
    return Verdict(
        soonest[who] < certain, f"{who} after {short(soonest[who] / certain)} times what that certificate costs"
    )


CLAIMS: dict[str, Callable[[Found], Verdict]] = {
    "Naive has a best captime between the extremes (Fig. 1)": interior_minimum,
    "Naive's cost explodes as epsilon approaches u(κ) (Fig. 2)": explodes,
    "UP costs less than Naive for the smallest epsilon, log-Laplace (Fig. 2)": up_below_naive,
    "with the uniform utility Naive at κ0 keeps up with UP (Fig. 3)": naive_keeps_up,
    "with the uniform utility Naive at 10 κ0 costs far more than UP (Fig. 3)": naive_far_worse,
    "OUP costs less than UP (follow-up, Fig. 1)": oup_below_up,
    "OUP spends less on the worse half of the configurations (follow-up, Fig. 2)": oup_spares_the_bad,
    "COUP costs less than OUP afresh on every pool (follow-up, Fig. 3)": coup_keeps_its_past,
    "the new rule for doubling costs less than the old one (follow-up, Fig. 6)": new_rule_pays,
    "a method without guarantee has a good answer before one can be certified (follow-up, Fig. 5)": (
        answers_before_guarantees
    ),
    "captime's race costs less than UP, OUP and Naive at every epsilon (ours)": race_cheapest,
}


def reading(verdicts: dict[str, dict[str, Verdict]]) -> list[str]:
    """The same in sentences: what holds everywhere, what somewhere, what nowhere."""
    kinds: dict[str, list[str]] = {"everywhere": [], "somewhere": [], "nowhere": []}
    for claim, by_table in verdicts.items():
        told = {name: each.holds for name, each in by_table.items() if each.holds is not None}
        if not told:
            continue
        holding = [name for name, holds in told.items() if holds]
        if len(holding) == len(told):
            kinds["everywhere"].append(claim)
        elif holding:
            kinds["somewhere"].append(f"{claim}: only on {' and '.join(holding)}")
        else:
            kinds["nowhere"].append(claim)
    total = sum(map(len, kinds.values()))
    lines = [f"{len(kinds['everywhere'])} of {total} observations hold on every table."]
    for kind, what in (("somewhere", "On some tables only"), ("nowhere", "On no table")):
        if kinds[kind]:
            lines.append(f"{what}: {'; '.join(kinds[kind])}.")
    return lines


def _known(band: Band) -> tuple[FloatArray, IntArray]:
    """Costs, and the places where there is one."""
    cost = np.array(band.middle)
    return cost, np.flatnonzero(~np.isnan(cost))


def at_least(times: Sequence[float], least: float, of_what: str) -> Verdict:
    """Judge whether all ratios are at least a number."""
    return Verdict(min(times) >= least if times else None, _range(times, of_what))


def ratios(curves: dict[str, Band], one: str, other: str) -> list[float]:
    """How many times the other's cost the one's is, wherever both have a number."""
    if one not in curves or other not in curves:
        return []
    costs = dict(zip(curves[other].x, curves[other].middle, strict=True))
    pairs = [(cost, costs.get(x, math.nan)) for x, cost in zip(curves[one].x, curves[one].middle, strict=True)]
    return [a / b for a, b in pairs if not math.isnan(a) and not math.isnan(b)]


def _least(curves: dict[str, Band], prefix: str) -> FloatArray:
    """The cheapest of several curves, point by point; infinite where none has a number."""
    stacked: FloatArray = np.array([curve.middle for label, curve in curves.items() if label.startswith(prefix)])
    least: FloatArray = np.where(np.isnan(stacked), np.inf, stacked).min(axis=0)
    return least


def _range(values: Sequence[float], of_what: str) -> str:
    if not values:
        return ""
    return f"{short(min(values))} to {short(max(values))} {of_what}"


def short(value: float) -> str:
    """Two digits, without powers of ten."""
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"
