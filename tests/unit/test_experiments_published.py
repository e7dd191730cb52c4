"""The published files, as far as they can be tested without having them: small stand-ins in their very formats.

minisat: `measurements.dump`, a pickled dictionary from command line to list of runtimes, not cut at the timeout. CPLEX:
`cplex_rcw_rt_seed520.npy`, `cplex_region_rt_seed520.npy`, a row per configuration, a column per instance. The commands
are those of docs/commands.md.
"""

import json
import pickle
import shlex
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from captime.sources.synthetic import synthetic_table, table_at
from captime_research.__main__ import app
from captime_research.experiments.rows import Row, read_rows

COMMANDS = Path(__file__).parents[2] / "docs" / "commands.md"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Both kinds of files, in the folder where the reader is."""
    rng = np.random.default_rng(5)
    hard = np.exp(rng.normal(1.5, 2.0, size=80))
    # In no order, and beyond the timeout, as published.
    names = [f"./minisat -rnd-freq={freq} -var-decay={decay}" for freq in (0.9, 0.0) for decay in (0.99, 0.8, 0.6)]
    runtimes = {name: (hard * (1 + place)).tolist() for place, name in enumerate(names)}
    runtimes[names[0]][0] = 4000.0
    (tmp_path / "measurements.dump").write_bytes(pickle.dumps(runtimes, protocol=2))
    for kind in ("rcw", "region"):
        matrix = synthetic_table(7, 6, 80, limit=10_000.0, hardness=2.5).seconds
        np.save(tmp_path / f"cplex_{kind}_rt_seed520.npy", matrix)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def shown(line: str) -> list[str]:
    """A command of the documentation, as words for the program."""
    assert f"\n    {line}\n" in COMMANDS.read_text(encoding="utf-8")
    return shlex.split(line)[1:]


def rows_from(words: list[str]) -> tuple[list[Row], float]:
    """What the command computes, and κ0."""
    pytest.importorskip("matplotlib")
    said = CliRunner().invoke(app, [*words, "--seeds", "1", "--jobs", "1", "--json"])
    assert said.exit_code == 0, said.output
    told = json.loads(said.stdout)
    return read_rows(Path(told["files"][2])), told["scale"]


@pytest.mark.parametrize("figure", ["figure-1", "figure-2", "figure-3"])
@pytest.mark.parametrize(
    "line",
    [
        "captime-experiment figure-2 --data measurements.dump --timeout 900s --unsafe-format pickle",
        "captime-experiment figure-2 --data cplex_rcw_rt_seed520.npy --timeout 10000s",
    ],
)
def test_the_papers_figures_are_drawn_from_its_files(line: str, figure: str, folder: Path) -> None:
    """At the paper's own scale of a minute, with the paper's grids, by the command that the documentation shows."""
    rows, scale = rows_from([figure if word == "figure-2" else word for word in shown(line)])
    assert scale == 60.0
    if figure == "figure-1":
        grid = sorted({row.x for row in rows if row.label == "Naive"})
        assert (len(grid), grid[0], grid[-1]) == ((21, 10.0, 1000.0) if "dump" in line else (21, 50.0, 10_500.0))
        beyond = [row for row in rows if row.label == "Naive" and row.x > (900.0 if "dump" in line else 10_000.0)]
        assert beyond
        assert all(np.isnan(row.y) and "nothing is known of runs beyond" in row.why for row in beyond)
    else:
        assert sorted({row.x for row in rows}) == [0.1, 0.13, 0.16, 0.19, 0.22, 0.25]
    assert any(row.y > 0 for row in rows)


def test_the_files_are_understood_as_they_were_written(folder: Path) -> None:
    """Configurations sorted by command line, runs cut at 900 s; matrices with a row for each configuration."""
    table = table_at("measurements.dump", timeout=900.0, unsafe_format="pickle")
    written = pickle.loads((folder / "measurements.dump").read_bytes())
    assert list(table.configs) == sorted(written)
    assert (table.limit, table.n_instances) == (900.0, 80)
    for config, seconds in zip(table.configs, table.seconds, strict=True):
        np.testing.assert_array_equal(np.minimum(seconds, 900.0), np.minimum(written[config], 900.0))
    for kind in ("rcw", "region"):
        matrix = table_at(f"cplex_{kind}_rt_seed520.npy", timeout=10_000.0)
        assert (matrix.n_configs, matrix.n_instances, matrix.limit) == (6, 80, 10_000.0)
        np.testing.assert_array_equal(
            np.minimum(matrix.seconds, 10_000.0), np.load(folder / f"cplex_{kind}_rt_seed520.npy")
        )
