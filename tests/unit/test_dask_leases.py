import math
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("distributed", reason="the extra captime[dask]")

from captime.cli.shared import asking_to_stop
from captime.errors import ScenarioError
from captime.executors import dask_worker as station
from captime.executors.dask import DaskExecutor, DaskTerms
from captime.executors.dask_client import (
    CallAnswered,
    CallFailed,
    MessageReceived,
    SchedulerGone,
    SchedulerUnreachable,
    WorkerLeft,
)
from captime.executors.dask_workers import SpeedTerms
from captime.executors.retry import LossLimit
from captime.ledger.ownership import SlotBoard, read_slots
from captime.runs import Halt, RunOutcome, RunRequest, Status, Verdict
from captime.streams.files import fingerprint_of
from captime.supervision.messages import Launch
from dask_stand_ins import ANY, Watched
from supervised import Plain, launch

Make = Callable[..., Watched]


@pytest.fixture
def make() -> Iterator[Make]:
    """Makes executors without any worker yet, and closes them."""
    made: list[Watched] = []

    def one(terms: DaskTerms = ANY, what: Launch | None = None) -> Watched:
        made.append(Watched(Plain(what or launch("true")), terms))
        return made[-1]

    yield one
    for each in made:
        each.executor.close()


@pytest.fixture
def watched(make: Make) -> Watched:
    """An executor without any worker yet."""
    return make()


def on(make: Make, terms: DaskTerms, **threads: int) -> Watched:
    """An executor with these workers."""
    made = make(terms, launch("true", captime=8.0))
    made.link.workers(**threads)
    made.executor.submit([RunRequest(0, 99, 8.0)])
    heard(made.executor)
    return made


def requests(number: int) -> list[RunRequest]:
    """This many different ones."""
    return [RunRequest(0, position, 1.0) for position in range(number)]


def heard(executor: DaskExecutor, rounds: int = 4) -> list[RunOutcome]:
    """Everything that comes without waiting."""
    return [outcome for _ in range(rounds) for outcome in executor.collect(0.0)]


def test_runs_wait_until_somebody_comes_and_slots_follow_the_cluster(watched: Watched) -> None:
    """Workers join and leave at any time; there is always room for one who waits."""
    executor, link = watched.executor, watched.link
    assert (executor.slots, executor.ahead) == (1, 1)
    executor.submit(requests(20))
    assert heard(executor) == []
    assert link.leases == {}
    link.workers(a=2)
    assert heard(executor) == []
    assert (executor.slots, len(link.leases)) == (2, 4)
    link.workers(a=2, b=3)
    heard(executor)
    assert (executor.slots, executor.ahead, len(link.leases)) == (5, 5, 10)
    link.workers(b=3)
    assert {outcome.status for outcome in heard(executor)} == {Status.LOST}
    assert executor.slots == 3
    assert executor.most_slots == 5
    assert executor.isolation == "subreaper"
    assert "machine" in watched.kinds()


def test_every_lease_has_a_name_of_its_own_and_says_whose_it_is(watched: Watched) -> None:
    """F8: the same run asked for again is another lease, with another key, made out to one station."""
    executor, link = watched.executor, watched.link
    link.workers(a=50)
    executor.submit([RunRequest(0, 7, 1.0, attempt) for attempt in range(50)])
    heard(executor)
    assert len(link.leases) == 50
    assert len(set(link.keys)) == len(link.keys)
    assert {order["station"] for order in link.leases.values()} == {"station-a"}
    assert sorted(link.launch(number).tag for number in link.leases) == sorted(f"test/0.7.{k}" for k in range(50))


def test_a_lost_worker_costs_its_runs_and_its_late_answer_never_counts(watched: Watched) -> None:
    """F6: LOST first; what the old holder says afterwards goes to the ledger only, once LOST has been told."""
    executor, link = watched.executor, watched.link
    link.workers(a=1)
    executor.submit([RunRequest(0, 3, 1.0)])
    heard(executor)
    (number,) = link.leases
    link.say(WorkerLeft("a"))
    link.answer(number, 0.25)
    (lost,) = executor.collect(0.0)
    assert (lost.status, lost.verdict, lost.runtime) == (Status.LOST, Verdict.LOST, 0.0)
    assert watched.late == []
    assert link.forgotten == [number]
    assert heard(executor) == []
    assert [(late.request, late.status, late.runtime) for late in watched.late] == [
        (RunRequest(0, 3, 1.0), Status.COMPLETED, 0.25)
    ]


def test_whoever_answers_first_is_not_who_counts(watched: Watched) -> None:
    """F7: of 200 runs 60 are answered twice, with other times; the time that counts is the lease-holder's."""
    executor, link = watched.executor, watched.link
    link.workers(a=100, b=100)
    executor.submit(requests(200))
    heard(executor)
    right = {number: 0.5 + number / 1000 for number in link.leases}
    positions = {number: int(link.launch(number).tag.split(".")[1]) for number in link.leases}
    revoked = [number for number, address in link.at.items() if address == "b"][:60]
    link.say(WorkerLeft("b"))
    for number in revoked:
        # Quick, and not the holder any more.
        link.answer(number, 0.001)
    again: list[RunRequest] = []
    counted: dict[int, float] = {}
    link.workers(a=200)
    while len(counted) < 200:
        for outcome in executor.collect(0.0):
            if outcome.status is Status.LOST:
                again.append(RunRequest(0, outcome.request.instance, 1.0, outcome.request.attempt + 1))
            else:
                assert outcome.request.instance not in counted
                counted[outcome.request.instance] = outcome.runtime
        executor.submit(again)
        again = []
        for number in list(link.leases):
            if link.at[number] == "a":
                position = positions.setdefault(number, int(link.launch(number).tag.split(".")[1]))
                first = next(each for each, where in positions.items() if where == position)
                link.answer(number, right[first])
    holders = {position: right[number] for number, position in positions.items() if number in right}
    assert counted == pytest.approx(holders)
    assert len(watched.late) == 60
    assert {late.runtime for late in watched.late} == {0.001}


def test_a_lease_that_reached_a_new_life_of_its_worker_is_run_elsewhere(watched: Watched) -> None:
    """The station says that it never began, so nothing is lost; the worker is asked who it is now."""
    executor, link = watched.executor, watched.link
    link.workers(a=1)
    executor.submit([RunRequest(0, 0, 1.0)])
    heard(executor)
    (number,) = link.leases
    del link.leases[number]
    link.facts["a"] = {"station": "another"}
    link.say(CallAnswered(number, ("strange",)))
    link.workers(a=1)
    assert heard(executor) == []
    ((again, order),) = link.leases.items()
    assert again != number
    assert order["station"] == "another"
    link.answer(again)
    assert [outcome.status for outcome in heard(executor)] == [Status.COMPLETED]


def test_a_run_that_dask_repeated_is_lost_not_counted(watched: Watched) -> None:
    """Its first result got lost on the way; a second one would be a second chance."""
    executor, link = watched.executor, watched.link
    link.workers(a=1)
    executor.submit([RunRequest(0, 0, 1.0)])
    heard(executor)
    link.say(CallAnswered(next(iter(link.leases)), ("doubled",)))
    assert [outcome.status for outcome in heard(executor)] == [Status.LOST]


def test_the_scheduler_gone_for_a_while_costs_what_was_under_way(watched: Watched) -> None:
    """F9: all leases are lost at once; when it is back, work continues."""
    executor, link = watched.executor, watched.link
    link.workers(a=2)
    executor.submit(requests(5))
    heard(executor)
    link.say(SchedulerUnreachable())
    assert [outcome.status for outcome in heard(executor)] == [Status.LOST] * 4
    assert executor.gone == ""
    link.workers(c=2)
    heard(executor)
    assert link.at[max(link.leases)] == "c"


def test_the_scheduler_gone_for_good_ends_it_in_good_order(watched: Watched) -> None:
    """F9: what is under way is lost, what waits is stopped, and everything comes back."""
    executor, link = watched.executor, watched.link
    link.workers(a=1)
    executor.submit(requests(5))
    heard(executor)
    link.say(SchedulerGone("the connection was lost"))
    back = heard(executor)
    assert sorted(outcome.status.value for outcome in back) == ["capped"] * 3 + ["lost"] * 2
    assert "lost" in executor.gone
    assert "gone" in watched.kinds()
    executor.stop()
    assert executor.collect() == []


def test_three_losses_are_enough(watched: Watched) -> None:
    """A4: the same seed three times, then the worst case; never dropped."""
    executor, link = watched.executor, watched.link
    losses = LossLimit(executor, repeatable=True)
    statuses = []
    for attempt in range(3):
        link.workers(**{f"w{attempt}": 1})
        losses.submit([RunRequest(0, 0, 1.0, attempt)])
        for _ in range(3):
            losses.collect(0.0)
        link.say(WorkerLeft(f"w{attempt}"))
        statuses += [outcome.status for outcome in losses.collect(0.0)]
    assert statuses == [Status.LOST, Status.LOST, Status.ABANDONED]


def test_cancelled_runs_come_back_at_once_if_nobody_has_them(watched: Watched) -> None:
    """The others are stopped where they are, and tell how far they had come."""
    executor, link = watched.executor, watched.link
    link.workers(a=1)
    executor.submit(requests(4))
    heard(executor)
    executor.cancel(np.array([0]))
    assert [outcome.verdict for outcome in heard(executor)] == [Verdict.CANCELLED] * 2
    ((addresses, function, arguments, _),) = link.shouted
    assert (addresses, function, sorted(arguments[1])) == (("a",), station.stop_leases, sorted(link.leases))
    for number in list(link.leases):
        link.answer(number, 0.125, ended="cancelled")
    assert [outcome.runtime for outcome in heard(executor)] == [0.125, 0.125]


def test_unfinished_runs_are_seen(watched: Watched) -> None:
    """What stations tell about runs under way can be watched, until they end."""
    executor, link = watched.executor, watched.link
    link.workers(a=1)
    executor.submit(requests(1))
    heard(executor)
    (number,) = link.leases
    link.say(MessageReceived([number, 2.5, 0]), MessageReceived([number + 1, 9.0, 0]))
    heard(executor)
    assert executor.watch() == [(RunRequest(0, 0, 1.0), 2.5)]
    link.answer(number)
    heard(executor)
    assert executor.watch() == []


def test_the_board_shows_slots_of_workers_as_they_come_work_and_go(watched: Watched, tmp_path: Path) -> None:
    """A seat per thread; a run is on the one its station names, until it ends or its worker is gone."""
    executor, link = watched.executor, watched.link
    with SlotBoard(tmp_path / "a.ledger", "campaign") as board:

        def seats() -> list[tuple[str, int, tuple[int, int, int] | None]]:
            found = read_slots(tmp_path / "a.ledger").seats
            return [(each.seat.host, each.seat.slot, each.run) for each in found]

        executor.show_on(board)
        link.workers(a=2)
        executor.submit(requests(2))
        heard(executor)
        assert seats() == [("host-a", 0, None), ("host-a", 1, None)]
        first, second = link.leases
        link.say(MessageReceived([first, 2.5, 1]), MessageReceived([second, 1.5, 0]))
        heard(executor)
        run = {number: (0, executor._leases.requests[number].instance, 0) for number in (first, second)}
        assert seats() == [("host-a", 0, run[second]), ("host-a", 1, run[first])]
        link.answer(first, slot=1)
        heard(executor)
        assert seats() == [("host-a", 0, run[second]), ("host-a", 1, None)]
        link.workers(b=1)
        heard(executor)
        assert seats() == []
        executor.submit(requests(1))
        heard(executor)
        assert seats() == [("host-b", 0, None)]


def test_unlike_machines_are_refused_and_the_certificate_says_so(make: Make) -> None:
    """C9: the reference decides; the first machine is the measure, or the one on record."""
    terms = DaskTerms(machines=SpeedTerms("same", 0.1))
    made = make(terms)
    made.link.facts["slow"] = {"reference": 0.06}
    made.link.facts["alike"] = {"reference": 0.053}
    made.executor.submit(requests(10))
    made.link.workers(first=1)
    heard(made.executor)
    made.link.workers(first=1, slow=4, alike=1)
    heard(made.executor)
    assert made.executor.slots == 2
    assert set(made.link.at.values()) == {"first", "alike"}
    refused = [facts["why"] for kind, facts in made.events if kind == "refused"]
    assert len(refused) == 1
    assert "60.0 ms" in refused[0]
    assert "2 machines that took equally long" in made.executor.place
    on_record = on(make, DaskTerms(machines=SpeedTerms("same", 0.1, reference=0.1)), a=1)
    assert on_record.link.leases == {}


def test_any_machine_means_that_the_mix_is_certified(make: Make) -> None:
    """C9: all take part, and that is said."""
    made = on(make, ANY, a=1, b=1)
    assert "part of what is certified" in made.executor.place


def test_normalised_seconds_are_those_of_the_machine_that_counts(make: Make) -> None:
    """A machine half as fast gets twice the time, and its seconds count half."""
    made = on(make, DaskTerms(machines=SpeedTerms("normalised", 0.1, reference=0.025)), a=1)
    (number,) = made.link.leases
    given = made.link.launch(number)
    assert (given.captime, given.wall_limit) == (16.0, 120.0)
    made.link.say(MessageReceived([number, 3.0, 0]))
    heard(made.executor)
    assert made.executor.watch()[0][1] == 1.5
    made.link.answer(number, 10.0)
    (outcome,) = heard(made.executor)
    assert (outcome.runtime, outcome.cost) == (5.0, 10.0)
    assert "25.0 ms" in made.executor.place


def test_a_cluster_of_strangers_is_refused_in_words(make: Make) -> None:
    """Another captime, or none at all: nothing is run, and it is said what workers need."""
    made = make(ANY)
    made.link.facts["a"] = {"captime": "0.0.1"}
    made.link.facts["b"] = {"greeting": "ModuleNotFoundError: No module named 'captime'"}
    made.link.workers(a=1, b=1)
    made.executor.submit(requests(2))
    heard(made.executor)
    assert made.link.leases == {}
    made.executor._force.refused_at -= 60.0
    with pytest.raises(ScenarioError, match=r"0\.0\.1.*No module named 'captime'.*this version"):
        made.executor.collect(0.0)


def test_a_worker_that_can_begin_nothing_gets_nothing_more(watched: Watched) -> None:
    """Three calls in a row came to nothing; the others go elsewhere."""
    executor, link = watched.executor, watched.link
    link.workers(a=4)
    executor.submit(requests(4))
    heard(executor)
    for number in list(link.leases)[:3]:
        link.say(CallFailed(number, "TypeError: no such argument"))
    assert [outcome.status for outcome in heard(executor)] == [Status.LOST] * 3
    executor.submit([RunRequest(0, 50, 1.0)])
    heard(executor)
    assert len(link.leases) == 4
    assert any("no such argument" in facts["why"] for kind, facts in watched.events if kind == "refused")


@pytest.mark.parametrize("died", [True, False])
def test_only_what_dask_says_counts_not_how_a_message_begins(watched: Watched, died: bool) -> None:
    """Runs of a worker that is gone do not speak against it; an error whose text begins like that one does."""
    executor, link = watched.executor, watched.link
    link.workers(a=4)
    executor.submit(requests(4))
    heard(executor)
    for number in list(link.leases)[:3]:
        link.say(CallFailed(number, "KilledWorker: or so it says", died=died))
    heard(executor)
    assert any(kind == "refused" for kind, _ in watched.events) is not died


def test_without_workers_it_waits_as_long_as_it_was_told(make: Make) -> None:
    """F10: then it is given up, with a reason, and what waited comes back."""
    made = make(DaskTerms(machines=SpeedTerms("any"), patience=100.0))
    made.executor.submit(requests(2))
    assert heard(made.executor) == []
    made.executor._alone_since -= 101.0
    assert [outcome.verdict for outcome in heard(made.executor)] == [Verdict.CANCELLED] * 2
    assert "no worker for 101 s" in made.executor.gone


class StandInQueue:
    """A batch queue that says what the test wants."""

    def __init__(self) -> None:
        self.over = ""
        self.ended: list[dict[str, object]] = []
        self.addresses: list[str] = []

    def words(self) -> str:
        """What it says."""
        return "slurm: job 7 is PENDING (Resources)"

    def news(self) -> list[dict[str, object]]:
        """What has ended."""
        ended, self.ended = self.ended, []
        return ended

    def useful(self, address: str) -> None:
        """Who has made a run."""
        self.addresses.append(address)


def test_what_the_queue_says_is_said_and_written_down(make: Make) -> None:
    """While waiting, at the end of patience, and when no job will bring a worker any more."""
    queue = StandInQueue()
    made = make(DaskTerms(machines=SpeedTerms("any"), patience=100.0, queue=queue))
    made.executor.submit(requests(1))
    queue.ended = [{"job": "6", "used": False, "why": "it was cancelled"}]
    assert heard(made.executor) == []
    assert ("job-ended", {"job": "6", "used": False, "why": "it was cancelled"}) in made.events
    made.executor._alone_since -= 101.0
    heard(made.executor)
    assert "no worker for 101 s" in made.executor.gone
    assert "job 7 is PENDING (Resources)" in made.executor.gone


def test_jobs_that_come_to_nothing_end_the_campaign(make: Make) -> None:
    """Before the first run that is a mistake in the scenario; later the certificate stands."""
    queue = StandInQueue()
    terms = DaskTerms(machines=SpeedTerms("any"), queue=queue)
    fresh = make(terms)
    fresh.executor.submit(requests(1))
    queue.over = "the last 3 jobs ended"
    with pytest.raises(ScenarioError, match=r"the last 3 jobs ended.*executor\.options"):
        fresh.executor.collect(0.0)
    queue.over = ""
    used = on(make, terms, a=1)
    (number,) = used.link.leases
    used.link.answer(number)
    heard(used.executor)
    assert queue.addresses == ["a"]
    queue.over = "the last 3 jobs ended"
    used.link.workers()
    used.executor.submit(requests(1))
    heard(used.executor)
    used.executor.submit(requests(1))
    assert [outcome.verdict for outcome in heard(used.executor)] == [Verdict.CANCELLED]
    assert used.executor.gone == "the last 3 jobs ended"


def test_whoever_does_not_stop_is_not_waited_for(watched: Watched) -> None:
    """A campaign ends although a worker does not answer."""
    executor, link = watched.executor, watched.link
    link.workers(a=1)
    executor.submit(requests(1))
    heard(executor)
    executor.stop()
    assert executor.collect(0.0) == []
    executor._stop_by = 0.0
    assert [outcome.status for outcome in executor.collect()] == [Status.LOST]


def test_a_signal_that_comes_just_before_the_wait_ends_it(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a worker the next news may be a day away, and the certificate is due within seconds."""
    executor, looked = watched.executor, []
    executor.submit(requests(1))

    def chores() -> float:
        looked.append(True)
        assert len(looked) < 3
        return 0.0

    monkeypatch.setattr(executor, "_chores", chores)
    with asking_to_stop() as asked:
        os.kill(os.getpid(), signal.SIGTERM)
        assert executor.collect(60.0) == []
        assert asked.signal == signal.SIGTERM


def test_a_second_signal_does_not_lose_what_is_being_stopped(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    """A queue and its script signal twice: what was stopped still comes back, and is paid."""
    executor, link = watched.executor, watched.link
    link.workers(a=1)
    executor.submit(requests(1))
    heard(executor)
    (number,) = link.leases
    executor.stop()
    looked = []

    def chores() -> float:
        looked.append(True)
        if len(looked) == 3:
            link.answer(number, ended="cancelled")
        return 0.0

    monkeypatch.setattr(executor, "_chores", chores)
    with asking_to_stop():
        os.kill(os.getpid(), signal.SIGTERM)
        assert [outcome.verdict for outcome in executor.collect()] == [Verdict.CANCELLED]


def test_at_most_so_many_runs_at_once(make: Make) -> None:
    """`jobs` limits a cluster too."""
    made = make(DaskTerms(machines=SpeedTerms("any"), most=3))
    made.link.workers(a=8)
    made.executor.submit(requests(20))
    heard(made.executor)
    assert (made.executor.slots, made.executor.ahead, len(made.link.leases)) == (3, 3, 6)


def test_a_missing_instance_is_sent_once_and_then_run(make: Make, tmp_path: Path) -> None:
    """`transfer`: the file goes first, then a new lease; a worker without the program gets no more."""
    file = tmp_path / "1.cnf"
    file.write_bytes(b"p cnf 1 1\n")
    guarded = (fingerprint_of(str(file)),)
    terms = DaskTerms(machines=SpeedTerms("any"), transferred=lambda _: str(file))
    made = make(terms, launch("solve", str(file), guarded=guarded))
    made.link.workers(a=2)
    made.executor.submit(requests(2))
    heard(made.executor)
    for number, order in list(made.link.leases.items()):
        assert order["instance"] == str(file)
        del made.link.leases[number]
        made.link.say(CallAnswered(number, ("missing", order["files"], "")))
    heard(made.executor)
    assert made.link.leases == {}
    ((addresses, function, arguments, call),) = made.link.shouted
    assert (addresses, function, arguments[1:]) == (
        ("a",),
        station.take_file,
        (str(file), order["files"][0][1], b"p cnf 1 1\n"),
    )
    made.link.say(CallAnswered(call, None))
    heard(made.executor)
    assert len(made.link.leases) == 2
    number = min(made.link.leases)
    made.link.say(CallAnswered(number, ("missing", [], "solve cannot be read there")))
    assert heard(made.executor) == []
    assert "solve cannot be read there" in made.executor._force.refused["a"]


def test_a_file_that_changed_here_is_noticed_before_anything_is_sent(make: Make, tmp_path: Path) -> None:
    """What would be sent is not what was asked about."""
    file = tmp_path / "1.cnf"
    file.write_bytes(b"one\n")
    guarded = (fingerprint_of(str(file)),)
    file.write_bytes(b"another\n")
    made = make(ANY, launch("solve", str(file), guarded=guarded))
    made.link.workers(a=1)
    made.executor.submit(requests(1))
    (outcome,) = heard(made.executor)
    assert (outcome.status, outcome.halt, outcome.changed_file) == (Status.LOST, Halt.FILE_CHANGED, str(file))


def test_drift_is_written_down(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    """C8: a reference more than the tolerance off its first value is an event."""
    monkeypatch.setattr("captime.executors.dask_workers.REMEASURE_SECONDS", -1.0)
    executor, link = watched.executor, watched.link
    link.workers(a=1)
    executor.submit(requests(1))
    heard(executor)
    link.say(CallAnswered(("measure", "a"), 0.052))
    heard(executor)
    assert "drift" not in watched.kinds()
    link.say(CallAnswered(("measure", "a"), 0.056))
    heard(executor)
    ((_, facts),) = [event for event in watched.events if event[0] == "drift"]
    assert facts["share"] == pytest.approx(0.12)
    assert math.isfinite(facts["reference"])
