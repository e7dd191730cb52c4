"""The view of a running campaign: one screen, no rests after a resize, plain lines in pipes, guesses in words."""

import io
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from campaign_stand_ins import folder, ledger_in, question_on, small_table, virtual_slots
from captime.campaign import RunSettings, run_campaign
from captime.evidence import Evidence
from captime.executors.protocol import Executor
from captime.procedures.protocol import Procedure
from captime.report.campaign_view import ProgressView, campaign_view, plain_lines
from captime.report.ledger_data import Pace
from captime.utilities.formula import rounded_time
from space_campaigns import on_space, search

__all__ = ["folder"]

CLEAR = "\x1b[2J"


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that jumps a minute every time it is read."""
    ticks = iter(np.arange(0.0, 1e9, 60.0).tolist())
    monkeypatch.setattr("captime.report.campaign_view.time.monotonic", lambda: next(ticks))


def watched(folder: Path, view: ProgressView) -> list[str]:
    """Everything the view said in one line while a small campaign continued."""
    lines: list[str] = []

    def observe(procedure: Procedure, evidence: Evidence, executor: Executor) -> None:
        view.observe(procedure, evidence, executor)
        lines.append(view.line)

    table = small_table()
    run_campaign(
        question_on(table),
        ledger_in(folder),
        RunSettings(jobs=2),
        make_executor=virtual_slots(table, 2),
        observer=observe,
    )
    return lines


def drawn(view: ProgressView, console: Console) -> str:
    """One frame."""
    console.print(view)
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    console.file.truncate(0)
    console.file.seek(0)
    return text


@pytest.mark.usefixtures("no_waiting")
def test_the_view_fits_on_one_screen_of_any_width(folder: Path) -> None:
    """Eight lines at most, none wider than the terminal, names without control characters."""
    console = Console(file=io.StringIO(), force_terminal=True, width=80, height=24, color_system=None)
    view = ProgressView(["a\x1b[31m", "b", "c", "d", "e"], 0.2, "captime run", console)
    assert "starting" in drawn(view, console)
    lines = watched(folder, view)
    assert lines[-1].startswith("epsilon 0.")
    for width in (80, 40, 20):
        console.width = width
        frame = drawn(view, console)
        shown = frame.replace(CLEAR, "").replace("\x1b[H", "").splitlines()
        assert len(shown) <= 9
        assert max(map(len, shown)) <= width
        assert "\x1b[31m" not in frame


def test_the_clock_of_the_view_goes_on_from_earlier_sittings(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As epsilon, runs and CPU time beside it do."""
    table = small_table()
    made = run_campaign(question_on(table), ledger_in(folder), make_executor=virtual_slots(table, 2))
    seen: list[float] = []

    def remember(self: ProgressView, *_: object, clock: float = 0.0, **__: object) -> None:
        seen.append(clock)

    monkeypatch.setattr(ProgressView, "__init__", remember)
    with campaign_view([], 0.1, "captime run", ledger=ledger_in(folder)):
        pass
    assert seen == [made.outcome.wall_seconds]


@pytest.mark.usefixtures("no_waiting")
def test_the_time_so_far_is_that_of_all_sittings(folder: Path) -> None:
    """A view that is told of a hundred days adds to them."""
    console = Console(file=io.StringIO(), force_terminal=True, width=80, height=24, color_system=None)
    view = ProgressView(["a", "b", "c", "d", "e"], 0.2, "captime run", console, clock=8_640_000.0)
    watched(folder, view)
    assert "100 d so far" in drawn(view, console)


def test_after_a_resize_the_screen_is_cleared_once() -> None:
    """Lines that the terminal wrapped would stay behind otherwise; without a resize nothing is cleared or flickers."""
    console = Console(file=io.StringIO(), force_terminal=True, width=80, height=24, color_system=None)
    view = ProgressView(["a"], 0.1, "captime run", console)
    assert CLEAR not in drawn(view, console)
    console.width = 50
    assert drawn(view, console).count(CLEAR) == 1
    assert CLEAR not in drawn(view, console)


@pytest.mark.usefixtures("no_waiting")
def test_in_a_pipe_there_are_plain_lines(folder: Path) -> None:
    """No codes, one line each, the first at once."""
    out = io.StringIO()
    table = small_table()
    observer = plain_lines(ProgressView(list(table.configs), 0.2, "captime run"), out)
    run_campaign(question_on(table), ledger_in(folder), make_executor=virtual_slots(table, 2), observer=observer)
    lines = out.getvalue().splitlines()
    assert len(lines) > 10
    assert all(line.startswith("captime: epsilon ") and "\x1b" not in line for line in lines)
    assert "candidates" in lines[0]


def test_lines_in_a_pipe_are_ten_seconds_apart(folder: Path) -> None:
    """A campaign that takes no time says one thing."""
    out = io.StringIO()
    table = small_table()
    observer = plain_lines(ProgressView(list(table.configs), 0.2, "captime run"), out)
    run_campaign(question_on(table), ledger_in(folder), make_executor=virtual_slots(table, 2), observer=observer)
    assert 1 <= len(out.getvalue().splitlines()) <= 4


def test_configurations_that_come_later_have_a_number(folder: Path) -> None:
    """Pools grow while the names are those of the start."""
    view = ProgressView([], 0.2, "captime run")
    assert any("configuration " in line for line in watched(folder, view))


@pytest.mark.usefixtures("no_waiting")
def test_on_a_space_both_goals_are_shown(folder: Path) -> None:
    """Gamma stands beside what was asked for, as epsilon does."""
    out = io.StringIO()
    question = on_space(1)
    view = ProgressView(question.names, 0.3, "captime run", gamma_goal=0.5)
    search(question, ledger_in(folder), observer=plain_lines(view, out))
    lines = out.getvalue().splitlines()
    assert all("gamma " in line and "(goal 0.5)" in line and " runs " in line for line in lines)
    assert "configuration " not in lines[-1]


# ---------------------------------------------------------------------- the pace


def falling(pace: Pace, power: float, until: float, start: float = 10.0) -> None:
    """Epsilon falls like one over a power of the time."""
    for now in np.geomspace(start, until, 40).tolist():
        pace.note(now, (start / now) ** power)


@pytest.mark.parametrize("power", [0.5, 1.0])
def test_the_pace_finds_the_moment_of_a_power_law(power: float) -> None:
    """Straight in logarithms, so the guess is exact there."""
    pace = Pace(0.01)
    falling(pace, power, 100.0)
    reached = 10.0 * 0.01 ** (-1.0 / power)
    assert pace.seconds_left() == pytest.approx(reached - 100.0, rel=0.02)
    assert "0.01 in about" in pace.words()
    assert "at this pace" in pace.words()


def test_no_guess_is_better_than_a_wild_one() -> None:
    """Too early, without a goal, at the goal, or standing still: nothing is said."""
    early = Pace(0.1)
    early.note(1.0, 0.9)
    early.note(1.5, 0.8)
    nowhere, there, still = Pace(0.0), Pace(0.5), Pace(0.1)
    falling(nowhere, 0.5, 100.0)
    falling(there, 0.5, 100.0)
    for now in range(1, 100):
        still.note(float(now), 0.9 - now * 1e-6)
    for pace in (early, nowhere, there, still):
        assert pace.seconds_left() is None
        assert pace.words() == ""


def test_waiting_makes_the_guess_smaller_and_never_negative() -> None:
    """Time continues although nothing is certified; a guess that was passed is 0."""
    pace = Pace(0.1)
    falling(pace, 1.0, 50.0)
    first = pace.seconds_left()
    pace.note(70.0, 0.2)
    second = pace.seconds_left()
    assert first is not None
    assert second is not None
    assert second == pytest.approx(first - 20.0, rel=0.05)
    pace.note(1e6, 0.2)
    assert pace.seconds_left() == 0.0


def test_a_new_leader_has_a_pace_of_its_own() -> None:
    """When epsilon rises, what was noted about the former leader is forgotten; soon there is a guess again."""
    pace = Pace(0.1)
    falling(pace, 0.5, 100.0)
    assert pace.seconds_left() is not None
    pace.note(110.0, 0.8)
    assert pace.seconds_left() is None
    falling(pace, 1.0, 200.0, start=110.0)
    assert pace.seconds_left() == pytest.approx(1100.0 - 200.0, rel=0.05)


@pytest.mark.parametrize(
    ("seconds", "guess"),
    [
        (0.0, 0.5),
        (0.3, 0.5),
        (1.4, 1.5),
        (7.4, 7.0),
        (47.0, 45.0),
        (712.0, 720.0),
        (8400.0, 9000.0),
        (86400.0 * 12.4, 86400.0 * 12),
    ],
)
def test_guesses_have_few_digits_in_the_unit_they_are_told_in(seconds: float, guess: float) -> None:
    """About 12 min, not 11.9 min; about 2.5 h."""
    assert rounded_time(seconds) == guess
