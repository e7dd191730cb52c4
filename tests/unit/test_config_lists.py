"""Settings of a table's rows from a list beside it, and how well a target learnt from the table meets held-out rows."""

import csv
import os
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from captime.cli import app
from captime.errors import TableError
from captime.simulation import Learnt, settings_of_list
from captime.sources import RuntimeTable, read_table
from captime.spaces import Space, read_space
from captime.utilities import parse_utility

SPACE = """speed [0, 1] [0.5]
level [1, 1000] [30]il # a comment
mode {fast, slow} [slow]
Conditionals:
level | mode in {slow}
"""
UTILITY = parse_utility("log-laplace(10, 1)")
TABLES = Path(os.environ.get("CAPTIME_TABLES", Path(__file__).parents[3] / "shared" / "data" / "configured"))


def space(folder: Path) -> Space:
    """Two numbers and a choice, one of the numbers conditional."""
    path = folder / "params.pcs"
    path.write_text(SPACE, encoding="utf-8")
    return read_space(path)


def written(folder: Path, text: str) -> Path:
    """A list of configurations."""
    path = folder / "configlist.csv"
    path.write_text(text, encoding="utf-8")
    return path


def recorded(folder: Path, n_configs: int = 60, *, noise: float = 0.2) -> tuple[Space, RuntimeTable, Path]:
    """A table whose fast rows are those of high speed, with its list; a quarter of all runs or so is cut."""
    here = space(folder)
    rng = np.random.default_rng(3)
    drawn = [here.draw(5, number) for number in range(n_configs)]
    logs = np.array([4.0 - 4.0 * float(each["speed"]) for each in drawn])[:, None]
    logs = logs + rng.standard_normal(25) + noise * rng.standard_normal((n_configs, 25))
    with (folder / "configlist.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "configuration string"])
        for number in reversed(range(n_configs)):
            writer.writerow([number, " ".join(f"-{name} '{value}'" for name, value in drawn[number].items())])
    names = [f"c{number}" for number in range(n_configs)]
    table = RuntimeTable.build("recorded", names, [f"i{j}" for j in range(25)], np.exp(logs), timeout=60.0)
    return here, table, folder / "configlist.csv"


def test_a_list_of_words_is_read_by_id(tmp_path: Path) -> None:
    """Quoted values, in any order of the rows; a parameter that is not named has its default."""
    path = written(tmp_path, "id,configuration string\n1,-mode 'fast' -speed '1'\n0,-level '7' -speed '2.5E-1'\n")
    assert settings_of_list(path, space(tmp_path), 2) == [
        {"speed": 0.25, "level": 7, "mode": "slow"},
        {"speed": 1.0, "mode": "fast"},
    ]


def test_a_column_per_parameter_is_read_by_place(tmp_path: Path) -> None:
    """Columns that are no parameters are left aside, and so is what is said about an inactive parameter."""
    path = written(tmp_path, "number,dummy,mode,speed,level\n7,-1,fast,0.5,900\n8,-1,slow,0,900.0\n")
    assert settings_of_list(path, space(tmp_path), 2) == [
        {"speed": 0.5, "mode": "fast"},
        {"speed": 0.0, "level": 900, "mode": "slow"},
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("id,words\n0,-speed '0.5'\n", "found 1 configurations, but the table has 2"),
        ("id,words\n0,-speed '0.5'\n0,-speed '0.5'\n", "row 0 of the table is described twice"),
        ("id,words\n0,-speed '0.5'\n2,-speed '0.5'\n", "the id is '2', expected a row of the table, from 0 to 1"),
        ("id,words\n0,-speed '2'\n1,-speed '0.5'\n", "line 2: speed is '2'"),
        ("id,words\n0,-haste '2'\n1,-speed '0.5'\n", "there is no parameter haste"),
        ("id,words\n0,-mode 'medium'\n1,-speed '0.5'\n", "mode is 'medium'"),
        ("id,words\n0,-speed '0.5\n1,-speed '0.5'\n", "unbalanced quotes"),
        ("id,words\n0,speed\n1,-speed '0.5'\n", "expected a column of words"),
        ("number,speed\n0,0.5\n1\n", "line 3: found 1 fields, expected 2"),
    ],
)
def test_a_flawed_list_is_refused_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    """Each flaw with what was found and expected."""
    with pytest.raises(TableError, match=r"configlist\.csv") as refused:
        settings_of_list(written(tmp_path, text), space(tmp_path), 2)
    assert said in str(refused.value)


def test_held_out_rows_are_met_and_noise_is_not(tmp_path: Path) -> None:
    """Where settings decide, ranks are right; where rows are shuffled, nothing is claimed.

    A new configuration draws its runs from few recorded ones, so that the middle 80 % of what is expected holds about
    half of the runs here. Fewer donors or a smaller spread would push the share below, and a target that is too vague
    would push it above.
    """
    here, table, path = recorded(tmp_path, noise=1.0)
    settings = settings_of_list(path, here, table.n_configs)
    found = Learnt(here, table, settings).validated(UTILITY)
    assert found is not None
    assert found.rank_correlation > 0.9
    assert 0.7 < found.slope < 1.4
    assert 0.42 < found.covered < 0.6
    shuffled = [settings[place] for place in np.random.default_rng(1).permutation(len(settings))]
    other = Learnt(here, table, shuffled).validated(UTILITY)
    assert other is not None
    assert abs(other.rank_correlation) < 0.4


def test_held_out_instances_are_not_met(tmp_path: Path) -> None:
    """Only the named columns are in the stream, and worths are about whichever columns are asked for."""
    here, table, path = recorded(tmp_path)
    settings = settings_of_list(path, here, table.n_configs)
    met, kept = np.arange(0, 25, 2), np.arange(1, 25, 2)
    target = Learnt(here, table, settings, instances=met)
    target.add(settings[4])
    assert set(target.seconds(0, 0, 2000).tolist()) <= set(table.seconds[4, met].tolist())
    runs = table.seconds[4, kept]
    expected = np.where(runs < 60.0, UTILITY(runs), 0.0).mean()
    assert target.worths_on([settings[4]], UTILITY, kept)[0] == pytest.approx(expected)


def test_the_command_reads_the_list_beside_the_table_and_prints_the_validation(tmp_path: Path) -> None:
    """Rows called c0, c1, … need no names that say what is set."""
    _, table, _ = recorded(tmp_path)
    lines = [",".join(["configuration", *table.instances])]
    lines += [
        ",".join([name, *map(repr, row)]) for name, row in zip(table.configs, table.seconds.tolist(), strict=True)
    ]
    (tmp_path / "runs.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    words = ["simulate", str(tmp_path / "params.pcs"), "--surrogate", str(tmp_path / "runs.csv"), "--timeout", "60"]
    wishes = ["--utility", "log-laplace(10, 1)", "--epsilon", "0.3", "--option", "gamma=0.5"]
    result = CliRunner().invoke(app, [*words, *wishes])
    assert result.exit_code == 0, result.output
    assert "rank correlation" in result.output
    other = CliRunner().invoke(app, [*words, *wishes, "--configurations", str(tmp_path / "none.csv")])
    assert other.exit_code != 0


@pytest.mark.skipif(not TABLES.is_dir(), reason="the recorded tables are not here")
@pytest.mark.parametrize("name", ["kissat_ibm", "cplex_rcw2", "cplex_regions200", "spear_swv"])
def test_real_tables_are_read_as_they_are(name: str) -> None:
    """PCS files and lists of configurations as their authors wrote them; rows are all different."""
    folder = TABLES / name
    here, table = read_space(folder / "params.pcs"), read_table(folder / "runs.csv", timeout=300.0)
    settings = settings_of_list(folder / "configlist.csv", here, table.n_configs)
    assert len({here.codes(each).tobytes() for each in settings}) == table.n_configs
