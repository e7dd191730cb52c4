"""What is said about a space holds on surrogates too, with real proposals, whichever effort is asked for.

The law of a surrogate is known, so every statement of a campaign can be compared with the truth: at most a share gamma
of the space is better than the named configuration by more than epsilon, and one of the draws so far is among the
luckiest gamma. The reduced size runs always; with `-m slow` it is 400 campaigns for each effort.
"""

from pathlib import Path

import numpy as np
import pytest

from captime.arrays import FloatArray
from captime.procedures.pool_gamma import GammaBets
from captime.procedures.pool_terms import DRAWS
from captime.procedures.protocol import Procedure
from captime.simulation import MadeUp, simulate_on_space
from captime.sources.replay import Replay
from captime.spaces import Proposer, Space, read_space_section
from captime.utilities import parse_utility
from race_harness import limit_for

UTILITY = parse_utility("uniform(60)")
DELTA, EPSILON, GAMMA = 0.05, 0.4, 0.1
# This many random configurations stand for the space; a share of them may miss the true one by this much.
REFERENCE, TOLERANCE = 4_000, 0.02
SECTION: dict[str, object] = {
    **{f"x{place}": {"type": "float", "low": 0.0, "high": 1.0, "default": 0.5} for place in range(4)},
    "mode": {"type": "categorical", "choices": ["a", "b", "c"], "default": "a"},
}


class Remembers:
    """A proposer whose configurations can be looked up, with what they are worth."""

    def __init__(self, proposer: Proposer, target: MadeUp) -> None:
        self._proposer, self._target = proposer, target
        self.n_listed, self.model, self.draws_first = proposer.n_listed, proposer.model, proposer.draws_first
        self.worths: list[float] = []

    def origin(self, index: int) -> str:
        """Of the proposer."""
        return self._proposer.origin(index)

    def propose(self, index: int, *what: object) -> dict[str, object]:
        """Of the proposer."""
        made = self._proposer.propose(index, *what)  # type: ignore[arg-type] # what a simulation tells it
        self.worths.append(float(self._target.worths([made], UTILITY)[0]))
        return made  # type: ignore[return-value] # values of a space


def campaign(space: Space, seed: int, effort: str) -> bool:
    """Search a landscape of its own; return whether any certificate was false."""
    target = MadeUp(space, 10.0, seed=seed)
    everywhere = _everywhere(target)
    made, false = Remembers(Proposer(space, seed), target), []

    def look(procedure: Procedure, _: Replay) -> None:
        held = procedure.certificate()
        better = 1.0 - np.searchsorted(everywhere, made.worths[held.config] + held.epsilon) / REFERENCE
        false.append(held.epsilon < 1.0 and better > (held.gamma or 0.0) + TOLERANCE)

    simulate_on_space(
        made,  # type: ignore[arg-type] # proposes as a maker does
        target,
        utility=UTILITY,
        delta=DELTA,
        epsilon=EPSILON,
        seed=seed,
        options={"gamma": GAMMA, "effort": effort},
        observer=look,
    )
    return any(false)


def _everywhere(target: MadeUp) -> FloatArray:
    """What random configurations are worth, in increasing order."""
    return np.sort(target.worths(target.random_settings(REFERENCE), UTILITY))


def misses(space: Space, target: MadeUp, everywhere: FloatArray, seed: int, *, planted: bool) -> bool:
    """Whether the draws miss the luckiest share that they are said to meet, after any number of newcomers.

    Args:
        space: The space.
        target: Its landscape.
        everywhere: What random configurations are worth there, in increasing order.
        seed: Of the draws.
        planted: Count proposals as draws.
    """
    proposer, gammas = Proposer(space, seed), GammaBets(DRAWS * DELTA, GAMMA)
    needed = gammas.draws_for(GAMMA) + 1
    worths = target.worths([space.draw(seed, number) for number in range(needed)], UTILITY)
    for size in range(proposer.n_listed + 1, proposer.n_listed + needed):
        draws = proposer.random_draws(size)
        share = gammas.after(size - proposer.n_listed if planted else draws) + TOLERANCE
        if share < 1.0 and worths[:draws].max() < everywhere[int((1.0 - share) * REFERENCE)]:
            return True
    return False


def here() -> Space:
    """The space of all landscapes."""
    return read_space_section(SECTION, "here", Path())


def test_draws_of_a_surrogate_meet_what_they_are_said_to_meet() -> None:
    """In the order in which a proposer brings draws and proposals; counting proposals as draws is caught."""
    space, allowed = here(), limit_for(400, DRAWS * DELTA)
    target = MadeUp(space, 10.0, seed=1)
    everywhere = _everywhere(target)
    assert sum(misses(space, target, everywhere, seed, planted=False) for seed in range(400)) <= allowed
    assert sum(misses(space, target, everywhere, seed, planted=True) for seed in range(400)) > allowed


def test_certificates_about_a_surrogate_hold() -> None:
    """With the proposals of a search; test_pool_planted_errors.py plants errors into such a search."""
    wrong = sum(campaign(here(), seed, "search") for seed in range(20))
    assert wrong <= limit_for(20, DELTA)


@pytest.mark.slow
@pytest.mark.parametrize("effort", ["search", "balanced", "certify"])
def test_certificates_about_many_surrogates_hold(effort: str) -> None:
    """The same, 400 times for each effort."""
    wrong = sum(campaign(here(), seed, effort) for seed in range(400))
    assert wrong <= limit_for(400, DELTA)
