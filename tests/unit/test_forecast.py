"""How many instances an epsilon takes: the forecast agrees with the bounds, and with itself."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from captime.bounds.mixture import PairedBets, PairedMixture, sine_nodes
from captime.certificate import Population
from captime.cli import app
from captime.errors import ScenarioError
from captime.procedures.forecast import EPSILONS, LARGEST_SET, Forecast, _support
from captime.procedures.set_claims import NODES, Standing
from captime.procedures.set_schedule import pilot_size

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("spread", [0.1, 0.3, 0.5])
def test_made_up_differences_have_the_mean_and_spread_they_are_said_to_have(spread: float) -> None:
    """Over many positions: mean 0, and the standard deviation asked for."""
    differences = 1.0 - 2.0 * _support(4096, spread)
    assert abs(differences.mean()) < 1e-3
    assert differences.std() == pytest.approx(spread, rel=0.02)


@pytest.mark.parametrize("n", [20, 60, 200])
def test_the_claim_about_more_like_them_is_that_of_a_duel(n: int) -> None:
    """The engine's own paired bound on the same differences refutes the margin forecast, and none far below it."""
    forecast = Forecast(n, n_configs=8, delta=0.1, spread=0.3, population=Population.DRAWN)
    pilot = max(1, min(4, n // 8))
    differences = 1.0 - 2.0 * _support(n, 0.3)[pilot:]
    margins = np.arange(1, 400) / 400.0
    mixture = PairedMixture(np.array([-1.0, 0.0, 1.0]), margins, sine_nodes(16))
    counts = np.bincount(mixture.bin_up(differences), minlength=3)[None, :]
    shown = float(mixture.smallest_margin(counts, np.array([np.log(8 / (0.6 * 0.1))]))[0])
    assert forecast.drawn == pytest.approx(shown, abs=1 / 399)


@pytest.mark.parametrize("n", [20, 60, 200])
def test_both_claims_of_a_race_on_a_set_are_those_of_its_duels(n: int) -> None:
    """The engine's own bets on the same differences, at the level of the first of the ranking, with its pilot."""
    forecast = Forecast(n, n_configs=8, delta=0.1, spread=0.3)
    run = forecast.to_run(0.1)
    standing = Standing(pilot_size(n), np.arange(8), [])
    level = standing.log_inverse(0, np.array([1]), 0.1)
    differences = 1.0 - 2.0 * _support(n, 0.3)[None, :]
    counts = np.arange(n)[None, :] >= standing.start
    drawn = PairedBets.on_draws(differences, counts, level, sine_nodes(NODES)).margins(np.ones(1), 0.0)
    # The engine takes the best of all lengths of the prefix, the forecast takes the whole.
    assert float(drawn[0]) - 1e-3 <= forecast.drawn <= 1.25 * float(drawn[0])
    part = PairedBets.on_set(differences[:, :run], n, counts[:, :run], level, sine_nodes(NODES))
    # What the positions that are left can change at most needs no bet.
    certain = (float(differences[0, :run].sum()) + n - run) / n
    assert min(certain, float(part.margins(np.ones(1), 0.1)[0])) <= 0.1 + 1e-6


def test_all_instances_run_leave_nothing_open_about_exactly_these() -> None:
    """Epsilon is 0 once everything was run, whatever the number."""
    for n in (1, 2, 9, 60):
        assert Forecast(n).these(n) == 0.0
        assert Forecast(n).to_run(0.0001) == n


def test_a_claim_about_exactly_these_never_needs_more_instances_than_one_about_more_like_them() -> None:
    """Drawing without replacement helps, and helps more the smaller the set is; a larger set has a longer pilot."""
    for n in (50, 200, 1000):
        forecast = Forecast(n)
        for epsilon in EPSILONS:
            needed = forecast.needed(epsilon)
            assert needed is not None
            assert forecast.to_run(epsilon) <= min(n, needed + pilot_size(n) - pilot_size(needed))


def test_smaller_goals_smaller_deltas_and_wider_spreads_take_more() -> None:
    """The figures move the way they have to."""
    plain = Forecast(200, 8, 0.1, 0.3)
    assert plain.to_run(0.2) < plain.to_run(0.1) < plain.to_run(0.05)
    assert (plain.needed(0.2) or 0) < (plain.needed(0.1) or 0) < (plain.needed(0.05) or 0)
    assert Forecast(200, 8, 0.01, 0.3).to_run(0.1) > plain.to_run(0.1)
    assert Forecast(200, 8, 0.1, 0.5).to_run(0.1) > plain.to_run(0.1)
    few, many = (Forecast(200, count, 0.1, 0.3, Population.DRAWN) for count in (8, 800))
    assert (few.needed(0.1) or 0) < (many.needed(0.1) or 0)
    assert Forecast(200, 800, 0.1, 0.3).to_run(0.1) == plain.to_run(0.1)


def test_the_sentence_names_both_claims() -> None:
    """What the set can give, and how many instances the other claim takes."""
    told = Forecast(60).sentence(0.05, wait="about 4 min")
    assert told.startswith("exactly these 60: within 0.05 after about 4 min (")
    assert "as a sample of more like them within 0.14 at best, and within 0.05 takes about 431" in told
    assert "within 0.2 with about 42 of them" in Forecast(60).sentence(0.2)
    assert "as a sample of more like them nothing" in Forecast(1).sentence(0.1)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"n_instances": 0}, "number of instances is 0"),
        ({"n_instances": LARGEST_SET + 1}, "number of instances"),
        ({"n_instances": 60, "n_configs": 1}, "number of configurations is 1"),
        ({"n_instances": 60, "delta": 1.0}, "delta"),
        ({"n_instances": 60, "spread": 0.0}, "spread is 0"),
    ],
)
def test_senseless_questions_are_refused(wrong: dict[str, float], words: str) -> None:
    """Each with what was found and what was expected."""
    with pytest.raises(ScenarioError, match=words):
        Forecast(**wrong)  # type: ignore[arg-type] # a dictionary knows no field types


def test_the_command_prints_both_claims_for_people_and_programs() -> None:
    """One table, and one JSON object with the same figures."""
    shown = CliRunner().invoke(app, ["plan", "60", "--epsilon", "0.1"]).stdout
    assert "60      0.1                        48                  116" in shown
    assert "All 60 run: about exactly these epsilon is 0; about more like them within 0.14 at best." in shown
    found = json.loads(CliRunner().invoke(app, ["plan", "60", "--epsilon", "0.1", "--json"]).stdout)
    assert found["epsilons"] == [{"epsilon": 0.1, "these": 48, "drawn": 116}]
    words = ["plan", "60", "--epsilon", "0.1", "--population", "drawn", "--json"]
    on_draws = json.loads(CliRunner().invoke(app, words).stdout)
    assert on_draws["epsilons"] == [{"epsilon": 0.1, "these": 48, "drawn": 175}]
    assert found["instances"] == 60


def test_the_table_in_the_documentation_is_what_the_command_prints() -> None:
    """Every figure of docs/population.md is recomputed."""
    page = (DOCS / "population.md").read_text(encoding="utf-8")
    for found in json.loads(CliRunner().invoke(app, ["plan", "--json"]).stdout):
        cells = [f"{each['these']:,} / {each['drawn']:,}" for each in found["epsilons"]]
        row = f"| {found['instances']:,} | {' | '.join(cells)} | {found['drawn_epsilon']:.2g} |"
        assert row in page, row
