"""The paper's observations, checked by numbers on a small heavy-tailed table; and the machinery that draws them."""

import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from captime import RuntimeTable, simulate
from captime.cli import app
from captime.errors import ScenarioError
from captime.sources.formats import write_npz
from captime.sources.synthetic import shipped_tables, synthetic_table, table_at
from captime.utilities import parse_utility
from captime_research.__main__ import app as experiment
from captime_research.experiments import EXPERIMENTS, Row, Setting
from captime_research.experiments.contenders import PANELS, RUNTIME, UTILITY, contenders
from captime_research.experiments.follow_up import OUP
from captime_research.experiments.gap import CERTIFIED, IN_FORCE, gap, marks_of, panels_of
from captime_research.experiments.growing import COUP, OUP_AFRESH, SCHEDULES, renumbered
from captime_research.experiments.paper import (
    LOG_LAPLACE,
    NAIVE_CAPTIMES,
    PAPER_UP,
    RACE,
    RACE_CONTENDER,
    UP,
    captime_grid,
    naive_cost,
    utilities,
)
from captime_research.experiments.rows import Band, bands, read_rows, write_rows
from captime_research.experiments.running import compute
from captime_research.experiments.setting import first_time

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


@pytest.fixture(scope="module", params=sorted(shipped_tables()))
def measured(request: pytest.FixtureRequest) -> Setting:
    """A table that was measured with a real solver."""
    return Setting(table_at(request.param))


def test_on_measured_tables_naive_explodes_where_its_captime_barely_allows_the_goal(measured: Setting) -> None:
    """Figure 1: at ten κ0 the goal is cheap; just above the captime where u is epsilon it costs many times as much."""
    usual, _ = naive_cost(measured, measured.log_laplace, 0, 0.25, measured.time(600.0))
    barely = float(parse_utility(measured.log_laplace).inverse(np.array(0.25)))
    nearly, _ = naive_cost(measured, measured.log_laplace, 0, 0.25, 1.2 * barely)
    assert nearly > 8 * usual
    never, why = naive_cost(measured, measured.log_laplace, 0, 0.25, barely)
    assert math.isnan(never)
    assert "must be below epsilon" in why


def test_on_measured_tables_the_race_costs_less_than_everybody(measured: Setting) -> None:
    """Figures 2 and 3 at one epsilon, both utilities: UP, OUP, and Naive at its better captime."""
    goal = np.array([0.16])
    for kind, utility in utilities(measured).items():
        ((_, race, _),) = RACE_CONTENDER.points(measured, utility, 0, goal)
        others = [cost for each in (PAPER_UP, OUP) for _, cost, _ in each.points(measured, utility, 0, goal)]
        times = map(measured.time, NAIVE_CAPTIMES[kind])
        others += [naive_cost(measured, utility, 0, goal[0], captime)[0] for captime in times]
        assert race < np.nanmin(others)


def test_on_measured_tables_naive_needs_the_right_captime_for_a_uniform_utility(measured: Setting) -> None:
    """Figure 3: at κ0, after which nothing has any worth, Naive keeps up with UP; at ten κ0 it costs far more."""
    ((_, up, _),) = PAPER_UP.points(measured, measured.uniform, 0, np.array([0.16]))
    right, wrong = (naive_cost(measured, measured.uniform, 0, 0.16, measured.time(each))[0] for each in (60.0, 600.0))
    assert right < 1.2 * up
    assert wrong > 1.4 * right


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


def table_of(seconds: float, timeout: float) -> RuntimeTable:
    """All runs take as long."""
    return RuntimeTable.build("even", ["a", "b"], map(str, range(9)), np.full((2, 9), seconds), timeout=timeout)


def test_times_scale_with_the_table() -> None:
    """κ0 is the median runtime, at most a fifteenth of the timeout, a minute where the paper's is; and it is stated."""
    setting = Setting(table_of(0.4, 1.5))
    assert setting.scale == pytest.approx(0.1)
    assert setting.log_laplace == "log-laplace(0.1, 1)"
    assert setting.uniform == "uniform(0.1)"
    assert setting.time(300.0) == pytest.approx(0.5)
    assert "κ0 = 0.1 s" in setting.note
    assert Setting(setting.table, scale=0.2).time(300.0) == pytest.approx(1.0)
    assert Setting(table_of(0.01234, 1.5)).scale == pytest.approx(0.012)
    assert [Setting(table_of(5.0, timeout)).scale for timeout in (900.0, 10_000.0)] == [60.0, 60.0]


def test_long_tables_have_the_long_grids_of_the_paper() -> None:
    """As CPLEX's: captimes from 50 to 10,500 s; minisat's end at 1000 s, and those of short tables in proportion."""
    grids = [captime_grid(Setting(table_of(5.0, timeout))) for timeout in (10_000.0, 900.0, 90.0)]
    assert [len(grid) for grid in grids] == [21, 21, 21]
    assert [(grid[0], grid[-1]) for grid in grids[:2]] == [(50.0, 10_500.0), (10.0, 1000.0)]
    np.testing.assert_allclose(grids[2], grids[1] * 5.0 / 60.0)


def test_nobodys_cost_depends_on_the_unit_of_time() -> None:
    """The same table in milliseconds instead of seconds: every cost of Figure 2 is a thousandth."""
    table = synthetic_table(2, 4, 400, limit=900.0)
    small = RuntimeTable.build("small", table.configs, table.instances, table.seconds / 1000.0, timeout=0.9)
    settings = (Setting(table), Setting(small, scale=0.06))
    one, other = (list(EXPERIMENTS["figure-2"].compute(each, 0)) for each in settings)
    assert [row.label for row in one] == [row.label for row in other]
    np.testing.assert_allclose([row.y for row in one], [1000.0 * row.y for row in other], rtol=1e-6)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_runs_on_a_small_table(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the command line: two pictures and the numbers, each telling what they are of."""
    monkeypatch.setattr(sys.modules["captime_research.experiments.gap"], "PATIENCE", 4.0)
    pytest.importorskip("matplotlib")
    write_npz(synthetic_table(1, 8, 200, limit=1.5, first_log_speed=-4.0, name="tiny"), tmp_path / "tiny.npz")
    words = [name, "--data", str(tmp_path / "tiny.npz"), "--out", str(tmp_path / "out")]
    said = CliRunner().invoke(experiment, [*words, "--seeds", "1", "--jobs", "1", "--json"])
    assert said.exit_code == 0, said.output
    told = json.loads(said.stdout)
    assert told["experiment"] == name
    assert 0.01 < told["scale"] <= 0.1
    pdf, png, numbers = map(Path, told["files"])
    assert pdf.read_bytes().startswith(b"%PDF")
    assert png.read_bytes().startswith(b"\x89PNG")
    rows = read_rows(numbers)
    assert any(row.label == RACE and row.y > 0 for row in rows)
    assert all(row.y >= 0 for row in rows if not math.isnan(row.y))
    # A number that does not exist says why.
    assert all(row.why for row in rows if math.isnan(row.y) and name.startswith("figure"))


@pytest.fixture(scope="module")
def answers() -> list[Row]:
    """The comparison of answers on a small table, one seed, with enough patience for CapsAndRuns to end."""
    setting = Setting(synthetic_table(1, 8, 200, limit=1.5, first_log_speed=-4.0), delta=0.05)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys.modules["captime_research.experiments.gap"], "PATIENCE", 90.0)
        return list(gap(setting, 0))


def test_every_contender_has_a_curve_and_those_with_a_guarantee_an_epsilon(answers: list[Row]) -> None:
    """None is missing, none crashes."""
    labels = {each.label for each in contenders(8, 0.1)}
    assert {row.label for row in answers if not math.isnan(row.y)} == labels
    certified = {row.label for row in answers if row.panel == CERTIFIED}
    assert certified == {"COUP", "OUP", UP, RACE}
    assert certified == {each.label for each in contenders(8, 0.1) if each.promises == UTILITY}


def test_guarantees_that_come_at_the_end_are_marked_where_they_come(answers: list[Row]) -> None:
    """A star for a method that ended within its budget, at its end, on its curve; nothing for one that did not."""
    ends = {row.label: row for row in answers if row.panel == IN_FORCE}
    assert set(ends) == {"LeapsAndBounds", "CapsAndRuns", "ImpatientCapsAndRuns"}
    assert all(row.why for row in ends.values() if math.isnan(row.y))
    panels = panels_of(bands([row for row in answers if row.panel != IN_FORCE], mean=True))
    assert list(panels) == [*PANELS, CERTIFIED]
    assert all(RACE in curves for curves in panels.values())
    marks = marks_of(answers, panels)
    ended = {label for label, row in ends.items() if not math.isnan(row.y)}
    assert ended
    assert {panel: set(found) for panel, found in marks.items()} == {RUNTIME: ended}
    for label, (moment, _) in marks[RUNTIME].items():
        assert moment == ends[label].y


def test_numbers_of_others_are_drawn_beside_ours(tmp_path: Path) -> None:
    """`--also FILE`; a file that holds something else is refused."""
    pytest.importorskip("matplotlib")
    write_npz(synthetic_table(1, 3, 60, limit=1.5, first_log_speed=-4.0, name="tiny"), tmp_path / "tiny.npz")
    write_rows([Row(LOG_LAPLACE, "another label", 0, x, 1.0) for x in (0.1, 0.25)], tmp_path / "more.csv")
    sizes = []
    for more in ([], ["--also", str(tmp_path / "more.csv")]):
        words = ["figure-2", "--data", str(tmp_path / "tiny.npz"), "--out", str(tmp_path / "out")]
        said = CliRunner().invoke(experiment, [*words, *more, "--seeds", "1", "--json"])
        assert said.exit_code == 0, said.output
        pdf, _, numbers = map(Path, json.loads(said.stdout)["files"])
        sizes.append(pdf.stat().st_size)
        assert not any(row.label == "another label" for row in read_rows(numbers))
    assert sizes[0] != sizes[1]
    (tmp_path / "more.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    said = CliRunner().invoke(experiment, [*words, "--also", str(tmp_path / "more.csv")])
    assert "cannot be read as the numbers of an experiment" in str(said.exception)


def test_coup_goes_through_its_phases_as_far_as_the_table_has_configurations() -> None:
    """Goals fall phase by phase; the cost of COUP, which keeps its past, rises; afresh there is a cost for each."""
    setting = Setting(synthetic_table(1, 20, 300, limit=1.5, first_log_speed=-4.0), delta=0.01)
    found = curves("follow-up-3", setting, seeds=1)
    assert list(found) == [schedule.title for schedule in SCHEDULES]
    for curve in found.values():
        assert list(curve[COUP].x) == list(curve[OUP_AFRESH].x) == list(curve[RACE].x)
        assert len(curve[COUP].x) >= 3
        # From the last phase, whose goal is smallest, to the first.
        assert curve[COUP].middle == sorted(curve[COUP].middle, reverse=True)
        assert not np.isnan(curve[RACE].middle).any()


def test_the_new_rule_skips_short_captimes() -> None:
    """While u(κ) is 2/3 or more a captime always doubles: for log-Laplace(60, 1) from 1 s on that is until 64 s."""
    table = synthetic_table(3, 4, 400, limit=900.0)
    first = {
        rule: simulate(table, utility="log-laplace(60, 1)", procedure="up", options={"rule": rule}, epsilon=0.9)
        for rule in ("old", "new")
    }
    assert first["new"].outcome.captimes.min() >= 64.0
    assert first["old"].outcome.captimes.min() < 64.0
    with pytest.raises(ScenarioError, match="rule of up is 'newest'"):
        simulate(table, utility="uniform(60)", procedure="up", options={"rule": "newest"})
    with pytest.raises(ScenarioError, match="doubles by the old one"):
        simulate(table, utility="uniform(60)", procedure="up", options={"rule": "new", "variant": "as-published"})


def test_renumbering_changes_names_and_rows_together() -> None:
    """The configuration called x takes x's time, in every order."""
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
        (["figure-9"], "there is no experiment 'figure-9'"),
        (["figure-1", "--data", "nowhere"], "no such file"),
        (["figure-1", "--data", SOLVERS, "--out", SOLVERS], "cannot be a folder"),
        (["data", "draw"], "no action 'draw'"),
        (["data", "path"], "needs the name of a table"),
        (["data", "path", "nothing"], "no table 'nothing'"),
    ],
)
def test_words_that_make_no_sense_are_refused(words: list[str], complaint: str) -> None:
    """With what there is instead."""
    said = CliRunner().invoke(app if words[0] == "data" else experiment, words)
    assert isinstance(said.exception, Exception)
    assert complaint in str(said.exception)
