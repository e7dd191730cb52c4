"""The methods that benchmarks/search.py compares, each through the same door (search_bench.SearchBench)."""

import os
import resource
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from quality_methods import _in_space, _suggested, _without_fine_print
from search_bench import BudgetSpent, SearchBench

from captime.spaces import Settings, Space, as_configspace
from captime.spaces.clauses import Among, Both, Clause
from captime.spaces.parameters import Choice, Float

# Instances of a trial of Optuna's; the pruner ends most trials before.
_OPTUNA_INSTANCES = 32
# Instances that SMAC3 and irace may choose from.
_INSTANCES = 500
# Successive halving: the best third continues with three times as many instances, up to this many.
_KEEP, _MOST = 3, 81


def captime(bench: SearchBench) -> None:
    """The growing pool, as `captime run --effort search` has it."""
    bench.pool(effort="search")


def captime_balanced(bench: SearchBench) -> None:
    """The growing pool, as `captime run` has it if no effort is named."""
    bench.pool(effort="balanced")


def captime_certify(bench: SearchBench) -> None:
    """The growing pool, as `captime run --effort certify` has it."""
    bench.pool(effort="certify")


def certified_random(bench: SearchBench) -> None:
    """The growing pool without a model: random draws, with the engine's certificates."""
    bench.pool(effort="search", model=False)


def hyperband(bench: SearchBench) -> None:
    """Brackets of successive halving over random configurations; the budget of a configuration is instances."""
    number, best = -1, (0, -1.0)
    rungs = 1 + round(np.log(_MOST) / np.log(_KEEP))
    try:
        while True:
            for bracket in reversed(range(rungs)):
                count = int(np.ceil(rungs / (bracket + 1) * _KEEP**bracket))
                alive: list[tuple[Settings, list[float]]] = []
                for _ in range(count):
                    alive.append((bench.space.default if number < 0 else bench.space.draw(bench.seed, number), []))
                    number += 1
                instances = _MOST // _KEEP**bracket
                while alive:
                    for settings, scores in alive:
                        scores.extend(bench.utilities(settings, range(len(scores), instances)).tolist())
                        # More instances count before more luck.
                        if (len(scores), float(np.mean(scores))) > best:
                            best = (len(scores), float(np.mean(scores)))
                            bench.recommends(settings)
                    alive.sort(key=lambda each: -float(np.mean(each[1])))
                    alive = alive[: len(alive) // _KEEP] if instances < _MOST else []
                    instances = min(instances * _KEEP, _MOST)
    except BudgetSpent:
        return


def optuna(bench: SearchBench) -> None:
    """TPE; a trial is a configuration on instances in a random order, ended early by the Wilcoxon pruner."""
    import optuna as peer  # noqa: PLC0415 (optional)

    peer.logging.set_verbosity(peer.logging.CRITICAL)  # the end of the budget is no failure to talk about
    study = peer.create_study(
        sampler=peer.samplers.TPESampler(seed=bench.seed), pruner=peer.pruners.WilcoxonPruner(p_threshold=0.1)
    )
    study.enqueue_trial(dict(bench.space.default))
    chosen: dict[int, Settings] = {}
    rng = np.random.default_rng(bench.seed)

    def objective(trial: peer.Trial) -> float:
        settings = _suggested(bench.space, trial)
        if settings is None:
            return 1.0  # forbidden, and known to be without a run
        chosen[trial.number] = settings
        costs = []
        for position in rng.permutation(_OPTUNA_INSTANCES).tolist():
            costs.append(1.0 - float(bench.utilities(settings, range(position, position + 1))[0]))
            trial.report(costs[-1], position)
            if trial.should_prune():
                break  # its documentation: the mean so far, rather than a pruned trial
        return float(np.mean(costs))

    def told(study: peer.Study, _: peer.trial.FrozenTrial) -> None:
        if study.best_trial.number in chosen:
            bench.recommends(chosen[study.best_trial.number])

    try:
        study.optimize(objective, callbacks=[told])
    except BudgetSpent:
        return


def smac(bench: SearchBench) -> None:
    """The facade for algorithm configuration: its intensifier races configurations over instances, one run a trial."""
    from smac import AlgorithmConfigurationFacade, Scenario  # noqa: PLC0415 (optional)
    from smac.runhistory.dataclasses import TrialValue  # noqa: PLC0415 (optional)

    space = as_configspace(_without_fine_print(bench.space))
    space.seed(bench.seed)
    names = [str(number) for number in range(_INSTANCES)]

    def cost(config: Any, instance: str) -> float:
        settings = _in_space(bench.space, dict(config))
        if settings is None:
            return 1.0  # forbidden, and known to be without a run
        return 1.0 - float(bench.utilities(settings, range(int(instance), int(instance) + 1))[0])

    def never(config: Any, instance: str, seed: int = 0) -> float:  # the facade wants one, and asks and tells anyway
        return cost(config, instance) + 0 * seed

    with tempfile.TemporaryDirectory() as folder:
        scenario = Scenario(
            space,
            output_directory=Path(folder),
            n_trials=10**6,
            instances=names,
            deterministic=True,
            seed=bench.seed,
        )
        facade = AlgorithmConfigurationFacade(
            scenario,
            never,
            overwrite=True,
            logging_level=50,
            initial_design=AlgorithmConfigurationFacade.get_initial_design(
                scenario, additional_configs=[space.get_default_configuration()]
            ),
        )
        try:
            while True:
                trial = facade.ask()
                facade.tell(trial, TrialValue(cost=cost(trial.config, str(trial.instance))), save=False)
                incumbent = facade.intensifier.get_incumbent()
                best = None if incumbent is None else _in_space(bench.space, dict(incumbent))
                if best is not None:
                    bench.recommends(best)
        except (BudgetSpent, StopIteration):
            return


# ---------------------------------------------------------------------------------------------------------- irace

# R prints a line per run it wants and reads cost and time; everything else it prints is ignored.
_SCRIPT = """
suppressPackageStartupMessages(library(irace))
answers <- file("{answers}", "r", blocking = TRUE, raw = TRUE)
asks <- file("{asks}", "w", blocking = TRUE, raw = TRUE)
runner <- function(experiment, scenario) {{
  values <- sapply(experiment$configuration, function(x) if (is.numeric(x)) format(x, digits = 15) else as.character(x))
  bound <- if (is.null(experiment$bound) || is.na(experiment$bound)) {captime} else experiment$bound
  writeLines(paste(c(experiment$id.instance, bound, values), collapse = "\\t"), asks); flush(asks)
  found <- as.numeric(strsplit(readLines(answers, 1), " ")[[1]])
  list(cost = found[1], time = found[1])
}}
parameters <- readParameters(file = "{parameters}", digits = 12)
scenario <- list(targetRunner = runner, instances = 1:{instances}, maxTime = {seconds}, elitist = 1, capping = 1,
  boundMax = {captime}, testType = "t-test", deterministic = 1, digits = 12, seed = {seed}, logFile = "",
  initConfigurations = read.table("{default}", header = TRUE, colClasses = "character"),
  debugLevel = 0)
init <- scenario$initConfigurations
numbers <- parameters$names[parameters$types[parameters$names] %in% c("i", "r")]
for (name in numbers) init[[name]] <- as.numeric(init[[name]])
scenario$initConfigurations <- init
found <- irace(scenario = defaultScenario(scenario), parameters = parameters)
values <- sapply(found[1, parameters$names], function(x) if (is.numeric(x)) format(x, digits = 15) else as.character(x))
writeLines(paste(c("done", 0, values), collapse = "\\t"), asks); flush(asks)
"""


def irace(bench: SearchBench) -> None:
    """Elitist racing with capping. Capping needs runtime as the cost, so it minimises the mean of capped runtimes.

    It plans with its budget and answers at the end. So a search is made for each budget: `search.py` does that.
    """
    names = {f"p{place}": parameter.name for place, parameter in enumerate(bench.space.parameters)}
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        (here / "parameters.txt").write_text(_parameters(bench.space, names), encoding="utf-8")
        (here / "default.txt").write_text(_default(bench.space, names), encoding="utf-8")
        asks, answers = here / "asks", here / "answers"
        os.mkfifo(asks)
        os.mkfifo(answers)
        script = here / "search.R"
        said = _SCRIPT.format(
            asks=asks, answers=answers, parameters=here / "parameters.txt", default=here / "default.txt",
            instances=_INSTANCES, seconds=int(bench.budget), captime=int(bench.captime), seed=bench.seed + 1,
        )  # fmt: skip
        script.write_text(said, encoding="utf-8")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        with (here / "said.txt").open("w") as book:
            process = subprocess.Popen(["Rscript", str(script)], stdout=book, stderr=book)
        try:
            # In the order in which R opens them, since opening a pipe waits for the other side.
            with answers.open("w", encoding="utf-8") as replies, asks.open(encoding="utf-8") as lines:
                _answer(bench, names, lines, replies)
        except BrokenPipeError:
            pass
        finally:
            process.kill()
            process.wait()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        bench.elsewhere += after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        if bench.ended != "answer":
            words = (here / "said.txt").read_text(encoding="utf-8").strip().splitlines()
            bench.ended = f"no answer: {' '.join(words[-3:])[-200:]}"


def _answer(bench: SearchBench, names: Mapping[str, str], lines: TextIO, replies: TextIO) -> None:
    for line in lines:
        first, bound, *values = line.rstrip("\n").split("\t")
        settings = _from_text(bench.space, dict(zip(names.values(), values, strict=True)))
        if first == "done":
            bench.ended = "answer"
            bench.recommends(settings)
            return
        # irace ends by itself when its time is up, after the runs it has begun.
        bench.budget = np.inf
        longest = min(float(bound), bench.captime)
        replies.write(f"{float(bench.seconds(settings, range(int(first), int(first) + 1), longest)[0])}\n")
        replies.flush()


def _from_text(space: Space, values: Mapping[str, str]) -> Settings:
    row = space.default_row.copy()
    for place, parameter in enumerate(space.parameters):
        text = values[parameter.name].strip()
        if text == "NA":
            continue
        if isinstance(parameter, Choice):
            code = parameter.code(next(each for each in parameter.choices if str(each) == text))
        else:
            number = min(max(float(text), parameter.low), parameter.high)
            code = parameter.code(number if isinstance(parameter, Float) else round(number))
        row[place] = row[place] if code is None else code
    return space.settings(space.deactivated(row[np.newaxis])[0])


def _parameters(space: Space, names: Mapping[str, str]) -> str:
    """The space in irace's own format, under names that R accepts."""
    short = {name: key for key, name in names.items()}
    lines = []
    for key, parameter in zip(names, space.parameters, strict=True):
        if isinstance(parameter, Choice):
            kind, values = "c", _quoted(parameter.choices)
        else:
            kind = ("r" if isinstance(parameter, Float) else "i") + (",log" if parameter.log else "")
            values = f"{parameter.low!r}, {parameter.high!r}"
        condition = space.conditions.get(parameter.name)
        lines.append(f'{key} "" {kind} ({values})' + ("" if condition is None else f" | {_r(condition, short)}"))
    return "\n".join(lines) + "\n"


def _r(condition: Clause, short: Mapping[str, str]) -> str:
    """A condition as R says it."""
    match condition:
        case Among(parameter, values):
            return f"({short[parameter.name]} %in% c({_quoted(values)}))"
        case Both(parts):
            return " & ".join(_r(part, short) for part in parts)
    raise SystemExit("irace is given conditions that ask which values its parent has, and no others")


def _quoted(values: Iterable[object]) -> str:
    return ", ".join(f'"{value}"' for value in values)


def _default(space: Space, names: Mapping[str, str]) -> str:
    row = space.default
    values = [str(row.get(name, "NA")) for name in names.values()]
    return " ".join(names) + "\n" + " ".join(f'"{value}"' if value != "NA" else value for value in values) + "\n"


METHODS: Mapping[str, Callable[[SearchBench], None]] = {
    "captime": captime,
    "balanced": captime_balanced,
    "certify": captime_certify,
    "random": certified_random,
    "hyperband": hyperband,
    "optuna": optuna,
    "smac": smac,
    "irace": irace,
}
"""By name, in the order of the report."""
LABELS = {
    "captime": "captime (search)",
    "balanced": "captime (balanced)",
    "certify": "captime (certify)",
    "random": "random search, certified",
    "hyperband": "Hyperband",
    "optuna": "Optuna (TPE, Wilcoxon)",
    "smac": "SMAC3",
    "irace": "irace (capping)",
}
OWN_SEARCH_PER_BUDGET = ("irace",)
"""Methods that plan with their budget, and answer at the end only."""


def missing(method: str) -> str | None:
    """Why a method cannot run here; None if it can."""
    if method in ("optuna", "smac") and find_spec(method) is None:
        return f"{method} is not installed; make peers installs it"
    if method == "irace":
        if shutil.which("Rscript") is None:
            return "R is not installed; on Debian: apt-get install r-cran-irace"
        asked = subprocess.run(["Rscript", "-e", "library(irace)"], capture_output=True, check=False)
        return None if asked.returncode == 0 else "R has no package irace; on Debian: apt-get install r-cran-irace"
    return None


def version_of_irace() -> str:
    """The version of R's package, as R tells it; empty if there is none."""
    asked = subprocess.run(
        ["Rscript", "-e", 'cat(as.character(packageVersion("irace")))'], capture_output=True, check=False, text=True
    )
    return asked.stdout.strip() if asked.returncode == 0 else ""
