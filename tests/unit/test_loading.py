"""Ctrl-C while captime is still being loaded: commands end quietly, the library leaves it to its user."""

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
