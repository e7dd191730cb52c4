"""What a killed `captime doctor` leaves behind is cleared away by the next command that launches something."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from campaign_stand_ins import folder, ledger_in, question_on, small_table, virtual_slots
from captime.campaign import run_campaign
from captime.supervision.cgroups import GROUP_NOTE
from captime.supervision.processes import LINUX, TAG, read_file, tagged
from captime.supervision.scratch import own_tag, sweep_abandoned

__all__ = ["folder"]


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for temporary files of our own."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def tag_of_the_dead() -> str:
    """A tag of a process that has ended."""
    program = "from captime.supervision.scratch import own_tag; print(own_tag('doctor'))"
    return subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.strip()


def daemon_of(tag: str) -> subprocess.Popen[bytes]:
    """A process that a run of that tag has left behind."""
    return subprocess.Popen(["sleep", "600"], env={**os.environ, TAG: f"{tag}/0.0.0"}, start_new_session=True)


def left_in(scratch: Path, tag: str) -> Path:
    """A folder as an executor of that tag makes it, with something in it and a group that is gone."""
    made = Path(tempfile.mkdtemp(prefix=f"captime-{tag}-", dir=scratch))
    (made / "slot-0").mkdir()
    (made / GROUP_NOTE).write_text(f"/sys/fs/cgroup/captime-{tag}-1-1")
    return made


def test_what_the_dead_have_left_is_removed_and_the_living_are_left_alone(scratch: Path) -> None:
    """Processes and folders of a killed process go; those of this one, of another machine and of others' work stay."""
    dead, own = tag_of_the_dead(), own_tag("doctor")
    word, _, *rest = dead.split("-")
    elsewhere = "-".join([word, "00000000", *rest])
    folders = {tag: left_in(scratch, tag) for tag in (dead, own, elsewhere, "0123456789abcdef0123456789abcdef")}
    doomed, ours = daemon_of(dead), daemon_of(own)
    try:
        assert sweep_abandoned() == 1
        assert doomed.wait(10) == -signal.SIGKILL
        assert ours.poll() is None
    finally:
        for each in (doomed, ours):
            each.kill()
            each.wait()
    assert {tag: made.exists() for tag, made in folders.items()} == dict.fromkeys(folders, True) | {dead: False}


def test_a_campaign_clears_away_what_others_have_left(scratch: Path, folder: Path) -> None:
    """Any command that launches does; here a campaign."""
    made = left_in(scratch, tag_of_the_dead())
    run_campaign(question_on(small_table()), ledger_in(folder), make_executor=virtual_slots(small_table(), 1))
    assert not made.exists()


_SCENARIO = """
utility = "uniform(60)"
[target]
command = ["{python}", "-c", "import os, time\\nif os.fork() == 0:\\n    os.setsid()\\ntime.sleep(600)", "{{instance}}"]
clock = "wall"
[instances]
values = ["a", "b"]
[configurations]
one = {{}}
two = {{}}
"""


@pytest.mark.skipif(not LINUX, reason="looks at /proc")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_killed_doctor_leaves_nothing_for_long(scratch: Path, number: signal.Signals) -> None:
    """SIGTERM clears up at once; after SIGKILL the next start does."""
    scenario = scratch / "scenario.toml"
    scenario.write_text(_SCENARIO.format(python=sys.executable))
    doctor = subprocess.Popen(
        [sys.executable, "-m", "captime", "doctor", str(scenario), "--captime", "300s"],
        env={**os.environ, "TMPDIR": str(scratch)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 60.0
        while not _is_at_the_program() and doctor.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        assert doctor.poll() is None
        assert _is_at_the_program()
    finally:
        doctor.send_signal(number)
        doctor.wait(60)
    if number is signal.SIGKILL:
        sweep_abandoned()
    assert not list(scratch.glob("captime-*"))
    assert not [pid for pid in tagged("doctor-") if _owner(pid) == doctor.pid]


def _is_at_the_program() -> bool:
    """Whether a run of the doctor sleeps, as the scenario's program does."""
    return any(b"time.sleep(600)" in read_file(f"/proc/{pid}/cmdline") for pid in tagged("doctor-"))


def _owner(pid: int) -> int:
    marks = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    (tag,) = [mark for mark in marks if mark.startswith(f"{TAG}=".encode())]
    return int(tag.split(b"-")[2])
