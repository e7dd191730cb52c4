"""The methods that benchmarks/quality.py compares, each on the same bench: captime, random search, Optuna, SMAC3."""

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from quality_bench import Bench, BudgetSpent

from captime.spaces import Settings, Space, as_configspace
from captime.spaces.parameters import Choice, Float, Parameter

# Instances a configuration is run on at a time, by those that do not race: as in experiments/peers.
_TOGETHER = 8
# SMAC3 takes half a second of its own for each trial. So a trial of it is several instances, not one.
_BUNDLE, _BUNDLES = 4, 200
# A goal that captime will not reach: captimes are not made for a smaller epsilon than this.
_EPSILON = 0.02


def captime(bench: Bench) -> None:
    """The growing pool, as `captime run --effort search` has it."""
    bench.pool(_EPSILON, "search")


def random_search(bench: Bench) -> None:
    """The default, then random draws, each on the same few instances; the best mean is the incumbent."""
    best, number = -1.0, -1
    try:
        while True:
            settings = bench.space.default if number < 0 else bench.space.draw(bench.seed, number)
            number += 1
            mean = float(bench.utilities(settings, range(_TOGETHER)).mean())
            if mean > best:
                best = mean
                bench.recommends(settings)
    except BudgetSpent:
        return


def optuna(bench: Bench) -> None:
    """TPE; a trial is a configuration on the same few instances, the best trial is the incumbent."""
    import optuna as peer  # noqa: PLC0415 (optional)

    peer.logging.set_verbosity(peer.logging.ERROR)  # the end of the budget is no failure to talk about
    study = peer.create_study(sampler=peer.samplers.TPESampler(seed=bench.seed))
    study.enqueue_trial(dict(bench.space.default))
    chosen: dict[int, Settings] = {}

    def objective(trial: peer.Trial) -> float:
        settings = _suggested(bench.space, trial)
        if settings is None:
            return 1.0  # forbidden, and known to be without a run
        chosen[trial.number] = settings
        return 1.0 - float(bench.utilities(settings, range(_TOGETHER)).mean())

    def told(study: peer.Study, _: peer.trial.FrozenTrial) -> None:
        if study.best_trial.number in chosen:
            bench.recommends(chosen[study.best_trial.number])

    try:
        study.optimize(objective, callbacks=[told])
    except BudgetSpent:
        return


def _suggested(space: Space, trial: Any) -> Settings | None:
    """One value for every active parameter, parents before children; None if the combination is forbidden."""
    row = space.default_row[np.newaxis].copy()
    columns = space.columns(row)
    plain = [name for name in space.names if name not in space.conditions]
    for name in [*plain, *space.children_in_order]:
        parameter = space.by_name[name]
        if name in space.conditions and not np.all(space.conditions[name].truth(columns)[0]):
            columns[name][:] = np.nan
        elif parameter.size != 1:
            columns[name][:] = parameter.code(_value(parameter, trial))
    return space.settings(row[0]) if space.allowed(row)[0] else None


def _value(parameter: Parameter, trial: Any) -> Any:
    if isinstance(parameter, Choice):
        return trial.suggest_categorical(parameter.name, list(parameter.choices))
    if isinstance(parameter, Float):
        value = trial.suggest_float(parameter.name, parameter.low, parameter.high, log=parameter.log)
        return float(parameter.rounded(np.array(value)))
    return trial.suggest_int(parameter.name, parameter.low, parameter.high, log=parameter.log)


def smac(bench: Bench) -> None:
    """The facade for algorithm configuration, which races configurations over bundles of instances."""
    from smac import AlgorithmConfigurationFacade, Scenario  # noqa: PLC0415 (optional)
    from smac.runhistory.dataclasses import TrialValue  # noqa: PLC0415 (optional)

    space = as_configspace(_without_fine_print(bench.space))
    space.seed(bench.seed)
    names = [str(number) for number in range(_BUNDLES)]

    def cost(config: Any, instance: str) -> float:
        settings = _in_space(bench.space, dict(config))
        if settings is None:
            return 1.0  # forbidden, and known to be without a run
        first = int(instance) * _BUNDLE
        return 1.0 - float(bench.utilities(settings, range(first, first + _BUNDLE)).mean())

    def never(config: Any, instance: str, seed: int = 0) -> float:  # the facade wants one, and asks and tells anyway
        return cost(config, instance) + 0 * seed

    with tempfile.TemporaryDirectory() as folder:
        scenario = Scenario(
            space,
            output_directory=Path(folder),
            n_trials=10**6,
            instances=names,
            instance_features={name: [float(name)] for name in names},
            seed=bench.seed,
        )
        facade = AlgorithmConfigurationFacade(scenario, never, overwrite=True, logging_level=50)
        try:
            while True:
                trial = facade.ask()
                facade.tell(trial, TrialValue(cost=cost(trial.config, str(trial.instance))))
                incumbent = facade.intensifier.get_incumbent()
                best = None if incumbent is None else _in_space(bench.space, dict(incumbent))
                if best is not None:
                    bench.recommends(best)
        except (BudgetSpent, StopIteration):
            return


def _without_fine_print(space: Space) -> Space:
    """What ConfigSpace can say of a space: numbers are not rounded, and forbidden combinations are found out later."""
    plain = [replace(each, digits=None) if isinstance(each, Float) else each for each in space.parameters]
    return replace(space, parameters=tuple(plain), forbidden=(), favourites=())


def _in_space(space: Space, values: dict[str, Any]) -> Settings | None:
    """Settings from what ConfigSpace has: NumPy's values as Python's own, rounded; None if they are forbidden."""
    row = space.codes({name: value.item() if hasattr(value, "item") else value for name, value in values.items()})
    for place, parameter in enumerate(space.parameters):
        row[place] = parameter.rounded(np.array([row[place]]))[0] if isinstance(parameter, Float) else row[place]
    codes = space.deactivated(row[np.newaxis])
    return space.settings(codes[0]) if space.allowed(codes)[0] else None


METHODS: Mapping[str, Callable[[Bench], None]] = {
    "captime": captime,
    "random": random_search,
    "optuna": optuna,
    "smac": smac,
}
"""By name, in the order of the report."""

LABELS = {"captime": "captime", "random": "random search", "optuna": "Optuna (TPE)", "smac": "SMAC3"}


def missing(method: str) -> str | None:
    """Why a method cannot run here; None if it can."""
    if method in ("optuna", "smac") and find_spec(method) is None:
        return f"{method} is not installed; experiments/peers/requirements.txt says how"
    return None
