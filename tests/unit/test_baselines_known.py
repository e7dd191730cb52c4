"""Baselines on cases whose outcome is known beforehand."""

import inspect
import math
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from captime import RuntimeTable, parse_utility, simulate
from captime.arrays import FloatArray
from captime.cli import app
from captime.errors import ScenarioError
from captime.procedures import PROCEDURES
from captime.procedures.baselines import BASELINES, Bench, NoMoreInstances
from captime.procedures.problem import option_types
from captime.report.simulated import summary_of_simulation
from captime.report.words import lines, statement
from captime.simulation.rows import settings_of
from captime_research.baselines.ac_band import epochs
from captime_research.baselines.bernstein import EPOCHS, Running, radius
from captime_research.baselines.procrastination import _Runtimes
from captime_research.baselines.settings import distances

UTILITY = "log-laplace(60, 1)"
LIMIT = 900.0
DAY = 86400.0
each_baseline = pytest.mark.parametrize("name", BASELINES)
# Who minimises mean runtime, and who maximises mean utility.
BY_RUNTIME = ("caps-and-runs", "leaps-and-bounds", "spc", "structured-procrastination")
BY_UTILITY = ("gga-style", "hyperband", "paramils-style", "successive-halving")


def table_of(seconds: FloatArray) -> RuntimeTable:
    """Configurations a, b, c, … with these runtimes."""
    names = [chr(ord("a") + number) for number in range(len(seconds))]
    return RuntimeTable.build("known", names, map(str, range(seconds.shape[1])), seconds, timeout=LIMIT)


def steady(*runtimes: float) -> RuntimeTable:
    """Every configuration takes its own time on every instance."""
    return table_of(np.repeat(np.array(runtimes)[:, None], 40, axis=1))


def bench_of(table: RuntimeTable, **wishes: object) -> Bench:
    """A bench on which positions are the table's columns."""
    return Bench(
        lambda config, first, last: table.seconds[config, first:last],
        table.n_configs,
        parse_utility(UTILITY),
        longest=table.limit,
        length=table.n_instances,
        rng=np.random.default_rng(0),
        **wishes,  # type: ignore[arg-type] # the names decide
    )


@each_baseline
def test_the_fastest_of_steady_configurations_is_found(name: str) -> None:
    """Nothing is random but the order: what is fastest everywhere is best by utility and by runtime."""
    table = steady(70.0, 30.0, 8.0, 120.0, 300.0, 50.0)
    # Structured Procrastination fills queues of thousands of instances for a fine goal; a coarse one shows it sooner.
    options = {"epsilon": 1.0} if name == "structured-procrastination" else {}
    wishes = {"utility": UTILITY, "procedure": name, "sampling": "replace", "budget": 2 * DAY, "options": options}
    for seed in range(2):
        result = simulate(table, seed=seed, **wishes)  # type: ignore[arg-type] # the names decide
        assert result.config_name == "c", seed
        assert result.cpu_seconds > 0


@each_baseline
def test_nothing_about_utility_is_certified(name: str) -> None:
    """Epsilon stays 1 on an interval from 0 to 1, and the words say so; the baseline's own promise stands apart."""
    result = simulate(steady(10.0, 20.0), utility=UTILITY, procedure=name, sampling="replace", budget=DAY / 24)
    held = result.certificate
    assert (held.epsilon, held.utility_low, held.utility_high, held.mode) == (1.0, 0.0, 1.0, "nothing")
    assert set(result.outcome.trace.decisions().epsilon.tolist()) == {1.0}
    summary = summary_of_simulation(result)
    assert "certifies nothing about utility" in statement(summary)
    assert "probability" not in statement(summary)
    said = dict(lines(summary))
    assert said["its own guarantee"] == BASELINES[name].guarantee
    assert said["delta covers"].startswith("nothing")


@each_baseline
def test_the_same_question_gets_the_same_answer_and_the_budget_is_kept(name: str) -> None:
    """Seeded; stops at the first guess after the budget is spent; the trace's costs rise."""
    table = table_of(np.random.default_rng(3).exponential(40.0, (5, 400)))
    wishes = {"utility": UTILITY, "procedure": name, "sampling": "replace", "seed": 5, "budget": 4000.0}
    first, second = simulate(table, **wishes), simulate(table, **wishes)  # type: ignore[arg-type] # the names decide
    assert list(first.outcome.trace.rows()) == list(second.outcome.trace.rows())
    made = first.outcome.trace.decisions()
    assert (np.diff(made.seconds) >= 0).all()
    assert (made.seconds[:-1] < 4000.0).all()
    assert first.outcome.stopped == ("budget" if made.seconds[-1] >= 4000.0 else "done")
    assert first.cpu_seconds == pytest.approx(made.seconds[-1])
    assert first.cpu_seconds_under("resume") <= first.cpu_seconds_under("restart") == pytest.approx(first.cpu_seconds)


def risky() -> RuntimeTable:
    """`a` always takes 50 s; `b` takes 1 s, but one time in eight the whole 900 s: its mean is 113 s."""
    seconds = np.array([[50.0] * 800, [1.0] * 700 + [LIMIT] * 100])
    return table_of(seconds)


@pytest.mark.parametrize("name", BY_RUNTIME)
def test_who_minimises_mean_runtime_chooses_the_steady_one(name: str) -> None:
    """Although b is worth more: nine of its answers in ten come within a second."""
    # Few instances may be cut, fewer than b's bad ones; and a coarse goal, so that little time is enough to see it.
    options = {"epsilon": 0.8, "gamma": 0.05}
    options = {key: value for key, value in options.items() if key in option_types(BASELINES[name].search)}
    result = simulate(risky(), utility=UTILITY, procedure=name, sampling="replace", budget=6 * DAY, options=options)
    assert result.config_name == "a"


@pytest.mark.parametrize("name", BY_UTILITY)
def test_who_maximises_utility_chooses_the_risky_one(name: str) -> None:
    """The same table, the other question."""
    result = simulate(risky(), utility=UTILITY, procedure=name, sampling="replace", budget=DAY)
    assert result.config_name == "b"


def test_halving_makes_exactly_the_runs_its_budget_says() -> None:
    """Four configurations, 32 runs in two rounds: 4 on 4 instances, then 2 on 12; completed runs are not paid again."""
    table = steady(10.0, 20.0, 30.0, 40.0)
    result = simulate(table, utility=UTILITY, procedure="successive-halving", options={"captime": 25.0, "runs": 32})
    assert result.outcome.runs.tolist() == [12, 12, 4, 4]
    # Runs of 30 s and 40 s are cut at 25 s.
    assert result.cpu_seconds == 12 * 10.0 + 12 * 20.0 + 4 * 25.0 + 4 * 25.0


def test_a_bench_pays_as_the_replay_does() -> None:
    """Completed: its runtime, once. Cut: its captime, and again in full (restart) or the rest (resume)."""
    table = table_of(np.array([[10.0, 100.0, LIMIT]]))
    for accounting, spent in (("restart", 10.0 + 30.0 + 30.0 + 60.0 + 60.0), ("resume", 10.0 + 60.0 + 60.0)):
        bench = bench_of(table, accounting=accounting)
        seconds, completed = bench.prefix(0, 0, 3, 30.0)
        assert seconds.tolist() == [10.0, 30.0, 30.0]
        assert completed.tolist() == [True, False, False]
        bench.prefix(0, 0, 3, 60.0)
        bench.prefix(0, 0, 3, 45.0)
        assert bench.spent == spent
        assert bench.runs.tolist() == [5]


def test_no_captime_goes_beyond_what_the_table_knows() -> None:
    """A run recorded at the timeout never completes, whatever captime is asked for."""
    bench = bench_of(table_of(np.array([[LIMIT, 10.0]])))
    seconds, completed = bench.prefix(0, 0, 2, 1e6)
    assert seconds.tolist() == [LIMIT, 10.0]
    assert completed.tolist() == [False, True]
    with pytest.raises(NoMoreInstances):
        bench.run(0, 2, 10.0)


def test_a_race_costs_everybody_the_winners_time() -> None:
    """The first to finish stops the rest; if all are capped none wins."""
    bench = bench_of(table_of(np.array([[10.0, 200.0], [40.0, 300.0], [70.0, LIMIT]])))
    assert bench.race(np.array([1, 0, 2]), 0, LIMIT) == 0
    assert bench.spent == pytest.approx(30.0)
    assert bench.race(np.array([0, 1, 2]), 1, 100.0) is None
    assert bench.spent == pytest.approx(330.0)


def test_a_crash_without_a_timeout_is_refused() -> None:
    """What it costs is not known."""
    table = RuntimeTable.build("endless", ["a", "b"], ["i"], np.array([[np.inf], [1.0]]), timeout=np.inf)
    with pytest.raises(ScenarioError, match="never ends and the table has no timeout"):
        simulate(table, utility=UTILITY, procedure="successive-halving", options={"captime": math.inf})


def test_the_epochs_of_ac_band_are_the_published_ones() -> None:
    """Alpha = delta = 0.05 and four cores: 59 configurations in six epochs, with the shares of the paper."""
    sizes, shares = epochs(59, 4)
    assert sizes == [31, 16, 9, 5, 3, 2]
    np.testing.assert_allclose(
        1.0 / np.array(shares), [1.787, 3.980, 8.979, 20.593, 48.271, 116.596], rtol=0, atol=6e-4
    )
    assert sum(shares) == pytest.approx(1.0)


def test_the_bernstein_radius_is_the_formula() -> None:
    """Worked out by hand for ten numbers; and it is near the truth for many."""
    seen = Running()
    values = [1.0, 3.0, 2.0, 5.0, 4.0, 2.0, 2.0, 3.0, 1.0, 7.0]
    for value in values:
        seen.add(value)
    assert seen.mean == pytest.approx(3.0)
    assert seen.variance == pytest.approx(float(np.var(values)))
    epoch = math.floor(math.log(10) / math.log(1.1)) + 1
    x = math.floor(1.1**epoch) / math.floor(1.1 ** (epoch - 1)) * math.log(3.0 * EPOCHS * epoch**1.1 / 0.05)
    assert radius(seen, 10.0, 0.05) == pytest.approx(math.sqrt(2 * np.var(values) * x / 10) + 3 * 10.0 * x / 10)


def test_epochs_of_the_bernstein_race_spend_at_most_everything() -> None:
    """Σ l^-1.1 is 10.5844: the shares of all epochs together are the probability allowed."""
    count = 10**6
    partial = float((np.arange(1, count + 1) ** -1.1).sum())
    assert partial < EPOCHS < partial + 10.0 * count**-0.1 + 1e-3


def test_the_lower_bound_of_procrastination_is_the_area_under_shrunken_survival() -> None:
    """Step by step, with ties, and never above the mean."""
    known = _Runtimes()
    times = [4.0, 1.0, 1.0, 9.0, *([2.0] * 400), *([3.0] * 200)]
    for position, seconds in enumerate(times):
        known.record(position, 0.5)
        known.record(position, seconds)
    assert known.values == sorted(times)
    area, before, count = 0.0, 0.0, len(times)
    for value in sorted(set(times)):
        share = sum(each >= value for each in times) / count
        k = math.floor(math.log2(1.0 / share))
        off = math.sqrt(9.0 * 2.0**k * math.log(max(1, k) * 50) / count)
        area += (value - before) * (share / (1.0 + off) if off <= 0.5 else 0.0)
        before = value
    assert 0 < known.lower_bound(50) == pytest.approx(area)
    assert known.lower_bound(50) < np.mean(times)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("-luby -rfirst=30 --mode fast", {"luby": "yes", "rfirst": "30", "mode": "fast"}),
        ("-no-luby -rinc=2", {"luby": "no", "rinc": "2"}),
        ("alpha=1 beta=x", {"alpha": "1", "beta": "x"}),
        ("c17", {"name": "c17"}),
        ("a solver", {"name": "a solver"}),
    ],
)
def test_settings_are_read_from_names(name: str, expected: dict[str, str]) -> None:
    """Flags, values with and without an equals sign, negations; other names are one setting."""
    assert settings_of(name) == expected


def test_neighbours_differ_in_one_setting() -> None:
    """Distances count settings; unlike names are all equally far."""
    assert distances(["-a=1 -b=1", "-a=1 -b=2", "-a=2 -b=2"]).tolist() == [[0, 1, 2], [1, 0, 1], [2, 1, 0]]
    assert distances(["x", "y", "z"]).tolist() == [[0, 1, 1], [1, 0, 1], [1, 1, 0]]


def test_local_search_walks_a_slope_it_can_only_see_next_door() -> None:
    """A line of 30 configurations, each a little faster than the one before: single steps lead to the end."""
    names = [f"-level={number:02d} -side={number % 2}" for number in range(30)]
    seconds = np.repeat(np.linspace(200.0, 2.0, 30)[:, None], 50, axis=1)
    table = RuntimeTable.build("slope", names, map(str, range(50)), seconds, timeout=LIMIT)
    result = simulate(table, utility=UTILITY, procedure="paramils-style", sampling="replace", seed=1)
    assert result.certificate.config == 29


@each_baseline
def test_every_option_of_a_baseline_is_explained(name: str) -> None:
    """In its docstring and on its page; nonsense is refused."""
    search = BASELINES[name].search
    page = (Path(__file__).parents[2] / "docs" / "baselines.md").read_text(encoding="utf-8")
    assert f"## `{name}`" in page
    section = page.partition(f"## `{name}`")[2].partition("\n## ")[0]
    for option in option_types(search):
        assert f"{option}: " in (inspect.getdoc(search) or "")
        assert f"| `{option}` |" in section
    with pytest.raises(ScenarioError, match="has no option 'colour'"):
        simulate(steady(1.0, 2.0), utility=UTILITY, procedure=name, options={"colour": "blue"})


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("successive-halving", {"runs": 0}),
        ("hyperband", {"eta": 1}),
        ("hyperband", {"resource": -1.0}),
        ("structured-procrastination", {"zeta": 2.0}),
        ("spc", {"captime_first": -1.0}),
        ("leaps-and-bounds", {"multiplier": 1.0}),
        ("caps-and-runs", {"gamma": 0.0}),
        ("impatient-caps-and-runs", {"pool": 0.5}),
        ("ac-band", {"cores": 1}),
        ("paramils-style", {"kick": 0}),
        ("gga-style", {"population": 2}),
    ],
)
def test_impossible_options_are_refused(name: str, option: dict[str, float]) -> None:
    """With what was found and what was expected."""
    with pytest.raises(ScenarioError, match=r"expected|needs"):
        simulate(steady(1.0, 2.0), utility=UTILITY, procedure=name, sampling="replace", options=option)


def test_no_baseline_has_the_name_of_a_procedure() -> None:
    """One name, one meaning."""
    assert not set(BASELINES) & set(PROCEDURES)


def test_baselines_can_be_simulated_from_the_command_line(tmp_path: Path) -> None:
    """By name, with options; exit code 3, since no goal was reached."""
    (tmp_path / "t.csv").write_text("config,i1,i2,i3\na,1,2,3\nb,30,40,50\n")
    words = ["simulate", str(tmp_path / "t.csv"), "--utility", "uniform(60)", "--procedure", "successive-halving"]
    said = CliRunner().invoke(app, [*words, "--timeout", "100", "--option", "runs=4"])
    assert said.exit_code == 3, said.output
    assert "certifies nothing about utility" in " ".join(said.stdout.split())
