"""The table of configurations: estimates with capped runs in them, and the same value wherever it is shown."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from captime.cli import app
from captime.report.configurations import (
    Candidacy,
    ConfigurationTable,
    Median,
    MedianKind,
    Ratio,
    answered_share,
    as_html,
    as_markdown,
    as_text,
    median_words,
    ratio_words,
    table_of_story,
    time_ratio,
)
from captime.report.known_runs import ANSWERED, CUT, FAILED, STOPPED, KnownRuns
from captime.report.ledger_data import read_story
from captime.utilities import parse_utility
from report_ledgers import PAYLOADS, hand_written, raced_ledger

UTILITY = parse_utility("uniform(60)")


def runs_of(*ends: tuple[int, float, float]) -> KnownRuns:
    """Runs of one configuration on positions 0, 1, …, each as (kind, seconds, captime)."""
    n = len(ends)
    kind, seconds, captime = (np.array(column) for column in zip(*ends, strict=True))
    whole = np.zeros(n, dtype=np.int64)
    return KnownRuns(
        config=whole,
        position=np.arange(n),
        kind=kind.astype(np.int64),
        seconds=seconds.astype(np.float64),
        captime=captime.astype(np.float64),
        verdict=whole - 1,
        cost=seconds.astype(np.float64),
        attempts=whole + 1,
        spent=seconds.astype(np.float64),
    )


def answered(*seconds: float) -> KnownRuns:
    """Runs that all answered."""
    return runs_of(*((ANSWERED, each, 1000.0) for each in seconds))


def test_without_capped_runs_the_estimates_are_plain_means_and_medians() -> None:
    """Nothing is censored, so the product limit is the sample itself."""
    share = answered_share(answered(6.0, 12.0, 18.0, 48.0))
    assert share.mean_utility(UTILITY) == pytest.approx(1.0 - 21.0 / 60.0)
    assert share.median() == Median(MedianKind.EXACT, 15.0)
    assert answered_share(answered(6.0, 12.0, 48.0)).median() == Median(MedianKind.EXACT, 12.0)


def test_a_failed_run_is_worth_nothing_and_more_than_half_of_them_leave_no_median() -> None:
    """A failure ends a run for good; it is no capped run, which might still answer."""
    half = answered_share(runs_of((ANSWERED, 6.0, 60.0), (FAILED, 1.0, 60.0)))
    assert half.mean_utility(UTILITY) == pytest.approx(0.45)
    most = answered_share(runs_of((ANSWERED, 6.0, 60.0), (FAILED, 1.0, 60.0), (FAILED, 9.0, 60.0)))
    assert most.median().kind is MedianKind.NEVER


def test_capped_runs_hide_a_median_or_leave_it() -> None:
    """Two of five were cut after the median; three of four before it."""
    seen = answered_share(runs_of(*((ANSWERED, t, 9.0) for t in (1.0, 2.0, 3.0)), (CUT, 9.0, 9.0), (CUT, 9.0, 9.0)))
    assert seen.median() == Median(MedianKind.EXACT, 3.0)
    hidden = answered_share(runs_of((ANSWERED, 1.0, 9.0), *((CUT, 9.0, 9.0),) * 3))
    assert hidden.median() == Median(MedianKind.AT_LEAST, 9.0)
    assert answered_share(runs_of((STOPPED, 0.0, 9.0))).median().kind is MedianKind.UNKNOWN


def test_one_run_does_not_stand_for_many_that_were_capped() -> None:
    """Seven were cut early and one answered late: half of the instances are not known to be answered by then."""
    share = answered_share(runs_of(*((CUT, 1.0, 1.0),) * 7, (ANSWERED, 8.0, 9.0)))
    assert share.median() == Median(MedianKind.AT_LEAST, 8.0)
    assert share.mean_utility(UTILITY) == pytest.approx((1.0 - 8.0 / 60.0) / 2.0)


def test_random_captimes_do_not_bias_the_estimates() -> None:
    """Times of an exponential law, cut by an independent one: truth is known, and ignoring capped runs misses it."""
    rng = np.random.default_rng(5)
    times, captimes = rng.exponential(20.0, 40_000), rng.exponential(30.0, 40_000)
    fails = rng.random(40_000) < 0.2
    kind = np.where(times >= captimes, CUT, np.where(fails, FAILED, ANSWERED))
    share = answered_share(runs_of(*zip(kind, np.minimum(times, captimes), captimes, strict=True)))
    truth = 0.8 * np.where(times < 60.0, 1.0 - times / 60.0, 0.0).mean()
    assert share.mean_utility(UTILITY) == pytest.approx(truth, abs=0.01)
    # 80 % answer; half of all are answered once 5/8 of those are.
    assert share.median().seconds == pytest.approx(20.0 * math.log(8.0 / 3.0), rel=0.03)
    naive = UTILITY(np.minimum(times, captimes)[kind == ANSWERED]).mean()
    assert abs(naive - truth) > 0.1


def test_the_time_ratio_is_a_number_or_a_bound() -> None:
    """A run that was cut took longer than was seen; how much longer stays open."""
    leader = answered(1.0, 2.0, 3.0)
    assert time_ratio(answered(2.0, 4.0, 6.0), leader) == Ratio(2.0, 2.0, 3)
    cut = runs_of((CUT, 4.0, 4.0), (CUT, 4.0, 4.0), (ANSWERED, 3.0, 4.0))
    assert time_ratio(cut, leader) == Ratio(2.0, math.inf, 3)
    assert time_ratio(leader, cut) == Ratio(0.0, 0.5, 3)
    failing = runs_of(*((FAILED, 0.1, 4.0),) * 3)
    assert ratio_words(time_ratio(failing, leader)) == "never"
    assert ratio_words(time_ratio(failing, failing)) == "–"
    assert time_ratio(leader, answered(5.0)).common == 1


def test_pairs_with_short_captimes_are_left_out_where_that_decides_the_ratio() -> None:
    """Ten pairs that were cut at once say nothing; the ten with longer captimes are as fair a sample."""
    short, long = ((CUT, 0.1, 0.1),) * 10, range(1, 11)
    slow = runs_of(*short, *((ANSWERED, 3.0 * t, 100.0) for t in long))
    fast = runs_of(*short, *((ANSWERED, 1.0 * t, 100.0) for t in long))
    assert time_ratio(slow, fast) == Ratio(3.0, 3.0, 20)


def test_words_for_medians_and_ratios() -> None:
    """A number is printed as one; what capped runs hide has ">=" before it."""
    assert median_words(Median(MedianKind.EXACT, 0.0124)) == "12.4 ms"
    assert median_words(Median(MedianKind.AT_LEAST, 90.0)) == ">= 1.5 min"
    assert median_words(Median(MedianKind.NEVER)) == "never"
    assert ratio_words(Ratio(0.5, math.inf, 3)) == ">= 0.50"
    assert ratio_words(Ratio(0.0, 0.5, 3)) == "<= 0.50"
    assert ratio_words(None) == "1"


@pytest.fixture
def by_hand(tmp_path: Path) -> ConfigurationTable:
    """The table of a ledger whose rows are known."""
    path = tmp_path / "hand.ledger"
    hand_written(path).close()
    return table_of_story(read_story(path))


def test_the_rows_of_a_known_ledger(by_hand: ConfigurationTable) -> None:
    """The leader comes first; runs are counted once, by how they ended."""
    rows = {row.name: row for row in by_hand}
    assert by_hand.rows[0].name == "fast"
    fast, slow, crashing = rows["fast"], rows["slow"], rows["crashing"]
    assert (fast.candidacy, slow.candidacy, crashing.candidacy) == (Candidacy.LEADER, Candidacy.IN, Candidacy.OUT)
    assert (fast.runs, fast.answered, fast.capped, fast.failed, fast.unfinished) == (4, 4, 0, 0, 0)
    assert (slow.runs, slow.answered, slow.capped, slow.failed, slow.unfinished) == (4, 1, 1, 0, 2)
    assert (crashing.answered, crashing.failed, crashing.unfinished) == (1, 2, 1)
    assert fast.utility == pytest.approx(1.0 - 2.5 / 60.0)
    assert fast.median == Median(MedianKind.EXACT, 2.5)
    assert fast.ratio is None


def test_estimates_lie_in_their_intervals() -> None:
    """What is shown as an interval has its estimate inside, for every configuration of a whole race."""
    table = table_of_story(read_story(raced_ledger()))
    assert len(table) == 12
    assert all(row.lower <= row.utility <= row.upper for row in table)
    assert all(row.runs == row.answered + row.capped + row.failed + row.unfinished for row in table)


def test_status_prints_the_table_and_has_it_as_json(tmp_path: Path) -> None:
    """One value, two shapes."""
    path = tmp_path / "hand.ledger"
    hand_written(path).close()
    told = CliRunner().invoke(app, ["status", str(path)])
    assert told.exit_code == 0
    for line in as_text(table_of_story(read_story(path))).splitlines():
        assert line in told.output
    found = json.loads(CliRunner().invoke(app, ["status", str(path), "--json"]).output)
    assert found["configurations"] == json.loads(json.dumps(table_of_story(read_story(path)).as_json()))


def test_the_table_is_json_without_numbers_that_json_lacks(by_hand: ConfigurationTable) -> None:
    """Infinity and "not a number" become null."""
    text = json.dumps(by_hand.as_json(), allow_nan=False)
    assert {each["name"] for each in json.loads(text)} == {"fast", "slow", "crashing"}
    assert by_hand.columns()["name"][0] == "fast"


@pytest.mark.parametrize("payload", PAYLOADS[:6])
def test_names_stay_text(tmp_path: Path, payload: str) -> None:
    """A name cannot become markup on a page, a cell of Markdown, or a command to the terminal."""
    path = tmp_path / "hand.ledger"
    hand_written(path, (f"{payload}|x", "b\x1b[31m", "c")).close()
    table = table_of_story(read_story(path))
    assert "<script" not in as_html(table).text()
    assert "\x1b" not in as_text(table) + as_markdown(table)
    rule, *lines = as_markdown(table).splitlines()[1:]
    assert all(line.replace("\\|", "").count("|") == rule.count("|") for line in lines)
