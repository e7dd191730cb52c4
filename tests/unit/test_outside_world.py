"""What the statistics need from outside: fresh seeds, programs that do not know their captime, streams that end."""

import json
import runpy
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from captime import configure
from captime.campaign import run_campaign
from captime.campaign.ask_tell import AskTell
from captime.campaign.identity import as_begun
from captime.errors import ScenarioDiffers
from captime.evidence import Evidence
from captime.executors import VirtualExecutor
from captime.ledger import LedgerReader
from captime.ledger.reading import STATUSES
from captime.live import drive_parallel
from captime.procedures import PROCEDURES, Problem
from captime.procedures.set_schedule import captimes_for
from captime.report.campaigned import assumptions, campaign_json, summary_and_table
from captime.runs import RunRequest, Status
from captime.scenario import Scenario, scenario_of
from captime.streams import finite
from captime.utilities import parse_utility
from runtime_laws import NEVER, in_order, table_of
from stub_targets import steady


def configured(path: Path, **more: Any) -> dict[str, object]:
    """A campaign of a moment; what it says as JSON."""
    result = configure(
        steady,
        list(range(8)),
        {"a": {"x": 1}, "b": {"x": 2}},
        utility="uniform(10)",
        ledger=path,
        progress=False,
        jobs=1,
        interrupted=lambda: True,
        **more,
    )
    return campaign_json(result, *summary_and_table(result))


def test_a_campaign_without_a_seed_draws_one_and_keeps_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every campaign another one, on record, and the same when it is resumed; one that the user names has to agree."""
    drawn = iter(range(501, 600))
    monkeypatch.setattr(finite, "fresh_seed", lambda: next(drawn))
    assert configured(tmp_path / "first.ledger")["seed"] == 501
    assert configured(tmp_path / "second.ledger")["seed"] == 502
    with LedgerReader(tmp_path / "first.ledger") as reader:
        assert reader.scenario["seed"] == 501
    assert configured(tmp_path / "first.ledger")["seed"] == 501
    assert configured(tmp_path / "first.ledger", seed=501)["seed"] == 501
    with pytest.raises(ScenarioDiffers, match="seed"):
        configured(tmp_path / "first.ledger", seed=7)


def test_fresh_seeds_are_drawn_from_the_system() -> None:
    """The function that tests replace: its numbers differ, and are seeds."""
    fresh = runpy.run_path(str(Path(finite.__file__)))["fresh_seed"]
    drawn = {fresh() for _ in range(8)}
    assert len(drawn) > 1
    assert all(0 <= seed < 2**63 for seed in drawn)


def test_whoever_asks_and_tells_gets_a_fresh_seed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """And can read it, to begin again in the same way."""
    monkeypatch.setattr(finite, "fresh_seed", lambda: 77)
    assert AskTell(["a", "b"], "uniform(10)").seed == 77
    assert AskTell(["a", "b"], "uniform(10)", seed=5).seed == 5


# ---------------------------------------------------------------------- what programs are told

TELLS = """
import sys
print("Result for SMAC: SUCCESS, 0.01, 0, 0, 1")
"""


def wrapped(folder: Path, **target: Any) -> Scenario:
    """A scenario with a wrapper of AClib's convention."""
    (folder / "wrapper.py").write_text(TELLS, encoding="utf-8")
    for number in range(12):
        (folder / f"{number}.cnf").write_text(str(number), encoding="utf-8")
    document = {
        "utility": "log-laplace(2, 1)",
        "seed": 3,
        "target": {"command": [sys.executable, "wrapper.py"], "wrapper": "aclib1", **target},
        "configurations": {"a": {"x": 1}, "b": {"x": 2}},
        "instances": {"files": "*.cnf"},
    }
    return scenario_of(document, folder)


@pytest.mark.parametrize("wrapper", ["aclib1", "aclib2", "irace", "smac3"])
def test_no_wrapper_is_told_what_was_drawn(tmp_path: Path, wrapper: str) -> None:
    """The words of a run are the same whatever captime it was given; the captime is enforced all the same."""
    program = wrapped(tmp_path, wrapper=wrapper).program
    launches = [program.launch(RunRequest(0, 4, captime), 1, "tag") for captime in (0.25, 3.0, 40.0, 900.0)]
    assert len({launch.argv for launch in launches}) == 1
    assert [launch.captime for launch in launches] == [0.25, 3.0, 40.0, 900.0]


def test_a_command_with_a_captime_in_it_is_not_told_either(tmp_path: Path) -> None:
    """`{captime}` stands for the longest that any run can have: the ceiling, or where an answer is worth nothing."""
    program = wrapped(tmp_path, wrapper=None, command=["true", "{captime}", "{x}"], ceiling="90s").program
    assert {program.launch(RunRequest(0, 4, captime), 1, "tag").argv[1] for captime in (0.25, 40.0)} == {"90"}


def test_the_cutoff_is_longer_than_every_captime_of_the_race(tmp_path: Path) -> None:
    """So that the wrapper is never the one who stops the run."""
    scenario = wrapped(tmp_path)
    race = PROCEDURES["race"](scenario.question.problem())
    told = float(scenario.program.launch(RunRequest(0, 4, 1.0), 1, "tag").argv[4])
    captimes = race.plan.captime(np.zeros(4096, dtype=np.int64), np.arange(4096))
    assert told > captimes.max()
    for epsilon in (0.0, 0.004, 0.1):
        assert told > captimes_for(replace(scenario.question.problem(), epsilon=epsilon)).max()


# ---------------------------------------------------------------------- whose time

SLOW_BY_OUR_CLOCK = """
import sys, time
began = time.process_time()
# Three of four seeds are slow.
while time.process_time() < began + (0.15 if int(sys.argv[5]) % 4 else 0.01):
    pass
print("Result for SMAC: SUCCESS, 0.015, 0, 0, 1")
"""


@pytest.mark.parametrize(("population", "limits"), [("drawn", {}), ("these", {"ceiling": "100ms"})])
def test_a_certificate_about_reported_time_says_so_and_covers_runs_that_our_clock_cut(
    tmp_path: Path, population: str, limits: dict[str, str]
) -> None:
    """Every run is worth 0.95 by its own account, and most take ten times as long by our clock: many are cut.

    Before, runs that were cut counted as late, and 0.95 was certified to be far less.
    """
    scenario = wrapped(tmp_path, time="reported", repeatable=True, **limits)
    (tmp_path / "wrapper.py").write_text(SLOW_BY_OUR_CLOCK, encoding="utf-8")
    instances = scenario.wishes.instances.model_copy(update={"population": population})
    wishes = scenario.wishes.model_copy(update={"utility": "uniform(300ms)", "instances": instances})
    asked = as_begun(Scenario(wishes, scenario.folder, scenario.place), tmp_path / "x.ledger")
    spec = asked.build()
    result = run_campaign(spec.question, tmp_path / "x.ledger", spec.settings)
    assert result.certificate.utility_high >= 0.95
    assert result.certificate.utility_low <= 0.95
    said = campaign_json(result, *summary_and_table(result))
    assert said["time"] == "reported"
    assert any("what the program reports of itself" in line for line in assumptions(result))
    cut = json.loads(json.dumps(said["statuses"])).get("capped", 0)
    assert cut > 0
    assert set(reader_statuses(tmp_path / "x.ledger")) <= {Status.COMPLETED, Status.ABANDONED}


def reader_statuses(path: Path) -> list[Status]:
    """How the runs of a ledger ended."""
    with LedgerReader(path) as reader:
        return [STATUSES[status] for status in reader.outcomes()["status"].tolist()]


# ---------------------------------------------------------------------- streams that end


@pytest.mark.parametrize("name", ["up", "oup", "coup", "coup-plus", "coup-plus-pool", "fixed-captimes"])
@pytest.mark.parametrize("workers", [2, 7])
def test_nobody_asks_for_positions_behind_the_end_of_the_stream(name: str, workers: int) -> None:
    """With several runs at a time, too: virtual workers refuse what the table does not have."""
    rng = np.random.default_rng(2)
    n_configs, length = 14, 25
    seconds = rng.exponential(8.0, (n_configs, length))
    problem = Problem(n_configs, parse_utility("uniform(20)"), 0.1, epsilon=0.01, n_instances=length)
    made = PROCEDURES[name](problem)
    executor = VirtualExecutor(table_of(seconds, NEVER), in_order(length), workers)
    outcome = drive_parallel(made, executor, Evidence(n_configs, made.plan, parse_utility("uniform(20)")))
    assert outcome.samples.max() <= length
