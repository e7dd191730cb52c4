"""irace on a table: R asks for runs by the line, this side answers; elite configurations are the incumbents."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TextIO

from on_table import BudgetSpent, TableTarget

LABEL = "irace"
# It has to be told beforehand how many runs it may make, and answers at the end: so it searches once for each of these.
FORMS = (300, 1000, 3000)
_INSTANCES = 500
# R prints a line per run it wants and reads its cost; everything else it prints is ignored.
_SCRIPT = """
suppressPackageStartupMessages(library(irace))
answers <- file("{answers}", "r", blocking = TRUE, raw = TRUE)
asks <- file("{asks}", "w", blocking = TRUE, raw = TRUE)
runner <- function(experiment, scenario) {{
  line <- paste(c(experiment$id.instance, unlist(experiment$configuration)), collapse = "\\t")
  writeLines(line, asks); flush(asks)
  list(cost = as.numeric(readLines(answers, 1)))
}}
parameters <- readParameters(text = '{parameters}')
scenario <- defaultScenario(list(targetRunner = runner, instances = 1:{instances}, maxExperiments = {runs},
  seed = {seed}, logFile = "", debugLevel = 0))
found <- irace(scenario = scenario, parameters = parameters)
writeLines(paste(c("done", unlist(found[1, names(parameters$types)])), collapse = "\\t"), asks); flush(asks)
"""


def missing() -> str | None:
    """Why it cannot run here."""
    if shutil.which("Rscript") is None:
        return "R is not installed; on Debian: apt-get install r-cran-irace"
    asked = subprocess.run(["Rscript", "-e", "library(irace)"], capture_output=True, check=False)
    return None if asked.returncode == 0 else "R has no package irace; on Debian: apt-get install r-cran-irace"


def which() -> str:
    """Which version it is."""
    asked = ["Rscript", "-e", "cat(as.character(packageVersion('irace')))"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()


def search(target: TableTarget, runs: int) -> None:
    """Until the budget is spent or this many runs are made; the incumbent is known at the end."""
    parameters = "\\n".join(f'{key} "" c ({", ".join(values)})' for key, values in _named(target).items())
    with tempfile.TemporaryDirectory() as folder:
        asks, answers = Path(folder) / "asks", Path(folder) / "answers"
        os.mkfifo(asks)
        os.mkfifo(answers)
        script = Path(folder) / "search.R"
        script.write_text(
            _SCRIPT.format(
                asks=asks, answers=answers, parameters=parameters, instances=_INSTANCES, runs=runs, seed=target.seed + 1
            ),
            encoding="utf-8",
        )
        process = subprocess.Popen(["Rscript", str(script)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            # In the order in which R opens them, since opening a pipe waits for the other side.
            with answers.open("w", encoding="utf-8") as replies, asks.open(encoding="utf-8") as lines:
                _answer(target, lines, replies)
        finally:
            process.kill()
            process.wait()


def _answer(target: TableTarget, lines: TextIO, replies: TextIO) -> None:
    names = list(target.values)
    for line in lines:
        first, *values = line.rstrip("\n").split("\t")
        config = target.nearest(dict(zip(names, (_plain(each) for each in values), strict=False)))
        if first == "done":
            target.recommends(config)
            return
        try:
            replies.write(f"{target.cost(config, int(first))}\n")
        except BudgetSpent:
            return
        replies.flush()


def _named(target: TableTarget) -> dict[str, list[str]]:
    """Parameters under names that R accepts, values in quotes."""
    return {key.replace("-", "_"): [f'"{value}"' for value in values] for key, values in target.values.items()}


def _plain(value: str) -> str:
    return value.strip('"')
