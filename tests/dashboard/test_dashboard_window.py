"""The window behind the dashboard: it follows a ledger, tells what the report tells, and is never in the way (W17)."""

import json
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from captime.dashboard.server import Live, assets
from captime.dashboard.state import QUERY_SECONDS, LedgerFollower, live_part, state_of
from captime.errors import StorageTrouble
from captime.ledger import ConfigRow, Ledger, LedgerReader, SampleRow
from captime.ledger.ownership import SlotBoard, SlotId
from captime.report.ledger_data import read_story
from captime.runs import RunOutcome, RunRequest, Status
from dashboard_server import Served, served
from report_ledgers import SCENARIO, hand_written, raced_ledger, shared_memory


def wait_for_all(window: LedgerFollower) -> None:
    """Look until there is nothing new."""
    while window.refresh() or window.read < window.last:
        pass


def test_the_window_tells_what_the_report_tells() -> None:
    """The same scores, the same staircase, the same recommendation."""
    window, story = LedgerFollower(raced_ledger()), read_story(raced_ledger())
    wait_for_all(window)
    assert story.scores is not None
    assert window.scores is not None
    np.testing.assert_allclose(window.scores.lower, story.scores.lower)
    np.testing.assert_allclose(window.scores.estimate, story.scores.estimate)
    state = state_of(window, 600.0)
    assert live_part(window)["state"] == "closed"
    assert live_part(window)["slots"] == []
    assert json.loads(json.dumps(state))["title"] == "race.ledger"
    figures = state["figures"]
    assert isinstance(figures, list)
    assert [figure["name"] for figure in figures] == ["epsilon", "intervals"]
    window.close()


def test_the_window_sees_what_is_written_after_it_was_opened(tmp_path: Path) -> None:
    """A run that starts is under way; a run that ends is the newest outcome."""
    with hand_written(tmp_path / "hand.ledger") as ledger:
        window = LedgerFollower(tmp_path / "hand.ledger")
        wait_for_all(window)
        assert len(window.in_flight) == 1
        assert not window.refresh()
        request = RunRequest(0, 9, 60.0)
        ledger.started([request], {9: SampleRow(9, "brand new", "", 1)})
        window.refresh()
        assert len(window.in_flight) == 2
        ledger.observed([RunOutcome(request, Status.COMPLETED, 7.0, 7.0)])
        wait_for_all(window)
        assert window.recent[0].runtime == 7.0
        assert window.instances[9] == "brand new"
        assert live_part(window)["state"] == "running"
        window.close()


def test_what_runs_on_which_slot_is_told_without_a_new_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seats change while the ledger stays the same; a campaign whose process is gone runs nothing."""
    path = tmp_path / "hand.ledger"
    with hand_written(path) as ledger, SlotBoard(path, ledger.campaign_id) as board:
        live = Live(path)

        def told(seen: int) -> dict[str, Any]:
            live._looked = -1.0
            return dict(json.loads(live._thread.submit(live._state, 600, seen).result()))

        first = told(0)
        # Its slot is not known; it is shown all the same.
        assert [run["config"] for run in first["live"]["slots"]] == ["slow"]
        assert first["live"]["slots"][0]["slot"] == ""
        while not told(first["version"]).get("same"):
            first = told(0)
        board.idle(SlotId(0, "here"))
        board.running(SlotId(1, "here"), RunRequest(1, 3, 60.0), 7.0)
        board.running(SlotId(2, "here"), RunRequest(0, 0, 60.0))
        second = told(first["version"])
        assert second["same"]
        # The third seat's run has an outcome in the ledger: it is not under way, whatever the board says.
        assert [run.get("config") for run in second["live"]["slots"]] == [None, "slow", None]
        slow = second["live"]["slots"][1]
        assert (slow["slot"], slow["instance"], slow["captime"], slow["seen"]) == ("slot 1", "instance-3", 60.0, 7.0)
        assert second["live"]["board"] == "1 of 3 slots busy."
        monkeypatch.setattr("captime.ledger.ownership.Owner.alive", lambda _: False)
        gone = told(first["version"])["live"]
        assert (gone["state"], gone["slots"]) == ("interrupted", [])
        assert "not running" in gone["board"]
        live.close()


def test_a_question_that_takes_too_long_is_given_up(tmp_path: Path) -> None:
    """The question has no end, so an answer at all shows that it was given up; the reader works afterwards."""
    path = tmp_path / "hand.ledger"
    with hand_written(path), LedgerReader(path, query_seconds=QUERY_SECONDS) as reader:
        endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"
        with pytest.raises(StorageTrouble, match="longer than was allowed"), reader.snapshot():
            reader._connection.execute(endless).fetchone()
        assert len(reader.configs) == 3


def test_many_who_look_do_not_hold_up_the_one_who_writes(tmp_path: Path) -> None:
    """Commits beside 50 busy pages: no error, and at the median not much slower than alone (W17)."""
    path = shared_memory() / "busy.ledger"
    with Ledger.create(path, SCENARIO, [ConfigRow(0, "a"), ConfigRow(1, "b")]) as ledger:

        def commits(first: int, count: int) -> list[float]:
            taken = []
            for position in range(first, first + count):
                request = RunRequest(position % 2, position, 60.0)
                begun = time.perf_counter()
                ledger.started([request], {position: SampleRow(position, f"i{position}", "", 1)})
                ledger.observed([RunOutcome(request, Status.COMPLETED, 1.0, 1.0)])
                taken.append(time.perf_counter() - begun)
            return taken

        alone = commits(0, 150)
        with served(path) as running:
            stop, answers = threading.Event(), []

            def look() -> None:
                while not stop.is_set():
                    answers.append(running.get("/state?width=600")[0])

            clients = [threading.Thread(target=look) for _ in range(50)]
            for client in clients:
                client.start()
            beside = commits(150, 150)
            stop.set()
            for client in clients:
                client.join()
    assert set(answers) <= {200, 0, 503}
    assert 200 in answers
    # All of this shares one interpreter, which a real campaign and a real dashboard do not.
    assert sorted(beside)[75] <= 50.0 * sorted(alone)[75] + 0.2
    with LedgerReader(path) as reader:
        assert len(reader.outcomes()["config"]) == 300


def test_static_files_are_a_table_made_once() -> None:
    """Three files, none with a script or a style inside."""
    found = assets()
    assert set(found) == {b"/", b"/app.js", b"/app.css"}
    page = found[b"/"][0].decode("utf-8")
    assert "<style" not in page
    assert page.count("<script") == page.count('<script src="/app.js">') == 1
    assert "innerHTML" not in found[b"/app.js"][0].decode("utf-8")
    assert "http" not in found[b"/app.js"][0].decode("utf-8").replace("http://www.w3.org/2000/svg", "")


def test_a_ledger_that_goes_bad_is_told_and_not_a_crash(tmp_path: Path) -> None:
    """The page says what the reader says."""
    with hand_written(tmp_path / "hand.ledger"):
        live = Live(tmp_path / "hand.ledger")
    live._window._reader._tail = _damaged  # type: ignore[method-assign] # as if a page of the file had rotted
    assert "rotten" in json.loads(live._thread.submit(live._state, 600, 0).result())["trouble"]
    live.close()


def _damaged() -> tuple[int, bytes]:
    raise StorageTrouble("rotten")


def test_secrets_are_in_no_answer(tmp_path: Path) -> None:
    """Neither token nor cookie come back in any state, page or header but the one that sets it (W12, W18)."""
    with hand_written(tmp_path / "hand.ledger"), served(tmp_path / "hand.ledger") as running:
        for path in ("/", "/app.js", "/app.css", "/state", "/nothing"):
            _, headers, body = _asked(running, path)
            text = body.decode("utf-8") + str(headers)
            assert running.rules.token not in text
            assert running.rules.session not in text


def _asked(running: Served, path: str) -> tuple[int, dict[str, str], bytes]:
    return running.get(path)
