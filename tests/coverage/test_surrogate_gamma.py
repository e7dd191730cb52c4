"""What is said about a space holds on surrogates too, with real proposals, whichever effort is asked for.

The law of a surrogate is known, so every statement of a campaign can be compared with the truth: at most a share gamma
of the space is better than the named configuration by more than epsilon, and one of the draws so far is among the
luckiest gamma. The reduced size runs always; with `-m slow` it is 400 campaigns for each effort.
"""

from dataclasses import dataclass
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
REFERENCE, TOLERANCE = 20_000, 0.01
SECTION: dict[str, object] = {
    **{f"x{place}": {"type": "float", "low": 0.0, "high": 1.0, "default": 0.5} for place in range(4)},
    "mode": {"type": "categorical", "choices": ["a", "b", "c"], "default": "a"},
}


@dataclass
class Told:
    """What was wrong in a campaign, at any moment.

    Attributes:
        certificate: Whether more than gamma of the space was better than the named configuration by more than epsilon.
        draws: Whether none of the draws was among the luckiest gamma.
        planted: The same, had proposals been counted as draws.
    """

    certificate: bool = False
    draws: bool = False
    planted: bool = False


class Remembers:
    """A proposer whose configurations can be looked up, with what they are worth."""

    def __init__(self, proposer: Proposer, target: MadeUp) -> None:
        self._proposer, self._target = proposer, target
        self.n_listed, self.model, self.draws_first = proposer.n_listed, proposer.model, proposer.draws_first
        self.worths: list[float] = []
        self.random: list[bool] = []

    def origin(self, index: int) -> str:
        """Of the proposer."""
        return self._proposer.origin(index)

    def propose(self, index: int, *what: object) -> dict[str, object]:
        """Of the proposer."""
        made = self._proposer.propose(index, *what)  # type: ignore[arg-type] # what a simulation tells it
        self.worths.append(float(self._target.worths([made], UTILITY)[0]))
        self.random.append(self.origin(index) == "random")
        return made  # type: ignore[return-value] # values of a space


def campaign(space: Space, seed: int, effort: str) -> Told:
    """Search a landscape of its own, and compare every certificate with the truth."""
    target = MadeUp(space, 10.0, seed=seed)
    everywhere: FloatArray = np.sort(target.worths(target.anyone(REFERENCE), UTILITY))
    made, told = Remembers(Proposer(space, seed), target), Told()
    gammas = GammaBets(DRAWS * DELTA, GAMMA)

    def missed(count: int) -> bool:
        """Whether the draws so far miss the luckiest share that so many draws are said to meet."""
        share = gammas.after(count) + TOLERANCE
        best = max((worth for worth, drawn in zip(made.worths, made.random, strict=True) if drawn), default=0.0)
        return bool(share < 1.0 and best < everywhere[int((1.0 - share) * REFERENCE)])

    def look(procedure: Procedure, _: Replay) -> None:
        held = procedure.certificate()
        better = 1.0 - np.searchsorted(everywhere, made.worths[held.config] + held.epsilon) / REFERENCE
        told.certificate |= bool(held.epsilon < 1.0 and better > (held.gamma or 0.0) + TOLERANCE)
        told.draws |= missed(sum(made.random))
        told.planted |= missed(len(made.random) - made.n_listed)

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
    return told


def check(campaigns: int, effort: str) -> list[Told]:
    """Right statements fail as often as their share of delta allows at most."""
    space = read_space_section(SECTION, "here", Path())
    told = [campaign(space, seed, effort) for seed in range(campaigns)]
    assert sum(each.certificate for each in told) <= limit_for(campaigns, DELTA)
    assert sum(each.draws for each in told) <= limit_for(campaigns, DRAWS * DELTA)
    return told


def test_statements_about_a_surrogate_hold() -> None:
    """With the proposals of a search. test_pool_planted_errors.py plants the error at this size."""
    check(20, "search")


@pytest.mark.slow
@pytest.mark.parametrize("effort", ["search", "balanced", "certify"])
def test_statements_about_many_surrogates_hold(effort: str) -> None:
    """The same, 400 times for each effort; had proposals been counted as draws, it would be seen."""
    told = check(400, effort)
    assert sum(each.planted for each in told) > limit_for(400, DRAWS * DELTA)
