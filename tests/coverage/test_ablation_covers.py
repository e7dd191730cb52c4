"""Intervals of ablation paths cover: a made-up target with known contributions, looked at again and again."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import binom

from captime.arrays import FloatArray
from captime.campaign import explain as module
from captime.campaign.explain import Ablation, ablation, is_decided

DELTA = 0.2
LOOKS = (25, 100)
# What the configurations of the path are worth: steps of +0.3, +0.15, -0.05 and +0.1.
TRUTH = np.array([0.3, 0.6, 0.75, 0.7, 0.8])


def runs(rng: np.random.Generator, n: int) -> tuple[FloatArray, FloatArray]:
    """Ends of the utilities of all configurations on the same instances; some runs were cut."""
    hard = rng.random(n)
    own = rng.random((len(TRUTH), n))
    # Half of the luck is the instance's, half the run's own; either way a run is worth 1 or 0 with the right mean.
    draws = np.where(rng.random((len(TRUTH), n)) < 0.5, hard, own)
    worth = (draws < TRUTH[:, None]).astype(np.float64)
    # Bad runs are cut more often than good ones, and all that is known of them is that they are worth at most 0.3.
    cut = (worth == 0.0) & (rng.random(worth.shape) < 0.3)
    return worth, np.where(cut, 0.3, worth)


def wrong(found: Ablation) -> bool:
    """Whether any of the intervals misses what it speaks about."""
    gain = TRUTH[-1] - TRUTH[0]
    misses = [not found.gain.low <= gain <= found.gain.high]
    misses += [
        not each.low <= truth <= each.high for each, truth in zip(found.steps, np.diff(TRUTH).tolist(), strict=True)
    ]
    for share, truth in zip(found.shares, ((TRUTH[1:-1] - TRUTH[0]) / gain).tolist(), strict=True):
        misses.append(share.low is not None and share.low > truth + 1e-12)
        misses.append(share.high is not None and share.high < truth - 1e-12)
    return any(misses)


def count_misses(trials: int) -> int:
    """In how many worlds any interval is wrong at any look, the look at which it would have stopped included."""
    missed = 0
    for trial in range(trials):
        low, high = runs(np.random.default_rng([23, trial]), LOOKS[-1])
        missed += any(wrong(ablation(low[:, :n], high[:, :n], DELTA, 0.9)) for n in LOOKS)
    return missed


def test_all_intervals_hold_at_once_and_at_every_look() -> None:
    """The gain, every step and every share together are wrong no more often than delta allows."""
    assert count_misses(60) <= binom.isf(1e-6, 60, DELTA)


@pytest.mark.slow
def test_all_intervals_hold_at_once_in_many_worlds(record_property: Callable[[str, object], None]) -> None:
    """The same at full size, with the rate on record."""
    missed = count_misses(1_000)
    record_property("any interval", missed / 1_000)
    assert missed <= binom.isf(1e-6, 1_000, DELTA)


def test_the_test_has_teeth(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ends that each take a hundred times their share of delta are caught by the same count."""
    monkeypatch.setattr(module, "log_inverse_of", lambda delta, ends: 0.1)
    assert count_misses(60) > binom.isf(1e-6, 60, DELTA)


def test_stopping_when_it_looks_decided_is_allowed() -> None:
    """The moment at which a share is known closely is chosen by the runs themselves, and the share is right."""
    missed = stopped = 0
    for trial in range(12):
        low, high = runs(np.random.default_rng([29, trial]), 1_500)
        high = low  # no run was cut: shares become narrow
        for n in (100, 300, 700, 1_500):
            if is_decided(low[:, :n], high[:, :n], DELTA, carry=0.9, within=0.6, least=0.01):
                stopped += 1
                missed += wrong(ablation(low[:, :n], high[:, :n], DELTA, 0.9))
                break
    assert stopped >= 10
    assert missed <= binom.isf(1e-6, 12, DELTA)
