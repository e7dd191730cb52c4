import math
import os
import re
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from captime.certificate import Certificate, Orders, no_orders
from captime.errors import (
    InvariantViolated,
    LedgerDamaged,
    LedgerInUse,
    ScenarioError,
    StorageTrouble,
)
from captime.ledger import Added, Asked, ConfigRow, Event, Ledger, LedgerReader, Noted, Observed, SampleRow, Started
from captime.ledger.file_watch import salvage
from captime.ledger.schema import APPLICATION_ID, TABLES, VERSION
from captime.runs import Measurement, RunOutcome, RunRequest, Status, Verdict

HELD = Certificate(1, 0.25, 0.1, 2, 0.5, 0.75, challenger=0, mode="selection", shares=(("upper", 0.41),))
MEASURED = Measurement(
    cpu_ns=2**62,
    wall_ns=1,
    exit_code=None,
    signal=11,
    peak_memory=2**40,
    answer=b"\xff\x00'\"",
    reported=0.1,
    queue_wait_ns=3,
    switches=4,
    leftovers=5,
    output_bytes=6,
    stdout_tail=b"\x00out",
    stderr_tail=bytes(range(256)),
    host="höst",
    slot=7,
    flags=("contended", "idle"),
)


def sample(position: int) -> SampleRow:
    """What is on a position."""
    return SampleRow(position, f"instances/\udcff {position}.cnf", f"{position:064x}", -position)


def elements(*requests: RunRequest) -> dict[int, SampleRow]:
    """What is on the positions of these."""
    return {request.instance: sample(request.instance) for request in requests}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the ledger is."""
    return tmp_path / "a.ledger"


@pytest.fixture
def ledger(path: Path) -> Iterator[Ledger]:
    """A new ledger with two configurations."""
    configs = [ConfigRow(0, "default", {"x": 0.95}, "default"), ConfigRow(1, "\udc80 odd", {})]
    with Ledger.create(path, {"utility": "step(1)", "limit": math.inf}, configs) as made:
        yield made


def done(request: RunRequest, seconds: float = 0.5, measured: Measurement | None = None) -> RunOutcome:
    """It answered."""
    return RunOutcome(request, Status.COMPLETED, seconds, seconds, measured=measured)


def flattened(event: Event) -> object:
    """Events without their numbers and moments; arrays as lists."""
    match event:
        case Asked(_, slots, orders):
            arrays = (orders.config, orders.n, orders.level, orders.first)
            return ("asked", slots, [None if each is None else each.tolist() for each in arrays])
        case Started(_, requests, samples):
            return ("started", requests, samples)
        case Observed(_, outcomes, seen):
            return ("observed", outcomes, seen)
        case Added(_, configs):
            return ("added", configs)
        case Noted(_, kind, facts):
            return ("noted", kind, facts)


def test_replay_gives_back_what_was_told_in_order(ledger: Ledger) -> None:
    """Orders, intents, outcomes with everything measured, looks, newcomers and notes, to the last bit."""
    requests = [RunRequest(0, 3, math.inf), RunRequest(1, 3, 0.1 + 0.2), RunRequest(0, 4, 5e-324)]
    first = Orders(np.array([1, 0]), np.array([4, 5]), np.array([0, 2]), np.array([3, 3]))
    outcomes = [
        RunOutcome(requests[1], Status.FAILED, 1 / 3, 2 / 3, "last \udcfe words", Verdict.CRASH, MEASURED),
        RunOutcome(requests[2], Status.ABANDONED, 0.0, 1e300, verdict=Verdict.BLOCKED),
    ]
    newcomer = ConfigRow(2, "new", {"deep": {"list": [1, "ü", None]}}, "model")
    ledger.asked(2, first)
    ledger.asked(1, no_orders())
    ledger.started(requests, elements(*requests))
    ledger.observed(outcomes, [(requests[0], 0.7)])
    ledger.noted("warning", what="noise", ranking=np.array([1, 0]))
    ledger.added([newcomer])
    ledger.observed([], [(requests[0], 1.4)])
    assert [flattened(event) for event in ledger.replay()] == [
        ("asked", 2, [[1, 0], [4, 5], [0, 2], [3, 3]]),
        ("asked", 1, [[], [], [], None]),
        ("started", tuple(requests), (sample(3), sample(4))),
        ("observed", tuple(outcomes), ((requests[0], 0.7),)),
        ("noted", "warning", {"what": "noise", "ranking": [1, 0]}),
        ("added", (newcomer,)),
        ("observed", (), ((requests[0], 1.4),)),
    ]
    assert ledger.in_flight() == [requests[0]]


def test_a_reopened_ledger_tells_the_same_story(ledger: Ledger, path: Path) -> None:
    """Closing and opening adds to the story, and changes nothing of it; the scenario and its hash are the same."""
    request = RunRequest(0, 0, 1.0)
    ledger.started([request], elements(request))
    told = [flattened(event) for event in ledger.replay()]
    ledger.close()
    with Ledger.open(path) as again:
        assert [flattened(event) for event in again.replay()] == [*told, ("noted", "closed", {})]
        assert again.epoch == 2
        assert again.scenario == {"utility": "step(1)", "limit": "inf"}
        assert (again.campaign_id, again.scenario_hash) == (ledger.campaign_id, ledger.scenario_hash)
        assert [config.name for config in again.configs] == ["default", "\udc80 odd"]
        assert again.in_flight() == [request]


seconds = st.floats(0.0, 1e300) | st.just(math.inf)
finite = st.floats(0.0, 1e300)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(captime=seconds, told=st.tuples(finite, finite, finite), detail=st.binary(max_size=20))
def test_seconds_and_words_survive_to_the_last_bit(
    ledger: Ledger, captime: float, told: tuple[float, float, float], detail: bytes
) -> None:
    """Whatever double and whatever bytes: -0.0 comes back as 0.0, which is equal to it."""
    runtime, cost, looked = told
    position = sum(isinstance(event, Started) for event in ledger.replay())
    request = RunRequest(0, position, captime)
    words = detail.decode("utf-8", "surrogateescape")
    outcome = RunOutcome(request, Status.CAPPED, runtime, cost, words)
    ledger.started([request], elements(request))
    ledger.observed([outcome], [(request, looked)])
    *_, last = ledger.replay()
    assert isinstance(last, Observed)
    assert (last.outcomes, last.seen) == ((outcome,), ((request, looked),))


def test_only_the_newest_attempt_counts(ledger: Ledger, path: Path) -> None:
    """A late answer of an attempt that was given up, and a second answer of any attempt, are orphans."""
    first, second = RunRequest(0, 0, 1.0), RunRequest(0, 0, 1.0, attempt=1)
    ledger.started([first], elements(first))
    ledger.observed([RunOutcome(first, Status.LOST, 0.0, 0.0)])
    ledger.started([second], {})
    ledger.observed([done(first, 0.1)])
    ledger.observed([done(second, 0.9)])
    ledger.observed([done(second, 0.2)])
    with LedgerReader(path) as reader:
        columns = reader.outcomes()
        assert columns["orphan"].tolist() == [False, True, False, True]
        assert columns["runtime"][~columns["orphan"]].tolist() == [0.0, 0.9]
        assert reader.orphans()[0] == 2
        assert sum(count for count, _ in reader.counts().values()) == 2
    assert [event.outcomes[0].runtime for event in ledger.replay() if isinstance(event, Observed)] == [0, 0.1, 0.9, 0.2]


def test_an_answer_that_came_before_its_attempt_was_given_up_counts(ledger: Ledger, path: Path) -> None:
    """It was the newest attempt when it came; a later attempt does not take that back."""
    first, second = RunRequest(0, 0, 1.0), RunRequest(0, 0, 1.0, attempt=1)
    ledger.started([first], elements(first))
    ledger.observed([done(first)])
    ledger.started([second], {})
    with LedgerReader(path) as reader:
        assert reader.outcomes()["orphan"].tolist() == [False]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda ledger: ledger.started([RunRequest(0, 7, 1.0)], {}),
        lambda ledger: ledger.started([RunRequest(0, 0, 1.0)], {}),
        lambda ledger: ledger.observed([done(RunRequest(1, 0, 1.0))]),
        lambda ledger: ledger.observed([done(RunRequest(0, 0, 2.0))]),
        lambda ledger: ledger.observed([], [(RunRequest(1, 5, 1.0), 0.5)]),
        lambda ledger: ledger.started([RunRequest(1, 0, 1.0)], {0: SampleRow(0, "another instance")}),
        lambda ledger: ledger.noted("what", thing=object()),
    ],
    ids=["no sample", "started twice", "never started", "another captime", "unseen", "changed instance", "no JSON"],
)
def test_what_cannot_have_happened_is_refused_whole(wrong: Callable[[Ledger], None], ledger: Ledger) -> None:
    """Nothing of the call is written, and the ledger stays usable."""
    request = RunRequest(0, 0, 1.0)
    ledger.started([request], elements(request))
    head = ledger.head
    with pytest.raises(InvariantViolated):
        wrong(ledger)
    assert ledger.head == head
    ledger.observed([done(request)])
    assert len(list(ledger.replay())) == 2


@pytest.mark.parametrize("table", [table.name for table in TABLES])
@pytest.mark.parametrize("verb", ["UPDATE {} SET seq = seq", "DELETE FROM {}"])
def test_nothing_is_ever_changed_or_removed(ledger: Ledger, path: Path, table: str, verb: str) -> None:
    """Triggers abort it, in any connection."""
    request = RunRequest(0, 0, 1.0)
    ledger.asked(1, no_orders())
    ledger.certified(HELD, 1, 0.5, 0.5, 2)
    ledger.started([request], elements(request))
    ledger.observed([done(request)], [(request, 0.1)])
    ledger.close()
    connection = sqlite3.connect(path)
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        connection.execute(verb.format(table))
    connection.close()


def test_the_file_has_the_settings_that_keep_it_safe(ledger: Ledger, path: Path) -> None:
    """Write-ahead log, full synchronisation, checked cells, foreign keys, no memory map, strict tables."""
    asked = {
        "journal_mode": "wal",
        "synchronous": 2,
        "foreign_keys": 1,
        "trusted_schema": 0,
        "cell_size_check": 1,
        "mmap_size": 0,
        "busy_timeout": 5000,
        "application_id": APPLICATION_ID,
    }
    connection = ledger._writer.connection
    assert {name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in asked} == asked
    strict = connection.execute("SELECT name, strict FROM pragma_table_list WHERE name IN ('outcome', 'start')")
    assert dict(strict.fetchall()) == {"outcome": 1, "start": 1}
    ledger.close()
    assert sorted(each.name for each in path.parent.iterdir()) == ["a.ledger", "a.ledger.lock"]


def test_nobody_opens_a_second_connection_that_writes(
    ledger: Ledger, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite before 3.51.3 has a race between writers; here there is one writer, and readers that cannot write."""
    opened: list[str] = []
    connect = sqlite3.connect

    def recorded(database: str, **options: object) -> sqlite3.Connection:
        opened.append(str(database))
        return connect(database, **options)  # type: ignore[call-overload,no-any-return]  # passed on as it came

    monkeypatch.setattr(sqlite3, "connect", recorded)
    with LedgerReader(path) as reader:
        reader.counts()
        reader.in_flight()
    assert opened
    assert all("mode=ro" in name for name in opened)
    with LedgerReader(path) as reader, pytest.raises(sqlite3.OperationalError, match="readonly"):
        reader._connection.execute("DELETE FROM note")


def test_a_child_that_inherited_a_ledger_must_not_use_it(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every call asks who it is that calls."""
    mine = os.getpid()
    with monkeypatch.context() as patched:
        patched.setattr(os, "getpid", lambda: mine + 1)
        for use in (
            lambda: ledger.observed([done(RunRequest(0, 0, 1.0))]),
            lambda: ledger.started([RunRequest(0, 0, 1.0)], {0: sample(0)}),
            lambda: list(ledger.replay()),
            ledger.in_flight,
            ledger.close,
        ):
            with pytest.raises(InvariantViolated, match="child"):
                use()


def test_a_ledger_that_was_taken_over_is_not_written_any_more(ledger: Ledger, path: Path) -> None:
    """Every transaction looks at the epoch first: an owner who slept through a take-over cannot do harm."""
    request = RunRequest(0, 0, 1.0)
    ledger.started([request], elements(request))
    writer = ledger._writer
    writer.epoch += 1  # what the newer owner would write is its own row; here we pretend to be the older one
    with pytest.raises(LedgerInUse, match="taken over"):
        ledger.observed([done(request)])
    writer.epoch -= 1
    ledger.observed([done(request)])


def test_somebody_elses_lock_is_waited_for_and_then_told(ledger: Ledger, path: Path) -> None:
    """A short lock costs a moment; a long one is storage trouble, and the same call works afterwards."""
    request = RunRequest(0, 0, 1.0)
    ledger.started([request], elements(request))
    holds, let_go = threading.Event(), threading.Event()

    def hold() -> None:
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("BEGIN EXCLUSIVE")
        holds.set()
        let_go.wait(30)
        connection.close()

    holder = threading.Thread(target=hold)
    holder.start()
    assert holds.wait(30)
    ledger._writer.connection.execute("PRAGMA busy_timeout = 200")
    head = ledger.head
    with pytest.raises(StorageTrouble, match="locked"):
        ledger.observed([done(request)])
    assert ledger.head == head
    ledger._writer.connection.execute("PRAGMA busy_timeout = 20000")
    threading.Timer(1.0, let_go.set).start()
    ledger.observed([done(request)])
    holder.join(30)
    assert ledger.in_flight() == []


def test_creating_over_something_is_refused(ledger: Ledger, path: Path) -> None:
    """Nothing is ever overwritten, and configurations are numbered without gaps."""
    ledger.close()
    with pytest.raises(ScenarioError, match="exists already"):
        Ledger.create(path, {}, [])
    with pytest.raises(ScenarioError, match="without gaps"):
        Ledger.create(path.with_name("b.ledger"), {}, [ConfigRow(1, "a")])
    assert not path.with_name("b.ledger").exists()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not a ledger any more"),
        (b"SQLite form", "not a ledger any more"),
        (bytes(4096), "not a ledger any more"),
        (b"SQLite format 3\x00" + bytes(84), "cut"),
    ],
)
def test_what_is_left_of_a_ledger_is_told(path: Path, content: bytes, words: str) -> None:
    """Neither a reader nor a writer makes its own sense of a torn file."""
    path.write_bytes(content)
    for opened in (LedgerReader, Ledger.open):
        with pytest.raises(LedgerDamaged, match=words):
            opened(path)


@pytest.mark.parametrize("content", [b"hello", b"[space]\n" * 40])
def test_what_never_was_a_ledger_is_told(ledger: Ledger, path: Path, content: bytes) -> None:
    """The message says that the wrong file was named, and which one lies beside it."""
    strange = path.with_name(f"{path.stem}.toml")
    strange.write_bytes(content)
    for opened in (LedgerReader, Ledger.open, lambda each: salvage(each, path.with_name("new.ledger"))):
        with pytest.raises(ScenarioError, match=f"no ledger of captime.*did you mean {re.escape(str(path))}"):
            opened(strange)


@pytest.mark.parametrize("place", [0, 9])
def test_a_ledger_whose_first_bytes_were_changed_is_damaged(ledger: Ledger, path: Path, place: int) -> None:
    """Its own mark tells it from a file of another kind."""
    ledger.close()
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)
    for opened in (LedgerReader, Ledger.open, lambda each: salvage(each, path.with_name("new.ledger"))):
        with pytest.raises(LedgerDamaged):
            opened(path)


def test_a_ledger_without_its_mark_is_damaged(ledger: Ledger, path: Path) -> None:
    """The tables are there; the rest was changed."""
    ledger.close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA application_id = 7")
    connection.close()
    with pytest.raises(LedgerDamaged, match="mark"):
        LedgerReader(path)


def test_other_databases_and_changed_versions_are_told(ledger: Ledger, path: Path, tmp_path: Path) -> None:
    """An SQLite file of another program, a ledger that only says it is a newer one, a missing file."""
    strange = tmp_path / "strange.db"
    connection = sqlite3.connect(strange)
    connection.execute("CREATE TABLE t (x)")
    connection.commit()
    connection.close()
    with pytest.raises(ScenarioError, match="not a ledger of captime"):
        LedgerReader(strange)
    with pytest.raises(ScenarioError, match="there is no ledger"):
        Ledger.open(tmp_path / "nothing")
    ledger.close()
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    connection.close()
    with pytest.raises(LedgerDamaged, match=f"was made with version {VERSION}"):
        Ledger.open(path)


def test_certificates_carry_the_head_they_rest_on(ledger: Ledger, path: Path) -> None:
    """They ride in the next transaction, and are written with the hash of the row before them."""
    head = ledger.head
    ledger.certified(HELD, 3, 12.5, 9.25, 2)
    assert ledger.head == head
    ledger.flush()
    with LedgerReader(path) as reader:
        (certified,) = reader.certificates()
        assert (certified.certificate, certified.head) == (HELD, head)
        assert (certified.rounds, certified.cpu_seconds, certified.wall_seconds, certified.candidates) == (
            3,
            12.5,
            9.25,
            2,
        )
        assert reader.head == ledger.head != head
