"""Loading captime: what it does not load, and Ctrl-C while it is being loaded."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import captime

SOURCES = Path(captime.__file__).parents[1]


def interrupted(tmp_path: Path, while_loading: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Python with these words, and a Ctrl-C when this package is loaded."""
    (tmp_path / f"{while_loading}.py").write_text("raise KeyboardInterrupt", encoding="utf-8")
    path = os.pathsep.join((str(tmp_path), str(SOURCES)))
    return subprocess.run(
        [sys.executable, *words], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("package", ["numpy", "typer"])
def test_commands_end_quietly(tmp_path: Path, package: str) -> None:
    """As a module and as the program that is installed; numpy is loaded first, typer with the commands."""
    program = tmp_path / "bin" / "captime"
    program.parent.mkdir()
    program.write_text("from captime.__main__ import main\nmain()\n", encoding="utf-8")
    for words in (("-m", "captime", "list"), (str(program), "list")):
        done = interrupted(tmp_path, package, *words)
        assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_whoever_uses_the_library_is_interrupted(tmp_path: Path) -> None:
    """Ending somebody else's process is not for us to decide."""
    words = "try:\n    import captime\nexcept KeyboardInterrupt:\n    print('mine')"
    assert interrupted(tmp_path, "numpy", "-c", words).stdout == "mine\n"


def test_commands_start_without_the_packages_that_few_of_them_need() -> None:
    """scipy.stats alone would take a third of the time of every start; optional packages come when they are used."""
    heavy = ("scipy.stats", "ConfigSpace", "distributed", "matplotlib", "pyarrow", "sklearn", "starlette", "yaml")
    words = f"import sys, captime.cli; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
