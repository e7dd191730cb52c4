"""kill -9 of the coordinator: at every named place, and at random moments; the certificate must not notice."""

import multiprocessing
import signal
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from campaign_stand_ins import folder, ledger_in, question_on, small_table, virtual_slots
from captime.campaign import CampaignResult, RunSettings, run_campaign
from captime.ledger import LedgerReader, connection
from captime.runs import Status

__all__ = ["folder"]

TABLE = small_table(3, 2000)
MANNER = RunSettings(jobs=4, order="fixed", window=5)
# A server that has imported everything: each campaign to be killed is a fork of it, and costs milliseconds.
SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(["captime.campaign", "campaign_stand_ins"])

BOTH = ("before", "after")
WRITES = ("intent-inserted", "intent-committed", "row-inserted", "row-committed", "checkpoint")
MOMENTS = ("lock-taken", "announced", "acknowledged", "decided", "certified", "shutdown-begun")
POINTS = [
    *((name, when) for name in ("ledger-created", "recovery", "written-off", *WRITES) for when in BOTH),
    *((name, "after") for name in MOMENTS),
]


def campaign(path: Path) -> CampaignResult:
    """The campaign that everything is compared with."""
    return run_campaign(question_on(TABLE, epsilon=0.25), path, MANNER, make_executor=virtual_slots(TABLE, 4))


def campaign_that_dies(path: Path, wish: str) -> None:
    """In a process of its own: kill -9 at that place, if it is ever reached."""
    connection._countdown = connection._CrashCountdown(wish) if wish else None
    campaign(path)


def die(path: Path, wish: str, seconds: float | None = None) -> int | None:
    """Let a campaign die there, or after this many seconds; its exit code, negative if it was killed."""
    process = SERVER.Process(target=campaign_that_dies, args=(path, wish))
    process.start()
    process.join(seconds)
    if process.is_alive():
        process.kill()
        process.join()
    return process.exitcode


def check_whole(path: Path) -> None:
    """SQLite finds nothing wrong, no run is on record twice, and every outcome was announced."""
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
    with LedgerReader(path) as reader:
        columns = reader.outcomes()
        for _ in reader.walk():
            pass
    final = columns["status"] != list(Status).index(Status.LOST)
    keys = list(zip(columns["config"][final].tolist(), columns["position"][final].tolist(), strict=True))
    assert len(keys) == len(set(keys))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> CampaignResult:
    """What comes out if nothing is killed."""
    return campaign(tmp_path_factory.mktemp("undisturbed") / "ledger")


@pytest.mark.parametrize(("name", "when"), POINTS)
def test_killed_at_every_named_place_the_certificate_is_the_same(
    folder: Path, undisturbed: CampaignResult, name: str, when: str
) -> None:
    """F2, F3: die there at the first and at the fifth time, resume, and end as if nothing had been."""
    path = ledger_in(folder)
    if name in ("recovery", "written-off"):
        assert die(path, "acknowledged:after:20") == -signal.SIGKILL
    died = [die(path, f"{name}:{when}:{times}") for times in (1, 5)]
    assert died[0] == -signal.SIGKILL, "the place was never reached, so this test would show nothing"
    end = campaign(path)
    assert (end.certificate, end.outcome.rounds) == (undisturbed.certificate, undisturbed.outcome.rounds)
    check_whole(path)


@pytest.mark.parametrize("kills", [12, pytest.param(200, marks=pytest.mark.fault)])
def test_killed_at_random_moments_nothing_is_lost_or_doubled(
    folder: Path, undisturbed: CampaignResult, kills: int
) -> None:
    """F1: what was committed stays, what was not is made again, and the certificate is identical."""
    rng = np.random.default_rng(20_000 + kills)
    killed = rounds = 0
    while killed < kills:
        path = ledger_in(folder, f"{rounds}")
        committed = 0
        for _ in range(8):
            code = die(path, "", float(rng.uniform(0.02, 0.2)))
            killed += code == -signal.SIGKILL
            if path.exists() and code != 0:
                with LedgerReader(path) as reader:
                    now = len(reader.outcomes()["config"])
                assert now >= committed, "committed runs were lost"
                committed = now
            if code == 0:
                break
        end = campaign(path)
        assert (end.certificate, end.outcome.rounds) == (undisturbed.certificate, undisturbed.outcome.rounds)
        check_whole(path)
        rounds += 1
