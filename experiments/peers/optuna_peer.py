"""Optuna on a table: a trial is a configuration on a few instances, TPE chooses, the best trial is the incumbent."""

from importlib.metadata import version
from importlib.util import find_spec

import numpy as np
from on_table import BudgetSpent, TableTarget

LABEL = "Optuna (TPE)"
# Trials of each search, as a multiple of the number of configurations.
FORMS = (10,)
_INSTANCES = 32


def missing() -> str | None:
    """Why it cannot run here."""
    return None if find_spec("optuna") else "optuna is not installed; see requirements.txt"


def which() -> str:
    """Which version it is."""
    return version("optuna")


def search(target: TableTarget, rounds: int) -> None:
    """Until the budget is spent or all trials are made."""
    import optuna  # noqa: PLC0415 (optional)

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=target.seed))

    def objective(trial: optuna.Trial) -> float:
        chosen = {key: trial.suggest_categorical(key, values) for key, values in target.values.items()}
        config = target.nearest(chosen)
        trial.set_user_attr("config", config)
        return float(np.mean([target.cost(config, position) for position in range(_INSTANCES)]))

    def told(study: optuna.Study, _: optuna.trial.FrozenTrial) -> None:
        target.recommends(int(study.best_trial.user_attrs["config"]))

    try:
        # Runs of a configuration seen before cost nothing, so trials are bounded as well as seconds.
        study.optimize(objective, n_trials=rounds * len(target.setting.table.configs), callbacks=[told])
    except BudgetSpent:
        return
