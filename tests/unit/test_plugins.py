"""Plugins: a package that is installed adds members; one that is broken is told about and harms nothing."""

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from captime.plugins import BASELINE_GROUP, PROCEDURE_GROUP, SPACE_FORMAT_GROUP, UTILITY_GROUP, load_plugins
from captime.procedures import PROCEDURES
from captime.spaces.formats import FORMATS
from captime.testing import procedure_checks, space_format_checks, utility_checks
from captime.utilities import UTILITIES
from captime_research.baselines import MEMBERS

EXAMPLE = Path(__file__).parents[1] / "plugin_example"
RESEARCH = Path(__file__).parents[2] / "research"
TABLE = Path(__file__).parents[2] / "examples" / "solvers.csv"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example, installed as a user would into a folder of its own; nothing is downloaded."""
    folder = tmp_path_factory.mktemp("site")
    source = tmp_path_factory.mktemp("source") / "package"
    source.mkdir()
    (source / "pyproject.toml").write_bytes((EXAMPLE / "pyproject.toml").read_bytes())
    (source / "captime_plugin_example").mkdir()
    for file in (EXAMPLE / "captime_plugin_example").glob("*.py"):
        (source / "captime_plugin_example" / file.name).write_bytes(file.read_bytes())
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--disable-pip-version-check", "--target", str(folder), str(source)], check=True)
    return folder


def captime(folder: Path, *arguments: str, where: Path | None = None) -> subprocess.CompletedProcess[str]:
    """The command in a process that finds the plugin."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "200"}
    return subprocess.run(
        [sys.executable, "-m", "captime", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        cwd=where,
    )


def test_an_installed_package_adds_to_all_three_families(installed: Path, tmp_path: Path) -> None:
    """The utility is listed and read, the procedure decides, the format is recognised by its ending."""
    listed = json.loads(captime(installed, "list", "--json").stdout)
    assert "weibull" in listed["utilities"]
    assert listed["procedures"]["sharper-race"] == "The race, towards half the epsilon asked for."
    asked = ("simulate", str(TABLE), "--utility", "weibull(1min, 2)", "--epsilon", "0.4", "--json")
    found = json.loads(captime(installed, *asked, "--procedure", "sharper-race").stdout)
    assert found["procedure"] == "sharper-race"
    assert found["utility"] == "weibull(60, 2)"
    assert found["certificate"]["epsilon"] <= 0.2
    (tmp_path / "mine.lines").write_text("decay 0.5 0.9 0.75\nnoise 0 1 0.5\n")
    shown = captime(installed, "space", "mine.lines", where=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert "decay" in shown.stdout
    assert "sharper-race" in json.loads(captime(installed, "schema").stdout)["properties"]["procedure"]["enum"]


def test_without_the_package_its_names_are_unknown(tmp_path: Path) -> None:
    """Nothing of it is left behind."""
    refused = captime(tmp_path, "utility", "weibull(60, 2)")
    assert refused.returncode == 2
    assert "weibull" in refused.stderr


def test_the_example_conforms(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the suites that its author would import."""
    monkeypatch.syspath_prepend(str(installed))
    import captime_plugin_example as example  # type: ignore[import-not-found] # noqa: PLC0415 (installed by the fixture)

    monkeypatch.setitem(UTILITIES, "weibull", example.Weibull)
    suites = [
        utility_checks("weibull(60, 2)"),
        procedure_checks(example.sharper_race),
        space_format_checks(example.LINES, "decay 0.5 0.9 0.75\nnoise 0 1 0.5", "mine.lines"),
    ]
    for suite in suites:
        for check in suite.values():
            check()


BROKEN: dict[str, tuple[EntryPoint, str]] = {
    "missing": (EntryPoint("x", "no_such_module:X", UTILITY_GROUP), "cannot be loaded (ModuleNotFoundError"),
    "no utility": (EntryPoint("x", "math:pi", UTILITY_GROUP), "is float, expected a class with a name"),
    "no procedure": (EntryPoint("x", "math:pi", PROCEDURE_GROUP), "is float, expected a callable"),
    "no format": (EntryPoint("x", "math:pi", SPACE_FORMAT_GROUP), "is float, expected an object of"),
    "taken": (EntryPoint("race", "math:sqrt", PROCEDURE_GROUP), "has a name that is taken"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_member_is_left_out_and_told(name: str) -> None:
    """One sentence each; the registers stay as they were."""
    before: list[dict[str, Any]] = [dict(UTILITIES), dict(PROCEDURES), dict(FORMATS)]
    point, words = BROKEN[name]
    told = load_plugins([point])
    assert len(told) == 1
    assert words in told[0]
    assert "left out" in told[0]
    assert [dict(UTILITIES), dict(PROCEDURES), dict(FORMATS)] == before


def test_the_command_line_tells_of_a_broken_package_and_goes_to_work(tmp_path: Path) -> None:
    """On stderr, so that what a program reads stays clean."""
    facts = tmp_path / "broken-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text("[captime.utilities]\nmine = broken_module:Mine\n")
    (tmp_path / "broken_module.py").write_text("raise RuntimeError('not today')\n")
    done = captime(tmp_path, "list", "--json")
    assert done.returncode == 0
    assert "race" in json.loads(done.stdout)["procedures"]
    assert "'mine' in captime.utilities of broken cannot be loaded (RuntimeError: not today)" in done.stderr


def test_adding_a_member_twice_is_no_conflict(monkeypatch: pytest.MonkeyPatch) -> None:
    """Entry points of one package may be found in two places."""
    monkeypatch.setattr("captime.plugins._FAMILIES", _one_family({}))
    point = EntryPoint("root", "math:sqrt", PROCEDURE_GROUP)
    assert load_plugins([point, point]) == []


def _one_family(register: dict[str, Any]) -> dict[str, Any]:
    from captime.plugins import _Family  # noqa: PLC0415 (for this test alone)

    fits: Callable[[Any], bool] = callable
    return {PROCEDURE_GROUP: _Family(register, "a callable", fits)}


def test_the_package_beside_captime_names_all_its_methods() -> None:
    """The entry points of research/pyproject.toml lead to the members of `captime_research`, under their names."""
    described = tomllib.loads((RESEARCH / "pyproject.toml").read_text(encoding="utf-8"))
    named = described["project"]["entry-points"][BASELINE_GROUP]
    points = [EntryPoint(name, where, BASELINE_GROUP) for name, where in named.items()]
    assert {point.name: point.load() for point in points} == MEMBERS
    assert load_plugins(points) == []
    assert "is left out" in load_plugins([EntryPoint("race-2", "captime.procedures:PROCEDURES", BASELINE_GROUP)])[0]
