"""Make the files of this folder anew: small studies of Optuna, SMAC3 and irace over one made-up cost.

Needs the environment of `make peers`; irace's files need R with irace.
"""

import json
import logging
import math
import shutil
import subprocess
import tempfile
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).parent
INSTANCES = [f"train/{number}.cnf" for number in range(6)]
_IRACE = """
suppressMessages(library(irace))
parameters <- readParameters(text = '
decay "" r (0.5, 1)
restarts "" i,log (1, 1000)
phase "" c (true, false, random)
noise "" r (0, 1) | phase == "random"
')
cost <- function(experiment, scenario) {
  s <- experiment$configuration
  noise <- if (is.na(s$noise)) 0 else s$noise
  wrong <- if (s$phase == "false") 0 else 0.3
  list(cost = abs(s$decay - 0.8) + abs(log(s$restarts / 50)) / 10 + wrong + noise)
}
scenario <- list(targetRunner = cost, instances = INSTANCES, maxExperiments = 180, seed = 7, logFile = LOG)
invisible(capture.output(irace(scenario = scenario, parameters = parameters)))
load(LOG)
elites <- iraceResults$iterationElites
best <- iraceResults$allConfigurations[iraceResults$allConfigurations$.ID. == elites[length(elites)], ]
write.csv(best, CSV, row.names = FALSE)
# Folders and machines are left out of what is kept.
iraceResults$scenario <- iraceResults$scenario[c("instances", "maxExperiments", "seed")]
save(iraceResults, file = LOG)
cat(as.character(packageVersion("irace")))
"""


def cost(settings: dict[str, object]) -> float:
    """Return what a configuration costs; best at decay 0.8, restarts 50, phase false."""
    wrong = 0.0 if settings["phase"] == "false" else 0.3
    noise = float(str(settings.get("noise") or 0.0))
    far = abs(math.log(int(str(settings["restarts"])) / 50)) / 10
    return abs(float(str(settings["decay"])) - 0.8) + far + wrong + noise


def make_optuna() -> str:
    """Write a study into SQLite and into a journal."""
    import optuna  # noqa: PLC0415 (optional)
    from optuna.storages import JournalStorage  # noqa: PLC0415 (optional)
    from optuna.storages.journal import JournalFileBackend  # noqa: PLC0415 (optional)

    optuna.logging.set_verbosity(optuna.logging.ERROR)

    def objective(trial: optuna.Trial) -> float:
        settings: dict[str, object] = {
            "decay": trial.suggest_float("decay", 0.5, 1.0),
            "restarts": trial.suggest_int("restarts", 1, 1000, log=True),
            "phase": trial.suggest_categorical("phase", ["true", "false", "random"]),
        }
        if settings["phase"] == "random":
            settings["noise"] = trial.suggest_float("noise", 0.0, 1.0)
        if trial.number == 3:
            raise optuna.TrialPruned
        return cost(settings)

    for name in ("optuna.db", "optuna.journal"):
        (HERE / name).unlink(missing_ok=True)
    journal = JournalStorage(JournalFileBackend(str(HERE / "optuna.journal")))
    for storage in (f"sqlite:///{HERE / 'optuna.db'}", journal):
        study = optuna.create_study(study_name="decay", storage=storage, sampler=optuna.samplers.TPESampler(seed=7))
        study.enqueue_trial({"decay": 0.95, "restarts": 100, "phase": "true"})
        study.optimize(objective, n_trials=25)
    return version("optuna")


def make_smac() -> str:
    """Write a run history of SMAC3, with the file of its intensifier."""
    from ConfigSpace import Categorical, Configuration, ConfigurationSpace, EqualsCondition, Float, Integer  # noqa: PLC0415
    from smac import AlgorithmConfigurationFacade, Scenario  # noqa: PLC0415

    space = ConfigurationSpace(seed=7)
    phase = Categorical("phase", ["true", "false", "random"], default="true")
    noise = Float("noise", (0.0, 1.0), default=0.5)
    restarts = Integer("restarts", (1, 1000), log=True, default=100)
    space.add(Float("decay", (0.5, 1.0), default=0.95), restarts, phase, noise)
    space.add(EqualsCondition(noise, phase, "random"))

    def train(config: Configuration, instance: str, seed: int = 0) -> float:
        return cost(dict(config))

    with tempfile.TemporaryDirectory() as folder:
        features = {name: [float(number)] for number, name in enumerate(INSTANCES)}
        scenario = Scenario(
            space, output_directory=Path(folder), n_trials=60, instances=INSTANCES, instance_features=features, seed=7
        )
        facade = AlgorithmConfigurationFacade(scenario, train, overwrite=True, logging_level=logging.ERROR)
        facade.optimize()
        (HERE / "smac3").mkdir(exist_ok=True)
        for name in ("runhistory.json", "intensifier.json"):
            shutil.copy(next(Path(folder).rglob(name)), HERE / "smac3" / name)
    return version("smac")


def make_irace() -> str:
    """Write a log of irace, and its best configurations as CSV."""
    values = {
        "INSTANCES": "c(" + ", ".join(map(json.dumps, INSTANCES)) + ")",
        "LOG": json.dumps(str(HERE / "irace.Rdata")),
        "CSV": json.dumps(str(HERE / "irace.csv")),
    }
    script = _IRACE
    for name, value in values.items():
        script = script.replace(name, value)
    told = subprocess.run(["Rscript", "-e", script], check=True, capture_output=True, text=True)
    return told.stdout.strip()


if __name__ == "__main__":
    made = {"optuna": make_optuna(), "smac3": make_smac(), "irace": make_irace()}
    (HERE / "versions.json").write_text(json.dumps(made, indent=2) + "\n", encoding="utf-8")
