import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from captime.errors import LedgerDamaged
from captime.ledger import Ledger, LedgerReader
from captime.ledger.file_watch import backup, salvage
from captime.skeptic import audit
from ledger_workers import PATIENCE, PROCESSES, carry_on, create, leave_open, scripted, without_rights, work

POINTS = ("lock-taken", "ledger-created", "owner-inserted", "owner-committed", "checkpoint", "intent-inserted",
          "intent-committed", "row-inserted", "row-committed", "note-inserted", "note-committed")  # fmt: skip


def coordinator(path: Path, until: int, crash_at: str = "", file_limit: int = 0) -> tuple[Any, Connection]:
    """A process that carries on with a ledger, and where it tells what it has seen through."""
    hears, tells = PROCESSES.Pipe(duplex=False)
    process = PROCESSES.Process(target=work, args=(str(path), until, tells, crash_at, file_limit))
    process.start()
    tells.close()
    return process, hears


def heard(hears: Connection) -> list[Any]:
    """Everything a process said before it ended."""
    said = []
    try:
        while True:
            said.append(hears.recv())
    except EOFError:
        return said


def facts(path: Path) -> list[tuple[Any, ...]]:
    """What counts, without attempts and moments: the same after any number of interruptions."""
    with LedgerReader(path) as reader:
        for _ in reader.walk():
            pass
        columns = reader.outcomes()
        counts = (columns["status"] != 3) & ~columns["orphan"]
        names = ("config", "position", "status", "runtime", "cost")
        found = list(zip(*(columns[name][counts].tolist() for name in names), strict=True))
    assert len({row[:2] for row in found}) == len(found), "a run counts twice"
    return sorted(found)


def whole(until: int, tmp_path: Path) -> list[tuple[Any, ...]]:
    """What an uninterrupted campaign records."""
    path = tmp_path / "uninterrupted.ledger"
    with create(path) as ledger:
        carry_on(ledger, until)
    return facts(path)


def keep_killing(path: Path, kills: int, until: int, rng: np.random.Generator) -> set[int]:
    """Kill coordinators at random moments, again and again; return the runs that were acknowledged."""
    acknowledged: set[int] = set()
    for kill in range(kills):
        process, hears = coordinator(path, until)
        # One in three dies while it is opening the ledger, or before.
        if kill % 3:
            hears.poll(60)
        time.sleep(rng.uniform(0.0, 0.1))
        process.kill()
        process.join(PATIENCE)
        acknowledged |= {said for said in heard(hears) if isinstance(said, int)}
    return acknowledged


@pytest.mark.parametrize("kills", [30, pytest.param(200, marks=pytest.mark.fault)])
def test_killing_the_writer_loses_nothing_and_doubles_nothing(kills: int, tmp_path: Path) -> None:
    """F1, the storage half: every acknowledged run is there once, the file is whole, the end is the same."""
    path, until = tmp_path / "a.ledger", 8 * kills
    acknowledged = keep_killing(path, kills, until, np.random.default_rng(1))
    kept = {row[:2] for row in facts(path)}
    assert {(each % 3, each // 3) for each in acknowledged} <= kept
    with Ledger.open(path) as ledger:
        assert ledger._writer.connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        carry_on(ledger, until)
    assert facts(path) == whole(until, tmp_path)
    assert acknowledged, "nothing was done between the kills: nothing was tried"


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("point", POINTS)
def test_death_at_a_named_place_is_survived(point: str, when: str, tmp_path: Path) -> None:
    """F2, the ledger's places: the next process finds a ledger that is whole, or none, and comes to the same end."""
    path, until = tmp_path / "a.ledger", 6
    process, hears = coordinator(path, until, f"{point}:{when}:1")
    process.join(PATIENCE)
    if (point, when) != ("lock-taken", "before"):
        assert process.exitcode == -signal.SIGKILL
    told = {said for said in heard(hears) if isinstance(said, int)}
    with Ledger.open(path) if path.exists() else create(path) as ledger:
        carry_on(ledger, until)
    assert len(told) <= len(facts(path))
    assert facts(path) == whole(until, tmp_path)
    assert not list(tmp_path.glob("a.ledger.part*"))


def test_the_crash_variable_is_read_from_the_environment(tmp_path: Path) -> None:
    """CAPTIME_CRASH_AT, as campaigns in other processes are told; nonsense in it is refused."""
    code = "from captime.ledger.connection import crash_point as at; at('x'); at('x', 'before'); at('x'); print(1)"
    for wish, ends in (("x:after:2", -signal.SIGKILL), ("x:after:3", 0), ("x:before:1", -signal.SIGKILL), ("x", 1)):
        environment = {**os.environ, "CAPTIME_CRASH_AT": wish}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=False)
        assert done.returncode == ends, done.stderr


@pytest.mark.parametrize("tries", [12, pytest.param(300, marks=pytest.mark.fault)])
def test_a_full_disk_writes_nothing_false(tries: int, tmp_path: Path) -> None:
    """F11: wherever the room ends, it is told, what was acknowledged is there, and it continues later."""
    until, limits = 12, np.geomspace(3000, 2_000_000, tries).astype(int).tolist()
    expected, troubled = whole(until, tmp_path), 0
    for limit in limits:
        path = tmp_path / f"{limit}.ledger"
        process, hears = coordinator(path, until, file_limit=limit)
        process.join(PATIENCE)
        said = heard(hears)
        assert process.exitcode == 0
        assert said, "it ended without a word"
        troubled += str(said[-1]).startswith("trouble")
        with Ledger.open(path) if path.exists() else create(path) as ledger:
            kept = {(row[0], row[1]) for row in facts(path)}
            assert {(each % 3, each // 3) for each in said if isinstance(each, int)} <= kept
            carry_on(ledger, until)
        assert facts(path) == expected
    assert 0 < troubled < len(limits), "the limits tried do not straddle what is needed"


def test_a_read_only_directory_can_be_read_and_not_written(tmp_path: Path) -> None:
    """F13: told before anything is started; readers still see everything, also after a kill."""
    folder = Path(tempfile.mkdtemp())
    try:
        with create(folder / "closed.ledger") as ledger:
            carry_on(ledger, 9)
        for name, runs in (("killed.ledger", 7), ("bare.ledger", 5)):
            process = PROCESSES.Process(target=leave_open, args=(str(folder / name), runs))
            process.start()
            process.join(PATIENCE)
        with LedgerReader(folder / "killed.ledger"):
            pass
        # Shared memory is not copied to a read-only medium.
        (folder / "bare.ledger-shm").unlink()
        for path in folder.iterdir():
            path.chmod(0o444)
        folder.chmod(0o555)
        answers = PROCESSES.Queue()
        process = PROCESSES.Process(target=without_rights, args=(str(folder), answers))
        process.start()
        told = answers.get(timeout=PATIENCE)
        process.join(PATIENCE)
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)
    assert "cannot be written to" in told["open"]
    assert "cannot be written to" in told["create"]
    assert (told["closed.ledger"], told["killed.ledger"], told["bare.ledger"]) == (9, 7, 5)
    assert {told[f"{name}.ledger is missing"] for name in ("closed", "killed", "bare")} == {""}
    assert told["backup"] == told["salvaged"] > 5
    assert told["left"] == []


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed ledger of scripted runs."""
    path = tmp_path_factory.mktemp("small") / "a.ledger"
    with create(path) as ledger:
        carry_on(ledger, 40)
    return path


@pytest.mark.parametrize("cuts", [60, pytest.param(4096, marks=pytest.mark.fault)])
def test_a_cut_ledger_is_found_out_and_salvaged(cuts: int, small: Path, tmp_path: Path) -> None:
    """F19: at any length readers, writers and the skeptic refuse it; what is saved is whole, and shorter."""
    content = small.read_bytes()
    lengths = list(range(0, len(content), 512))
    rng, saved = np.random.default_rng(2), 0
    for length in lengths if cuts >= len(lengths) else sorted(rng.choice(lengths, cuts, replace=False).tolist()):
        path = tmp_path / "cut.ledger"
        path.write_bytes(content[:length])
        for use in (LedgerReader, Ledger.open, audit):
            with pytest.raises(LedgerDamaged, match=r"cut|not a ledger"):
                use(path)
        target = tmp_path / "saved.ledger"
        try:
            found = salvage(path, target)
        except LedgerDamaged:
            assert not target.exists()
        else:
            saved += 1
            assert found.damage
            assert audit(target).rows == found.rows + 1
            target.unlink()
    assert saved


@pytest.mark.parametrize("flips", [200, pytest.param(2000, marks=pytest.mark.fault)])
def test_a_flipped_byte_changes_nothing_that_counts_unnoticed(flips: int, small: Path, tmp_path: Path) -> None:
    """F20: either it is refused as damaged, or every row is what it was (the byte was not in use)."""
    content, rng, noticed = small.read_bytes(), np.random.default_rng(3), 0
    with LedgerReader(small) as reader:
        rows = list(reader.walk())
    path = tmp_path / "flipped.ledger"
    for _ in range(flips):
        place, bit = int(rng.integers(len(content))), int(rng.integers(8))
        changed = bytearray(content)
        changed[place] ^= 1 << bit
        path.write_bytes(changed)
        try:
            audit(path)
            with LedgerReader(path) as reader:
                assert list(reader.walk()) == rows, f"byte {place}, bit {bit}"
        except LedgerDamaged:
            noticed += 1
    assert noticed > flips // 10, "hardly any flip hit anything: nothing was tried"


def test_a_missing_log_is_found_out(tmp_path: Path) -> None:
    """F21: deleted after a kill, or left behind when the file alone was copied."""
    path = tmp_path / "a.ledger"
    process = PROCESSES.Process(target=leave_open, args=(str(path), 30))
    process.start()
    process.join(PATIENCE)
    copied = tmp_path / "copied.ledger"
    shutil.copyfile(path, copied)
    assert backup(path, tmp_path / "backup.ledger") > 60
    assert len(facts(path)) == len(facts(tmp_path / "backup.ledger")) == 30
    for use in (audit, Ledger.open):
        with pytest.raises(LedgerDamaged, match="copy without its -wal"):
            use(copied)
    for name in ("a.ledger-wal", "a.ledger-shm"):
        path.with_name(name).unlink()
    for use in (audit, Ledger.open):
        with pytest.raises(LedgerDamaged, match="the ledger has had"):
            use(path)


def test_scripted_runs_are_what_they_say() -> None:
    """The harness itself: runs differ, and some are capped."""
    outcomes = [scripted(number) for number in range(200)]
    assert len({outcome.request for outcome in outcomes}) == 200
    assert len({outcome.status for outcome in outcomes}) == 2
