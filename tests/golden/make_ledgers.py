"""Make the ledgers of tests/golden/ledgers anew, one of each kind: `python tests/golden/make_ledgers.py [KIND …]`.

They stand for the files that people have from a release, so they are made anew only before a first release, or beside
the old ones. The campaigns run in a folder under the system's temporary one, whose name is the same everywhere. The
target is a script without an interpreter in its identity, so that the ledgers can be resumed on any machine.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent / "ledgers"
PLACE = Path(tempfile.gettempdir()) / "captime-golden"


def captime(*words: str, expected: int = 0, crash_at: str = "") -> None:
    """Run a command in the folder; `crash_at` names where it is killed (see `ledger.connection.crash_point`)."""
    environment = {**os.environ, "CAPTIME_CRASH_AT": crash_at} if crash_at else dict(os.environ)
    command = [sys.executable, "-m", "captime", *words]
    done = subprocess.run(command, cwd=PLACE, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != expected:
        raise SystemExit(f"{' '.join(words)} ended with {done.returncode}, not {expected}:\n{done.stdout}{done.stderr}")


def race() -> None:
    """Three listed configurations."""
    captime("run", "race.toml", "--quiet")


def fixed() -> None:
    """Outcomes are told in a fixed order."""
    captime("run", "fixed.toml", "--quiet")


def pool() -> None:
    """A parameter space."""
    captime("run", "pool.toml", "--quiet")


def function() -> None:
    """A Python function as the target."""
    captime("run", "function.toml", "--quiet")


def dask() -> None:
    """A Dask cluster of one worker on this machine."""
    captime("run", "dask.toml", "--quiet")


def late() -> None:
    """A configuration joins a campaign that had ended without it."""
    whole = (PLACE / "late.toml").read_text(encoding="utf-8")
    (PLACE / "late.toml").write_text(whole.replace("better = { share = 97 }\n", ""), encoding="utf-8")
    captime("run", "late.toml", "--quiet")
    (PLACE / "late.toml").write_text(whole, encoding="utf-8")
    captime("run", "late.toml", "--quiet")


def resumed() -> None:
    """Killed with a run under way, resumed, stopped, and resumed with a smaller epsilon."""
    captime("run", "resumed.toml", "--quiet", expected=-signal.SIGKILL, crash_at="intent-committed:after:9")
    captime("run", "resumed.toml", "--quiet", "--epsilon", "0.6")
    captime("run", "resumed.toml", "--quiet")


def measure() -> None:
    """A measurement that stopped half-way, because its CPU time was spent."""
    whole = (PLACE / "measure.toml").read_text(encoding="utf-8")
    (PLACE / "measure.toml").write_text(whole.replace('cpu = "1m"', 'cpu = "300ms"'), encoding="utf-8")
    captime("measure", "measure.toml", "-o", "measure.npz", "--quiet", expected=3)


def validate() -> None:
    """The leader of the race and the default on held-out instances."""
    captime(
        *("validate", "race.ledger", "--instances", "held-out/*.txt"),
        *("--scenario", "race.toml", "--ledger", "validate.ledger", "--quiet"),
    )


KINDS = (race, fixed, pool, function, dask, late, resumed, measure, validate)

if __name__ == "__main__":
    shutil.rmtree(PLACE, ignore_errors=True)
    shutil.copytree(HERE, PLACE)
    for make in KINDS:
        if not sys.argv[1:] or make.__name__ in sys.argv[1:]:
            (PLACE / f"{make.__name__}.ledger").unlink(missing_ok=True)
            make()
            shutil.copyfile(PLACE / f"{make.__name__}.ledger", HERE / f"{make.__name__}.ledger")
    shutil.rmtree(PLACE)
