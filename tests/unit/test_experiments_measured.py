"""The measured tables: what they are of, that they are what they should be, and that they are in the packages."""

import csv
import importlib
import json
import os
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder
from typer.testing import CliRunner

from captime.cli import app
from captime.instances.auction import generate
from captime.scenario import load_scenario
from captime.sources.synthetic import datasheet, shipped_tables, table_at
from captime_research.experiments import Setting

ROOT = Path(__file__).parents[2]
MEASURE = ROOT / "experiments" / "measure"
SHIPPED = ("highs-auction", "highs-cascade", "minisat-fuzz")
# What the community edition of CPLEX solves: this many variables, this many constraints.
LARGEST = 1000


def script(monkeypatch: pytest.MonkeyPatch, name: str) -> Any:
    """A script of the folder, as a module."""
    monkeypatch.syspath_prepend(str(MEASURE))
    monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module(name)


@pytest.mark.parametrize("name", SHIPPED)
def test_the_scenarios_of_the_measured_tables_are_valid(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At least 40 configurations, the default among them, all different; whether a solver is installed or not."""
    (tmp_path / "minisat").write_text("#!/bin/sh\n", encoding="utf-8")
    (tmp_path / "minisat").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    spec = load_scenario(MEASURE / f"{name}.toml").build()
    names = [config.name for config in spec.configurations]
    assert len(names) >= 40
    assert names[0] == "default"
    settings = [tuple(config.settings.items()) for config in spec.configurations]
    assert len(set(settings)) == len(settings)


def test_the_configurations_are_those_that_the_script_makes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Same seed, same files; names say what differs from the default."""
    made = script(monkeypatch, "make_configurations")
    monkeypatch.setattr(made, "HERE", tmp_path)
    made.main()
    for name in ("minisat.csv", "highs.csv", "cplex.csv"):
        assert (tmp_path / name).read_bytes() == (MEASURE / name).read_bytes()
    with (tmp_path / "minisat.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    default = rows[0]
    for row in rows[1:]:
        assert len(row["name"].split()) == sum(row[key] != default[key] for key in row if key != "name")


def test_three_tables_are_shipped() -> None:
    """Their names are told, and where they lie."""
    said = CliRunner().invoke(app, ["data", "list", "--json"])
    assert sorted(json.loads(said.stdout)) == list(SHIPPED)
    for name in SHIPPED:
        place = CliRunner().invoke(app, ["data", "path", name]).stdout.strip()
        assert Path(place) == shipped_tables()[name]
        assert CliRunner().invoke(app, ["data", "about", name]).stdout.startswith(f"# {name}: ")


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_table_is_small_and_has_its_datasheet(name: str) -> None:
    """Well under a megabyte, at least 40 by 500, few runs cut, none failed, and a page that says how it was done."""
    assert shipped_tables()[name].stat().st_size < 800_000
    table = table_at(name)
    assert table.n_configs >= 40
    assert table.n_instances >= 500
    assert table.censored < 0.05
    assert table.never_finished == 0.0
    page = datasheet(name).read_text(encoding="utf-8")
    assert all(f"| {row} |" in page for row in ("solver", "machine", "measured", "captime", "scenario"))


@pytest.mark.parametrize("name", SHIPPED)
def test_configurations_of_a_shipped_table_really_differ(name: str) -> None:
    """The slowest is far from the fastest, several are clearly worse than the best, and instances spread widely."""
    setting = Setting(table_at(name))
    seconds = np.minimum(setting.table.seconds, setting.table.limit)
    means = seconds.mean(axis=1)
    assert means.max() > 1.5 * means.min()
    for utility, apart in ((setting.log_laplace, 0.07), (setting.uniform, 0.09)):
        worth = setting.truth(utility)
        assert np.count_nonzero(worth < worth.max() - apart) >= 6
    typical = np.quantile(np.median(seconds, axis=0), [0.05, 0.95])
    assert typical[1] > 5.0 * typical[0]


@pytest.mark.parametrize("builder", [WheelBuilder, SdistBuilder])
def test_tables_and_datasheets_are_in_the_packages(builder: type[WheelBuilder] | type[SdistBuilder]) -> None:
    """Nothing of what measuring leaves behind is packed; ledgers that tests read are."""
    packed = {each.distribution_path for each in builder(str(ROOT)).recurse_included_files()}
    packed = {path for path in packed if not path.startswith("tests/golden/ledgers/")}
    for name in SHIPPED:
        for suffix in ("npz", "md"):
            assert any(path.endswith(f"captime/data/{name}.{suffix}") for path in packed), name
    assert not [path for path in packed if re.search(r"\.ledger|\.instances/|cplex-run|\.venv", path)]


def test_auctions_for_cplex_fit_its_community_edition() -> None:
    """At most 1,000 variables and 1,000 constraints, also for the largest that the scenario can draw."""
    with (MEASURE / "cplex-auction.toml").open("rb") as file:
        words = tomllib.load(file)["instances"]["generator"]
    size, bids = words[words.index("--size") + 1], float(words[words.index("--bids") + 1])
    most = int(size.partition("-")[2])
    # The alternatives of the last bidder, up to five, may go beyond the number of bids by four.
    assert round(bids * most) + 4 <= LARGEST
    for seed in range(12):
        model = generate(seed, size=(most, most), bids=bids)
        assert len(set(re.findall(r"\bx\d+", model))) <= LARGEST
        assert len(re.findall(r"^ \w+:$", model, flags=re.MULTILINE)) - 1 <= LARGEST


def test_the_scenario_for_cplex_is_valid_once_the_wheel_is_linked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a stand-in for the wheel: interpreter and package lie where the command looks for them."""
    for name in ("cplex-auction.toml", "cplex.csv", "solve_cplex.py"):
        (tmp_path / name).write_bytes((MEASURE / name).read_bytes())
    (tmp_path / "site" / "cplex").mkdir(parents=True)
    (tmp_path / "site" / "cplex" / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    script(monkeypatch, "measure").link_cplex(tmp_path / "cplex-run")
    spec = load_scenario(tmp_path / "cplex-auction.toml").build()
    names = [config.name for config in spec.configurations]
    assert len(names) >= 40
    assert names[0] == "default"
    words = spec.question.program.command_line(0, "a.lp", 7)
    assert words[0] == str(tmp_path / "cplex-run" / "python")
    assert "mip.strategy.probe=0" in words
    assert (tmp_path / "cplex-run" / "lib" / "cplex").is_dir()


def test_without_its_wheel_cplex_is_refused_with_a_word_about_the_licence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is installed by users who accept the licence, and by nothing of ours."""
    measure = script(monkeypatch, "measure")
    monkeypatch.setattr(measure, "find_spec", lambda _: None)
    with pytest.raises(SystemExit, match=r"licence of its own.*pip install cplex"):
        measure.link_cplex(tmp_path / "cplex-run")
    assert not (tmp_path / "cplex-run").exists()
    assert '"cplex' not in (ROOT / "pyproject.toml").read_text(encoding="utf-8").partition("[tool.")[0]
    assert "cplex" not in (ROOT / "constraints.txt").read_text(encoding="utf-8")
    targets = re.findall(
        r"^[\w./$()-]+:.*measure-cplex.*$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert not [line for line in targets if not line.startswith(".PHONY")]
