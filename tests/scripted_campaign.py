"""A whole campaign through the command line, with real processes whose outcomes are written in a script.

The program reports its own time, read from its instance file, and the scenario lets the reported time count. So two
campaigns have the same outcomes, to the last digit, however long the processes really took, and their certificates can
be compared byte for byte.
"""

import json
import os
import stat
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

# Ends a campaign that hangs. One that does not takes seconds, or a minute and more on a busy machine.
_PATIENCE = 600.0
CONFIGS = ("quick", "steady", "slow")
_PROGRAM = """#!/bin/sh
# Called as: program INSTANCE INFO CUTOFF LENGTH SEED -line NUMBER
seconds=$(sed -n "$7p" "$1")
echo "Result for SMAC: SAT, $seconds, 0, 0, $5"
"""
_SCENARIO = """
utility = "uniform(60)"
delta = 0.1
seed = 0
order = {order!r}
window = 4
jobs = {jobs}
oversubscribe = true
[target]
wrapper = "aclib1"
command = ["./program.sh"]
time = "reported"
[configurations]
quick = {{ line = 1 }}
steady = {{ line = 2 }}
slow = {{ line = 3 }}
[instances]
files = "instances/*"
population = {population!r}
[stop]
epsilon = 0.25
"""


@dataclass(frozen=True)
class Scripted:
    """A folder with a scripted campaign in it."""

    folder: Path

    @property
    def scenario(self) -> Path:
        """The scenario."""
        return self.folder / "scenario.toml"

    @property
    def ledger(self) -> Path:
        """The ledger it writes to."""
        return self.folder / "scenario.ledger"

    def begin(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        """`captime run`, just started."""
        return subprocess.Popen(
            [sys.executable, "-m", "captime", "run", str(self.scenario), "--json", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
            start_new_session=True,
        )

    def run(self, *arguments: str, **environment: str) -> tuple[int, str, str]:
        """`captime run` to its end: exit code, output, complaints."""
        process = self.begin(*arguments, **environment)
        out, said = process.communicate(timeout=_PATIENCE)
        return process.returncode, out, said

    def certificate(self) -> tuple[Any, int]:
        """Run to the goal; what is certified, and how many decisions that took."""
        code, out, said = self.run()
        assert code == 0, said
        told = json.loads(out)
        return told["certificate"], told["rounds"]


def scripted_campaign(
    folder: Path, *, order: str = "fixed", jobs: int = 2, instances: int = 400, population: str = "these"
) -> Scripted:
    """Write program, instances and scenario into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "program.sh"
    program.write_text(_PROGRAM, encoding="utf-8")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    (folder / "instances").mkdir(exist_ok=True)
    for number in range(instances):
        # Each by its own key: a longer list of instances begins with the shorter one.
        rng = np.random.default_rng((11, number))
        hard = float(rng.lognormal(1.0, 0.8))
        seconds = [hard * pace * float(rng.lognormal(0.0, 0.2)) for pace in (1.0, 1.8, 6.0)]
        text = "".join(f"{value:.6f}\n" for value in seconds)
        (folder / "instances" / f"{number:04d}").write_text(text, encoding="ascii")
    (folder / "scenario.toml").write_text(
        _SCENARIO.format(order=order, jobs=jobs, population=population), encoding="utf-8"
    )
    return Scripted(folder)
