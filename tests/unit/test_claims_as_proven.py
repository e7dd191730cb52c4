"""Claims that once were stronger than their proofs, and rounding that cost more than it had to."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from campaign_stand_ins import question_on, small_table, virtual_slots
from captime.bounds.mixture import PairedMixture, sine_nodes
from captime.campaign import run_campaign
from captime.campaign.identity import remembered, step_on_record
from captime.certificate import Certificate
from captime.ledger import LedgerReader
from captime.ledger.rows import Noted
from captime.procedures import Problem
from captime.procedures.board import Board
from captime.procedures.claims import COARSEST_STEP, Duels, difference_grid, difference_step, margins
from captime.procedures.fixed_captimes import FixedCaptimes
from captime.procedures.race import Race
from captime.report.campaigned import assumptions
from captime.report.ledger_data import LedgerData, ProgressCurve
from captime.sources.replay import Replay
from captime.utilities import parse_utility
from runtime_laws import NEVER, in_order, table_of

# ---------------------------------------------------------------------- the step of duels


@pytest.mark.parametrize("boost", [1.0, 1.25, 2.0, 8.0])
@pytest.mark.parametrize("aim", [0.3, 0.05, 0.02, 0.005])
def test_every_difference_is_rounded_up_by_less_than_a_step(aim: float, boost: float) -> None:
    """Also where the grid has gaps: scores are 0 or at least 1/B, so no difference falls into one."""
    step, least = difference_step(aim), 1.0 / boost
    assert step <= max(aim / 16.0, 1.0 / 4096.0) or step == COARSEST_STEP
    score = np.unique(np.concatenate(([0.0, least, 1.0], np.linspace(least, 1.0, 201))))
    difference = (score[:, None] - score).ravel()
    grid = difference_grid(step, least)
    rounded = grid[PairedMixture(grid, np.array([0.5]), sine_nodes(2)).bin_up(difference)]
    assert (rounded >= difference).all()
    assert (rounded - difference < step + 1e-12).all()


def test_goals_from_a_sixteenth_on_keep_the_step_they_had() -> None:
    """Decisions of campaigns with such goals are what they were, to the last bit."""
    for aim in (0.0625, 0.1, 0.3, 0.9):
        np.testing.assert_array_equal(difference_grid(difference_step(aim), 0.8), np.linspace(-1.0, 1.0, 513))


def test_a_finer_step_shows_more_in_a_near_tie() -> None:
    """1800 differences of 0.001: to 1/256 they look like 0.004."""
    shown = {}
    for name, step in (("fine", difference_step(0.006)), ("coarse", COARSEST_STEP)):
        bets = PairedMixture(difference_grid(step, 0.8), margins(0.006), sine_nodes(16))
        counts = np.bincount(bets.bin_up(np.full(1800, 0.001)), minlength=len(bets.differences))
        shown[name] = float(bets.smallest_margin(counts[None], np.array([5.0]))[0])
    assert shown["fine"] < shown["coarse"]


def test_a_ledger_keeps_the_step_it_was_begun_with(tmp_path: Path) -> None:
    """A new one follows its goal, and says so; one that names no step was begun when there was one for all."""
    question = replace(question_on(small_table()), epsilon=0.03)
    assert remembered(question)["difference_step"] == 1.0 / 1024.0
    assert step_on_record({"difference_step": 1.0 / 1024.0}) is None
    assert step_on_record({}) == COARSEST_STEP
    old = Race(replace(question, duel_step=step_on_record({})).problem())
    assert old._duels._counts.shape[1] == 513
    assert Race(question.problem())._duels._counts.shape[1] > 513
    path = tmp_path / "a.ledger"
    for _ in range(2):
        run_campaign(question, path, make_executor=virtual_slots(small_table(), 2), interrupted=lambda: True)
    with LedgerReader(path) as reader:
        assert reader.scenario["difference_step"] == 1.0 / 1024.0


def test_a_duel_counts_what_a_challenger_may_still_be_worth() -> None:
    """Scores from 0 to 1 are not scores of 0: nothing is shown against what may have scored more than the leader."""
    shown = []
    for high in (0.0, 1.0):
        board = Board(2, 0.8)
        board.settle(0, np.full(300, 0.9), np.full(300, 0.9))
        board.settle(1, np.zeros(300), np.full(300, high))
        duels = Duels(2, margins(0.05))
        duels.restart(board, 0)
        shown.append(float(duels.margins(board, 0, np.array([1]), 3.0)[0]))
    assert shown[0] <= 0.05
    assert shown[1] > 0.1


# ---------------------------------------------------------------------- the end shown


def test_fixed_captimes_show_an_end_that_holds_whoever_is_the_best() -> None:
    """Of all upper bounds delta pays for that of the best, and the leader is worth no more than the best is."""
    rng = np.random.default_rng(6)
    utility = parse_utility("uniform(60)")
    seconds = rng.uniform(1.0, 40.0, (4, 300))
    seconds[0] *= 0.9
    made = FixedCaptimes(Problem(4, utility, 0.1, epsilon=0.05, n_instances=300))
    replay = Replay(table_of(seconds, NEVER), in_order(300), made.plan, utility)
    wider = 0
    while made.finished() is None:
        made.tell(replay.tally, replay.answer(made.ask(1)))
        held, upper = made.certificate(), made.intervals.upper
        assert held.utility_high >= upper[held.config]
        wider += held.utility_high > upper[held.config]
    assert wider > 0, "another one's upper bound should have been the largest at times"


# ---------------------------------------------------------------------- words


def story_of(**more: object) -> LedgerData:
    """A story without runs."""
    none, no_configs = np.empty(0), np.empty(0, dtype=np.int64)
    progress = ProgressCurve(none, none, none, no_configs, no_configs)
    return LedgerData(Path("a.ledger"), ["a", "b"], progress, None, **more)  # type: ignore[arg-type] # what is asked


def test_intervals_hold_at_all_times_only_where_nobody_joins() -> None:
    """They pay for as many configurations as there are when they are made."""
    assert story_of().whenever == "at all times"
    assert "as many as there are now" in story_of(scenario={"space": {"x": {}}}).whenever
    joined = Noted(3, "configurations", {"list": [{"name": "c"}]})
    assert "as many as there are now" in story_of(notes=[joined]).whenever


def test_the_certificate_rests_on_a_list_that_was_not_chosen_on_these_instances(tmp_path: Path) -> None:
    """A list of what an earlier campaign found on the same instances is chosen by what is to be judged."""
    result = run_campaign(
        question_on(small_table()), tmp_path / "a.ledger", make_executor=virtual_slots(small_table(), 2)
    )
    said = assumptions(result)
    assert "The configurations were not chosen by runs on these instances." in said
    assert any(line.startswith("Every run counts once") for line in said)
    assert isinstance(result.certificate, Certificate)
