import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from captime.errors import MachineUnfit
from captime.executors.local_slots import LocalSlots
from captime.runs import RunOutcome, Verdict
from captime.supervision.messages import Launch
from captime.supervision.process_tree import ISOLATIONS
from captime.supervision.processes import look_at
from captime.supervision.slot_client import SlotClient
from supervised import Bench, bench, launch

PATIENCE = 180.0


def comes_true(claim: Callable[[], bool], seconds: float = PATIENCE) -> bool:
    """Wait for it, for a while."""
    deadline = time.monotonic() + seconds
    while not claim():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def dead(pid: int) -> bool:
    """Gone, or a zombie."""
    found = look_at(pid)
    return found is None or not found.alive


class Launches:
    """A file in which every launch of a program writes the tag of its attempt.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        path.touch()

    def program(self, then: str = ":") -> Launch:
        """A program that writes its tag down and does something else then."""
        return launch("sh", "-c", f'echo "$CAPTIME_RUN" >> {self.path}; {then}', wall_limit=600.0)

    def of_each_attempt(self) -> Counter[str]:
        """How often each attempt was launched."""
        return Counter(self.path.read_text(encoding="ascii").split())


@pytest.fixture
def launches(tmp_path: Path) -> Launches:
    """Nothing was launched yet."""
    return Launches(tmp_path / "launches")


@pytest.fixture(scope="module", params=ISOLATIONS)
def one_slot(request: pytest.FixtureRequest) -> Iterator[Bench]:
    """An executor with a single slot."""
    with bench(request.param, "deaths", slots=1) as opened:
        yield opened


def collect(opened: Bench, wanted: int) -> list[RunOutcome]:
    """Wait for this many outcomes."""
    outcomes: list[RunOutcome] = []
    deadline = time.monotonic() + PATIENCE
    while len(outcomes) < wanted:
        outcomes += opened.executor.collect(PATIENCE)
        assert time.monotonic() < deadline, outcomes
    return outcomes


def test_a_begun_run_is_lost_although_the_next_launch_found_the_pipe_broken(
    one_slot: Bench, launches: Launches
) -> None:
    """The supervisor said `started` and died; the coordinator notices by sending before it has read that."""
    one_slot.program.launches = {0: launches.program("exec sleep 600"), 1: launches.program()}
    (supervisor,) = one_slot.executor.pids()
    one_slot.executor.submit(one_slot.requests([0]))
    assert comes_true(lambda: len(launches.of_each_attempt()) == 1)
    os.kill(supervisor, signal.SIGKILL)
    assert comes_true(lambda: dead(supervisor))
    one_slot.executor.submit(one_slot.requests([1]))
    outcomes = collect(one_slot, 2)
    assert {outcome.request.config: outcome.status.name for outcome in outcomes} == {0: "LOST", 1: "COMPLETED"}
    assert set(launches.of_each_attempt().values()) == {1}
    assert one_slot.survivors() == []


def test_a_report_is_heard_although_the_next_launch_found_the_pipe_broken(one_slot: Bench, launches: Launches) -> None:
    """A run that was over and reported counts, whatever became of its supervisor since."""
    one_slot.program.launches = {0: launches.program()}
    (supervisor,) = one_slot.executor.pids()
    one_slot.executor.submit(one_slot.requests([0]))
    # Readable twice: `started` and the report; nothing else tells from outside that a report is on its way.
    assert comes_true(lambda: len(launches.of_each_attempt()) == 1 and not one_slot.survivors())
    time.sleep(0.3)
    os.kill(supervisor, signal.SIGKILL)
    assert comes_true(lambda: dead(supervisor))
    one_slot.executor.submit(one_slot.requests([0]))
    outcomes = collect(one_slot, 2)
    assert set(launches.of_each_attempt().values()) == {1}
    assert {outcome.status.name for outcome in outcomes} <= {"COMPLETED", "LOST"}
    assert outcomes[-1].status.name == "COMPLETED"


def test_no_launch_begins_unheard(one_slot: Bench, launches: Launches) -> None:
    """While the coordinator does not read, the word that a launch begins would be lost with the supervisor."""
    flood = launches.program("head -c 200000 /dev/zero; head -c 200000 /dev/zero >&2")
    one_slot.program.launches = {0: flood, 1: launches.program("exec sleep 600"), 2: launches.program()}
    (supervisor,) = one_slot.executor.pids()
    one_slot.executor.submit(one_slot.requests([0, 1]))
    assert comes_true(lambda: len(launches.of_each_attempt()) >= 1)
    # Time enough for the second launch, were it to begin.
    comes_true(lambda: len(launches.of_each_attempt()) == 2, 1.0)
    os.kill(supervisor, signal.SIGKILL)
    assert comes_true(lambda: dead(supervisor))
    one_slot.program.launches = {**one_slot.program.launches, 1: launches.program()}
    outcomes = collect(one_slot, 2)
    assert set(launches.of_each_attempt().values()) == {1}
    assert {outcome.request.config: outcome.status.name for outcome in outcomes} == {0: "LOST", 1: "COMPLETED"}


def test_many_deaths_at_once_are_no_reason_to_give_up(launches: Launches) -> None:
    """Only supervisors that die before they are ready are taken to be beyond help."""
    with bench("posix", "many", slots=6) as opened:
        opened.program.launches = {0: launches.program("exec sleep 600"), 1: launches.program()}
        opened.executor.submit(opened.requests([0] * 6))
        assert comes_true(lambda: len(launches.of_each_attempt()) == 6)
        for supervisor in opened.executor.pids():
            os.kill(supervisor, signal.SIGKILL)
        opened.program.launches = {**opened.program.launches, 0: launches.program()}
        opened.executor.submit(opened.requests([1] * 3))
        outcomes = collect(opened, 9)
    assert Counter(outcome.status.name for outcome in outcomes) == {"LOST": 6, "COMPLETED": 3}
    assert set(launches.of_each_attempt().values()) == {1}


def test_a_supervisor_that_cannot_be_replaced_loses_no_outcome(
    launches: Launches, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine has no room for a successor: the executor says so, and tells of every run once it is stopped."""
    with bench("posix", "irreplaceable", slots=1) as opened:
        opened.program.launches = {0: launches.program("exec sleep 600"), 1: launches.program()}
        opened.executor.submit(opened.requests([0, 1]))
        assert comes_true(lambda: len(launches.of_each_attempt()) == 1)

        def refuse(*_: object) -> None:
            raise MachineUnfit("no room")

        monkeypatch.setattr(LocalSlots, "open", refuse)
        os.kill(opened.executor.pids()[0], signal.SIGKILL)
        with pytest.raises(MachineUnfit, match="no room"):
            collect(opened, 2)
        opened.executor.stop()
        outcomes = collect(opened, 2)
    assert {outcome.request.config: outcome.verdict for outcome in outcomes} == {0: Verdict.LOST, 1: Verdict.CANCELLED}
    assert set(launches.of_each_attempt().values()) == {1}


def test_supervisors_killed_again_and_again_are_the_machines_doing(launches: Launches) -> None:
    """Killed before they are ready, four times in a row: that is told, and is no bug of ours."""
    with bench("posix", "again", slots=1) as opened:
        opened.program.launches = {0: launches.program("exec sleep 600")}
        opened.executor.submit(opened.requests([0]))
        assert comes_true(lambda: len(launches.of_each_attempt()) == 1)

        def kill_for_ever() -> None:
            for _ in range(10):
                os.kill(opened.executor.pids()[0], signal.SIGKILL)
                opened.executor.collect(PATIENCE)
                opened.executor.submit(opened.requests([0]))

        with pytest.raises(MachineUnfit, match=r"signal 9.*in a row were killed"), killed_at_birth():
            kill_for_ever()
        opened.executor.stop()
        while opened.executor.collect(0.1):
            pass
    assert opened.survivors() == []


@contextmanager
def killed_at_birth() -> Iterator[None]:
    """Every supervisor that is started meanwhile is killed at once."""

    def start(self: SlotClient, *words: Any) -> None:
        made(self, *words)
        os.kill(self.pid, signal.SIGKILL)

    made = SlotClient.__init__
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SlotClient, "__init__", start)
        yield


@pytest.mark.parametrize("isolation", ISOLATIONS)
@pytest.mark.parametrize("kills", [2, pytest.param(200, marks=pytest.mark.fault)])
def test_no_attempt_is_launched_twice(isolation: str, kills: int, launches: Launches) -> None:
    """Supervisors are killed at random moments while short runs continue; every attempt is launched once at most."""
    chance = random.Random(kills)  # noqa: S311 (moments, no secrets)
    with bench(isolation, "twice", slots=4, pin=False) as opened:
        opened.program.launches = {0: launches.program("sleep 0.0$(($$ % 4))")}
        opened.executor.submit(opened.requests([0] * 8))
        outcomes: list[RunOutcome] = []
        killed = 0
        while killed < kills:
            back: list[RunOutcome] = []
            until = time.monotonic() + chance.uniform(0.0, 0.4)
            while time.monotonic() < until or not back:
                back = opened.executor.collect(max(0.0, until - time.monotonic()))
                opened.executor.submit(opened.requests([0] * len(back)))
                outcomes += back
            # Several that die before they are ready would be taken to be beyond help, and rightly so.
            # On a busy machine the last one may be dead, and not noticed yet.
            ready = [handle.pid for handle in opened.executor._handles if handle.ready and not dead(handle.pid)]
            for supervisor in chance.sample(ready, min(1, len(ready))):
                os.kill(supervisor, signal.SIGKILL)
                killed += 1
            # Some are noticed by sending, others by receiving.
            opened.executor.submit(opened.requests([0] * chance.randrange(3)))
        opened.executor.stop()
        while opened.executor.watch() or opened.executor.collect(0.2):
            pass
    assert Counter(launches.of_each_attempt().values()).keys() == {1}
    requests = [outcome.request for outcome in outcomes]
    assert len(requests) == len(set(requests))
