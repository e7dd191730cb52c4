"""Whole campaigns through the command line, with real processes, and attempts to break them."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from campaign_stand_ins import folder
from captime.ledger import LedgerReader
from captime.skeptic import audit
from scripted_campaign import Scripted, scripted_campaign

__all__ = ["folder"]

TAG = b"CAPTIME_RUN="
# An interpreter, libraries and slots start in a second; on a busy machine it may be many.
PATIENCE = 180.0


def tagged(ledger_id: str) -> list[int]:
    """Processes on this machine that belong to runs of that campaign."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                environment = (entry / "environ").read_bytes()
            except OSError:
                continue
            if TAG + ledger_id.encode() in environment:
                found.append(int(entry.name))
    return found


def eventually(happened: Callable[[], bool]) -> bool:
    """Whether it happens within a minute."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if happened():
            return True
        time.sleep(0.02)
    return False


def n_outcomes(campaign: Scripted) -> int:
    """How many runs are on record; 0 before there is a ledger."""
    if not campaign.ledger.exists():
        return 0
    with LedgerReader(campaign.ledger) as reader:
        return len(reader.outcomes()["config"])


def ledger_id(campaign: Scripted) -> str:
    """The name that no other campaign has."""
    with LedgerReader(campaign.ledger) as reader:
        return str(reader.campaign_id)


def slowed(campaign: Scripted, before: str = "") -> Path:
    """From now on every run does this first, and takes a while on the clock for as long as the returned file exists."""
    program, marker = campaign.folder / "program.sh", campaign.folder / "slow"
    marker.touch()
    wait = f"{before}\n[ -e '{marker}' ] && sleep 0.2\nseconds="
    program.write_text(program.read_text().replace("seconds=", wait, 1))
    return marker


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[object, int]:
    """What the campaign comes to if it is left alone, and how many decisions that takes."""
    return scripted_campaign(tmp_path_factory.mktemp("whole")).certificate()


@pytest.mark.parametrize("jobs", [1, 3])
def test_any_number_of_jobs_gives_the_same_certificate_in_fixed_order(
    folder: Path, whole: tuple[object, int], jobs: int
) -> None:
    """P9, with real processes that end in whatever order they like."""
    assert scripted_campaign(folder, jobs=jobs).certificate() == whole


@pytest.mark.parametrize("trials", [1, pytest.param(100, marks=pytest.mark.fault)])
def test_killed_with_everything_it_leaves_no_process_behind(folder: Path, trials: int) -> None:
    """F5: kill -9 of the coordinator; its slots kill their trees, and the next start sweeps what is left."""
    for trial in range(trials):
        campaign = scripted_campaign(folder / f"{trial}", order="arrival")
        slow = slowed(campaign, "(setsid sleep 300 &)")
        process = campaign.begin()
        assert eventually(lambda: n_outcomes(campaign) >= 3)  # noqa: B023 (called before the next trial)
        process.kill()
        process.wait()
        process.stdout.close()  # type: ignore[union-attr] # pipes were asked for
        process.stderr.close()  # type: ignore[union-attr]
        name = ledger_id(campaign)
        assert eventually(lambda: not tagged(name))  # noqa: B023
        before = n_outcomes(campaign)
        slow.unlink()
        code, out, said = campaign.run()
        assert code == 0, said
        assert json.loads(out)["resumed"] is True
        assert n_outcomes(campaign) > before
        assert tagged(name) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_ends_it_in_good_order(
    folder: Path, whole: tuple[object, int], number: signal.Signals
) -> None:
    """C4, P30: trees dead, ledger whole, certificate printed, the exit code tells; the same command resumes."""
    campaign = scripted_campaign(folder)
    slow = slowed(campaign)
    process = campaign.begin()
    assert eventually(lambda: n_outcomes(campaign) >= 5)
    begun = time.monotonic()
    process.send_signal(number)
    out, said = process.communicate(timeout=PATIENCE)
    assert time.monotonic() - begun < PATIENCE / 2
    assert process.returncode == 128 + number, said
    assert json.loads(out)["stopped"] == "interrupted"
    assert tagged(ledger_id(campaign)) == []
    slow.unlink()
    assert campaign.certificate() == whole


def test_a_second_coordinator_is_sent_away(folder: Path) -> None:
    """F16: exit code 4, naming who holds the ledger; the first one does not notice."""
    campaign = scripted_campaign(folder)
    hold = folder / "hold"
    slow = slowed(campaign, before=f"while [ -e '{hold}' ]; do sleep 0.05; done")
    first = campaign.begin()
    assert eventually(lambda: n_outcomes(campaign) >= 2)
    hold.touch()  # however slow the machine is, the first one does not end before the second one has looked
    code, _, said = campaign.run()
    hold.unlink()
    slow.unlink()
    assert code == 4
    assert str(first.pid) in said
    _, complaints = first.communicate(timeout=PATIENCE)
    assert first.returncode == 0, complaints


def test_a_changed_scenario_is_named_and_refused(folder: Path) -> None:
    """F25: exit code 3, the field, what it was and what it is; nothing is run."""
    campaign = scripted_campaign(folder)
    campaign.certificate()
    made = n_outcomes(campaign)
    text = campaign.scenario.read_text()
    campaign.scenario.write_text(text.replace('"uniform(60)"', '"uniform(61)"'))
    code, _, said = campaign.run()
    assert (code, n_outcomes(campaign)) == (3, made)
    assert re.search(r"utility: was .*uniform\(60\).*, is .*uniform\(61\)", said)
    campaign.scenario.write_text(text)
    (campaign.folder / "instances" / "0007").write_text("1\n2\n3\n")
    code, _, said = campaign.run()
    assert (code, n_outcomes(campaign)) == (3, made)
    assert "0007" in said


def test_an_instance_that_changes_under_way_is_never_counted(folder: Path) -> None:
    """F26: exit code 7 with the path; the run under way is lost, and what came before stands."""
    campaign = scripted_campaign(folder)
    slowed(campaign)
    process = campaign.begin()
    assert eventually(lambda: n_outcomes(campaign) >= 3)
    for instance in (campaign.folder / "instances").iterdir():
        instance.write_text("1\n1\n1\n")
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 7, said
    assert "instances/" in said
    with LedgerReader(campaign.ledger) as reader:
        assert any(event.kind == "stopped" for event in reader.events())


def test_a_replaced_program_stops_the_campaign(folder: Path) -> None:
    """F27: noticed before the next launch counts; exit code 3."""
    campaign = scripted_campaign(folder)
    slowed(campaign)
    process = campaign.begin()
    assert eventually(lambda: n_outcomes(campaign) >= 3)
    program = campaign.folder / "program.sh"
    other = campaign.folder / "other.sh"
    shutil.copy(program, other)
    other.write_text(program.read_text() + "# another one\n")
    other.replace(program)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 3, said
    assert "program.sh" in said


def test_a_program_that_always_fails_is_given_up_soon(folder: Path) -> None:
    """T25: exit code 7 after 20 runs, with the command and its last words."""
    campaign = scripted_campaign(folder)
    (campaign.folder / "program.sh").write_text("#!/bin/sh\necho 'no licence' >&2\nexit 3\n")
    code, _, said = campaign.run()
    assert code == 7
    assert "no licence" in said
    assert "program.sh" in said
    assert 20 <= n_outcomes(campaign) <= 30


def test_contradicting_answers_end_all_claims(folder: Path) -> None:
    """P17: one says SAT, another UNSAT; nothing is certified, and resuming does not help."""
    campaign = scripted_campaign(folder)
    program = campaign.folder / "program.sh"
    lies = 'answer=SAT\n[ "$7" = 3 ] && answer=UNSAT\nseconds='
    program.write_text(program.read_text().replace("SAT,", "$answer,").replace("seconds=", lies, 1))
    for _ in range(2):
        code, out, said = campaign.run()
        assert (code, out) == (7, "")
        assert "one of them is wrong" in said


def test_a_broken_pipe_is_no_traceback(folder: Path) -> None:
    """C6: a reader that closes the pipe causes no long message."""
    campaign = scripted_campaign(folder)
    line = f"'{sys.executable}' -m captime run '{campaign.scenario}' | true"
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("order", ["arrival", "fixed"])
@pytest.mark.parametrize(("population", "ends"), [("drawn", (3, "instances")), ("these", (0, "epsilon"))])
def test_instances_added_at_the_end_are_gone_on_with(
    folder: Path, order: str, population: str, ends: tuple[int, str]
) -> None:
    """A stream that ran out continues where it ended, nothing is run twice, and resuming once more repeats nothing.

    A claim about exactly these instances is about the larger set then.
    """
    campaign = scripted_campaign(folder, order=order, instances=24, population=population)
    code, out, said = campaign.run("--epsilon", "0.05")
    assert (code, json.loads(out)["stopped"]) == ends, said
    before = n_outcomes(campaign)
    scripted_campaign(folder, order=order, instances=200, population=population)
    code, out, said = campaign.run("--epsilon", "0.05")
    told = json.loads(out)
    assert (code, told["resumed"]) == (0, True), said
    assert told["certificate"]["epsilon"] <= 0.05
    with LedgerReader(campaign.ledger) as reader:
        columns, samples = reader.outcomes(), reader.sample_rows()
    assert len(columns["config"]) > before
    assert len({sample.instance for sample in samples}) == len(samples) > 24
    code, out, said = campaign.run("--epsilon", "0.05")
    again = json.loads(out)["certificate"]
    assert (code, again["config"]) == (0, told["certificate"]["config"]), said
    # In the order of arrival, runs that were stopped at the goal are recorded after the last word was said
    # (`live.drive_parallel`), and a resumed campaign hears of them: epsilon can only be smaller, and stays so.
    assert again["epsilon"] <= told["certificate"]["epsilon"]
    assert order == "arrival" or again == told["certificate"]
    code, out, said = campaign.run("--epsilon", "0.05")
    assert (code, json.loads(out)["certificate"]) == (0, again), said
    assert n_outcomes(campaign) == len(columns["config"])
    assert again["population"] == population
    assert again["instances"] == (200 if population == "these" else None)
    assert audit(campaign.ledger).verdict == "confirmed"
