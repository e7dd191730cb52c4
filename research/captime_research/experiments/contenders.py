"""Who takes part in the comparison of answers: every procedure with a guarantee on utility, and every baseline."""

from collections.abc import Mapping
from dataclasses import dataclass

from captime_research.experiments.paper import RACE

# Who promises what; each is a panel of the picture, with the race in all of them.
UTILITY, RUNTIME = "guarantee on utility", "guarantee on mean runtime"
HALVING, CONFIGURATORS = "no guarantee: halving and racing", "no guarantee: configurators"
PANELS = (UTILITY, RUNTIME, HALVING, CONFIGURATORS)
# What the methods with a guarantee on mean runtime are asked for: a factor 1 + 0.25 and a fifth of the instances cut
# (the follow-up's parameters). Structured Procrastination would need queues of thousands of instances for that.
RUNTIME_EPSILON, RUNTIME_CUT = 0.25, 0.2


@dataclass(frozen=True)
class Contender:
    """A method with its options.

    Attributes:
        label: What to call it.
        procedure: Its name.
        promises: What kind of guarantee it has; one of the panels.
        forms: Options; several where it has to be told beforehand how much it may spend.
        ends: Whether it has a guarantee that holds once it has ended, and not before.
    """

    label: str
    procedure: str
    promises: str
    forms: tuple[Mapping[str, object], ...] = ({},)
    ends: bool = False


def contenders(n_configs: int, captime: float) -> tuple[Contender, ...]:
    """Return all contenders; budgets in proportion to the number of configurations and to the captime that matters."""
    asked: Mapping[str, object] = {"epsilon": RUNTIME_EPSILON, "gamma": RUNTIME_CUT}
    return (
        Contender(RACE, "race", UTILITY),
        Contender("UP", "up", UTILITY, ({"variant": "paper"},)),
        Contender("OUP", "oup", UTILITY),
        Contender("COUP", "coup", UTILITY),
        Contender("Structured Procrastination", "structured-procrastination", RUNTIME, ({"epsilon": 1.0},)),
        Contender("SP with Confidence", "spc", RUNTIME),
        Contender("LeapsAndBounds", "leaps-and-bounds", RUNTIME, (asked,), ends=True),
        Contender("CapsAndRuns", "caps-and-runs", RUNTIME, (asked,), ends=True),
        Contender("ImpatientCapsAndRuns", "impatient-caps-and-runs", RUNTIME, ({**asked, "pool": 0.05},), ends=True),
        Contender("AC-Band", "ac-band", HALVING, _budgets("instances", 60, 4, 5)),
        Contender("Successive Halving", "successive-halving", HALVING, _budgets("runs", n_configs, 4, 6)),
        Contender("Hyperband", "hyperband", HALVING, _budgets("resource", 9 * captime, 4, 4)),
        Contender("ParamILS-style", "paramils-style", CONFIGURATORS, ({"steps": 100_000},)),
        Contender("GGA-style", "gga-style", CONFIGURATORS, _budgets("generations", 4, 4, 4)),
    )


def _budgets(option: str, first: float, factor: int, count: int) -> tuple[Mapping[str, object], ...]:
    return tuple({option: first * factor**k} for k in range(count))
