"""Figures of the follow-up paper: OUP beside UP and Naive, CPU time per configuration, rules for doubling captimes."""

from collections.abc import Iterator

import numpy as np

from captime.arrays import FloatArray
from captime_research.experiments.paper import (
    EPSILONS,
    LOG_LAPLACE,
    NAIVE_CAPTIMES,
    PAPER_UP,
    RACE_CONTENDER,
    UP,
    Certifier,
    naive_cost,
    naive_label,
    naive_options,
    naive_rows,
    utilities,
)
from captime_research.experiments.rows import Row
from captime_research.experiments.setting import Setting

# The follow-up's goal, the paper's six, and some larger ones on the way there.
SMALLEST = 0.09
GOALS: FloatArray = np.array([0.5, 0.4, 0.3, *EPSILONS[::-1].tolist(), SMALLEST])
OLD, NEW = "old", "new"
OUP = Certifier("OUP", "oup", {"rule": OLD})


def optimism(setting: Setting, seed: int) -> Iterator[Row]:
    """CPU time to certify epsilon: UP, OUP (both with the old rule for doubling, as there), Naive; and the race."""
    for panel, utility in utilities(setting).items():
        for each in (PAPER_UP, OUP, RACE_CONTENDER):
            for point in each.points(setting, utility, seed, GOALS):
                yield Row(panel, each.label, seed, *point)
        yield from naive_rows(setting, seed, panel, utility, NAIVE_CAPTIMES[panel])


def time_per_configuration(setting: Setting, seed: int) -> Iterator[Row]:
    """CPU time spent on each configuration until the follow-up's epsilon, against its mean utility."""
    for panel, utility in utilities(setting).items():
        worth = [round(each, 5) for each in setting.truth(utility).tolist()]
        runs = [(each.label, each.procedure, each.options) for each in (PAPER_UP, OUP, RACE_CONTENDER)]
        captime = NAIVE_CAPTIMES[panel][-1]
        cost, why = naive_cost(setting, utility, seed, SMALLEST, setting.time(captime))
        if why:
            yield Row(panel, naive_label(captime), seed, float("nan"), cost, why)
        else:
            runs.append((naive_label(captime), "naive", naive_options(setting.time(captime))))
        for label, procedure, options in runs:
            result = setting.run(procedure, utility, SMALLEST, seed, options)
            for place, seconds in zip(worth, result.outcome.seconds.tolist(), strict=True):
                yield Row(panel, label, seed, place, seconds)


def doubling(setting: Setting, seed: int) -> Iterator[Row]:
    """CPU time to certify epsilon by the rule for doubling captimes: UP and OUP with either; and the race."""
    forms = [
        *(Certifier(f"{UP}, {rule} rule", "up", {"variant": "paper", "rule": rule}) for rule in (OLD, NEW)),
        *(Certifier(f"OUP, {rule} rule", "oup", {"rule": rule}) for rule in (OLD, NEW)),
        RACE_CONTENDER,
    ]
    for each in forms:
        for point in each.points(setting, setting.log_laplace, seed, GOALS):
            yield Row(LOG_LAPLACE, each.label, seed, *point)
