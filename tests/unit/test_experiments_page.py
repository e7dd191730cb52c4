"""The scripts in experiments/: the page of results, what the measured tables are of, other configurators."""

import argparse
import importlib
import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from captime import RuntimeTable
from captime.sources.synthetic import synthetic_table
from captime_research.experiments import EXPERIMENTS, Setting
from captime_research.experiments.contenders import CONFIGURATORS, UTILITY
from captime_research.experiments.paper import RACE, UP
from captime_research.experiments.rows import Band, Row, read_rows, write_rows
from captime_research.experiments.running import compute

EXPERIMENTS_FOLDER = Path(__file__).parents[2] / "experiments"


def script(monkeypatch: pytest.MonkeyPatch, name: str, folder: Path = EXPERIMENTS_FOLDER) -> Any:
    """A script of the folder, as a module."""
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module(name)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Numbers of all experiments on a small table, and of one other configurator."""
    folder = tmp_path_factory.mktemp("results")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys.modules["captime_research.experiments.gap"], "PATIENCE", 10.0)
        table = synthetic_table(1, 8, 120, limit=1.5, first_log_speed=-4.0, name="tiny")
        for name, experiment in EXPERIMENTS.items():
            rows = compute(name, Setting(table, delta=experiment.delta), 1)
            write_rows(rows, folder / f"{name}-tiny.csv")
    moments = [row.x for row in read_rows(folder / "gap-tiny.csv") if row.label == UP and row.panel == UTILITY]
    others = [Row(CONFIGURATORS, "Some Search", seed, x, 0.5) for x in moments[:41] for seed in (0, 1)]
    write_rows(others, folder / "peers-gap-tiny.csv")
    (folder / "peers.json").write_text('{"Some Search": {"version": "7.1", "run": "2026-01-02"}}', encoding="utf-8")
    return folder


def test_the_page_of_results_is_made_from_the_numbers_alone(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All figures of a table, its costs, its gaps, what is guaranteed when and what holds."""
    build = script(monkeypatch, "build_readme")
    build.write_readme(results, tmp_path / "README.md")
    page = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "## tiny" in page
    assert all(f"/{name}-tiny.png)" in page for name in EXPERIMENTS)
    verdicts = re.findall(r"\| (?:\*\*(?:yes|no)\*\*|cannot be told)", page)
    assert len(verdicts) == len(script(monkeypatch, "page_claims").CLAIMS)
    for row in ("CapsAndRuns | on mean runtime", "Some Search | none", "OUP, new rule | log-Laplace", "UP, old rule"):
        assert f"| {row}" in page
    assert "at any time, for a share of cut instances that shrinks" in page
    assert "Some Search 7.1 (run 2026-01-02)" in page
    assert "nan" not in page


@pytest.mark.parametrize(
    ("experiment", "label"),
    [("follow-up-1", UP), ("follow-up-6", "OUP, new rule"), ("gap", RACE), ("gap-uniform", "OUP"), ("figure-2", UP)],
)
def test_another_number_gives_another_page(
    experiment: str, label: str, results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In each of the tables of the page."""
    build = script(monkeypatch, "build_readme")
    changed = tmp_path / "results"
    shutil.copytree(results, changed)
    numbers = changed / f"{experiment}-tiny.csv"
    rows = [replace(row, y=9.0 + 9.0 * row.y) if row.label == label else row for row in read_rows(numbers)]
    write_rows(rows, numbers)
    pages = []
    for folder in (results, changed):
        build.write_readme(folder, folder / "README.md")
        pages.append((folder / "README.md").read_text(encoding="utf-8"))
        (folder / "README.md").unlink()
    assert pages[0] != pages[1]


def test_the_readings_follow_the_numbers(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What held no longer holds when the numbers are turned round."""
    build, claims = script(monkeypatch, "build_readme"), script(monkeypatch, "page_claims")
    found = {name: build._curves(name, build._rows(name, "tiny", results)) for name in EXPERIMENTS}
    assert claims.race_cheapest(found).holds
    dear = {
        utility: {label: band if label == RACE else free(band) for label, band in curves.items()}
        for utility, curves in found["follow-up-1"].items()
    }
    assert claims.race_cheapest(found | {"follow-up-1": dear}).holds is False
    everywhere = {"it rains": {"a": claims.Verdict(True, ""), "b": claims.Verdict(True, "")}}
    somewhere = {"it snows": {"a": claims.Verdict(True, ""), "b": claims.Verdict(False, "")}}
    nowhere = {"it burns": {"a": claims.Verdict(False, ""), "b": claims.Verdict(None, "")}}
    text = " ".join(claims.reading(everywhere | somewhere | nowhere))
    assert "1 of 3 observations" in text
    assert "it snows: only on a" in text
    assert "On no table: it burns" in text


def free(band: Band) -> Band:
    """The same curve, at a thousandth of the cost."""
    middle = [value / 1000.0 for value in band.middle]
    return Band(band.x, middle, band.low, band.high)


def test_the_page_in_the_repository_is_made_of_the_numbers_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was not edited by hand, every picture is there, and all of it together is small."""
    page = (EXPERIMENTS_FOLDER / "README.md").read_text(encoding="utf-8")
    assert script(monkeypatch, "build_readme").page_of(EXPERIMENTS_FOLDER / "results", "results") == page
    links = re.findall(r"\]\(([^)]+)\)", page)
    assert [link for link in links if not (EXPERIMENTS_FOLDER / link).exists()] == []
    assert len([link for link in links if link.endswith(".png")]) == 3 * len(EXPERIMENTS)
    assert sum(path.stat().st_size for path in (EXPERIMENTS_FOLDER / "results").iterdir()) < 6_000_000


def test_every_experiment_is_on_the_page_and_in_the_list_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new one is not forgotten."""
    assert list(script(monkeypatch, "build_readme").FIGURES) == list(EXPERIMENTS)
    assert list(script(monkeypatch, "run_all").SEEDS) == list(EXPERIMENTS)


def test_other_configurators_see_the_same_runs_at_the_same_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    """A choice of settings stands for the nearest configuration; a run is paid once; the budget ends the search."""
    peers = script(monkeypatch, "on_table", EXPERIMENTS_FOLDER / "peers")
    names = ["default", "-a=1", "-a=1 -b=2", "-b=3"]
    seconds = np.repeat(np.array([1.0, 2.0, 3.0, 4.0])[:, None], 10, axis=1)
    setting = Setting(RuntimeTable.build("named", names, map(str, range(10)), seconds, timeout=900.0))
    target = peers.TableTarget(setting, setting.log_laplace, 0, budget=5.5)
    # The name of the default configuration says nothing, and is no parameter.
    assert target.values == {"a": ["1", "default"], "b": ["2", "3", "default"]}
    assert target.nearest({"a": "1", "b": "2"}) == 2
    assert target.nearest({"a": "1", "b": "default"}) == 1
    assert target.cost(1, 0) == target.cost(1, 0) == pytest.approx(0.5 * 2.0 / 60.0)
    assert target.bench.spent == 2.0
    target.recommends(1)
    target.cost(3, 0)
    with pytest.raises(peers.BudgetSpent):
        target.cost(0, 0)
    target.recommends(0)
    found = peers.rows_of([target], "peer", "no guarantee", [1.0, 3.0, 10.0], setting)
    assert np.isnan(found[0].y)
    assert found[1].y > found[2].y == 0.0
    # A method that has to be told a budget is run several times; the last one that has answered by then counts.
    later = peers.TableTarget(setting, setting.log_laplace, 0, budget=5.5)
    later.incumbents = [(9.0, 3)]
    both = peers.rows_of([target, later], "peer", "no guarantee", [3.0, 7.0, 10.0], setting)
    assert both[2].y > both[1].y == 0.0


@pytest.mark.parametrize("name", ["optuna_peer", "smac_peer", "irace_peer"])
def test_a_configurator_that_is_not_installed_says_so(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """None if it is there, otherwise a sentence that says what to install."""
    monkeypatch.syspath_prepend(str(EXPERIMENTS_FOLDER / "peers"))
    monkeypatch.setenv("PATH", "")
    reason = script(monkeypatch, name, EXPERIMENTS_FOLDER / "peers").missing()
    assert reason is None or "install" in reason


def test_without_their_environment_the_last_numbers_of_other_configurators_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`make experiments` says so, and which target makes the environment; nothing is deleted."""
    run_all = script(monkeypatch, "run_all")
    rows = [Row(CONFIGURATORS, "Some Search", 0, 1.0, 0.5), Row(CONFIGURATORS, "Another", 0, 1.0, 0.25)]
    path = tmp_path / "peers-gap-tiny.csv"
    write_rows(rows, path)
    wishes = argparse.Namespace(peers=tmp_path / "nowhere", out=tmp_path, jobs=1, seeds=1)
    run_all.run_peers("tiny", wishes)
    assert "there are no rows of theirs" in capsys.readouterr().err
    (tmp_path / "peers.json").write_text("{}", encoding="utf-8")
    run_all.run_peers("tiny", wishes)
    said = capsys.readouterr().err
    assert "make peers" in said
    assert "their rows of the last run are shown" in said
    assert read_rows(path) == rows
    # A run of some of them renews theirs only.
    peers = script(monkeypatch, "run_peers", EXPERIMENTS_FOLDER / "peers")
    assert peers.kept(path, {"Another"}) == rows[:1]
    assert peers.kept(tmp_path / "none.csv", {"Another"}) == []


def test_the_page_on_recorded_configuration_tables_is_made_of_the_numbers_beside_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The tables are not part of the repository; the numbers of the figures are, and the page follows from them."""
    configured = script(monkeypatch, "configured")
    page = (EXPERIMENTS_FOLDER / "configured.md").read_text(encoding="utf-8")
    assert configured.page_of(EXPERIMENTS_FOLDER / "results" / "configured", "results/configured") == page
    assert "## cplex_rcw2" in page
    assert "## cplex_regions200" in page
    links = [link for link in re.findall(r"\]\(([^)]+)\)", page) if "://" not in link]
    assert [link for link in links if not (EXPERIMENTS_FOLDER / link).exists()] == []
    stored = (EXPERIMENTS_FOLDER / "results" / "configured").iterdir()
    assert sum(path.stat().st_size for path in stored) < 3_000_000


def test_without_the_recorded_tables_the_page_is_written_from_stored_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is computed, and the command says so."""
    configured = script(monkeypatch, "configured")
    words = ["configured.py", "--tables", str(tmp_path), "--page", str(tmp_path / "page.md")]
    monkeypatch.setattr(sys, "argv", words)
    configured.main()
    assert "no tables" in capsys.readouterr().err
    assert "## What holds and what does not" in (tmp_path / "page.md").read_text(encoding="utf-8")


def test_a_figure_that_was_not_computed_is_named_and_judged_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page has the figures of a table that there are; no verdict is given without the figures it needs."""
    configured = script(monkeypatch, "configured")
    for name in ("figure-1-kissat_ibm.csv", "figure-3-kissat_ibm.csv"):
        (tmp_path / name).write_bytes((EXPERIMENTS_FOLDER / "results" / "configured" / name).read_bytes())
    page = configured.page_of(tmp_path, "results")
    assert "\nFigure 2 was not computed; the command above computes it.\n" in page
    assert page.count("cannot be told: Figure 2 was not computed") == 3
    assert "figure-2" not in page
    assert "(results/figure-3-kissat_ibm.csv)" in page
