import importlib.util
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from scipy.stats import binom
from typer.testing import CliRunner

from captime import PROCEDURES, UTILITIES, Problem, parse_utility, read_table, simulate
from captime.arrays import FloatArray
from captime.bounds import BOUNDS, Bound
from captime.budget import CellBudget
from captime.cli import COMMANDS, app
from captime.errors import ScenarioError, UtilityError
from captime.intervals import Intervals
from captime.plans import Ladder
from captime.procedures.lockstep import Lockstep
from captime.sources.replay import Replay
from captime.sources.synthetic import synthetic_table
from captime.sources.window import stream_of

ROOT = Path(__file__).parents[2]
ADDING = ROOT / "examples" / "adding"
MEMBERS = sorted(path.name for path in ADDING.glob("*.py") if path.name != "__init__.py")

Example = Callable[[str], ModuleType]


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Example:
    """Load a file of the examples by its path, as if it stood in the package."""

    def load(name: str) -> ModuleType:
        path = ROOT / "examples" / f"{name}.py"
        spec = importlib.util.spec_from_file_location(f"example_{path.stem}", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, spec.name, module)
        spec.loader.exec_module(module)
        return module

    return load


def test_there_is_one_example_per_family() -> None:
    """A utility, a bound and a procedure."""
    assert MEMBERS == ["angle.py", "optimist.py", "weibull.py"]


@pytest.mark.parametrize("name", MEMBERS)
def test_contributing_shows_the_files_as_they_are(name: str) -> None:
    """What a newcomer copies from the page is what is tested here."""
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", page, flags=re.MULTILINE | re.DOTALL)
    assert (ADDING / name).read_text(encoding="utf-8") in blocks


def test_a_utility_joins_by_one_line(example: Example, monkeypatch: pytest.MonkeyPatch) -> None:
    """Text, units, listing and simulation follow from the register."""
    monkeypatch.setitem(UTILITIES, "weibull", example("adding/weibull").Weibull)
    utility = parse_utility("Weibull(1min, shape=2)")
    assert str(utility) == "weibull(60, 2)"
    assert parse_utility(str(utility)) == utility
    assert "weibull" in CliRunner().invoke(app, ["list"]).stdout
    table = synthetic_table(1, 3, 2000, limit=900.0)
    assert simulate(table, utility="weibull(60, 2)", epsilon=0.4).certificate.epsilon <= 0.4


def test_the_added_utility_is_one(example: Example) -> None:
    """From 1 down to 0, never rising, with the inverse that its formula promises; wrong parameters are refused."""
    weibull = example("adding/weibull").Weibull
    utility = weibull(60.0, 2.0)
    moments: FloatArray = np.array([0.0, 1.0, 30.0, 60.0, 600.0, 1e300, np.inf])
    worth = utility(moments)
    assert worth[0] == 1.0
    assert worth[3] == pytest.approx(np.exp(-1.0))
    assert worth[-1] == 0.0
    assert (np.diff(worth) <= 0).all()
    values: FloatArray = np.array([0.9, 0.5, 0.01])
    assert utility(utility.inverse(values)) == pytest.approx(values)
    assert utility.inverse(np.array([1.0, 0.0])).tolist() == [0.0, np.inf]
    with pytest.raises(UtilityError, match="shape is 0"):
        weibull(60.0, 0.0)


def _misses(bound: Bound, log_inverse: float, truth: float, floor: float, trials: int) -> tuple[int, int]:
    """How often the lower and the upper end are wrong about the mean of values in {floor, 1}."""
    n, rng = 60, np.random.default_rng(2023)
    ones = rng.binomial(n, (truth - floor) / (1.0 - floor), size=trials)
    sums: FloatArray = ones + floor * (n - ones)
    lower, upper = bound(np.array([n]), sums, sums, np.array([log_inverse]), np.array([floor]))
    return int((lower > truth).sum()), int((upper < truth).sum())


@pytest.mark.parametrize(("truth", "floor"), [(0.02, 0.0), (0.5, 0.0), (0.9, 0.0), (0.6, 0.3), (0.97, 0.3)])
def test_the_added_bound_is_rarely_wrong(example: Example, truth: float, floor: float) -> None:
    """Each end fails with probability at most exp(-log_inverse); a true bound fails this in one seed of a million."""
    trials, log_inverse = 20_000, np.log(10.0)
    limit = binom.isf(1e-6, trials, 0.1)
    assert max(_misses(example("adding/angle").Angle(), log_inverse, truth, floor, trials)) <= limit


def test_a_bound_that_cheats_is_caught(example: Example) -> None:
    """The test above has teeth: the same bound at a tenth of its log_inverse is wrong too often."""
    trials, log_inverse = 20_000, np.log(10.0) / 10
    limit = binom.isf(1e-6, trials, 0.1)
    assert max(_misses(example("adding/angle").Angle(), log_inverse, 0.5, 0.0, trials)) > limit


def test_the_added_bound_beats_hoeffding_near_one_and_not_in_the_middle(example: Example) -> None:
    """What its first line says."""
    n, log_inverse, floor = np.array([500]), np.array([10.0]), np.array([0.0])
    widths = {}
    for share in (0.5, 0.99):
        sums = np.array([share * 500])
        for name, bound in (("angle", example("adding/angle").Angle()), ("hoeffding", BOUNDS["hoeffding"]())):
            lower, upper = bound(n, sums, sums, log_inverse, floor)
            widths[name, share] = float((np.minimum(upper, 1.0) - np.maximum(lower, 0.0))[0])
    assert widths["angle", 0.99] < widths["hoeffding", 0.99]
    assert widths["angle", 0.5] > widths["hoeffding", 0.5]


def test_the_added_bound_survives_the_ends(example: Example) -> None:
    """All zeros, all ones, sums a rounding error beyond n, and a captime at which nothing is lost yet."""
    sums: FloatArray = np.array([0.0, 10.0, 10.0 + 1e-12, 10.0])
    floor: FloatArray = np.array([0.0, 0.0, 0.5, 1.0])
    lower, upper = example("adding/angle").Angle()(np.full(4, 10), sums, sums, np.full(4, 3.0), floor)
    assert (lower >= 0).all()
    assert (upper <= 1).all()
    assert (lower <= upper).all()
    assert lower[0] == 0.0
    assert upper[1:].tolist() == [1.0, 1.0, 1.0]


def test_a_bound_works_inside_a_procedure(example: Example, monkeypatch: pytest.MonkeyPatch) -> None:
    """Intervals take any bound, and the certificate is still true of the table."""
    monkeypatch.setitem(BOUNDS, "angle", example("adding/angle").Angle)
    assert "Chernoff" in CliRunner().invoke(app, ["list"]).stdout
    table, utility = synthetic_table(3, 4, 3000, limit=900.0), parse_utility("log-laplace(60, 1)")
    problem = Problem(4, utility, delta=0.1, epsilon=0.3, captime_limit=table.limit)
    plan = Ladder.doubling(utility, 1.0, problem.captime_top)
    procedure = Lockstep(problem, Intervals(4, BOUNDS["angle"](), CellBudget(0.1, 4), plan))
    replay = Replay(table, stream_of("replace", table.groups, 1), plan, utility)
    while procedure.finished() is None:
        procedure.tell(replay.tally, replay.answer(procedure.ask(slots=1)))
    assert procedure.finished() == "epsilon"
    truth = utility(table.seconds).mean(axis=1)
    assert truth[procedure.certificate().config] >= truth.max() - 0.3


@pytest.fixture
def optimist(example: Example, monkeypatch: pytest.MonkeyPatch) -> None:
    """The procedure, registered."""
    monkeypatch.setitem(PROCEDURES, "optimist", example("adding/optimist").Optimist)


@pytest.mark.usefixtures("optimist")
def test_a_procedure_joins_by_one_line() -> None:
    """It runs by its name, takes options as text, and its certificate is true of the table."""
    table = synthetic_table(5, 4, 2000, limit=900.0)
    result = simulate(
        table,
        utility="uniform(60)",
        procedure="optimist",
        epsilon=0.3,
        sampling="replace",
        options={"captime": "50s"},
    )
    truth = result.utility(table.seconds).mean(axis=1)
    held = result.certificate
    assert result.outcome.stopped == "epsilon"
    assert held.epsilon <= 0.3
    assert truth[held.config] >= truth.max() - held.epsilon
    assert held.utility_low <= truth[held.config] <= held.utility_high
    assert result.outcome.captimes.tolist() == [50.0] * 4
    assert result.outcome.rounds == int(result.outcome.samples.sum())


@pytest.mark.usefixtures("optimist")
def test_the_added_procedure_ends_where_the_table_ends() -> None:
    """Two equal configurations cannot be told apart; the instances run out, and the certificate still holds."""
    table = synthetic_table(5, 2, 50, limit=900.0, spread=0.0)
    result = simulate(table, utility="uniform(60)", procedure="optimist", epsilon=0.01)
    assert result.outcome.stopped == "instances"
    assert result.certificate.epsilon > 0.01


@pytest.mark.usefixtures("optimist")
def test_the_added_procedure_refuses_an_unknowable_captime() -> None:
    """Beyond the table's timeout nothing is known."""
    table = synthetic_table(5, 2, 50, limit=900.0)
    with pytest.raises(ScenarioError, match="at most 900 s"):
        simulate(table, utility="log-laplace(60, 1)", procedure="optimist", options={"captime": "1h"})


def a_copy(name: str, tmp_path: Path) -> Path:
    """The scenario of an example in a folder of its own, with this Python as the one that it calls."""
    folder = Path(shutil.copytree(ROOT / "examples" / name, tmp_path / name))
    scenario = folder / "scenario.toml"
    text = scenario.read_text(encoding="utf-8").replace('"python3"', json.dumps(sys.executable))
    scenario.write_text(text, encoding="utf-8")
    return scenario


def test_the_example_with_a_function_is_well_and_runs(tmp_path: Path, example: Example) -> None:
    """As its page says: doctor, run, best and validate, on graphs that the function makes from numbers."""
    colour = example("function/colour")
    assert {colour.solve(7, 1, order)["answer"] for order in ("degree", "saturation")} == {"sat"}
    scenario = a_copy("function", tmp_path)
    done = CliRunner().invoke(app, ["doctor", str(scenario), "--captime", "300ms"])
    assert done.exit_code == 0, done.output
    words = ["run", str(scenario), "--quiet", "--epsilon", "0.4", "--json"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, (done.output, done.exception)
    assert json.loads(done.stdout)["certificate"]["epsilon"] <= 0.4
    ledger = str(scenario.with_suffix(".ledger"))
    call = CliRunner().invoke(app, ["best", ledger, "--as", "call"]).stdout
    assert re.fullmatch(r"colour:solve\(order='\w+'(, shuffle=True)?, instance=INSTANCE, seed=1\)\n", call)
    done = CliRunner().invoke(app, ["validate", ledger, "--values", "[101, 102]", "--captime", "100ms", "--json"])
    assert done.exit_code == 0, (done.output, done.exception)
    assert json.loads(done.stdout)["n_instances"] == 2


def test_the_example_with_a_fixed_folder_is_well_and_runs(tmp_path: Path, example: Example) -> None:
    """Its tables are the same on every machine, and every configuration finds the same total in them."""
    tables = example("fixed-folder/make_tables")
    assert tables.table(3) == tables.table(3) != tables.table(4)
    scenario = a_copy("fixed-folder", tmp_path)
    script = [sys.executable, "make_tables.py", "--count", "6"]
    subprocess.run(script, cwd=scenario.parent, check=True)
    made = sorted((scenario.parent / "instances").iterdir())
    assert len(made) == 6
    total = example("fixed-folder/query").total
    assert len({total(index, batch, made[0]) for index in ("none", "customer", "covering") for batch in (1, 50)}) == 1
    done = CliRunner().invoke(app, ["doctor", str(scenario)])
    assert done.exit_code == 0, done.output
    assert "5 configurations gave the same answer" in done.stdout
    done = CliRunner().invoke(app, ["run", str(scenario), "--quiet", "--epsilon", "0.5"])
    assert done.exit_code == 0, (done.output, done.exception)
    assert "exactly these 6 instances" in " ".join(done.stdout.split())


@pytest.mark.parametrize("name", ["function", "fixed-folder"])
def test_pages_of_examples_name_what_is_there(name: str) -> None:
    """Every command is one of captime's or a script of the folder, and every link leads to a file."""
    folder = ROOT / "examples" / name
    page = (folder / "README.md").read_text(encoding="utf-8")
    assert all((folder / link).exists() for link in re.findall(r"\]\(([^)]+)\)", page))
    commands = re.findall(r"^ +(captime|python3) (\S+)", page, flags=re.MULTILINE)
    assert len(commands) >= 4
    assert all(word in COMMANDS if program == "captime" else (folder / word).is_file() for program, word in commands)
    assert f"`{name}/`" in (ROOT / "examples" / "README.md").read_text(encoding="utf-8")


def test_the_script_still_makes_the_table(example: Example, tmp_path: Path) -> None:
    """examples/solvers.csv is what its script writes, up to the last printed digit."""
    again = tmp_path / "solvers.csv"
    example("make_solvers").write_solvers(again)
    made, kept = (read_table(path, timeout=300) for path in (again, ROOT / "examples" / "solvers.csv"))
    assert made.configs == kept.configs
    assert made.instances == kept.instances
    assert made.seconds == pytest.approx(kept.seconds, abs=0.011)
