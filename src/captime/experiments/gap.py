"""How good is the answer, and how soon? Everybody on the same streams: procedures with a guarantee and baselines.

The relative gap of an answer is 1 - U / max U, with mean utilities over the whole table: 0 for the best configuration.
Nobody running sees it; it is looked up afterwards. Methods that have to be told beforehand how much they may spend are
run with several budgets, and at a given moment the answer of the largest one that was finished by then counts.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from captime.arrays import FloatArray, IntArray
from captime.errors import ScenarioError
from captime.experiments.paper import RACE
from captime.experiments.rows import Row
from captime.experiments.setting import Setting
from captime.sources import RuntimeTable

CERTIFIED = "certified epsilon"
# Who promises what; each is a panel of the picture, with the race in all of them.
UTILITY, RUNTIME, NOTHING = "guarantee on utility", "guarantee on mean runtime", "no guarantee"
# How much longer than the race's certificate for epsilon 0.1 everybody may go on, and where the curves begin.
PATIENCE, BEGIN, POINTS = 100.0, 1e-4, 41
# Keeps the order of configurations apart from everything else that is derived from the same seed.
_RENUMBER_KEY = 0x67617073


@dataclass(frozen=True)
class Contender:
    """A method with its options.

    Attributes:
        label: What to call it.
        procedure: Its name.
        forms: Options; several where it has to be told beforehand how much it may spend.
        promises: What kind of guarantee it has.
    """

    label: str
    procedure: str
    promises: str
    forms: tuple[Mapping[str, object], ...] = ({},)


def contenders(n_configs: int, captime: float) -> tuple[Contender, ...]:
    """Everybody; budgets in proportion to the number of configurations and to the captime that matters."""
    return (
        Contender(RACE, "race", UTILITY),
        Contender("UP", "up", UTILITY, ({"variant": "paper"},)),
        Contender("OUP", "oup", UTILITY),
        Contender("COUP", "coup", UTILITY),
        Contender("Structured Procrastination", "structured-procrastination", RUNTIME, ({"epsilon": 1.0},)),
        Contender("SP with Confidence", "spc", RUNTIME),
        Contender("LeapsAndBounds", "leaps-and-bounds", RUNTIME),
        Contender("CapsAndRuns", "caps-and-runs", RUNTIME),
        Contender("ImpatientCapsAndRuns", "impatient-caps-and-runs", RUNTIME, ({"pool": 0.05},)),
        Contender("AC-Band", "ac-band", NOTHING, _budgets("instances", 60, 4, 4)),
        Contender("Successive Halving", "successive-halving", NOTHING, _budgets("runs", n_configs, 4, 6)),
        Contender("Hyperband", "hyperband", NOTHING, _budgets("resource", 9 * captime, 4, 4)),
        Contender("ParamILS-style", "paramils-style", NOTHING, ({"steps": 100_000},)),
        Contender("GGA-style", "gga-style", NOTHING, _budgets("generations", 4, 4, 4)),
    )


def _budgets(option: str, first: float, factor: int, count: int) -> tuple[Mapping[str, object], ...]:
    return tuple({option: first * factor**k} for k in range(count))


def gap(setting: Setting, seed: int) -> Iterator[Row]:
    """Gap, and certified epsilon where there is one, against CPU time spent."""
    utility = setting.log_laplace
    reference = setting.run("race", utility, 0.1, 0)
    moments = np.geomspace(BEGIN, 1.0, POINTS) * PATIENCE * reference.cpu_seconds
    shuffled = renumbered(setting, seed)
    truth = shuffled.truth(utility)
    lost = 1.0 - truth / truth.max()
    worth_a_tenth = min(9.0 * setting.time(60.0) / 2.0, setting.table.limit)
    for contender in contenders(setting.table.n_configs, worth_a_tenth):
        try:
            configs, epsilons = _followed(shuffled, contender, seed, moments)
        except ScenarioError as refusal:
            yield Row(contender.promises, contender.label, seed, math.nan, math.nan, str(refusal))
            continue
        answers = np.where(configs >= 0, lost.take(configs), np.nan)
        panels = (UTILITY, RUNTIME, NOTHING) if contender.label == RACE else (contender.promises,)
        for moment, answer, epsilon in zip(moments.tolist(), answers.tolist(), epsilons.tolist(), strict=True):
            for panel in panels:
                yield Row(panel, contender.label, seed, moment, answer)
            if contender.promises == UTILITY:
                yield Row(CERTIFIED, contender.label, seed, moment, epsilon)


def renumbered(setting: Setting, seed: int) -> Setting:
    """The configurations in another order: whoever knows nothing yet names the first one, which must not be a gift."""
    table = setting.table
    order = np.random.default_rng((_RENUMBER_KEY, seed)).permutation(table.n_configs)
    names = tuple(table.configs[place] for place in order.tolist())
    shuffled = RuntimeTable(
        table.name, names, table.instances, table.seconds[order], table.limit, table.groups, table.notes
    )
    return replace(setting, table=shuffled)


def _followed(setting: Setting, contender: Contender, seed: int, moments: FloatArray) -> tuple[IntArray, FloatArray]:
    """Whom it would recommend at each of these moments (-1: nobody yet), and the epsilon it had certified."""
    configs: IntArray = np.full(len(moments), -1)
    epsilons: FloatArray = np.ones(len(moments))
    # A goal that is hardly ever reached, so that those who certify go on to the end.
    goal = 0.02 if contender.promises == UTILITY else 0.1
    for form in contender.forms:
        result = setting.run(contender.procedure, setting.log_laplace, goal, seed, form, budget=float(moments[-1]))
        if len(contender.forms) > 1:
            configs[moments >= result.cpu_seconds] = result.certificate.config
            continue
        made = result.outcome.trace.decisions()
        place = np.searchsorted(made.seconds, moments, side="right") - 1
        configs = np.where(place >= 0, made.config.take(place), -1)
        epsilons = np.where(place >= 0, made.epsilon.take(place), 1.0)
    return configs, epsilons
