"""A12: instances in an order that means something are found out by the trend in the leader's runs."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

from campaign_stand_ins import folder, ledger_in, question_on, virtual_slots
from captime.arrays import FloatArray
from captime.campaign import run_campaign
from captime.report.campaigned import campaign_json, summary_and_table
from captime.report.known_runs import ANSWERED, CUT, STOPPED, KnownRuns
from captime.report.ledger_data import Trend, rank_correlation, read_story, trend_of
from captime.report.ledger_words import assumptions_on_record
from captime.sources import RuntimeTable

__all__ = ["folder"]

MANY = 300


def made(times: FloatArray, captimes: FloatArray) -> KnownRuns:
    """Runs of one configuration that would take so long, on one position after the other."""
    count = len(times)
    none, zeros = np.zeros(count, dtype=np.int64), np.zeros(count)
    kind = np.where(times < captimes, ANSWERED, CUT)
    return KnownRuns(
        config=none,
        position=np.arange(count),
        kind=kind,
        seconds=np.minimum(times, captimes),
        captime=captimes,
        verdict=none,
        cost=zeros,
        attempts=none + 1,
        spent=zeros,
    )


def rising_captimes(rng: np.random.Generator, times: FloatArray) -> FloatArray:
    """Longer and longer, as in a campaign that becomes sure of its leader."""
    return rng.exponential(size=len(times)) * np.linspace(0.5, 4.0, len(times))


def captimes_from_the_past(rng: np.random.Generator, times: FloatArray) -> FloatArray:
    """Longer after long runs: no rule may look at the run itself, but every rule looks at those before it."""
    before = np.concatenate(([1.0], np.cumsum(times)[:-1] / np.arange(1, len(times))))
    return rng.exponential(size=len(times)) * before * np.linspace(3.0, 0.5, len(times))


@pytest.mark.parametrize("captimes", [rising_captimes, captimes_from_the_past])
def test_captimes_that_change_are_no_trend(captimes: object) -> None:
    """At most one alarm in two hundred campaigns, of which one in ten thousand should have one."""
    assert callable(captimes)
    alarms = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        times = rng.lognormal(sigma=1.5, size=MANY)
        alarms += trend_of(made(times, captimes(rng, times))) is not None
    assert alarms <= 1


@pytest.mark.parametrize("slope", [1.5, -1.5])
def test_a_trend_is_found_although_most_runs_are_cut(slope: float) -> None:
    """In either direction, and with its sign."""
    rng = np.random.default_rng(5)
    times = rng.lognormal(sigma=0.8, size=MANY) * np.exp(slope * np.linspace(-1, 1, MANY))
    found = trend_of(made(times, rng.exponential(size=MANY)))
    assert found is not None
    assert np.sign(found.rank_correlation) == np.sign(slope)
    assert ("longer" if slope > 0 else "shorter") in found.words


def test_a_leader_that_was_lucky_at_first_is_no_trend() -> None:
    """Of a thousand configurations that are all alike, the one that was fastest on the first thirty instances."""
    alarms = {1: 0, 1000: 0}
    for seed in range(100):
        rng = np.random.default_rng(seed)
        times = rng.lognormal(sigma=1.5, size=(1000, 80))
        luckiest = int(np.argmin(np.log(times[:, :30]).mean(axis=1)))
        for among in alarms:
            alarms[among] += trend_of(made(times[luckiest], np.full(80, 10.0)), among) is not None
    assert alarms[1000] == 0
    assert alarms[1] > 0


def test_too_few_runs_and_runs_that_are_all_alike_say_nothing() -> None:
    """Nor do runs that were stopped before it could be seen how long they take."""
    assert trend_of(made(np.arange(1.0, 51.0), np.full(50, 100.0))) is None
    assert trend_of(made(np.full(MANY, 5.0), np.full(MANY, 1.0))) is None
    stopped = made(np.linspace(1.0, 2.0, MANY), np.full(MANY, 0.5))
    stopped.kind[:] = STOPPED
    stopped.seconds[:] = 0.1
    assert trend_of(stopped) is None


def table_with(times: FloatArray) -> RuntimeTable:
    """Two configurations, one of them twice as fast; in this order."""
    names = [f"i{place}" for place in range(len(times))]
    return RuntimeTable.build("made", ["fast", "slow"], names, np.stack([times, 2 * times]), recorded_limit=900.0)


@pytest.mark.parametrize("sorted_by_size", [False, True])
def test_a_campaign_on_sorted_instances_says_so(folder: Path, sorted_by_size: bool) -> None:
    """With its result, for programs, and in its report; shuffled, the same instances raise no doubt."""
    times = np.random.default_rng(1).lognormal(2.0, 1.0, size=1000)
    table = table_with(np.sort(times) if sorted_by_size else times)
    question = question_on(table, epsilon=0.03)
    question = replace(question, identity={**question.identity, "procedure": "race"})
    result = run_campaign(question, ledger_in(folder), make_executor=virtual_slots(table, 1))
    summary, rows = summary_and_table(result)
    told = list(summary.warnings)
    standing = assumptions_on_record(read_story(result.ledger))[0]
    assert campaign_json(result, summary, rows)["warnings"] == told
    assert [("along the stream" in text) for text in told] == [True] * sorted_by_size
    assert (standing.standing == "doubtful") == sorted_by_size
    assert ("along the stream" in standing.words) == sorted_by_size


def test_the_words_give_the_numbers() -> None:
    """What was seen, how likely it is by chance, and what to ask oneself."""
    words = Trend(0.314, 2.2e-7, 812).words
    assert "+0.31 over 812 runs; by chance 2e-07" in words
    assert "random" not in words
    assert "?" in words


@pytest.mark.parametrize("lean", [-3.0, -0.2, 0.0, 0.5, 50.0])
def test_the_rank_correlation_is_the_one_of_scipy(lean: float) -> None:
    """Correlation and chance, with ties and without; a perfect order is possible too."""
    rng = np.random.default_rng(7)
    position = rng.permutation(90)
    for times in (
        lean * position + rng.normal(0.0, 20.0, 90),
        np.round(lean * position / 9.0) + rng.integers(0, 3, 90),
    ):
        expected = spearmanr(position, times)
        assert rank_correlation(position, times) == pytest.approx((expected.statistic, expected.pvalue), rel=1e-9)
    assert rank_correlation(position, 2 * position) == pytest.approx((1.0, 0.0))
