"""Small file systems that really fill up under a campaign: the certificate is never the full disk's."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from captime.ledger import LedgerReader

pytestmark = pytest.mark.fault

# The better one writes a file; the worse one burns much more time and writes nothing.
PROGRAM = """#!/bin/sh
if [ "$1" = better ]; then
  head -c $2 /dev/zero > "$TMPDIR/work" || exit 1
  rounds=1000
else
  rounds=60000
fi
i=0; while [ $i -lt $rounds ]; do i=$((i+1)); done
echo ok
"""
SCENARIO = """
utility = "uniform(1)"
jobs = 1
[target]
command = ["./solve.sh", "{config}", "BYTES"]
answer = "^ok"
repeatable = true
[instances]
values = [1, 2, 3, 4, 5]
sampling = "replace"
[configurations]
worse = {}
better = {}
[stop]
epsilon = 0.15
"""


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 8 MB with room for 400 files; the test is skipped where none can be mounted."""
    disk = tmp_path / "disk"
    disk.mkdir()
    options = ["mount", "-t", "tmpfs", "-o", "size=8m,nr_inodes=400", "captime-test", str(disk)]
    mounted = subprocess.run(options, capture_output=True, text=True, check=False)
    if mounted.returncode != 0:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.strip()}")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


def begun(folder: Path, size: int) -> Path:
    """A scenario whose better configuration writes this number of bytes."""
    program = folder / "solve.sh"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    scenario = folder / "s.toml"
    scenario.write_text(SCENARIO.replace("BYTES", str(size)))
    return scenario


def run(scenario: Path, disk: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """The command, with its scratch folder on that disk."""
    return subprocess.run(
        [sys.executable, "-m", "captime", "run", str(scenario), "--json", *more],
        env=os.environ | {"TMPDIR": str(disk)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def once_runs_are_made(scenario: Path, act: Callable[[], None], runs: int = 4) -> threading.Thread:
    """Do something as soon as the campaign has this number of outcomes."""
    ledger = scenario.with_suffix(".ledger")

    def wait() -> None:
        deadline = time.monotonic() + 120.0
        while time.monotonic() < deadline:
            time.sleep(0.05)
            try:
                with LedgerReader(ledger) as reader:
                    if len(reader.outcomes()["config"]) >= runs:
                        break
            except Exception:  # noqa: BLE001, S112 (it is being made)
                continue
        act()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def fill(disk: Path) -> None:
    """Use up every byte."""
    with (disk / "filler").open("wb", buffering=0) as filler:
        try:
            while filler.write(bytes(1 << 16)):
                pass
        except OSError:
            return


def use_up_files(disk: Path) -> None:
    """Use up every inode."""
    for number in range(1000):
        try:
            (disk / f"filler-{number}").touch()
        except OSError:
            return


def clear(disk: Path) -> None:
    """Make room again."""
    for filler in disk.glob("filler*"):
        filler.unlink()


@pytest.mark.parametrize("spoil", [fill, use_up_files])
def test_a_disk_that_fills_up_for_a_while_changes_nothing(
    tmp_path: Path, small_disk: Path, spoil: Callable[[Path], None]
) -> None:
    """The campaign waits, continues, and recommends the better one; no run is judged, none is given up."""
    scenario = begun(tmp_path, 300_000)

    def act() -> None:
        spoil(small_disk)
        time.sleep(5.0)
        clear(small_disk)

    thread = once_runs_are_made(scenario, act)
    done = run(scenario, small_disk)
    thread.join()
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["certificate"]["config_name"] == "better"
    assert set(told["statuses"]) <= {"answered", "cancelled", "capped", "lost"}
    with LedgerReader(scenario.with_suffix(".ledger")) as reader:
        kinds = [event.kind for event in reader.events()]
    assert "unfit" in kinds


@pytest.mark.parametrize("spoil", [fill, use_up_files])
def test_a_disk_that_stays_full_ends_the_campaign(
    tmp_path: Path, small_disk: Path, spoil: Callable[[Path], None]
) -> None:
    """Exit code 6 with a word, the worse one is not recommended for it, and the same command resumes later."""
    scenario = begun(tmp_path, 300_000)
    thread = once_runs_are_made(scenario, lambda: spoil(small_disk))
    done = run(scenario, small_disk, "--patience", "3s")
    thread.join()
    assert done.returncode == 6, done.stderr
    assert "the machine stays unfit" in done.stderr
    told = json.loads(done.stdout)
    assert told["stopped"] == "machine"
    assert told["certificate"]["epsilon"] > 0.15
    clear(small_disk)
    again = run(scenario, small_disk)
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["certificate"]["config_name"] == "better"


def test_a_configuration_that_fills_the_disk_by_itself_is_named(tmp_path: Path, small_disk: Path) -> None:
    """Nothing is certified; with a limit of its own it is the configuration's own failure."""
    scenario = begun(tmp_path, 20_000_000)
    done = run(scenario, small_disk, "--patience", "1s")
    assert done.returncode == 6, done.stderr
    assert "configuration 'better' was lost again and again" in done.stderr
    assert done.stdout == ""
    limited = tmp_path / "limited.toml"
    limited.write_text(scenario.read_text().replace("[target]", '[target]\ndisk_limit = "2MB"'))
    done = run(limited, small_disk)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["certificate"]["config_name"] == "worse"
