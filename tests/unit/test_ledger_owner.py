import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from captime.errors import LedgerInUse, StorageTrouble
from captime.ledger import ConfigRow, Ledger, connection, ownership
from captime.ledger.connection import file_system, is_network, sqlite_note
from captime.ledger.ownership import Owner, WriteLock, lock_path, read_mark
from ledger_workers import PATIENCE, PROCESSES, grab

CONFIGS = [ConfigRow(0, "a")]


def test_of_twenty_at_once_exactly_one_gets_the_ledger(tmp_path: Path) -> None:
    """The others are told who has it while it is held: all answers are in before the winner lets it go."""
    path = tmp_path / "a.ledger"
    Ledger.create(path, {}, CONFIGS).close()
    gate, answers = PROCESSES.Barrier(20), PROCESSES.Queue()
    workers = [PROCESSES.Process(target=grab, args=(str(path), gate, answers)) for _ in range(20)]
    for worker in workers:
        worker.start()
    told = [answers.get(timeout=PATIENCE) for _ in workers]
    for worker in workers:
        worker.join(PATIENCE)
    winners = [answer for answer in told if answer["won"]]
    assert len(winners) == 1
    for answer in told:
        if not answer["won"]:
            assert f"process {winners[0]['pid']} on" in answer["words"]


def test_a_ledger_that_was_closed_names_no_process(tmp_path: Path) -> None:
    """Between the lock and its new holder's name, a refusal must not name the last holder."""
    path = tmp_path / "a.ledger"
    ledger = Ledger.create(path, {}, CONFIGS)
    assert str(os.getpid()).encode() in lock_path(path).read_bytes()
    mark = read_mark(path)
    ledger.close()
    assert str(os.getpid()).encode() not in lock_path(path).read_bytes()
    assert mark is not None
    assert read_mark(path) is not None


HERE = Owner("here", "boot-2", 4711, "100")
CASES = {
    "closed in good order": (HERE, True, False, None),
    "the process is dead": (HERE, False, False, None),
    "its number belongs to another process now": (HERE, False, False, None),
    "alive, and the lock file was deleted": (HERE, False, False, "being written"),
    "before the last boot": (replace(HERE, boot="boot-1"), False, False, None),
    "another machine": (replace(HERE, host="there", boot="boot-3"), False, False, "take the ledger over"),
    "another machine, taken over": (replace(HERE, host="there", boot="boot-3"), False, True, None),
    "another machine, closed": (replace(HERE, host="there", boot="boot-3"), True, False, None),
    "this machine under another name": (replace(HERE, host="renamed"), False, False, None),
}


@pytest.mark.parametrize("case", CASES)
def test_who_may_take_over_from_whom(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dead owner of this machine is succeeded; one on another machine only on request; a living one never."""
    last, closed, take_over, refused = CASES[case]
    now = replace(HERE, pid=4712, process_start="200")
    alive = {"alive, and the lock file was deleted": "100", "its number belongs to another process now": "150"}
    path = tmp_path / "a.ledger"
    monkeypatch.setattr(ownership.Owner, "here", lambda: last)
    ledger = Ledger.create(path, {}, CONFIGS)
    if closed:
        ledger.close()
    else:
        ledger._writer.close()  # as a dead process would leave it, but for the files beside it
    monkeypatch.setattr(ownership.Owner, "here", lambda: now)
    monkeypatch.setattr(ownership, "process_start", lambda pid: alive.get(case, "") if pid == last.pid else "200")
    if refused is None:
        Ledger.open(path, take_over=take_over).close()
    else:
        with pytest.raises(LedgerInUse, match=refused) as told:
            Ledger.open(path, take_over=take_over)
        assert f"process {last.pid} on {last.host}" in str(told.value)


def test_the_lock_dies_with_its_holder_and_is_not_inherited(tmp_path: Path) -> None:
    """The descriptor is closed when another program is executed, and the file is never deleted."""
    path = tmp_path / "a.ledger"
    lock = WriteLock(path)
    assert not os.get_inheritable(lock._file)
    with pytest.raises(LedgerInUse, match=f"process {os.getpid()} on"):
        WriteLock(path)
    lock.release()
    assert lock_path(path).exists()
    WriteLock(path).release()


def test_a_lock_on_a_deleted_file_locks_nothing(tmp_path: Path) -> None:
    """The process that gets one notices, and takes the lock on the file that is there now."""
    path = tmp_path / "a.ledger"
    first = WriteLock(path)
    lock_path(path).unlink()
    second = WriteLock(path)
    assert not os.path.samestat(os.fstat(first._file), os.fstat(second._file))
    with pytest.raises(LedgerInUse):
        WriteLock(path)
    first.release()
    second.release()


def test_a_nameless_holder_is_waited_for_only_briefly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between taking the lock and writing its name, a holder has no name."""
    monkeypatch.setattr(ownership, "_NAME_WITHIN", 0.05)
    path = tmp_path / "a.ledger"
    lock = WriteLock(path)
    os.ftruncate(lock._file, 0)
    with pytest.raises(LedgerInUse, match="not told its name"):
        WriteLock(path)
    lock.release()


def test_the_lock_file_remembers_the_end_of_the_ledger(tmp_path: Path) -> None:
    """Its first line is replaced after every transaction, its second says who writes."""
    path = tmp_path / "a.ledger"
    with Ledger.create(path, {}, CONFIGS) as ledger:
        ledger.noted("something")
        ledger.flush()
        mark = read_mark(path)
        assert mark is not None
        assert (mark.campaign, mark.head) == (ledger.campaign_id, ledger.head)
        assert json.loads(lock_path(path).read_text(encoding="ascii").splitlines()[1])["pid"] == os.getpid()
    lock_path(path).write_text("something else", encoding="ascii")
    assert read_mark(path) is None


MOUNTS = """\
20 1 8:1 / / rw - ext4 /dev/sda1 rw
21 20 0:30 / /nfs rw - {kind} server:/export rw
22 21 8:2 / /nfs/local\\040disk rw - xfs /dev/sdb1 rw
"""


@pytest.mark.parametrize("kind", ["nfs4", "lustre", "cifs", "fuse.sshfs", "9p"])
def test_network_file_systems_are_refused_unless_asked_for(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The write-ahead log does not work there; the slower way does, and is as complete."""
    mounts = MOUNTS.format(kind=kind)
    assert file_system(Path("/nfs/data"), mounts) == kind
    assert file_system(Path("/nfs/local disk/x"), mounts) == "xfs"
    assert file_system(Path("/nfsx"), mounts) == "ext4"
    assert is_network(kind)
    monkeypatch.setattr(connection, "file_system", lambda _: kind)
    path = tmp_path / "a.ledger"
    with pytest.raises(StorageTrouble, match=f"network file system \\({kind}\\)"):
        Ledger.create(path, {}, CONFIGS)
    with Ledger.create(path, {}, CONFIGS, network=True) as ledger:
        ask = ledger._writer.connection.execute
        modes = ("journal_mode", "locking_mode", "synchronous")
        assert [ask(f"PRAGMA {mode}").fetchone()[0] for mode in modes] == ["delete", "exclusive", 3]
        ledger.noted("something")
    with pytest.raises(StorageTrouble, match="on a network file system"):
        Ledger.open(path)
    with Ledger.open(path, network=True) as ledger:
        assert len(list(ledger.replay())) == 2


def test_this_directory_is_on_a_local_disk(tmp_path: Path) -> None:
    """The list of mounts of a real system is understood."""
    kind = file_system(tmp_path)
    assert kind == "" or not is_network(kind)


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ((3, 40, 1), True),
        ((3, 44, 5), True),
        ((3, 44, 6), False),
        ((3, 50, 7), False),
        ((3, 51, 2), True),
        ((3, 52, 0), False),
    ],
)
def test_the_doctor_is_told_about_old_versions_of_sqlite(version: tuple[int, ...], said: bool) -> None:
    """A race between two writers, which cannot happen with one; the newest lines are mended."""
    assert (sqlite_note(version) is not None) == said


def test_refusals_come_before_anything_is_written(tmp_path: Path) -> None:
    """A directory that does not exist is storage trouble, and nothing is made."""
    with pytest.raises(StorageTrouble, match="directory"):
        Ledger.create(tmp_path / "nowhere" / "a.ledger", {}, CONFIGS)
    assert list(tmp_path.iterdir()) == []
