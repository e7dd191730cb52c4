"""Loading captime: what it does not load, and Ctrl-C while it is being loaded."""

import os
import subprocess
import sys
from inspect import getdoc
from pathlib import Path

import pytest

import captime
from captime.cli import COMMANDS, function_of

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
    """As a module and as the program that is installed; typer is loaded first, numpy with the command."""
    program = tmp_path / "bin" / "captime"
    program.parent.mkdir()
    program.write_text("from captime.__main__ import main\nmain()\n", encoding="utf-8")
    for words in (("-m", "captime", "list"), (str(program), "list")):
        done = interrupted(tmp_path, package, *words)
        assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_programs_that_use_the_library_decide_themselves(tmp_path: Path) -> None:
    """A Ctrl-C while the library is loaded reaches the program that imports it."""
    words = "try:\n    from captime import simulate\nexcept KeyboardInterrupt:\n    print('mine')"
    assert interrupted(tmp_path, "numpy", "-c", words).stdout == "mine\n"


def loaded_by(code: str) -> set[str]:
    """Run the code in a process of its own and return the modules that it had loaded at its end."""
    words = f"import atexit, sys\natexit.register(lambda: print(*sys.modules, sep='\\n', file=sys.stderr))\n{code}"
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_what_every_terminal_asks_first_loads_no_library(option: str) -> None:
    """The version and the list of commands need the command line alone; benchmarks/startup.py prints what they cost."""
    loaded = loaded_by(f"sys.argv = ['captime', {option!r}]\nfrom captime.__main__ import main\nmain()")
    own = {name for name in loaded if name.split(".")[0] == "captime"}
    assert own <= {"captime", "captime.__main__", "captime.cli", "captime.errors"}
    assert not loaded & {"numpy", "scipy", "pydantic", "matplotlib", "sqlite3", "asyncio", "cloudpickle"}


def test_the_package_itself_loads_nothing_until_a_name_is_used() -> None:
    """`import captime` costs next to nothing, and every public name is there when it is asked for."""
    assert {name for name in loaded_by("import captime") if name.startswith("captime")} == {"captime"}
    assert all(getattr(captime, name) is not None for name in captime.__all__)
    assert set(captime.__all__) <= set(dir(captime))
    with pytest.raises(AttributeError, match="no attribute 'configur'"):
        captime.configur  # noqa: B018


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_the_list_of_commands_says_what_each_says_itself(name: str) -> None:
    """The line in `captime --help` is the first paragraph of `captime NAME --help`."""
    first, _, _ = (getdoc(function_of(name)) or "").partition("\n\n")
    assert COMMANDS[name] == " ".join(first.split())


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_commands_start_without_the_packages_that_few_of_them_need(name: str) -> None:
    """scipy.stats alone would take a third of the time of a start; optional packages come when they are used."""
    heavy = {"scipy.stats", "ConfigSpace", "distributed", "matplotlib", "pyarrow", "sklearn", "starlette", "yaml"}
    assert not loaded_by(f"from captime.cli import command_of\ncommand_of({name!r})") & heavy
