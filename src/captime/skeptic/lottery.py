"""Random captimes, drawn again: what every run is worth, from the seed and the rows alone.

The rules are those of docs/engine.md, steps 1 and 2, and are written here a second time on purpose.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from captime.arrays import BoolArray, FloatArray, IntArray
from captime.errors import LedgerDamaged
from captime.skeptic.books import Story
from captime.skeptic.directed import rounded_down, rounded_up
from captime.utilities import Utility

_KEY, _BLOCK = 0x63617074, 4096
# A captime is K rounded to a double, by a formula with several roundings.
_ROUNDED = 1e-9
# Products nearer to each other than this are compared exactly.
_NEAR = 1e-12


@dataclass(slots=True)
class Lottery:
    """The draws of a campaign.

    Args:
        utility: What an answer is worth.
        seed: Key of the draws.
        boost: B.
    """

    utility: Utility
    seed: int
    boost: float

    def draws(self, position: IntArray) -> FloatArray:
        """v_j: number j mod 4096 of the generator keyed by (0x63617074, seed, j div 4096)."""
        drawn = np.empty(len(position))
        for block in np.unique(position // _BLOCK).tolist():
            here = position // _BLOCK == block
            drawn[here] = np.random.default_rng((_KEY, self.seed, block)).random(_BLOCK)[position[here] % _BLOCK]
        return drawn

    def check_captimes(self, config: int, story: Story) -> None:
        """No run may be given more time than was drawn for its position."""
        drawn = self._drawn(story.position)
        wrong = np.flatnonzero(story.captime > drawn * (1.0 + _ROUNDED))
        if len(wrong):
            place = wrong[0]
            raise LedgerDamaged(
                f"row {story.began[place]} gives configuration {config} {story.captime[place]!r} s on position "
                f"{story.position[place]}, but the draw of that position allows {drawn[place]!r} s"
            )

    def _drawn(self, position: IntArray) -> FloatArray:
        return np.asarray(self.utility.inverse(self.draws(position) / self.boost))

    def intervals(self, story: Story) -> tuple[FloatArray, FloatArray]:
        """Between which two numbers each score lies, whatever is still to come."""
        draw = self.draws(story.position)
        least = 1 / Fraction(self.boost)
        answered = ~np.isnan(story.runtime)
        low, high = np.zeros(len(story)), np.zeros(len(story))
        # What is known of a run: when it answered, or until when it was seen unfinished.
        moment = np.where(
            answered, story.runtime, np.where(story.cut, np.minimum(story.captime, story.seen), story.seen)
        )
        worth = np.asarray(self.utility(moment))
        in_time = self._in_time(draw, worth)
        low[answered & in_time] = np.maximum(worth[answered & in_time], rounded_down(least))
        high[in_time] = np.maximum(worth[in_time], rounded_up(least))
        # Stopped at the captime that was drawn: it has come to nothing. That captime is rounded, and a run that would
        # have answered between the rounded and the exact one is not worth a thought.
        reached = story.cut & ~answered & (story.captime >= self._drawn(story.position) * (1.0 - _ROUNDED))
        low[story.failed], high[story.failed | reached] = 0.0, 0.0
        return low, high

    def _in_time(self, draw: FloatArray, worth: FloatArray) -> BoolArray:
        """V < B·u(t), exactly."""
        product = self.boost * worth
        answer: BoolArray = draw < product
        for place in np.flatnonzero(np.abs(draw - product) <= _NEAR).tolist():
            answer[place] = Fraction(float(draw[place])) < Fraction(self.boost) * Fraction(float(worth[place]))
        return answer


@dataclass(slots=True)
class Ends:
    """A configuration's runs with the two ends of their scores.

    Attributes:
        story: The runs.
        low: Lower ends.
        high: Upper ends.
    """

    story: Story
    low: FloatArray
    high: FloatArray

    def since(self, position: int) -> "Ends":
        """Only the runs from that position on."""
        from_here = self.story.position >= position
        return Ends(self.story, self.low[from_here], self.high[from_here])
