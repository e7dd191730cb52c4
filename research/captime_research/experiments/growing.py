"""Pools that grow: COUP in one campaign, against what it would cost to begin afresh on every pool.

The order of the configurations is drawn by seed, since COUP takes them as independent draws from a space.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from captime.drive import drive
from captime.errors import ScenarioError
from captime.procedures.coup import Coup, Phase
from captime.procedures.problem import Problem
from captime.sources import RuntimeTable
from captime.sources.replay import Replay
from captime.sources.window import stream_of
from captime.utilities import parse_utility
from captime_research.experiments.paper import RACE
from captime_research.experiments.rows import Row
from captime_research.experiments.setting import Setting, first_time

COUP, OUP_AFRESH = "COUP", "OUP afresh"
POOL = "race on a growing pool"
# Keeps the order of configurations apart from everything else that is derived from the same seed.
_RENUMBER_KEY = 0x67617073
# An epsilon of 0 would mean "never stop".
_NEARLY_NOTHING = 1e-3


@dataclass(frozen=True, slots=True)
class Schedule:
    """How fast the phases' epsilon and gamma fall, as powers of 1/e.

    Attributes:
        title: What to call it.
        epsilon_rate: Phase p wants epsilon below exp(-p · epsilon_rate).
        gamma_rate: And all but the luckiest exp(-p · gamma_rate) of the space.
        phases: How many at most: for tables like the follow-up's minisat, and for long ones like its CPLEX.
    """

    title: str
    epsilon_rate: float
    gamma_rate: float
    phases: tuple[int, int]


# The follow-up's Figure 3, and two of the four schedules of its Figure 4 that need fewer configurations.
SCHEDULES = (
    Schedule("ε = e^(-p/6), γ = e^(-p/3)", 1 / 6, 1 / 3, (13, 15)),
    Schedule("ε = γ = e^(-p/5)", 1 / 5, 1 / 5, (13, 12)),
    Schedule("ε = e^(-p/3), γ = e^(-p/30)", 1 / 3, 1 / 30, (5, 7)),
)


def many(setting: Setting, seed: int) -> Iterator[Row]:
    """COUP against OUP and the race run afresh on every pool, and the race on a growing pool; x is the phase's goal."""
    setting = renumbered(setting, seed)
    for schedule in SCHEDULES:
        yield from _schedule(setting, seed, schedule)


def _schedule(setting: Setting, seed: int, schedule: Schedule) -> Iterator[Row]:
    panel = schedule.title
    try:
        reached = _coup(setting, seed, schedule)
    except ScenarioError as refusal:
        yield Row(panel, COUP, seed, math.nan, math.nan, str(refusal))
        return
    for phase, seconds in reached:
        aim = max(phase.epsilon, _NEARLY_NOTHING)
        goal = round(math.exp(-phase.number * schedule.epsilon_rate), 4)
        yield Row(panel, COUP, seed, goal, seconds)
        pool = replace(setting, table=first_configurations(setting.table, phase.n_configs))
        for label, procedure in ((OUP_AFRESH, "oup"), (RACE, "race")):
            alone = pool.run(procedure, setting.log_laplace, aim, seed)
            yield Row(panel, label, seed, goal, float(first_time(alone, np.array([aim]))[0]))
        grown = setting.run("pool", setting.log_laplace, aim, seed, {"gamma": phase.gamma})
        done = grown.outcome.stopped == "epsilon"
        yield Row(panel, POOL, seed, goal, grown.cpu_seconds if done else math.nan, "" if done else "too few draws")


def _coup(setting: Setting, seed: int, schedule: Schedule) -> list[tuple[Phase, float]]:
    """Its finished phases and CPU seconds until their ends; it ends when the table has no further configurations."""
    utility = parse_utility(setting.log_laplace)
    stream = stream_of(str(setting.sampling), setting.table.groups, seed)
    problem = Problem(
        setting.table.n_configs,
        utility,
        setting.delta,
        math.exp(-schedule.phases[setting.long] * schedule.epsilon_rate),
        captime_first=setting.time(1.0),
        captime_limit=setting.table.limit,
        n_instances=stream.length,
    )
    coup = Coup(problem, epsilon_rate=schedule.epsilon_rate, gamma_rate=schedule.gamma_rate)
    made = drive(coup, Replay(setting.table, stream, coup.plan, utility)).trace.decisions()
    ends = [min(int(np.searchsorted(made.round, phase.decisions)), len(made.round) - 1) for phase in coup.phases]
    return [(phase, float(made.seconds[end])) for phase, end in zip(coup.phases, ends, strict=True)]


def first_configurations(table: RuntimeTable, count: int) -> RuntimeTable:
    """Return the table cut after `count` configurations."""
    return RuntimeTable(
        table.name, table.configs[:count], table.instances, table.seconds[:count], table.limit, table.groups
    )


def renumbered(setting: Setting, seed: int) -> Setting:
    """Renumber the configurations: a method without results names the first one, which must not be a gift."""
    table = setting.table
    order = np.random.default_rng((_RENUMBER_KEY, seed)).permutation(table.n_configs)
    names = tuple(table.configs[place] for place in order.tolist())
    shuffled = RuntimeTable(
        table.name, names, table.instances, table.seconds[order], table.limit, table.groups, table.notes
    )
    return replace(setting, table=shuffled)
