"""The scripts in experiments/: the page of results, what the measured tables are of, other configurators."""

import csv
import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from captime import RuntimeTable
from captime.experiments import EXPERIMENTS, Setting
from captime.experiments.rows import write_rows
from captime.experiments.running import compute
from captime.experiments.shipped import datasheet, shipped_tables, table_at
from captime.scenario import load_scenario
from captime.sources.synthetic import synthetic_table

EXPERIMENTS_FOLDER = Path(__file__).parents[2] / "experiments"


def script(monkeypatch: pytest.MonkeyPatch, name: str, folder: Path = EXPERIMENTS_FOLDER) -> Any:
    """A script of the folder, as a module."""
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module(name)


def test_the_page_of_results_is_made_from_the_numbers_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All figures of a table, its costs, its gaps and what holds; another number gives another page."""
    build = script(monkeypatch, "build_readme")
    monkeypatch.setattr(sys.modules["captime.experiments.gap"], "PATIENCE", 4.0)
    setting = Setting(synthetic_table(1, 8, 200, limit=1.5, first_log_speed=-4.0, name="tiny"))
    for name in EXPERIMENTS:
        write_rows(compute(name, setting, 1), tmp_path / f"{name}-tiny.csv")
    build.write_readme(tmp_path, tmp_path / "README.md")
    page = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "## tiny" in page
    assert all(f"({name}-tiny.png)" in page.replace("./", "") for name in EXPERIMENTS)
    assert page.count("**yes**") + page.count("**no**") == 7
    assert "| CapsAndRuns | on mean runtime |" in page
    assert "ε = 0.25" in page
    numbers = tmp_path / "follow-up-1-tiny.csv"
    numbers.write_text(numbers.read_text(encoding="utf-8").replace("UP,0,0.1,", "UP,0,0.1,9"), encoding="utf-8")
    build.write_readme(tmp_path, tmp_path / "README.md")
    assert (tmp_path / "README.md").read_text(encoding="utf-8") != page


def test_every_experiment_is_on_the_page_and_in_the_list_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new one is not forgotten."""
    assert list(script(monkeypatch, "build_readme").FIGURES) == list(EXPERIMENTS)
    assert list(script(monkeypatch, "run_all").SEEDS) == list(EXPERIMENTS)


@pytest.mark.parametrize("name", ["minisat-fuzz", "highs-auction", "highs-cascade"])
def test_the_scenarios_of_the_measured_tables_are_valid(name: str) -> None:
    """At least 40 configurations, the default among them, all different."""
    parts = load_scenario(EXPERIMENTS_FOLDER / "measure" / f"{name}.toml").build()
    names = [config.name for config in parts.configurations]
    assert len(names) >= 40
    assert names[0] == "default"
    settings = [tuple(config.settings.items()) for config in parts.configurations]
    assert len(set(settings)) == len(settings)


def test_the_configurations_are_those_that_the_script_makes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Same seed, same files; names say what differs from the default."""
    made = script(monkeypatch, "make_configurations", EXPERIMENTS_FOLDER / "measure")
    monkeypatch.setattr(made, "HERE", tmp_path)
    made.main()
    for name in ("minisat.csv", "highs.csv"):
        assert (tmp_path / name).read_bytes() == (EXPERIMENTS_FOLDER / "measure" / name).read_bytes()
    with (tmp_path / "minisat.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    default = rows[0]
    for row in rows[1:]:
        assert len(row["name"].split()) == sum(row[key] != default[key] for key in row if key != "name")


def test_every_shipped_table_is_small_and_has_its_datasheet() -> None:
    """Well under a megabyte, at least 40 by 500, few runs cut, and a page that says how it was measured."""
    for name, path in shipped_tables().items():
        assert path.stat().st_size < 800_000
        table = table_at(name)
        assert table.n_configs >= 40
        assert table.n_instances >= 500
        assert table.censored < 0.05
        page = datasheet(name).read_text(encoding="utf-8")
        assert all(f"| {row} |" in page for row in ("solver", "machine", "measured", "captime", "scenario"))


def test_other_configurators_see_the_same_runs_at_the_same_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    """A choice of settings stands for the nearest configuration; a run is paid once; the budget ends the search."""
    peers = script(monkeypatch, "on_table", EXPERIMENTS_FOLDER / "peers")
    names = ["default", "-a=1", "-a=1 -b=2", "-b=3"]
    seconds = np.repeat(np.array([1.0, 2.0, 3.0, 4.0])[:, None], 10, axis=1)
    setting = Setting(RuntimeTable.build("named", names, map(str, range(10)), seconds, timeout=900.0))
    target = peers.TableTarget(setting, 0, budget=5.5)
    assert target.values["a"] == ["1", "default"]
    assert target.nearest({"a": "1", "b": "2", "name": "default"}) == 2
    assert target.nearest({"a": "1", "b": "default", "name": "default"}) == 1
    assert target.cost(1, 0) == target.cost(1, 0) == pytest.approx(0.5 * 2.0 / 60.0)
    assert target.bench.spent == 2.0
    target.recommends(1)
    target.cost(3, 0)
    with pytest.raises(peers.BudgetSpent):
        target.cost(0, 0)
    target.recommends(0)
    found = target.rows("peer", "no guarantee", [1.0, 3.0, 10.0])
    assert np.isnan(found[0].y)
    assert found[1].y > found[2].y == 0.0


@pytest.mark.parametrize("name", ["optuna_peer", "smac_peer", "irace_peer"])
def test_a_configurator_that_is_not_installed_says_so(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """None if it is there, otherwise a sentence that says what to install."""
    monkeypatch.syspath_prepend(str(EXPERIMENTS_FOLDER / "peers"))
    monkeypatch.setenv("PATH", "")
    reason = script(monkeypatch, name, EXPERIMENTS_FOLDER / "peers").missing()
    assert reason is None or "install" in reason
