"""SMAC3 on a table: its facade for algorithm configuration, which races configurations over instances."""

import tempfile
import warnings
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from on_table import BudgetSpent, TableTarget

LABEL = "SMAC3"
# Trials of each search, a run each: it takes a good part of a second of its own for each.
FORMS = (60,)
_INSTANCES = 100


def missing() -> str | None:
    """Why it cannot run here."""
    return None if find_spec("smac") else "smac is not installed; see requirements.txt"


def which() -> str:
    """Which version it is."""
    return version("smac")


def search(target: TableTarget, trials: int) -> None:
    """Until the budget is spent or this many trials are made."""
    from ConfigSpace import Categorical, Configuration, ConfigurationSpace  # noqa: PLC0415 (optional)
    from smac import AlgorithmConfigurationFacade, Scenario  # noqa: PLC0415 (optional)
    from smac.main.exceptions import ConfigurationSpaceExhaustedException  # noqa: PLC0415 (optional)
    from smac.runhistory.dataclasses import TrialValue  # noqa: PLC0415 (optional)

    space = ConfigurationSpace(seed=target.seed)
    space.add(*(Categorical(key, values) for key, values in target.values.items()))

    def cost(config: Configuration, instance: str, seed: int = 0) -> float:  # noqa: ARG001 (the table has its own)
        return target.cost(target.nearest(dict(config)), int(instance))

    # Its forest would like to use all cores from within a worker process, and says so with every tree.
    warnings.filterwarnings("ignore", message="Loky-backed parallel loops")
    with tempfile.TemporaryDirectory() as folder:
        names = [str(number) for number in range(_INSTANCES)]
        scenario = Scenario(
            space,
            output_directory=Path(folder),
            n_trials=trials,
            instances=names,
            instance_features={name: [float(name)] for name in names},
            seed=target.seed,
        )
        facade = AlgorithmConfigurationFacade(scenario, cost, overwrite=True, logging_level=50)
        try:
            for _ in range(trials):
                trial = facade.ask()
                facade.tell(trial, TrialValue(cost=cost(trial.config, str(trial.instance))))
                incumbent = facade.intensifier.get_incumbent()
                if incumbent is not None:
                    target.recommends(target.nearest(dict(incumbent)))
        except (BudgetSpent, StopIteration, ConfigurationSpaceExhaustedException):
            return
