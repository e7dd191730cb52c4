import re
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from captime.campaign.assembly import Assembly, executor_of
from captime.cli import app
from captime.errors import ScenarioError
from captime.library import validate
from captime.scenario import Scenario, load_scenario, scenario_of
from captime.scenario.checkup.checks import look_at_executor
from dask_clusters import with_executor
from scripted_campaign import scripted_campaign


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A program and two instances."""
    program = tmp_path / "solve"
    program.write_text("#!/bin/sh\necho done\n", encoding="utf-8")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    for number in range(2):
        (tmp_path / f"{number}.cnf").write_text(f"{number}\n", encoding="ascii")
    return tmp_path


def scenario(folder: Path, executor: dict[str, Any] | None = None, **more: Any) -> Scenario:
    """A scenario with this section."""
    document: dict[str, Any] = {
        "utility": "uniform(60)",
        "target": {"command": ["./solve", "{instance}", "{x}"], "answer": "^done"},
        "configurations": {"a": {"x": 1}, "b": {"x": 2}},
        "instances": {"files": "*.cnf"},
        **more,
    }
    if executor is not None:
        document["executor"] = executor
    return scenario_of(document, folder)


@pytest.mark.parametrize(
    ("executor", "complaint"),
    [
        ({"kind": "dask", "address": "a", "cluster": "slurm"}, r"says address and cluster; expected exactly one"),
        ({"address": "tcp://a:1"}, r"executor.address means nothing on one machine.*dask"),
        ({"kind": "dask", "address": "a", "workers": 3}, r"executor.workers means nothing for a cluster that is there"),
        ({"kind": "dask", "cluster": "slurmy"}, r"executor.cluster is 'slurmy'; expected 'local', 'slurm'"),
        ({"kind": "dask", "address": "a", "machines": "normalised"}, r"executor.reference is missing"),
        ({"kind": "dask", "address": "a", "machines": "any", "reference": 1}, r"executor.reference means nothing"),
        ({"kind": "dask", "address": "a", "tolerance": 2}, r"executor.tolerance is 2; expected less than 1"),
    ],
)
def test_mistakes_about_clusters_are_named(folder: Path, executor: dict[str, Any], complaint: str) -> None:
    """Before anything is started."""
    with pytest.raises(ScenarioError, match=complaint):
        scenario(folder, executor).build()


def test_where_runs_happen_is_no_part_of_the_question(folder: Path) -> None:
    """A campaign may move to a cluster; unless seconds are converted there, which makes them other seconds."""
    here = scenario(folder)
    there = {"kind": "dask", "address": "tcp://a:1"}
    assert scenario(folder, there).canonical() == here.canonical()
    converted = {**there, "machines": "normalised", "reference": "50ms"}
    assert scenario(folder, converted).canonical() != here.canonical()


def test_jobs_limit_a_cluster_and_not_our_own_cores(folder: Path) -> None:
    """More jobs than cores are no mistake where there are other machines."""
    spec = scenario(folder, {"kind": "dask", "address": "tcp://a:1"}, jobs=5000).build()
    assert (spec.most, spec.settings.jobs) == (5000, 5000)
    assert scenario(folder).build().most is None


def test_a_cluster_that_cannot_be_reached_is_a_clear_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An address without a scheduler."""
    pytest.importorskip("distributed", reason="the extra captime[dask]")
    monkeypatch.setattr("captime.executors.dask_cluster._CONNECT_SECONDS", 0.3)
    spec = scenario(folder, {"kind": "dask", "address": "tcp://127.0.0.1:1"}).build()
    with (
        pytest.raises(ScenarioError, match=r"tcp://127.0.0.1:1 cannot be reached .*dask scheduler"),
        executor_of(spec, spec.ledger),
    ):
        pass


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ({"scheduler_file": "gone.json"}, r"scheduler_file is .*gone.json, but it cannot be read .*dask scheduler"),
        ({"scheduler_file": "odd.json"}, "it has no address; expected what a scheduler writes"),
        ({"scheduler_file": "cut.json"}, "it is no JSON"),
        ({"scheduler_file": "name.json"}, r"executor.scheduler_file: 'nonsense' cannot be reached .*such as tcp://"),
        ({"address": "nonsense"}, r"executor.address: 'nonsense' cannot be reached \(missing port"),
        ({"address": "post://here:1"}, r"unknown address scheme 'post'"),
        ({"cluster": "local", "options": {"colour": "blue"}}, "executor.options.colour is no option of a local"),
    ],
)
def test_a_cluster_that_cannot_be_meant_is_refused_by_run_and_doctor(
    section: dict[str, Any], said: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before Dask waits for ever for a file, or ends with a traceback."""
    pytest.importorskip("distributed", reason="the extra captime[dask]")
    monkeypatch.setattr("captime.executors.dask_cluster._CONNECT_SECONDS", 0.3)
    monkeypatch.setattr("captime.scenario.checkup.checks._REACH_SECONDS", 0.3)
    (folder / "odd.json").write_text('{"x": 1}', encoding="utf-8")
    (folder / "cut.json").write_text('{"addr', encoding="utf-8")
    (folder / "name.json").write_text('{"address": "nonsense"}', encoding="utf-8")
    spec = scenario(folder, {"kind": "dask", **section}).build()
    with pytest.raises(ScenarioError, match=said), executor_of(spec, spec.ledger):
        pass
    (absent,) = look_at_executor(spec.executor)
    assert (absent.level, absent.exit_code) == ("failed", 2)
    assert re.search(said, absent.found)


def test_doctor_wants_a_cluster_to_be_named(folder: Path) -> None:
    """As `captime run` does."""
    (found,) = look_at_executor(scenario(folder, {"kind": "dask"}).build().executor)
    assert (found.level, found.exit_code) == ("failed", 2)
    assert "expected exactly one of address" in found.advice


def test_a_cluster_has_to_be_named_unless_a_client_is_handed_over(folder: Path) -> None:
    """Exactly one of three fields, or a client from Python."""
    spec = scenario(folder, {"kind": "dask", "machines": "any"}).build()
    with pytest.raises(ScenarioError, match="does not say which cluster"), executor_of(spec, spec.ledger):
        pass
    with executor_of(spec, spec.ledger, client=object()) as make:
        assert make is not None
    here = scenario(folder).build()
    with executor_of(here, here.ledger) as make:
        assert make is None


def test_what_cannot_be_right_elsewhere_is_refused(folder: Path) -> None:
    """A function would be given a path that is not there; and cores say nothing about the wall clock."""
    there = {"kind": "dask", "address": "tcp://a:1"}
    spec = scenario(
        folder,
        {**there, "machines": "normalised", "reference": 0.05},
        target={"command": ["./solve", "{instance}", "{x}"], "clock": "wall"},
    ).build()
    with pytest.raises(ScenarioError, match="wall-clock"), executor_of(spec, spec.ledger):
        pass
    (folder / "solver.py").write_text("def solve(instance, seed, x):\n    return True\n", encoding="utf-8")
    spec = scenario(folder, {**there, "transfer": True}, target={"function": "solver:solve"}).build()
    with pytest.raises(ScenarioError, match="transfer sends instances to commands"), executor_of(spec, spec.ledger):
        pass


@pytest.mark.parametrize("command", ["run", "measure", "validate"])
def test_every_command_that_makes_runs_makes_them_where_the_scenario_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """C11: no scheduler listens at that address, so no run is made here in its place."""
    pytest.importorskip("distributed", reason="the extra captime[dask]")
    monkeypatch.setattr("captime.executors.dask_cluster._CONNECT_SECONDS", 0.3)
    campaign = scripted_campaign(tmp_path, order="arrival", instances=2)
    at_home = CliRunner().invoke(app, ["run", str(campaign.scenario), "-q"])
    assert at_home.exit_code == 0, at_home.output
    with_executor(campaign, 'kind = "dask"\naddress = "tcp://127.0.0.1:1"')
    words = {
        "run": [str(campaign.scenario)],
        "measure": [str(campaign.scenario), "--out", str(tmp_path / "table.npz"), "--captime", "9s"],
        "validate": [str(campaign.ledger), "--instances", str(tmp_path / "instances"), "--configs", "leader"],
    }
    there = CliRunner().invoke(app, [command, *words[command]])
    assert isinstance(there.exception, ScenarioError), there.output
    assert "tcp://127.0.0.1:1 cannot be reached" in str(there.exception)


def test_the_library_validates_where_the_campaign_ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A result of `configure` whose scenario names a cluster is not validated on this machine."""
    pytest.importorskip("distributed", reason="the extra captime[dask]")
    monkeypatch.setattr("captime.executors.dask_cluster._CONNECT_SECONDS", 0.3)
    campaign = scripted_campaign(tmp_path, order="arrival", instances=2)
    asked = load_scenario(campaign.scenario)
    here = Assembly.of(asked.build(), campaign.ledger)
    with here.slots(lambda: False) as at_work:
        result = at_work.run(None)
    with_executor(campaign, 'kind = "dask"\naddress = "tcp://127.0.0.1:1"')
    there = replace(result, scenario=load_scenario(campaign.scenario))
    with pytest.raises(ScenarioError, match=r"tcp://127.0.0.1:1 cannot be reached"):
        validate(there, str(tmp_path / "instances" / "*"), progress=False)


def test_doctor_looks_at_the_cluster(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """C11: what it tries is tried on this machine, and that is said."""
    pytest.importorskip("distributed", reason="the extra captime[dask]")
    monkeypatch.setattr("captime.scenario.checkup.checks._REACH_SECONDS", 0.3)
    assert look_at_executor(scenario(folder).build().executor) == []
    (absent,) = look_at_executor(scenario(folder, {"kind": "dask", "address": "tcp://127.0.0.1:1"}).build().executor)
    assert (absent.level, absent.exit_code) == ("failed", 2)
    assert "tcp://127.0.0.1:1 cannot be reached" in absent.found
    (there,) = look_at_executor(scenario(folder, {"kind": "dask", "cluster": "local"}).build().executor)
    assert there.level == "note"
    assert "all other checks are about this machine" in there.advice
