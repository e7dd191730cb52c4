"""Virtual workers: runs end in the order of their runtimes, on a clock without waiting."""

import numpy as np
import pytest

from captime.errors import InvariantViolated, ScenarioError
from captime.executors import Executor, VirtualExecutor
from captime.runs import RunOutcome, RunRequest, Status
from captime.sources.window import Accounting
from runtime_laws import NEVER, in_order, table_of

SECONDS = np.array([[5.0, 1.0, 3.0, NEVER], [2.0, 2.0, 2.0, 2.0]])


def workers(number: int, *, limit: float = NEVER, accounting: Accounting = "restart") -> VirtualExecutor:
    """This many of them, on a table of two configurations and four instances."""
    return VirtualExecutor(table_of(SECONDS, limit), in_order(4), number, accounting=accounting)


def told(outcomes: list[RunOutcome]) -> list[tuple[int, int, Status, float, float]]:
    """What came back, in short."""
    return [(each.request.config, each.request.instance, each.status, each.runtime, each.cost) for each in outcomes]


def test_runs_come_back_in_the_order_of_their_ends() -> None:
    """Three workers: the short ones first; the fourth run starts when a worker is free."""
    executor: Executor = workers(3)
    executor.submit([RunRequest(0, 0, 4.0), RunRequest(0, 1, 4.0), RunRequest(0, 2, 4.0), RunRequest(1, 3, 4.0)])
    assert told(executor.collect()) == [(0, 1, Status.COMPLETED, 1.0, 1.0)]
    assert executor.now == 1.0
    assert told(executor.collect()) == [(0, 2, Status.COMPLETED, 3.0, 3.0), (1, 3, Status.COMPLETED, 2.0, 2.0)]
    assert executor.now == 3.0
    assert told(executor.collect()) == [(0, 0, Status.CAPPED, 4.0, 4.0)]
    assert executor.collect() == []
    assert executor.now == 4.0


def test_a_recorded_crash_fails_after_its_captime() -> None:
    """As in a replay: how soon it crashed is not recorded."""
    executor = workers(1)
    executor.submit([RunRequest(0, 3, 4.0)])
    assert told(executor.collect()) == [(0, 3, Status.FAILED, 4.0, 4.0)]


def test_a_run_at_the_timeout_of_the_table_is_capped() -> None:
    """Whether it would have ended just then is unknown."""
    executor = workers(1, limit=3.0)
    executor.submit([RunRequest(0, 2, 3.0)])
    assert told(executor.collect()) == [(0, 2, Status.CAPPED, 3.0, 3.0)]


def test_a_timeout_moves_the_clock_and_brings_nothing() -> None:
    """After a wait of two seconds it is two seconds later."""
    executor = workers(1)
    executor.submit([RunRequest(0, 0, 9.0)])
    assert executor.collect(timeout=2.0) == []
    assert (executor.now, executor.watch()) == (2.0, [(RunRequest(0, 0, 9.0), 2.0)])
    assert told(executor.collect(timeout=9.0)) == [(0, 0, Status.COMPLETED, 5.0, 5.0)]
    assert executor.now == 5.0


def test_cancelled_runs_come_back_as_capped_after_what_they_took() -> None:
    """Those under way with their seconds, those that waited with none; the others are left alone."""
    executor = workers(2)
    executor.submit([RunRequest(0, 0, 9.0), RunRequest(1, 0, 9.0), RunRequest(0, 1, 9.0)])
    executor.collect(timeout=1.5)
    executor.cancel(np.array([0]))
    assert told(executor.collect()) == [(0, 0, Status.CAPPED, 1.5, 1.5), (0, 1, Status.CAPPED, 0.0, 0.0)]
    assert executor.now == 1.5
    assert told(executor.collect()) == [(1, 0, Status.COMPLETED, 2.0, 2.0)]
    assert executor.collect() == []


@pytest.mark.parametrize(("accounting", "cost"), [("restart", 5.0), ("resume", 3.0)])
def test_a_stopped_run_begins_anew_or_goes_on(accounting: Accounting, cost: float) -> None:
    """The runtime is counted from the very first start either way; the price differs."""
    executor = workers(1, accounting=accounting)
    executor.submit([RunRequest(0, 0, 2.0)])
    assert told(executor.collect()) == [(0, 0, Status.CAPPED, 2.0, 2.0)]
    executor.submit([RunRequest(0, 0, 8.0, attempt=1)])
    executor.collect(timeout=1.0)
    assert executor.watch()[0][1] == 6.0 - cost
    assert told(executor.collect()) == [(0, 0, Status.COMPLETED, 5.0, cost)]
    assert executor.now == 2.0 + cost


def test_a_lost_run_comes_back_as_lost() -> None:
    """Only if it was not over before."""
    table = table_of(SECONDS)
    executor = VirtualExecutor(table, in_order(4), 2, loses=lambda request: 1.5 if request.attempt == 0 else None)
    executor.submit([RunRequest(0, 0, 9.0), RunRequest(0, 1, 9.0)])
    assert told(executor.collect()) == [(0, 1, Status.COMPLETED, 1.0, 1.0)]
    assert told(executor.collect()) == [(0, 0, Status.LOST, 1.5, 1.5)]
    executor.submit([RunRequest(0, 0, 9.0, attempt=1)])
    assert told(executor.collect()) == [(0, 0, Status.COMPLETED, 5.0, 5.0)]


def test_utilisation_is_the_share_of_worker_seconds_at_work() -> None:
    """Two workers, five seconds: one at work for all of them, one for the first second."""
    executor = workers(2)
    assert executor.utilisation == 1.0
    executor.submit([RunRequest(0, 0, 9.0), RunRequest(0, 1, 9.0)])
    executor.collect()
    assert executor.utilisation == 1.0
    executor.collect()
    assert executor.busy_seconds == 6.0
    assert executor.utilisation == pytest.approx(0.6)


def test_after_closing_nothing_comes_back() -> None:
    """The clock stands where it stood, and what was spent is spent."""
    executor = workers(2)
    executor.submit([RunRequest(0, 0, 9.0), RunRequest(0, 1, 9.0)])
    executor.collect()
    executor.close()
    assert (executor.collect(), executor.watch(), executor.now, executor.busy_seconds) == ([], [], 1.0, 2.0)


def test_what_the_table_does_not_know_is_refused() -> None:
    """Beyond its timeout, its configurations and its instances."""
    executor = workers(1, limit=4.0)
    for request in (RunRequest(0, 0, 4.5), RunRequest(2, 0, 1.0), RunRequest(0, 4, 1.0)):
        with pytest.raises(InvariantViolated):
            executor.submit([request])
    with pytest.raises(ScenarioError, match="never finishes"):
        workers(1).submit([RunRequest(0, 3, NEVER)])
    with pytest.raises(ScenarioError, match="workers must be at least 1, got 0"):
        workers(0)
