import itertools
import math
import re
from pathlib import Path

import numpy as np
import pytest

from captime.arrays import FloatArray
from captime.bounds.mixture import PairedMixture, log_wealth, mixture_lower, mixture_upper
from captime.plans import RandomCaptimes, Schedule
from captime.utilities import parse_utility

PAGE = (Path(__file__).parents[2] / "docs" / "engine.md").read_text(encoding="utf-8")
EXAMPLE = PAGE.partition("\n## A worked example\n")[2].partition("\n## ")[0]
PROSE = " ".join(EXAMPLE.split())

LONGEST = 54.0
LEVEL = math.log(5.0)
SHARES = np.array([0.25, 0.75])
FRACTIONS = np.array([0.25, 0.5])


def rows(heading: str) -> list[list[str]]:
    """The cells of the table whose first heading is this word."""
    lines = itertools.dropwhile(lambda line: not line.startswith(f"| {heading} |"), EXAMPLE.splitlines())
    table = itertools.takewhile(lambda line: line.startswith("|"), lines)
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table][2:]


def column(index: int) -> FloatArray:
    """One column of the table of runs; a crash never finishes."""
    return np.array([math.inf if row[index] == "crash" else float(row[index]) for row in rows("j")])


def rounds_to(text: str, value: float) -> bool:
    """Whether three decimals of the value may be printed like this, halves either way."""
    return re.fullmatch(r"\d+\.\d{3}", text) is not None and abs(float(text) - value) <= 0.0005 + 1e-12


def plan() -> RandomCaptimes:
    """The example's own captimes."""
    made = RandomCaptimes(parse_utility("uniform(60)"), 0, Schedule(1.0), Schedule(LONGEST))
    made._draws = column(1)
    return made


def scores(seconds: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Low and high ends as the plan gives them."""
    captimes, position = plan(), np.arange(len(seconds))
    _, low, high = captimes.settled(seconds, captimes.utility(seconds), np.zeros_like(position), position)
    return low, high


LEADER, _ = scores(column(3))
LOW, HIGH = scores(column(5))


def test_the_captimes_follow_from_the_draws() -> None:
    """K = 60 (1 - v), and no run gets more than 54 s."""
    position = np.arange(10)
    found = plan().captime(np.zeros_like(position), position)
    np.testing.assert_allclose(found, np.minimum(column(2), LONGEST), rtol=1e-12)
    np.testing.assert_allclose(column(2), 60.0 * (1.0 - column(1)), rtol=1e-12)
    assert f"more than {LONGEST:g} s" in PROSE


def test_the_scores_follow_from_captimes_and_runtimes() -> None:
    """Both configurations, interval ends and differences, as printed."""
    assert len(rows("j")) == 10
    assert column(4).tolist() == LEADER.tolist()
    assert column(6).tolist() == LOW.tolist()
    assert column(7).tolist() == HIGH.tolist()
    assert column(8).tolist() == (HIGH - LEADER).tolist()


def test_the_means_by_hand_are_the_worths() -> None:
    """A run of 45 s with B = 1 and 2, a run of 15 s with B = 2: chance times score."""
    worth = parse_utility("uniform(60)")
    late, soon = worth(np.array([45.0, 15.0])).tolist()
    assert (late, soon) == (0.25, 0.75)
    assert min(1.0, 1.0 * late) * max(late, 1.0) == late
    assert min(1.0, 2.0 * late) * max(late, 0.5) == late
    assert min(1.0, 2.0 * soon) * max(soon, 0.5) == soon
    assert "A run of 45 s is worth 0.25." in PROSE
    assert "A run of 15 s is worth 0.75" in PROSE


def test_the_wealth_grows_as_printed() -> None:
    """Each gambler by plain multiplication, and the mixture as the bound computes it."""
    printed = rows("after")
    assert [int(row[0]) for row in printed] == list(range(1, 11))
    for n, (_, score, small, large, whole) in enumerate(printed, start=1):
        each = [float(np.prod(1.0 - b + b * LEADER[:n] / 0.25)) for b in SHARES]
        assert float(score) == LEADER[n - 1]
        assert rounds_to(small, each[0])
        assert rounds_to(large, each[1])
        assert rounds_to(whole, sum(each) / 2.0)
        assert math.exp(log_wealth(LEADER[:n], 0.25, SHARES)) == pytest.approx(sum(each) / 2.0, rel=1e-12)


def test_the_lower_bound_of_the_leader_is_as_printed() -> None:
    """From ten positions, the best of all moments, and the wealth on both sides of the first."""
    bound = [mixture_lower(LEADER[:n], LEVEL, SHARES) for n in range(1, 11)]
    around = [math.exp(log_wealth(LEADER, q, SHARES)) for q in (0.37, 0.38)]
    assert f"W(0.37) = {around[0]:.3f} and W(0.38) = {around[1]:.3f}" in PROSE
    assert around[0] >= 5.0 > around[1]
    assert f"the lower bound from ten positions is {bound[-1]:.3f}. After six it was {bound[5]:.3f}" in PROSE
    assert max(bound) == bound[5]


def test_the_upper_bound_of_the_challenger_is_as_printed() -> None:
    """From ten positions, the best of all moments, and what a stopped run counted as 0 would have pretended."""
    bound = [mixture_upper(HIGH[:n], LEVEL, SHARES) for n in range(1, 11)]
    wealth = [float(np.prod(1.0 - b + b * (1.0 - HIGH) / 0.2)) for b in SHARES]
    np.testing.assert_allclose(wealth, [20.25, 16.0], rtol=1e-12)
    assert "(20.25 + 16)/2 = 18.125" in PROSE
    assert f"The bound from ten positions is {bound[-1]:.3f}; the best, after eight, is {bound[7]:.3f}." in PROSE
    assert min(bound) == bound[7]
    assert f"the bound from ten would be {mixture_upper(LOW, LEVEL, SHARES):.3f}" in PROSE


def test_the_duel_is_as_printed() -> None:
    """E by plain multiplication and by the code, after eight positions and after ten."""
    printed = {float(row[0]): row[1:] for row in rows("ε")}
    difference = HIGH - LEADER
    mixture = PairedMixture(np.array([-1.0, 0.0, 1.0]), np.array(list(printed)), FRACTIONS)
    for place, n in enumerate((8, 10)):
        counts = np.bincount(mixture.bin_up(difference[:n]), minlength=3)[None, :]
        wealth = np.exp(mixture.log_wealth(counts))[0]
        for known, (margin, cells) in zip(wealth.tolist(), printed.items(), strict=True):
            each = [float(np.prod(1.0 + f * (margin - difference[:n]) / (1.0 - margin))) for f in FRACTIONS]
            assert rounds_to(cells[place], sum(each) / 2.0), f"{margin} after {n}: {sum(each) / 2.0}"
            assert known == pytest.approx(sum(each) / 2.0, rel=1e-12)
        assert float(mixture.smallest_margin(counts, np.array([LEVEL]))[0]) == (0.1 if n == 8 else 0.2)
    factors = [f"{1.0 + f * (0.2 - d) / 0.8:g}" for f in FRACTIONS for d in (-1.0, 0.0, 1.0)]
    assert "are {}, {}, {} with f = 1/4, and {}, {}, {} with f = 1/2.".format(*factors) in PROSE


def test_the_difference_of_the_own_bounds_is_as_printed() -> None:
    """Upper minus lower, from the rounded numbers that the reader sees."""
    upper = min(mixture_upper(HIGH[:n], LEVEL, SHARES) for n in range(1, 11))
    lower = max(mixture_lower(LEADER[:n], LEVEL, SHARES) for n in range(1, 11))
    assert f"{upper:.3f} - {lower:.3f} = {upper - lower:.3f}" in PROSE


def test_no_number_of_the_example_has_more_digits_than_were_checked() -> None:
    """Whatever is printed with three decimals or more is checked above; nothing else has as many."""
    by_hand = {"0.125", "18.125", "1.375", "1.0625", "1.125"}
    checked = {cell for heading in ("after", "ε") for row in rows(heading) for cell in row}
    bounds = {"5.005", "4.413", "0.370", "0.441", "0.730", "0.604", "0.630", "0.163"}
    assert set(re.findall(r"\d+\.\d{3,}", EXAMPLE)) <= by_hand | checked | bounds
