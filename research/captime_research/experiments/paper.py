"""The paper's three figures: what Naive costs by captime, UP against Naive for two utilities; and the race."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from captime.arrays import FloatArray
from captime.errors import ScenarioError
from captime_research.experiments.rows import Row
from captime_research.experiments.setting import PAPER_SCALE, Setting, first_time

EPSILONS: FloatArray = np.linspace(0.1, 0.25, 6)
UP, RACE = "UP", "race (captime's default)"
LOG_LAPLACE, UNIFORM = "log-Laplace utility", "uniform utility"
# Naive's captimes in the paper, in its seconds. With the log-Laplace utility 60 s is impossible: u is still 0.5.
NAIVE_CAPTIMES: Mapping[str, tuple[float, ...]] = {LOG_LAPLACE: (300.0, 600.0), UNIFORM: (60.0, 600.0)}


def utilities(setting: Setting) -> dict[str, str]:
    """The paper's two utilities in this table's time, by what they are called in pictures."""
    return {LOG_LAPLACE: setting.log_laplace, UNIFORM: setting.uniform}


def captime_grid(setting: Setting) -> FloatArray:
    """21 captimes as in the paper: up to 17 κ0 for a timeout like minisat's, up to 175 κ0 for one like CPLEX's."""
    return setting.factor * (np.linspace(50, 10500, 21) if setting.long else np.round(np.linspace(10, 1000, 21)))


def naive_by_captime(setting: Setting, seed: int) -> Iterator[Row]:
    """Figure 1: CPU time of Naive against its captime, for three goals; the race's is a level line."""
    grid = captime_grid(setting)
    for epsilon in (0.1, 0.15, 0.2):
        panel = f"ε = {epsilon:g}"
        for captime in grid.tolist():
            cost, why = naive_cost(setting, setting.log_laplace, seed, epsilon, captime)
            yield Row(panel, "Naive", seed, captime, cost, why)
        race = RACE_CONTENDER.points(setting, setting.log_laplace, seed, np.array([epsilon]))
        for (_, cost, why), captime in product(race, (float(grid[0]), float(grid[-1]))):
            yield Row(panel, RACE, seed, captime, cost, why)


def up_against_naive(setting: Setting, seed: int) -> Iterator[Row]:
    """Figure 2: CPU time to certify epsilon with the log-Laplace utility, Naive at two captimes."""
    yield from _compared(setting, seed, setting.log_laplace, {LOG_LAPLACE: NAIVE_CAPTIMES[LOG_LAPLACE]})


def uniform_against_naive(setting: Setting, seed: int) -> Iterator[Row]:
    """Figure 3: the same with the uniform utility, Naive at the right captime and at ten times that."""
    panels = {"Naive at κ = κ0": (60.0,), "Naive at κ = 10 κ0": (600.0,)}
    yield from _compared(setting, seed, setting.uniform, panels)


def _compared(setting: Setting, seed: int, utility: str, panels: Mapping[str, tuple[float, ...]]) -> Iterator[Row]:
    """UP and the race in every panel, Naive at the panel's captimes (in the paper's seconds)."""
    common = {each.label: list(each.points(setting, utility, seed, EPSILONS)) for each in (PAPER_UP, RACE_CONTENDER)}
    for panel, captimes in panels.items():
        for label, points in common.items():
            yield from (Row(panel, label, seed, *point) for point in points)
        yield from naive_rows(setting, seed, panel, utility, captimes)


def naive_rows(setting: Setting, seed: int, panel: str, utility: str, captimes: tuple[float, ...]) -> Iterator[Row]:
    """What Naive costs at these captimes (in the paper's seconds), by epsilon."""
    for captime, epsilon in product(captimes, EPSILONS.tolist()):
        cost, why = naive_cost(setting, utility, seed, epsilon, setting.time(captime))
        yield Row(panel, naive_label(captime), seed, epsilon, cost, why)


def naive_label(captime: float) -> str:
    """What Naive at a captime (in the paper's seconds) is called."""
    return f"Naive, κ = {captime / PAPER_SCALE:g} κ0".replace("= 1 ", "= ")


Point = tuple[float, float, str]
"""Epsilon, CPU seconds until it was certified (NaN if it never was), and why it was not."""


@dataclass(frozen=True)
class Certifier:
    """A procedure whose cost of certifying is measured.

    Attributes:
        label: What to call it.
        procedure: Its name.
        options: Its options.
        tuned: It is tuned to its goal, so it is run once for each; others are run once, to the smallest.
    """

    label: str
    procedure: str
    options: Mapping[str, object] = field(default_factory=dict)
    tuned: bool = False

    def points(self, setting: Setting, utility: str, seed: int, epsilons: FloatArray) -> Iterator[Point]:
        """When each epsilon was certified."""
        if self.tuned:
            for epsilon in epsilons.tolist():
                result = setting.run(self.procedure, utility, epsilon, seed, self.options)
                reached = result.certificate.epsilon <= epsilon
                yield epsilon, result.cpu_seconds if reached else math.nan, "" if reached else result.outcome.stopped
            return
        result = setting.run(self.procedure, utility, float(epsilons.min()), seed, self.options)
        for epsilon, seconds in zip(epsilons.tolist(), first_time(result, epsilons).tolist(), strict=True):
            yield epsilon, seconds, result.outcome.stopped if math.isnan(seconds) else ""


PAPER_UP = Certifier(UP, "up", {"variant": "paper"})
RACE_CONTENDER = Certifier(RACE, "race", tuned=True)


def naive_cost(setting: Setting, utility: str, seed: int, epsilon: float, captime: float) -> tuple[float, str]:
    """What Naive costs; NaN if u(κ) is not below epsilon, the captime is beyond the table or runs are too many."""
    try:
        setting.naive_fits(utility, epsilon, captime)
        result = setting.run("naive", utility, epsilon, seed, naive_options(captime))
    except ScenarioError as refusal:
        return math.nan, str(refusal)
    return result.cpu_seconds, ""


def naive_options(captime: float) -> dict[str, object]:
    """Naive as its authors' code has it, at this captime in seconds."""
    return {"captime": captime, "variant": "as-published"}
