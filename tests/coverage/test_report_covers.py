"""What a report calls certain is: bands, intervals and duels miss no more often than delta, at any look.

Worlds with known laws, captimes drawn as the race draws them. The event counted is the strongest one: anything wrong,
anywhere, at any look. Twins that cheat, with a third of every width, must fail the same test.
"""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import binom, lognorm

from captime.arrays import FloatArray
from captime.plans import RandomCaptimes, Schedule
from captime.report.known_runs import ANSWERED, CUT, FAILED, CaptimeDraws, KnownRuns, scores_of
from captime.report.ledger_data import LedgerData, ProgressCurve
from captime.report.views.duel import duel
from captime.report.views.runtimes import distributions
from captime.report.views.whatif import expected
from captime.utilities import parse_utility

UTILITY = parse_utility("log-laplace(10, 1)")
OTHERS = tuple(parse_utility(text) for text in ("step(5)", "uniform(40)", "exponential(0.2)"))
DELTA = 0.1
CENTRES, FAILURES = (2.0, 2.6), (0.0, 0.15)
LOOKS = (64, 150, 300)
TIMES = 100
_FINE = np.geomspace(1e-3, 1e5, 40_001)


def truth(config: int, moments: FloatArray) -> FloatArray:
    """P(T < s); T is lognormal, or never."""
    return np.asarray((1.0 - FAILURES[config]) * lognorm.cdf(moments, 1.0, scale=math.exp(CENTRES[config])))


def worth(config: int, utility: object) -> float:
    """The expected utility, integrated finely."""
    falls = -np.diff(utility(_FINE))  # type: ignore[operator] # any of the utilities above
    return float((truth(config, np.sqrt(_FINE[1:] * _FINE[:-1])) * falls).sum())


def world(seed: int) -> tuple[KnownRuns, CaptimeDraws]:
    """Two configurations on the same positions."""
    rng = np.random.default_rng((20260, seed))
    n = LOOKS[-1]
    plan = RandomCaptimes(UTILITY, seed, Schedule(1.25), Schedule(400.0))
    position = np.tile(np.arange(n), 2)
    config = np.repeat(np.arange(2), n)
    captime = plan.captime(np.zeros(2 * n, dtype=np.int64), position)
    seconds = np.exp(np.array(CENTRES)[config] + rng.standard_normal(2 * n))
    fails = rng.random(2 * n) < np.array(FAILURES)[config]
    kind = np.where(fails & (seconds < captime), FAILED, np.where(seconds < captime, ANSWERED, CUT))
    ones, zeros = np.ones(2 * n, dtype=np.int64), np.zeros(2 * n)
    runs = KnownRuns(config, position, kind, np.minimum(seconds, captime), captime, -ones, zeros, ones, zeros)
    return runs, CaptimeDraws(RandomCaptimes(UTILITY, seed, Schedule(1.25), Schedule(math.inf)))


@dataclass
class Misses:
    """How many repetitions had something wrong."""

    band: int = 0
    utilities: int = 0
    intervals: int = 0
    duels: int = 0


def _narrow(low: FloatArray, middle: FloatArray, high: FloatArray, share: float) -> tuple[FloatArray, FloatArray]:
    return middle - share * (middle - low), middle + share * (high - middle)


def count_misses(share: float) -> Misses:
    """Repetitions in which a width times `share` was too narrow, by kind of statement."""
    missed = Misses()
    wanted = [worth(config, UTILITY) for config in range(2)]
    others = [[worth(config, utility) for config in range(2)] for utility in OTHERS]
    nothing = np.empty(0)
    progress = ProgressCurve(nothing, nothing, nothing, nothing.astype(np.int64), nothing.astype(np.int64))
    for seed in range(TIMES):
        runs, lottery = world(seed)
        wrong = [False] * 4
        for look in LOOKS:
            shown = runs.where(np.flatnonzero(runs.position < look))
            scores = scores_of(shown, 2, UTILITY, lottery, DELTA)
            story = LedgerData(
                Path("world"), ["a", "b"], progress, None, runs=shown, scores=scores, utility=UTILITY, lottery=lottery
            )
            known = distributions(story)
            assert known is not None
            real = np.stack([truth(config, known.moments) for config in range(2)])
            centre = np.where(np.isnan(known.estimate), real, known.estimate)
            low, high = _narrow(known.lower, centre, known.upper, share)
            wrong[0] |= bool(((real < low - 1e-9) | (real > high + 1e-9)).any())
            for utility, exact in zip(OTHERS, others, strict=True):
                _, least, most = expected(known, utility)
                wrong[1] |= bool((least > np.array(exact) + 1e-6).any() or (most < np.array(exact) - 1e-6).any())
            low, high = _narrow(scores.lower, scores.estimate, scores.upper, share)
            wrong[2] |= bool((low > np.array(wanted)).any() or (high < np.array(wanted)).any())
            fought = duel(story, 0, 1)
            assert fought is not None
            ends = _narrow(np.array(fought.lower), np.array(fought.estimate), np.array(fought.upper), share)
            wrong[3] |= not float(ends[0]) <= wanted[0] - wanted[1] <= float(ends[1])
        missed.band += wrong[0]
        missed.utilities += wrong[1]
        missed.intervals += wrong[2]
        missed.duels += wrong[3]
    return missed


def test_bands_intervals_and_duels_hold_and_their_cheating_twins_do_not() -> None:
    """Each kind of statement fails at most as often as delta allows; with a third of the width it fails often."""
    limit = int(binom.isf(1e-6, TIMES, DELTA))
    honest, cheating = count_misses(1.0), count_misses(1.0 / 3.0)
    assert max(honest.band, honest.utilities, honest.intervals, honest.duels) <= limit
    assert min(cheating.band, cheating.intervals, cheating.duels) > limit


def test_the_band_for_late_captimes_alone_would_be_wrong_if_the_data_chose_them() -> None:
    """Choosing runs by how long they took is what drawn captimes are not: such a band misses the truth."""
    missed = 0
    for seed in range(20):
        runs, lottery = world(seed)
        own = runs.of(0)
        # A cheat: captimes that are as long as the run, as if answers had chosen them.
        chosen = np.where(own.kind == ANSWERED, own.seconds * 1.0001, own.captime)
        bad = KnownRuns(
            own.config, own.position, own.kind, own.seconds, chosen, own.verdict, own.cost, own.attempts, own.spent
        )
        nothing = np.empty(0)
        progress = ProgressCurve(nothing, nothing, nothing, nothing.astype(np.int64), nothing.astype(np.int64))
        known = distributions(LedgerData(Path("w"), ["a"], progress, None, runs=bad, utility=UTILITY, lottery=lottery))
        assert known is not None
        real = truth(0, known.moments)
        missed += bool(((known.lower[0] > real + 1e-9) | (known.upper[0] < real - 1e-9)).any())
    assert missed >= 15
