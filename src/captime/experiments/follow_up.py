"""Figures of the follow-up paper: OUP and COUP beside UP, what is spent on whom, rules for doubling captimes."""

import math
from collections.abc import Iterator

import numpy as np

from captime.arrays import FloatArray
from captime.drive import drive
from captime.errors import ScenarioError
from captime.experiments.paper import PAPER_UP, RACE_CONTENDER, UP, Certifier
from captime.experiments.rows import Row
from captime.experiments.setting import Setting, first_time
from captime.procedures.coup import Coup
from captime.procedures.problem import Problem
from captime.sources import RuntimeTable
from captime.sources.replay import Replay
from captime.sources.sampling import stream_of
from captime.utilities import parse_utility

EPSILONS: FloatArray = np.array([0.5, 0.4, 0.3, 0.25, 0.2, 0.15, 0.12, 0.1])
OUP = Certifier("OUP", "oup", {"rule": "old"})
_SMALLEST = 0.1


def optimism(setting: Setting, seed: int) -> Iterator[Row]:
    """CPU time to certify epsilon: UP and OUP with the old rule for doubling, as in the follow-up paper; the race."""
    for panel, utility in (("log-Laplace utility", setting.log_laplace), ("uniform utility", setting.uniform)):
        for each in (PAPER_UP, OUP, RACE_CONTENDER):
            for point in each.points(setting, utility, seed, EPSILONS):
                yield Row(panel, each.label, seed, *point)


def time_per_configuration(setting: Setting, seed: int) -> Iterator[Row]:
    """CPU time spent on each configuration until epsilon 0.1, against its mean utility."""
    truth = setting.truth(setting.log_laplace)
    for each in (PAPER_UP, OUP, RACE_CONTENDER):
        result = setting.run(each.procedure, setting.log_laplace, _SMALLEST, seed, each.options)
        for utility, seconds in zip(truth.tolist(), result.outcome.seconds.tolist(), strict=True):
            yield Row(f"until ε = {_SMALLEST:g}", each.label, seed, round(utility, 5), seconds)


def doubling(setting: Setting, seed: int) -> Iterator[Row]:
    """CPU time to certify epsilon by the rule for doubling captimes. UP has the old rule only."""
    for each in (
        Certifier(f"{UP}, old rule", "up", PAPER_UP.options),
        Certifier("OUP, old rule", "oup", {"rule": "old"}),
        Certifier("OUP, new rule", "oup", {"rule": "new"}),
        RACE_CONTENDER,
    ):
        for point in each.points(setting, setting.log_laplace, seed, EPSILONS):
            yield Row("log-Laplace utility", each.label, seed, *point)


def many(setting: Setting, seed: int) -> Iterator[Row]:
    """COUP, one campaign whose pool grows, against OUP run afresh on every pool; x is the share gamma left out."""
    panel = "every pool on its way"
    utility = parse_utility(setting.log_laplace)
    stream = stream_of(str(setting.sampling), setting.table.groups, seed)
    problem = Problem(
        setting.table.n_configs,
        utility,
        setting.delta,
        captime_first=setting.time(1.0),
        captime_limit=setting.table.limit,
        n_instances=stream.length,
    )
    try:
        coup = Coup(problem)
    except ScenarioError as refusal:
        yield Row(panel, "COUP", seed, math.nan, math.nan, str(refusal))
        return
    # COUP ends by itself when the next pool would be larger than the table.
    made = drive(coup, Replay(setting.table, stream, coup.plan, utility)).trace.decisions()
    for phase in coup.phases:
        reached = int(np.searchsorted(made.round, phase.decisions))
        yield Row(panel, "COUP", seed, round(phase.gamma, 4), float(made.seconds[min(reached, len(made.round) - 1)]))
        pool = Setting(first_configurations(setting.table, phase.n_configs), setting.scale, setting.sampling)
        alone = pool.run("oup", setting.log_laplace, phase.epsilon, seed)
        spent = float(first_time(alone, np.array([phase.epsilon]))[0])
        yield Row(panel, "OUP afresh", seed, round(phase.gamma, 4), spent)


def first_configurations(table: RuntimeTable, count: int) -> RuntimeTable:
    """The table cut after so many configurations."""
    return RuntimeTable(
        table.name, table.configs[:count], table.instances, table.seconds[:count], table.limit, table.groups
    )
