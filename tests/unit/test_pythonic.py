"""Python as people write it: results that print themselves, settings of any shape, Ctrl-C, and runs made elsewhere."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import captime
from captime.cli import app
from captime.errors import ScenarioDiffers, ScenarioError
from captime.executors.protocol import ctrl_c_asks
from captime.ledger import LedgerReader
from report_ledgers import shared_memory


def work(settings: dict[str, Any], instance: int, seed: int) -> bool:
    """Needs settings exactly as they were given."""
    assert isinstance(settings["weights"], np.ndarray)
    assert settings["nested"]["inner"][0] is None
    assert isinstance(settings["pair"], tuple)
    return sum(range(int(settings["weights"].sum()) * 100)) + instance + seed >= 0


CONFIGURATIONS: dict[str, dict[str, Any]] = {
    name: {"weights": np.arange(size), "nested": {"inner": [None, {"x": 1.5}]}, "pair": (1, "b"), "k": np.int64(size)}
    for name, size in (("small", 3), ("large", 9))
}


@pytest.fixture(scope="module")
def result() -> captime.Result:
    """A short campaign on a function whose settings are arrays, tuples, None and nested."""
    return captime.configure(
        work,
        list(range(20)),
        CONFIGURATIONS,
        utility="uniform(5s)",
        epsilon=0.7,
        sampling="replace",
        jobs=1,
        progress=False,
        ledger=shared_memory() / "work.ledger",
    )


def test_a_function_is_called_with_its_settings_as_given(result: captime.Result) -> None:
    """Every run answered, so every assertion in the function held; the ledger has the settings in words of JSON."""
    # The last one may have been cancelled when the goal was reached.
    assert "answered" in set(result.runs()["verdict"]) <= {"answered", "cancelled"}
    assert isinstance(result.settings["weights"], np.ndarray)
    with LedgerReader(result.ledger) as reader:
        assert reader.configs[0].parameters["weights"] == [0, 1, 2]
        assert reader.configs[0].parameters["nested"] == {"inner": [None, {"x": 1.5}]}


def test_settings_that_change_after_the_call_change_no_run(result: captime.Result) -> None:
    """The scenario holds copies."""
    assert result.scenario is not None
    assert result.scenario.originals["small"]["weights"] is not CONFIGURATIONS["small"]["weights"]


def test_nested_settings_are_validated_and_pasted(result: captime.Result) -> None:
    """Held-out runs get the same arrays; forms without words for nested settings are left out or refused."""
    found = captime.validate(result, [100, 101], configs=["small", "large"], jobs=1, progress=False)
    assert all(worth.seen_low > 0.5 for worth in found.worth.values())
    told = CliRunner().invoke(app, ["best", str(result.ledger)])
    assert "json:" in told.output
    assert "pcs:" not in told.output
    refused = CliRunner().invoke(app, ["best", str(result.ledger), "--as", "toml"])
    assert "choose json or python" in str(refused.exception)


@pytest.mark.parametrize(("value", "sentence"), [(object(), "let the function look it up"), ({1: 2}, "texts as keys")])
def test_what_no_ledger_can_record_is_refused(value: object, sentence: str) -> None:
    """In one sentence that names the setting."""
    with pytest.raises(ScenarioError, match=rf"configurations\.a\.it .*{sentence}"):
        captime.configure(work, [1, 2], {"a": {"it": value}}, utility="uniform(1)")


def test_a_result_prints_certificate_and_table(result: captime.Result) -> None:
    """Short, and with everything that decides."""
    assert len(repr(result)) < 300
    simulated = captime.simulate(
        Path(__file__).parents[2] / "examples" / "solvers.csv", utility="uniform(1min)", epsilon=0.5
    )
    assert len(repr(simulated)) < 300
    text = str(result)
    assert len(text) < 3000
    assert text.startswith("With probability at least 90 %, ")
    for word in ("small", "large", "answered/", "expected utility", "stopped because", str(result.ledger)):
        assert word in text
    page = result._repr_html_()
    assert len(page) < 6000
    assert page.count("<tr") >= 3 + 4


def test_columns_of_configurations_and_runs_have_one_length(result: captime.Result) -> None:
    """Ready for pandas, with what people ask for first."""
    table, runs = result.configurations(), result.runs()
    assert {len(column) for column in table.values()} == {2}
    assert {"name", "runs", "median_seconds", "utility", "utility_low", "utility_high", "candidacy"} <= set(table)
    assert len({len(column) for column in runs.values()}) == 1
    assert {"seed", "utility", "counts", "cpu_seconds", "wall_seconds", "exit_code", "answer", "host", "flags"} <= set(
        runs
    )
    answered = runs["verdict"] == "answered"
    np.testing.assert_allclose(runs["utility"][answered], result.question.utility(runs["runtime"][answered]))
    assert np.isnan(runs["utility"][~answered]).all()


@pytest.fixture
def usual_ctrl_c() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt, as Python begins; a library that other tests load has its own handler."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("usual_ctrl_c")
def test_the_first_ctrl_c_asks_and_the_second_interrupts() -> None:
    """Afterwards Ctrl-C does what it did before."""
    with ctrl_c_asks(lambda: False, "a test") as interrupted:
        assert not interrupted()
        os.kill(os.getpid(), signal.SIGINT)
        assert interrupted()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.usefixtures("usual_ctrl_c")
def test_ctrl_c_in_configure_returns_the_result_held_so_far(tmp_path: Path) -> None:
    """Asked for in the middle of a campaign that would continue for long."""

    def interrupting(settings: dict[str, int], instance: int, seed: int, parent: int = os.getpid()) -> bool:
        if instance == 3 and settings["k"] == 1:
            os.kill(parent, signal.SIGINT)
        return settings["k"] + seed >= 0

    held = captime.configure(
        interrupting,
        {"values": list(range(20)), "sampling": "given"},
        [{"k": 1}, {"k": 2}],
        utility="uniform(5s)",
        epsilon=0.0,
        jobs=1,
        progress=False,
        ledger=tmp_path / "held.ledger",
    )
    assert held.outcome.stopped == "interrupted"
    assert "it was interrupted" in str(held)


# ---------------------------------------------------------------------- runs made elsewhere


def told(campaign: captime.AskTell, most: int = 3, stop: int = 10**9) -> None:
    """Make runs as a caller would: times follow from the pace and the position; every ninth run is lost at first."""
    count = 0
    while campaign.finished is None:
        for run in campaign.pending or campaign.ask(most):
            seconds = float(np.random.default_rng(run.position).exponential(run.settings["pace"]))
            if run.attempt == 0 and run.position % 9 == 5:
                campaign.tell(run, "lost", 0.0)
            else:
                ended = seconds < run.captime
                campaign.tell(run, "completed" if ended else "capped", min(seconds, run.captime))
            count += 1
            if count >= stop:
                return


PACES = {"fast": {"pace": 1.0}, "middling": {"pace": 2.0}, "slow": {"pace": 8.0}}


def asked(path: Path, **more: Any) -> captime.AskTell:
    """A campaign with a ledger."""
    terms: dict[str, Any] = {"utility": "uniform(10)", "epsilon": 0.2, "instances": [f"i{k}" for k in range(300)]}
    return captime.AskTell(PACES, **{**terms, **more}, ledger=path)


def test_runs_made_elsewhere_are_recorded_resumed_and_verified() -> None:
    """What was under way at the end of the first call is pending in the second, and may still be told."""
    path = shared_memory() / "told.ledger"
    with asked(path) as campaign:
        told(campaign, stop=12)
        campaign.ask(2)
        pending, seed = campaign.pending, campaign.seed
    assert pending
    with asked(path) as campaign:
        assert campaign.seed == seed
        assert campaign.pending == pending
        told(campaign)
        assert campaign.best == {"pace": 1.0}
        assert campaign.best_name == "fast"
        assert campaign.finished == "epsilon"
    assert campaign.verify().verdict == "confirmed"
    # The goal may change; what is asked may not.
    with asked(path, epsilon=0.15) as campaign:
        told(campaign)
        assert campaign.certificate.epsilon <= 0.15
    assert CliRunner().invoke(app, ["verify", str(path)]).exit_code == 0
    status = json.loads(CliRunner().invoke(app, ["status", str(path), "--json"]).output)
    assert {row["name"] for row in status["configurations"]} == set(PACES)
    with pytest.raises(ScenarioDiffers, match="utility"):
        asked(path, utility="uniform(11)")
    with pytest.raises(ScenarioDiffers, match="resumes with those it was begun with"):
        captime.AskTell(
            {**PACES, "late": {"pace": 3.0}}, "uniform(10)", instances=[f"i{k}" for k in range(300)], ledger=path
        )


def test_instances_may_be_added_at_the_end_of_their_list() -> None:
    """Five are used up without a decision; with more of them the campaign resumes, and its check knows it."""
    path = shared_memory() / "longer.ledger"
    with asked(path, instances=[f"i{k}" for k in range(5)], population="drawn") as campaign:
        told(campaign)
        assert campaign.finished == "instances"
    with asked(path) as campaign:
        assert campaign.finished is None
        told(campaign)
        assert campaign.finished == "epsilon"
    assert campaign.verify().verdict == "confirmed"


def test_every_configuration_meets_the_same_instance_at_a_position() -> None:
    """In an order drawn from the seed."""
    campaign = captime.AskTell(PACES, "uniform(10)", instances=["a", "b", "c", "d"], seed=4)
    met: dict[int, set[str]] = {}
    for _ in range(8):
        for run in campaign.ask(2):
            met.setdefault(run.position, set()).add(run.instance)
            campaign.tell(run, "completed", 0.0)
    assert all(len(instances) == 1 for instances in met.values())
    assert set.union(*met.values()) <= {"a", "b", "c", "d"}


def test_a_space_is_searched_by_asking() -> None:
    """Settings come from the space, the ledger knows them, and the certificate is confirmed."""
    path = shared_memory() / "space.ledger"
    terms: dict[str, Any] = {
        "space": {"pace": {"type": "float", "low": 0.5, "high": 9.0, "default": 5.0}},
        "utility": "uniform(10)",
        "epsilon": 0.4,
        "gamma": 0.4,
        "ledger": path,
    }
    with captime.AskTell(**terms) as campaign:
        told(campaign, stop=20)
    with captime.AskTell(**terms) as campaign:
        told(campaign)
        assert 0.5 <= campaign.best["pace"] <= 9.0
    assert campaign.verify().verdict == "confirmed"


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"utility": None}, "the utility is None"),
        ({"space": {}}, "both of configurations and space"),
        ({"n_instances": 3}, "leave n_instances out"),
    ],
)
def test_terms_that_contradict_each_other_are_refused(tmp_path: Path, more: dict[str, Any], sentence: str) -> None:
    """Before anything is written."""
    with pytest.raises(ScenarioError, match=sentence):
        asked(tmp_path / "no.ledger", **more)
    assert not (tmp_path / "no.ledger").exists()


def test_what_cannot_have_happened_is_not_taken_down(tmp_path: Path) -> None:
    """A run is told once, with a time that exists, and not after the ledger was closed."""
    campaign = asked(tmp_path / "told.ledger")
    run = campaign.ask()[0]
    with pytest.raises(ScenarioError, match="expected a finite number"):
        campaign.tell(run, "completed", float("nan"))
    with pytest.raises(ScenarioError, match="Leave cost out"):
        campaign.tell(run, "completed", 1.0, cost=0.5)
    # Answered too late: it counts as capped at its captime.
    campaign.tell(run, "completed", run.captime + 1.0)
    with pytest.raises(ScenarioError, match="told already"):
        campaign.tell(run, "completed", 0.1)
    run = campaign.ask()[0]
    campaign.close()
    with pytest.raises(ScenarioError, match="the ledger is closed"):
        campaign.tell(run, "completed", 0.1)
    with LedgerReader(tmp_path / "told.ledger") as reader:
        assert reader.newest(1)[0].status.value == "capped"
