"""The paper's observations, checked by numbers on a small heavy-tailed table; and the machinery that draws them."""

import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from captime import RuntimeTable
from captime.cli import app
from captime.errors import ScenarioError
from captime.experiments import EXPERIMENTS, Row, Setting
from captime.experiments.gap import CERTIFIED, contenders, gap, renumbered
from captime.experiments.paper import RACE, UP
from captime.experiments.rows import Band, bands, read_rows, write_rows
from captime.experiments.running import compute
from captime.experiments.setting import first_time
from captime.sources.formats import write_npz
from captime.sources.synthetic import synthetic_table

SOLVERS = str(Path(__file__).parents[2] / "examples" / "solvers.csv")


@pytest.fixture(scope="module")
def heavy() -> Setting:
    """Ten configurations whose runtimes spread over five orders of magnitude, so that captimes matter."""
    return Setting(synthetic_table(3, 10, 2000, limit=900.0, first_log_speed=2.0, hardness=2.5, name="heavy"))


def curves(name: str, setting: Setting, seeds: int = 2) -> dict[str, dict[str, Band]]:
    """The bands of an experiment."""
    return bands(compute(name, setting, seeds))


def test_naive_has_a_best_captime_and_explodes_where_its_captime_barely_allows_the_goal(heavy: Setting) -> None:
    """Figure 1: an interior minimum; the shortest captime that allows epsilon at all costs many times as much."""
    naive = curves("figure-1", heavy)["ε = 0.2"]["Naive"]
    cost = np.array(naive.middle)
    known = np.flatnonzero(~np.isnan(cost))
    best = int(known[np.argmin(cost[known])])
    assert known[0] < best < known[-1]
    assert cost[known[0]] > 2 * cost[best]
    nearly = heavy.run("naive", heavy.log_laplace, 0.2, 0, {"captime": 165.0})
    assert nearly.cpu_seconds > 8 * cost[best]
    # Below u(κ) = 0.2, which is at κ = 150 s, nothing is possible; beyond the table's timeout nothing is known.
    assert naive.x[known[0]] > 150.0
    assert np.isnan(cost[np.array(naive.x) <= 150.0]).all()
    assert np.isnan(cost[np.array(naive.x) > 900.0]).all()


def test_up_costs_less_than_naive_for_small_epsilon(heavy: Setting) -> None:
    """Figure 2: with the log-Laplace utility, at either captime; and the race costs less than both everywhere."""
    found = curves("figure-2", heavy)["log-Laplace utility"]
    up, race = np.array(found[UP].middle), np.array(found[RACE].middle)
    short, long = (np.array(found[f"Naive, κ = {times} κ0"].middle) for times in (5, 10))
    assert found[UP].x[0] == pytest.approx(0.1)
    assert math.isnan(short[0])
    assert 2 * up[0] < long[0]
    assert up[1] < np.nanmin([short[1], long[1]])
    assert (race < np.fmin(np.fmin(up, short), long)).all()


def test_with_a_uniform_utility_naive_needs_the_right_captime(heavy: Setting) -> None:
    """Figure 3: at κ0, after which nothing has any worth, it keeps up with UP; at ten times that it is far worse."""
    found = curves("figure-3", heavy)
    right = np.array(found["Naive at κ = κ0"]["Naive, κ = κ0"].middle)
    wrong = np.array(found["Naive at κ = 10 κ0"]["Naive, κ = 10 κ0"].middle)
    up = np.array(found["Naive at κ = κ0"][UP].middle)
    assert (right < 1.2 * up).all()
    assert (wrong[:3] > 1.5 * up[:3]).all()
    assert (wrong > 2 * right).all()


def test_naives_sample_sizes_are_those_of_the_paper() -> None:
    """972 configurations, delta 0.1: m at captime 300 s and 600 s, and where 20,118 instances are not enough."""
    table = RuntimeTable.build(
        "minisat-like", map(str, range(972)), map(str, range(20_118)), np.ones((972, 20_118)), timeout=900.0
    )
    setting = Setting(table)
    assert (setting.scale, setting.sampling, setting.most_runs) == (60.0, "shuffle", 20_118)
    with pytest.raises(ScenarioError, match="needs 21945 instances"):
        setting.naive_fits(setting.log_laplace, 0.13, 300.0)
    for epsilon, captime in ((0.16, 300.0), (0.25, 300.0), (0.1, 600.0)):
        setting.naive_fits(setting.log_laplace, epsilon, captime)
    with pytest.raises(ScenarioError, match="must be below epsilon"):
        setting.naive_fits(setting.log_laplace, 0.25, 60.0)
    with pytest.raises(ScenarioError, match="nothing is known of runs beyond 900 s"):
        setting.naive_fits(setting.log_laplace, 0.25, 1000.0)


def test_times_scale_with_the_table() -> None:
    """A timeout of 1.5 s stands to κ0 = 0.1 s as 900 s to a minute; and the scale is stated."""
    setting = Setting(synthetic_table(1, 3, 50, limit=1.5, first_log_speed=-3.0))
    assert setting.scale == pytest.approx(0.1)
    assert setting.log_laplace == "log-laplace(0.1, 1)"
    assert setting.uniform == "uniform(0.1)"
    assert setting.time(300.0) == pytest.approx(0.5)
    assert "κ0 = 0.1 s" in setting.note
    assert Setting(setting.table, scale=0.2).time(300.0) == pytest.approx(1.0)
    assert Setting(synthetic_table(1, 3, 50, limit=10_000.0)).scale == 60.0


def test_nobodys_cost_depends_on_the_unit_of_time() -> None:
    """The same table in milliseconds instead of seconds: every cost of Figure 2 is a thousandth."""
    table = synthetic_table(2, 4, 400, limit=900.0)
    small = RuntimeTable.build("small", table.configs, table.instances, table.seconds / 1000.0, timeout=0.9)
    one, other = (list(EXPERIMENTS["figure-2"].compute(Setting(each), 0)) for each in (table, small))
    assert [row.label for row in one] == [row.label for row in other]
    np.testing.assert_allclose([row.y for row in one], [1000.0 * row.y for row in other], rtol=1e-6)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_runs_on_a_small_table(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the command line: two pictures and the numbers, each telling what they are of."""
    monkeypatch.setattr(sys.modules["captime.experiments.gap"], "PATIENCE", 4.0)
    pytest.importorskip("matplotlib")
    write_npz(synthetic_table(1, 8, 200, limit=1.5, first_log_speed=-4.0, name="tiny"), tmp_path / "tiny.npz")
    words = ["experiment", name, "--data", str(tmp_path / "tiny.npz"), "--out", str(tmp_path / "out")]
    said = CliRunner().invoke(app, [*words, "--seeds", "1", "--jobs", "1", "--json"])
    assert said.exit_code == 0, said.output
    told = json.loads(said.stdout)
    assert (told["experiment"], told["scale"]) == (name, pytest.approx(0.1))
    pdf, png, numbers = map(Path, told["files"])
    assert pdf.read_bytes().startswith(b"%PDF")
    assert png.read_bytes().startswith(b"\x89PNG")
    rows = read_rows(numbers)
    assert any(row.label.startswith("race") for row in rows) or name == "follow-up-3"
    assert all(row.y >= 0 for row in rows if not math.isnan(row.y))
    # A number that does not exist says why.
    assert all(row.why for row in rows if math.isnan(row.y) and name.startswith("figure"))


def test_every_contender_has_a_curve_and_those_with_a_guarantee_an_epsilon(monkeypatch: pytest.MonkeyPatch) -> None:
    """None is missing, none crashes."""
    monkeypatch.setattr(sys.modules["captime.experiments.gap"], "PATIENCE", 20.0)
    setting = Setting(synthetic_table(1, 8, 200, limit=1.5, first_log_speed=-4.0))
    rows = list(gap(setting, 0))
    labels = {row.label for row in rows if not math.isnan(row.y)}
    everybody = {each.label for each in contenders(8, 0.1)}
    assert labels >= everybody - {"COUP"}
    assert {row.label for row in rows} == everybody
    certified = {row.label for row in rows if row.panel == CERTIFIED}
    assert certified <= {"COUP", "OUP", UP, RACE}
    assert {"OUP", UP, RACE} <= certified


def test_renumbering_changes_names_and_rows_together() -> None:
    """Whoever is called x takes x's time, in every order."""
    setting = Setting(synthetic_table(1, 6, 20, limit=1.5))
    other = renumbered(setting, 4).table
    assert other.configs != setting.table.configs
    for place, name in enumerate(other.configs):
        np.testing.assert_array_equal(other.seconds[place], setting.table.seconds[setting.table.configs.index(name)])


def test_rows_survive_a_file_and_gather_into_bands(tmp_path: Path) -> None:
    """Gaps stay gaps; a point is shown if more than half of the seeds have it."""
    rows = [
        *(Row("p", "a", seed, 1.0, float(seed)) for seed in range(3)),
        *(Row("p", "a", seed, 2.0, math.nan if seed else 5.0, "too many" if seed else "") for seed in range(3)),
    ]
    write_rows(rows, tmp_path / "rows.csv")
    again = read_rows(tmp_path / "rows.csv")
    assert [row.why for row in again] == [row.why for row in rows]
    band = bands(again)["p"]["a"]
    assert (band.x, band.middle[0], band.low[0], band.high[0]) == ([1.0, 2.0], 1.0, 0.0, 2.0)
    assert math.isnan(band.middle[1])
    assert bands([Row("p", "a", seed, 1.0, y) for seed, y in enumerate((0.0, 0.0, 9.0))], mean=True)["p"][
        "a"
    ].middle == [3.0]


def test_the_moment_an_epsilon_was_certified_is_the_first_one() -> None:
    """As the trace tells it; NaN for what never was."""
    setting = Setting(synthetic_table(1, 3, 400, limit=900.0))
    result = setting.run("up", setting.log_laplace, 0.3, 0)
    made = result.outcome.trace.decisions()
    goals = np.array([0.9, 0.5, 0.3, 0.01])
    expected = [made.seconds[np.flatnonzero(made.epsilon <= goal)[0]] for goal in goals[:3]]
    found = first_time(result, goals)
    assert found[:3].tolist() == expected
    assert math.isnan(found[3])


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["experiment", "figure-9"], "there is no experiment 'figure-9'"),
        (["experiment", "figure-1", "--data", "nowhere"], "no such file"),
        (["experiment", "figure-1", "--data", SOLVERS, "--out", SOLVERS], "cannot be a folder"),
        (["data", "draw"], "no action 'draw'"),
        (["data", "path"], "needs the name of a table"),
        (["data", "path", "nothing"], "no table 'nothing'"),
    ],
)
def test_words_that_make_no_sense_are_refused(words: list[str], complaint: str) -> None:
    """With what there is instead."""
    said = CliRunner().invoke(app, words)
    assert isinstance(said.exception, Exception)
    assert complaint in str(said.exception)
