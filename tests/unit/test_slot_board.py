"""What runs now on which slot: told beside the ledger, cheaply, and never more than the ledger says."""

import io
import json
import os
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from campaign_stand_ins import folder, ledger_in, question_on, small_table
from captime.campaign import RunSettings, run_campaign
from captime.certificate import Certificate
from captime.cli import app
from captime.evidence import Evidence
from captime.executors import VirtualExecutor
from captime.executors.protocol import Executor, NoBoard, SlotDisplay
from captime.ledger.ownership import SlotBoard, SlotId, SlotUse, read_slots, slots_path, under_way
from captime.procedures.protocol import Procedure
from captime.programs.protocol import Program
from captime.report.campaign_view import ProgressView
from captime.report.words import slot_names
from captime.runs import RunOutcome, RunRequest
from captime.sources.window import stream_of
from report_ledgers import hand_written
from supervised import PYTHON, Bench, launch

__all__ = ["folder"]

HERE = SlotId(0, "here")


class Noticed(NoBoard):
    """A board that remembers everything it was told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, SlotId, tuple[int, int] | None, float]] = []

    def running(self, seat: SlotId, request: RunRequest, seconds: float = 0.0) -> None:
        """Remember it."""
        self.told.append(("running", seat, (request.config, request.attempt), seconds))

    def idle(self, seat: SlotId) -> None:
        """Remember it."""
        self.told.append(("idle", seat, None, 0.0))


def test_what_is_told_can_be_read_and_goes_away_in_the_end(tmp_path: Path) -> None:
    """A run begins, is seen, ends; a seat that is gone has no line, and its line is used again."""
    path = tmp_path / "a.ledger"
    with SlotBoard(path, "campaign") as board:
        assert not slots_path(path).exists()
        board.idle(HERE)
        board.running(SlotId(1, "here"), RunRequest(3, 17, 60.0, 2))
        before = read_slots(path)
        assert (before.campaign, before.pid) == ("campaign", os.getpid())
        assert [seated.run for seated in before.seats] == [None, (3, 17, 2)]
        assert before.seats[1].captime == 60.0
        board.running(SlotId(1, "here"), RunRequest(3, 17, 60.0, 2), 1.5)
        (_, seen) = read_slots(path).seats
        assert (seen.seen, seen.since_ns) == (1.5, before.seats[1].since_ns)
        assert seen.seconds(seen.seen_ns + 2 * 10**9) == 3.5
        board.gone(HERE)
        board.running(SlotId(0, "there", "tcp://10.0.0.1:4000"), RunRequest(1, 0, np.inf))
        assert [(each.seat.host, each.captime) for each in read_slots(path).seats] == [
            ("here", 60.0),
            ("there", np.inf),
        ]
        assert slots_path(path).stat().st_size == 3 * 320
    assert not slots_path(path).exists()
    assert read_slots(path).seats == ()


def test_a_line_that_is_being_written_is_passed_over(tmp_path: Path) -> None:
    """Whatever half of it is there: any other byte anywhere in a line, and the line says nothing."""
    path = tmp_path / "a.ledger"
    with SlotBoard(path, "campaign") as board:
        board.running(HERE, RunRequest(0, 0, 60.0))
        board.running(SlotId(1, "here"), RunRequest(1, 0, 60.0))
        content = bytearray(slots_path(path).read_bytes())
        for at in range(320, 320 + len(content[320:640].rstrip())):
            torn = content.copy()
            torn[at] ^= 1
            slots_path(path).write_bytes(torn)
            assert [seated.run for seated in read_slots(path).seats] == [(1, 0, 0)]
        slots_path(path).write_bytes(content[:100])
        assert read_slots(path).seats == ()


def test_only_what_the_ledger_says_is_under_way_is_shown(tmp_path: Path) -> None:
    """A run that has come back leaves an idle seat; runs without a seat are counted; other campaigns are not ours."""
    path = tmp_path / "a.ledger"
    with SlotBoard(path, "ours") as board:
        board.running(HERE, RunRequest(0, 0, 60.0))
        board.running(SlotId(1, "here"), RunRequest(1, 0, 60.0))
        flying = {(1, 0, 0): None, (2, 5, 0): None}
        seats, unseated = under_way(path, "ours", flying)
        assert [seated.run for seated in seats] == [None, (1, 0, 0)]
        assert unseated == 1
        assert under_way(path, "theirs", flying) == ([], 2)


def test_a_board_that_cannot_be_written_is_no_trouble(tmp_path: Path) -> None:
    """No folder, a link that leads elsewhere, a pipe without a reader: nothing is raised, changed or waited for."""
    (tmp_path / "file").write_text("no folder", encoding="utf-8")
    with SlotBoard(tmp_path / "file" / "a.ledger", "c") as board:
        board.running(HERE, RunRequest(0, 0, 1.0))
    precious = tmp_path / "precious"
    precious.write_text("untouched", encoding="utf-8")
    slots_path(tmp_path / "link").symlink_to(precious)
    with SlotBoard(tmp_path / "link", "c") as board:
        board.running(HERE, RunRequest(0, 0, 1.0))
    assert precious.read_text(encoding="utf-8") == "untouched"
    os.mkfifo(slots_path(tmp_path / "pipe"))
    assert read_slots(tmp_path / "pipe").seats == ()
    with SlotBoard(tmp_path / "long", "c") as board:
        board.running(SlotId(0, "x" * 1000), RunRequest(0, 0, 1.0))
        board.running(SlotId(1, "x"), RunRequest(0, 0, 1.0))
        assert [seated.seat.slot for seated in read_slots(tmp_path / "long").seats] == [1]


def test_telling_costs_microseconds(tmp_path: Path) -> None:
    """A thousand changes in a good deal less than a second: less than a thousandth of the shortest runs there are."""
    with SlotBoard(tmp_path / "a.ledger", "campaign") as board:
        begun = time.process_time()
        for number in range(1000):
            board.running(HERE, RunRequest(0, number, 60.0))
        assert time.process_time() - begun < 1.0


def test_slots_are_named_as_shortly_as_possible() -> None:
    """The number; with the machine where there are several; with the worker's port where a machine has several."""
    one = [SlotUse(SlotId(slot, "here")) for slot in range(2)]
    assert slot_names(one) == ["slot 0", "slot 1"]
    two = [*one, SlotUse(SlotId(0, "there", "tcp://10.0.0.2:4000"))]
    assert slot_names(two) == ["slot 0 on here", "slot 1 on here", "slot 0 on there"]
    twice = [*two, SlotUse(SlotId(0, "there", "tcp://10.0.0.2:4001"))]
    assert slot_names(twice)[2:] == ["slot 0 on there:4000", "slot 0 on there:4001"]
    far = [SlotUse(SlotId(0, "a.one.example")), SlotUse(SlotId(0, "b.one.example"))]
    assert slot_names(far) == ["slot 0 on a", "slot 0 on b"]
    alike = [SlotUse(SlotId(0, "a.one.example")), SlotUse(SlotId(0, "a.two.example"))]
    assert slot_names(alike) == ["slot 0 on a.one.example", "slot 0 on a.two.example"]


# ---------------------------------------------------------------------- executors


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    """Two real slots."""
    opened = Bench(f"test-board-{os.getpid()}", isolation="subreaper", pin=False)
    yield opened
    opened.executor.close()


def test_local_slots_tell_the_board_where_each_run_is(bench: Bench) -> None:
    """The seat on the board is the one in the outcome; at the end all seats are idle; a long run is seen on its way."""
    board = Noticed()
    bench.executor.show_on(board)
    assert [told[:2] for told in board.told] == [("idle", SlotId(slot, os.uname().nodename)) for slot in (0, 1)]
    burn = launch(*PYTHON, "-c", "import time\nwhile time.process_time() < 0.8: pass")
    bench.program.launches = [launch("true")] * 5 + [burn]
    bench.executor.submit(bench.requests(range(6)))
    came: list[RunOutcome] = []
    while len(came) < 6:
        came += bench.executor.collect(60.0)
    where = {(o.request.config, o.request.attempt): o.measured.slot for o in came if o.measured is not None}
    begun = {run: seat.slot for word, seat, run, _ in board.told if word == "running" and run is not None}
    assert begun == where
    assert max(seconds for *_, seconds in board.told) > 0.1
    last = {seat: word for word, seat, _, _ in board.told}
    assert set(last.values()) == {"idle"}


def test_a_seat_is_free_after_its_supervisor_died(bench: Bench) -> None:
    """No run is shown on a slot that was opened again."""
    board = Noticed()
    bench.executor.show_on(board)
    bench.program.launches = [launch("sleep", "30")]
    bench.executor.submit(bench.requests([0]))
    until = time.monotonic() + 30.0
    while not any(word == "running" for word, *_ in board.told) and time.monotonic() < until:
        bench.executor.collect(0.2)
    (slot,) = [seat.slot for word, seat, *_ in board.told if word == "running"][:1]
    os.kill(bench.executor.pids()[slot], 9)
    (outcome,) = bench.executor.collect(30.0)
    assert outcome.status.value == "lost"
    assert board.told[-1][:2] == ("idle", SlotId(slot, os.uname().nodename))


class Shown(VirtualExecutor):
    """Virtual slots that say that everything is on the first one."""

    def show_on(self, board: SlotDisplay) -> None:
        """See the protocol."""
        self._board = board

    def submit(self, requests: Sequence[RunRequest]) -> None:
        """See the protocol."""
        for request in requests:
            self._board.running(HERE, request)
        super().submit(requests)


def test_a_campaign_has_a_board_as_long_as_it_runs(folder: Path) -> None:
    """What is on it is under way; once the campaign has ended there is none."""
    table, path, seen = small_table(), ledger_in(folder), []

    def make(program: Program, tag: str) -> Executor:
        return Shown(table, stream_of("given", np.arange(table.n_instances), 0), 2)

    def look(procedure: Procedure, evidence: Evidence, executor: Executor) -> None:
        seen.append(read_slots(path).seats[0])

    run_campaign(question_on(table), path, RunSettings(jobs=2), make_executor=make, observer=look)
    assert len({seated.run for seated in seen}) > 10
    assert not slots_path(path).exists()


# ---------------------------------------------------------------------- for people


def test_status_shows_what_runs_on_which_slot(tmp_path: Path) -> None:
    """Slot, configuration, instance, time and captime; nothing once the campaign is not running."""
    path = tmp_path / "hand.ledger"
    with hand_written(path) as ledger:
        with SlotBoard(path, ledger.campaign_id) as board:
            board.idle(HERE)
            board.running(SlotId(1, "here"), RunRequest(1, 3, 60.0), 12.0)
            told = json.loads(CliRunner().invoke(app, ["status", str(path), "--json"]).stdout)
            shown = CliRunner().invoke(app, ["status", str(path)]).stdout
        assert [slot["name"] for slot in told["slots"]] == ["slot 0", "slot 1"]
        assert told["slots"][0]["run"] is None
        run = told["slots"][1]["run"]
        assert (run["config"], run["instance"], run["captime"]) == ("slow", "instance-3", 60.0)
        assert run["seconds"] >= 12.0
        assert told["running_now"] == "1 of 2 slots busy"
        # The clock has moved on since the board was written.
        assert re.search(r"slot 1: slow on instance-3, \d", shown)
        assert " of 1 min" in shown
    after = json.loads(CliRunner().invoke(app, ["status", str(path), "--json"]).stdout)
    assert (after["slots"], after["running_now"]) == ([], None)
    assert "cut off" in CliRunner().invoke(app, ["status", str(path)]).stdout


class Standing:
    """As much of a procedure, of its books and of its slots as the view looks at."""

    slots = 3
    now = 5.0
    rounds = 1
    candidates = np.ones(2, dtype=np.bool_)
    n = np.ones(2, dtype=np.int64)

    def certificate(self) -> Certificate:
        """Something."""
        return Certificate(0, 0.5, 0.1, 2, 0.2, 0.8)

    @property
    def tally(self) -> "Standing":
        """Itself."""
        return self

    runs = np.ones(2)
    seconds = np.ones(2)

    def watch(self) -> list[tuple[RunRequest, float]]:
        """Nothing: as with answers in fixed order."""
        return []


def test_the_terminal_shows_slots_as_they_are_now() -> None:
    """A line with a bar for each busy slot, as of the frame and not of the last lap; no line is too wide."""
    now = time.time_ns()
    seats = [
        SlotUse(SlotId(0, "here"), (0, 4, 0), 60.0, now, 30.0, now),
        SlotUse(SlotId(1, "here"), (1, 4, 0), np.inf, now, 2.0, now),
        SlotUse(SlotId(2, "here")),
    ]
    console = Console(file=io.StringIO(), force_terminal=True, width=80, height=24, color_system=None)
    view = ProgressView(["a\x1b[31m", "b"], 0.2, "captime run", console, lambda: seats)
    state = Standing()
    view.observe(state, state, state)  # type: ignore[arg-type] # as much of them as the view looks at
    for width in (80, 40, 20):
        console.width = width
        console.print(view)
        assert isinstance(console.file, io.StringIO)
        lines = console.file.getvalue().replace("\x1b[2J", "").replace("\x1b[H", "").splitlines()
        console.file.truncate(0)
        console.file.seek(0)
        assert max(map(len, lines)) <= width
        if width == 80:
            assert any("2 of 3 slots busy" in line for line in lines)
            (busy,) = [line for line in lines if "slot 0" in line]
            assert "30" in busy
            assert "of 1 min" in busy
            assert "━" in busy
            assert not any("━" in line for line in lines if "slot 1" in line)
