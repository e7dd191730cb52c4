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
from captime.spaces import ArrivalOrder, Proposer, Space, order_for, read_space_section
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
        self.proposals = proposer.proposals
        self.worths: list[float] = []

    def origin(self, index: int) -> str:
        """Of the proposer."""
        return self._proposer.origin(index)

    def propose(self, index: int, *what: object) -> dict[str, object]:
        """Of the proposer."""
        made = self._proposer.propose(index, *what)  # type: ignore[arg-type] # what a simulation tells it
        self.worths.append(float(self._target.worths([made], UTILITY)[0]))
        return made  # type: ignore[return-value] # values of a space


def proposer_for(space: Space, seed: int, order: ArrivalOrder) -> Proposer:
    """A proposer that brings draws and proposals in that order."""
    return Proposer(space, seed, draws_first=order.draws_first, proposals=order.proposals)


def campaign(space: Space, seed: int, effort: str) -> bool:
    """Search a landscape of its own; return whether any certificate was false."""
    target = MadeUp(space, 10.0, seed=seed)
    everywhere = _everywhere(target)
    made, false = Remembers(proposer_for(space, seed, order_for(effort)), target), []

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


def misses(target: MadeUp, everywhere: FloatArray, seed: int, order: ArrivalOrder, *, planted: bool) -> bool:
    """Whether the draws miss the luckiest share that they are said to meet, after any number of newcomers.

    Args:
        target: A landscape.
        everywhere: What random configurations are worth there, in increasing order.
        seed: Of the draws.
        order: Of draws and proposals.
        planted: Count proposals as draws.
    """
    space = here()
    proposer, gammas = proposer_for(space, seed, order), GammaBets(DRAWS * DELTA, GAMMA)
    needed = gammas.draws_for(GAMMA) + 1
    worths = target.worths([space.draw(seed, number) for number in range(needed)], UTILITY)
    size, draws = proposer.n_listed, 0
    while draws < needed:
        size += 1
        draws += proposer.origin(size - 1) == "random"
        share = gammas.after(size - proposer.n_listed if planted else draws) + TOLERANCE
        if share < 1.0 and worths[:draws].max() < everywhere[int((1.0 - share) * REFERENCE)]:
            return True
    return False


def here() -> Space:
    """The space of all landscapes."""
    return read_space_section(SECTION, "here", Path())


def missed(order: ArrivalOrder, *, planted: bool) -> int:
    """Count the campaigns, of 400, whose draws miss what they are said to meet."""
    target = MadeUp(here(), 10.0, seed=1)
    everywhere = _everywhere(target)
    return sum(misses(target, everywhere, seed, order, planted=planted) for seed in range(400))


@pytest.mark.parametrize("effort", ["search", "balanced"])
def test_draws_of_a_surrogate_meet_what_they_are_said_to_meet(effort: str) -> None:
    """In the order in which a proposer brings draws and proposals."""
    assert missed(order_for(effort), planted=False) <= limit_for(400, DRAWS * DELTA)


@pytest.mark.parametrize("proposals", [1, 3])
def test_counting_proposals_as_draws_is_caught(proposals: int) -> None:
    """With few draws before the first proposal: the more of them there are, the less the error shows."""
    assert missed(ArrivalOrder(4, proposals), planted=True) > limit_for(400, DRAWS * DELTA)


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
