import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from captime.certificate import Certificate
from captime.errors import ScenarioError
from captime.ledger import ConfigRow, Ledger, LedgerReader, SampleRow
from captime.ledger.file_watch import backup, salvage
from captime.ledger.reading import STATUSES, VERDICTS
from captime.runs import Measurement, RunOutcome, RunRequest, Status, Verdict
from ledger_workers import carry_on, create


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """A ledger with a writer."""
    with Ledger.create(tmp_path / "a.ledger", {"goal": 0.1}, [ConfigRow(0, "a"), ConfigRow(1, "b")]) as made:
        yield made


def start(ledger: Ledger, *requests: RunRequest) -> None:
    """They are about to run."""
    ledger.started(requests, {each.instance: SampleRow(each.instance, f"i{each.instance}", "", 9) for each in requests})


def test_a_reader_follows_a_campaign_while_it_is_written(ledger: Ledger) -> None:
    """Columns hold what has come back so far, and only what is new if so asked; nothing is left out or told twice."""
    with LedgerReader(ledger.path) as reader:
        assert reader.outcomes()["config"].shape == (0,)
        runs = [RunRequest(config, position, math.inf if config else 2.5) for position in (0, 1) for config in (0, 1)]
        start(ledger, *runs)
        measured = Measurement(1_500, 2_500, peak_memory=77, queue_wait_ns=5, slot=3)
        ledger.observed([RunOutcome(runs[1], Status.COMPLETED, 0.25, 0.5, "", Verdict.ANSWERED, measured)])
        columns, last = reader.outcomes(), reader.last_sequence
        shown = {name: column.tolist()[0] for name, column in columns.items() if name not in ("at_ns", "started_ns")}
        assert shown == {
            "sequence": last,
            "config": 1,
            "position": 0,
            "attempt": 0,
            "captime": math.inf,
            "status": STATUSES.index(Status.COMPLETED),
            "verdict": VERDICTS.index(Verdict.ANSWERED),
            "runtime": 0.25,
            "cost": 0.5,
            "orphan": False,
            "cpu_ns": 1500,
            "wall_ns": 2500,
            "peak_memory": 77,
            "queue_wait_ns": 5,
            "slot": 3,
        }
        ledger.observed([RunOutcome(runs[0], Status.LOST, 0.0, 0.1), RunOutcome(runs[2], Status.CAPPED, 2.5, 2.5)])
        news = reader.outcomes(since=last)
        assert news["position"].tolist() == [0, 1]
        assert (news["verdict"].tolist(), news["cpu_ns"].tolist(), news["captime"].tolist()) == (
            [-1, -1],
            [-1, -1],
            [2.5, 2.5],
        )
        assert reader.counts() == {
            (Status.COMPLETED, Verdict.ANSWERED): (1, 0.5),
            (Status.LOST, None): (1, 0.1),
            (Status.CAPPED, None): (1, 2.5),
        }
        assert reader.in_use
    assert ledger.path.with_name("a.ledger-wal").exists()


def test_what_is_in_flight_is_followed(ledger: Ledger) -> None:
    """A reader that looks again sees the same as one that looks for the first time."""
    with LedgerReader(ledger.path) as follower:
        for position in range(6):
            runs = [RunRequest(config, position, 1.0) for config in (0, 1)]
            start(ledger, *runs)
            if position == 2:
                ledger.observed([RunOutcome(runs[0], Status.LOST, 0.0, 0.0)])
                start(ledger, RunRequest(0, 2, 1.0, attempt=1))
            ledger.observed([RunOutcome(runs[1], Status.COMPLETED, 0.1, 0.1)])
            with LedgerReader(ledger.path) as newcomer:
                assert follower.in_flight() == newcomer.in_flight()
            assert [request for request, _ in follower.in_flight()] == ledger.in_flight()
        assert [(request.instance, request.attempt) for request, _ in follower.in_flight()] == [
            (0, 0), (1, 0), (2, 1), (3, 0), (4, 0), (5, 0)
        ]  # fmt: skip


def test_samples_configurations_notes_and_certificates_are_read(ledger: Ledger) -> None:
    """With their numbers, for those who follow."""
    held = Certificate(0, 0.5, 0.1, 2, 0.2, 0.9)
    with LedgerReader(ledger.path) as reader:
        assert reader.last_certificate() is None
        start(ledger, RunRequest(0, 4, 1.0))
        ledger.certified(held, 1, 0.5, 0.25, 2)
        ledger.noted("warning", about="noise")
        ledger.added([ConfigRow(2, "c", {"x": 1}, "random")])
        samples = reader.samples()
        assert (samples["position"].tolist(), samples["instance"].tolist(), samples["seed"].tolist()) == (
            [4],
            ["i4"],
            [9],
        )
        assert reader.samples(since=reader.last_sequence)["position"].shape == (0,)
        assert [config.name for config in reader.configs] == ["a", "b", "c"]
        assert [(note.kind, note.facts) for note in reader.events()] == [("warning", {"about": "noise"})]
        newest = reader.last_certificate()
        assert newest is not None
        assert newest.certificate == held
        assert reader.last_certificate_row() == newest.sequence
        assert reader.scenario == {"goal": 0.1}
        assert reader.owner is not None
        assert reader.owner.alive()


def test_a_million_runs_do_not_become_a_million_objects(tmp_path: Path) -> None:
    """Columns are typed arrays; flat rows are for export only."""
    ledger = create(tmp_path / "a.ledger")
    carry_on(ledger, 12)
    with LedgerReader(tmp_path / "a.ledger") as reader:
        columns = reader.outcomes()
        assert {column.dtype.kind for column in columns.values()} == {"i", "f", "b"}
        assert all(column.flags.c_contiguous and len(column) == 12 for column in columns.values())
        assert np.array_equal(columns["sequence"], np.sort(columns["sequence"]))
        assert len(list(reader.flat())) == 12
    ledger.close()


def test_a_snapshot_shows_one_moment(ledger: Ledger) -> None:
    """Whatever is written meanwhile is not seen inside, and neither side waits for the other."""
    start(ledger, RunRequest(0, 0, 1.0))
    with LedgerReader(ledger.path) as reader:
        with reader.snapshot():
            before = reader.last_sequence
            start(ledger, RunRequest(1, 0, 1.0))
            assert reader.last_sequence == before
            assert len(reader.in_flight()) == 1
        assert reader.last_sequence == before + 1
        assert len(reader.in_flight()) == 2


def test_a_backup_of_a_ledger_in_use_is_complete(ledger: Ledger, tmp_path: Path) -> None:
    """It is one file, whole, says that it is a copy, and a campaign could resume with it."""
    start(ledger, RunRequest(0, 0, 1.0))
    copy = tmp_path / "copy.ledger"
    rows = backup(ledger.path, copy)
    with LedgerReader(copy) as reader, LedgerReader(ledger.path) as original:
        assert (reader.last_sequence, original.last_sequence) == (rows + 1, rows)
        assert reader.events()[-1].kind == "copied"
        assert list(reader.walk())[:-1] == list(original.walk())
        assert reader.check_end() == "it was closed in good order"
    with pytest.raises(ScenarioError, match="exists already"):
        backup(ledger.path, copy)
    with pytest.raises(ScenarioError, match="exists already"):
        salvage(ledger.path, copy)
    ledger.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.ledger", "a.ledger.lock", "copy.ledger"]
    with Ledger.open(copy) as other:
        assert other.in_flight() == [RunRequest(0, 0, 1.0)]
