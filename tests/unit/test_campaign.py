"""Campaigns: recorded before anything is acted upon, resumed after any end; the same answer for the same outcomes."""

import sqlite3
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from campaign_stand_ins import PulledThePlug, folder, ledger_in, question_on, small_table, virtual_slots
from captime.campaign import CampaignResult, RunSettings, StopRules, run_campaign, survey_of, table_of
from captime.campaign.journal import with_retries
from captime.errors import LedgerLocked, ScenarioDiffers, ScenarioError
from captime.evidence import Evidence
from captime.executors.protocol import Executor
from captime.ledger import LedgerReader, Observed, Started
from captime.live import drive_parallel
from captime.procedures.protocol import Procedure
from captime.runs import Status

__all__ = ["folder"]

TABLE = small_table()


def stop_after(laps: int) -> Callable[[], bool]:
    """An interruption before lap number `laps`, counted from 0."""
    left = iter(range(laps))
    return lambda: next(left, None) is None


def pull_the_plug_after(laps: int) -> Callable[[Procedure, Evidence, Executor], None]:
    """An end without any farewell after this many laps."""
    left = iter(range(laps))

    def observe(procedure: Procedure, evidence: Evidence, executor: Executor) -> None:
        if next(left, None) is None:
            raise PulledThePlug

    return observe


def run(path: Path, workers: int = 1, manner: RunSettings | None = None, **more: object) -> CampaignResult:
    """A campaign on the small table."""
    question = question_on(TABLE, **{name: more.pop(name) for name in ("epsilon",) if name in more})  # type: ignore[arg-type]
    made = virtual_slots(TABLE, workers)
    return run_campaign(question, path, manner, make_executor=made, **more)  # type: ignore[arg-type]


def n_outcomes(result: CampaignResult) -> int:
    """How many runs are on record."""
    with LedgerReader(result.ledger) as reader:
        return len(reader.outcomes()["config"])


def test_a_campaign_certifies_what_the_loop_without_a_ledger_certifies(folder: Path) -> None:
    """Writing things down changes nothing."""
    question = question_on(TABLE)
    procedure = question.build()
    executor = virtual_slots(TABLE, 3)(question.program, "")
    plain = drive_parallel(procedure, executor, Evidence(TABLE.n_configs, procedure.plan, question.utility))
    written = run(ledger_in(folder), 3)
    assert written.certificate == plain.certificate
    assert written.outcome.stopped == "epsilon"
    assert written.cpu_seconds == pytest.approx(float(plain.seconds.sum()))


def test_intents_come_before_outcomes_and_every_outcome_is_kept(folder: Path) -> None:
    """Nothing comes back that was not announced; as many rows as runs."""
    result = run(ledger_in(folder), 4)
    with LedgerReader(result.ledger) as reader:
        announced = set()
        for event in reader.replay():
            match event:
                case Started(_, requests, _):
                    announced |= set(requests)
                case Observed(_, outcomes, _):
                    assert {outcome.request for outcome in outcomes} <= announced
        assert len(reader.outcomes()["config"]) == int(result.outcome.runs.sum())
        assert reader.head == result.head
        assert reader.last_certificate() is not None


@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize("order", ["arrival", "fixed"])
def test_a_finished_campaign_is_recalled_without_a_single_run(folder: Path, workers: int, order: str) -> None:
    """The same certificate, and nothing is paid again."""
    manner = RunSettings(jobs=workers, order=order)  # type: ignore[arg-type] # one of two words
    first = run(ledger_in(folder), workers, manner)
    made = n_outcomes(first)
    again = run(ledger_in(folder), workers, manner)
    assert again.resumed
    assert again.certificate == first.certificate
    assert n_outcomes(again) == made


@pytest.mark.parametrize("laps", [0, 1, 7, 40, 90])
def test_interrupted_and_gone_on_with_one_worker_gives_the_same_certificate(folder: Path, laps: int) -> None:
    """Ctrl-C at any lap: what was under way is stopped, written down as such, and made again."""
    whole = run(ledger_in(folder, "whole"), epsilon=0.07)
    stopped = run(ledger_in(folder), interrupted=stop_after(laps), epsilon=0.07)
    assert stopped.outcome.stopped == "interrupted"
    gone_on = run(ledger_in(folder), epsilon=0.07)
    assert gone_on.certificate == whole.certificate


def test_fixed_order_gives_one_answer_for_all_workers_and_all_cuts(folder: Path) -> None:
    """Whatever the number of slots, however often it is cut off: the same outcomes, the same certificate and rounds."""
    rng = np.random.default_rng(5)
    whole = run(ledger_in(folder, "whole"), 1, RunSettings(order="fixed", window=6))
    for workers in (1, 2, 6, 20):
        path = ledger_in(folder, f"{workers}")
        manner = RunSettings(jobs=workers, order="fixed", window=6)
        for _ in range(4):
            with pytest.raises(PulledThePlug):
                run(path, workers, manner, observer=pull_the_plug_after(int(rng.integers(1, 60))))
        end = run(path, workers, manner)
        assert end.certificate == whole.certificate
        assert end.outcome.rounds == whole.outcome.rounds
        with LedgerReader(path) as reader:
            columns = reader.outcomes()
        counted = columns["status"] != list(Status).index(Status.LOST)
        keys = list(zip(columns["config"][counted].tolist(), columns["position"][counted].tolist(), strict=True))
        assert len(keys) == len(set(keys))


@pytest.mark.parametrize("workers", [1, 5])
def test_a_cut_off_campaign_in_order_of_arrival_takes_up_its_own_decisions(folder: Path, workers: int) -> None:
    """What was under way is lost and tried again; the replay checks every decision on record."""
    path = ledger_in(folder)
    for laps in (3, 30, 50):
        with pytest.raises(PulledThePlug):
            run(path, workers, observer=pull_the_plug_after(laps), epsilon=0.07)
    end = run(path, workers, epsilon=0.07)
    assert end.outcome.stopped == "epsilon"
    assert end.census.verdicts["lost"] <= 3 * workers
    with LedgerReader(path) as reader:
        columns = reader.outcomes()
    keys = list(zip(columns["config"].tolist(), columns["position"].tolist(), columns["attempt"].tolist(), strict=True))
    assert len(keys) == len(set(keys))


def test_a_ledger_of_another_question_is_refused(folder: Path) -> None:
    """Runs of one scenario never count for another, and the message names what differs."""
    run(ledger_in(folder))
    other = question_on(TABLE)
    changed = replace(other, identity={**other.identity, "delta": 0.2})
    with pytest.raises(ScenarioDiffers, match="delta"):
        run_campaign(changed, ledger_in(folder), make_executor=virtual_slots(TABLE, 1))


@pytest.mark.parametrize("order", ["arrival", "fixed"])
def test_a_smaller_epsilon_goes_on_with_the_same_runs(folder: Path, order: str) -> None:
    """Every run of the first goal counts for the second, and resuming once more repeats nothing."""
    manner = RunSettings(jobs=2, order=order)  # type: ignore[arg-type] # one of two words
    coarse = run(ledger_in(folder), 2, manner, epsilon=0.3)
    fine = run(ledger_in(folder), 2, manner, epsilon=0.12)
    assert coarse.certificate.epsilon <= 0.3
    assert fine.certificate.epsilon <= 0.12
    made = n_outcomes(fine)
    again = run(ledger_in(folder), 2, manner, epsilon=0.12)
    assert again.certificate == fine.certificate
    assert n_outcomes(again) == made


def test_a_cpu_budget_is_one_of_the_whole_campaign(folder: Path) -> None:
    """Spent in the first call is spent."""
    stop = RunSettings(stop=StopRules(cpu=200.0))
    first = run(ledger_in(folder), 1, stop)
    assert first.outcome.stopped == "budget"
    again = run(ledger_in(folder), 1, stop)
    assert again.outcome.stopped == "budget"
    assert again.cpu_seconds == pytest.approx(first.cpu_seconds, rel=0.05)


def test_procedures_that_repeat_runs_refuse_programs_that_cannot(folder: Path) -> None:
    """And the alternative is named; the race takes any program."""
    with pytest.raises(ScenarioError, match="race"):
        run_campaign(
            question_on(TABLE, repeatable=False, procedure="up"),
            ledger_in(folder),
            make_executor=virtual_slots(TABLE, 1),
        )
    assert not ledger_in(folder).exists()
    result = run_campaign(
        question_on(TABLE, repeatable=False), ledger_in(folder), make_executor=virtual_slots(TABLE, 3)
    )
    assert result.certificate.epsilon <= 0.2


@pytest.mark.parametrize("cut", [None, 4])
def test_measuring_gives_the_table_back(folder: Path, cut: int | None) -> None:
    """Every run once, cut at the captime; interrupted or not."""
    path, captime = ledger_in(folder), 30.0
    survey, made = survey_of(question_on(TABLE), captime, 12), virtual_slots(TABLE, 3)
    if cut is not None:
        run_campaign(survey, path, make_executor=made, interrupted=stop_after(cut))
    result = run_campaign(survey, path, make_executor=made)
    assert result.outcome.stopped == "instances"
    found = table_of(path, "measured", captime)
    assert found.limit == captime
    assert found.configs == TABLE.configs
    np.testing.assert_array_equal(found.seconds, np.minimum(TABLE.seconds[:, :12], captime))
    frame = result.runs()
    assert set(frame["verdict"]) | set(frame["status"])


def test_a_ledger_that_is_locked_for_a_while_is_waited_for() -> None:
    """F14: tried again until the lock is free; given up when patience ends."""
    tries = []

    def write() -> None:
        tries.append(1)
        if len(tries) < 4:
            raise LedgerLocked("another process holds the lock")

    with_retries(write)
    assert len(tries) == 4
    tries.clear()
    with pytest.raises(LedgerLocked):
        with_retries(write, patience=0.0)
    assert len(tries) == 1


@pytest.mark.fault
def test_a_lock_of_some_seconds_costs_nothing_but_time(folder: Path) -> None:
    """F14: another process holds the file for longer than SQLite waits; no run is lost and nothing ends."""
    path = ledger_in(folder)
    held: list[sqlite3.Connection] = []

    def lock_once(procedure: Procedure, evidence: Evidence, executor: Executor) -> None:
        if not held:
            held.append(sqlite3.connect(path, check_same_thread=False, isolation_level=None))
            held[0].execute("BEGIN IMMEDIATE")
            threading.Timer(12.0, held[0].close).start()

    result = run(path, 2, observer=lock_once)
    assert result.outcome.stopped == "epsilon"
    assert result.certificate == run(ledger_in(folder, "whole"), 2).certificate
