"""Random captimes: chance draws how long a run may take, from the user's own utility, so that no utility is hidden.

u is the survival function of a random deadline. If the captime K of a run is drawn beforehand with P(K > t) = u(t),
then "finished before K" is a 0/1 sample whose mean *is* the expected utility, although the run may have been cut. A
boost B >= 1 lets more runs finish: P(K > t) = min(1, B·u(t)), and a finished run counts max(u(t), 1/B). The mean is the
same for every B (docs/random-captimes.md has the proof); larger B costs more time a run and varies less.

Position j of the stream carries one draw v_j for all configurations. It comes from a generator of its own, keyed by the
position, and knows nothing of instances, seeds or runtimes.
"""

from dataclasses import dataclass, field

import numpy as np

from captime.arrays import BoolArray, FloatArray, IntArray
from captime.errors import ScenarioError
from captime.utilities.protocol import Utility

# Draws are made so many positions at a time, each block from its own key, so that nobody's curiosity changes them.
_BLOCK = 4096
# Keeps the draws apart from everything else that is derived from the same seed.
_KEY = 0x63617074


class Schedule:
    """A number per stream position that may only be changed for positions nobody has reached yet."""

    def __init__(self, value: float) -> None:
        self._starts: list[int] = [0]
        self._values: list[float] = [value]

    def change_from(self, position: int, value: float) -> None:
        """From this position on the number is `value`; earlier positions keep theirs for ever."""
        if position <= self._starts[-1]:
            raise ScenarioError(f"position {position} has its value already; the last change was at {self._starts[-1]}")
        self._starts.append(position)
        self._values.append(value)

    def at(self, position: IntArray) -> FloatArray:
        """The numbers of these positions."""
        if len(self._values) == 1:
            return np.array(self._values)
        return np.array(self._values)[np.searchsorted(self._starts, position, side="right") - 1]

    @property
    def last_change(self) -> int:
        """From which position on the newest number holds."""
        return self._starts[-1]


@dataclass(slots=True)
class RandomCaptimes:
    """One captime per stream position, the same for all configurations; there is only one level.

    Args:
        utility: What an answer is worth; right-continuous, as every utility here is.
        seed: Key of the draws.
        boost: B, at least 1, by position.
        longest: No run is given more CPU seconds than this, by position. A run stopped there is known only as "at least
            so long"; its score is an interval.
    """

    utility: Utility
    seed: int
    boost: Schedule
    longest: Schedule
    _draws: FloatArray = field(default_factory=lambda: np.empty(0), init=False, repr=False)

    @property
    def repeats(self) -> bool:
        """Never: every run is made once."""
        return False

    def draws(self, position: IntArray) -> FloatArray:
        """v_j, uniform on [0, 1)."""
        if position.size and int(position.max()) >= len(self._draws):
            self._grow(int(position.max()))
        return self._draws.take(position)

    def _grow(self, last: int) -> None:
        known = len(self._draws) // _BLOCK
        blocks = [
            np.random.default_rng((_KEY, self.seed, block)).random(_BLOCK) for block in range(known, last // _BLOCK + 1)
        ]
        self._draws = np.concatenate((self._draws, *blocks))

    def captime(self, level: IntArray, position: IntArray) -> FloatArray:  # noqa: ARG002 (there is one level)
        """K cut at the longest captime allowed."""
        drawn = self.utility.inverse(self.draws(position) / self.boost.at(position))
        return np.minimum(drawn, self.longest.at(position))

    def floor(self, level: IntArray) -> FloatArray:
        """Scores can be 0."""
        return np.zeros(np.shape(level))

    def completes(self, seconds: FloatArray, level: IntArray, position: IntArray) -> BoolArray:
        """See the protocol."""
        return seconds < self.captime(level, position)

    def settled(
        self,
        seconds: FloatArray,
        worth: FloatArray,
        level: IntArray,  # noqa: ARG002 (there is one level)
        position: IntArray,
    ) -> tuple[BoolArray, FloatArray, FloatArray]:
        """See the protocol. The score is decided from the measured time and the draw, not from the rounded captime."""
        draw, boost, longest = self.draws(position), self.boost.at(position), self.longest.at(position)
        least = 1.0 / boost
        # t < K if and only if u(t) > v/B, jumps, flat parts and ties included.
        finished = draw < boost * worth
        score = np.maximum(worth, least) * finished
        # Stopped at the longest captime although K was longer: anything up to what an answer just then is worth.
        at_longest = self.utility(longest)
        stopped = (seconds >= longest) & np.isfinite(seconds) & (draw < boost * at_longest)
        low = score * ~stopped
        high = np.where(stopped, np.maximum(at_longest, least), score)
        return finished & ~stopped, low, high

    def can_rise(self, level: IntArray) -> BoolArray:
        """Never: what is wanted longer is wanted for later positions."""
        return np.zeros(np.shape(level), dtype=np.bool_)

    def alive(self, seconds: FloatArray, level: IntArray, position: IntArray) -> FloatArray:  # noqa: ARG002 (one level)
        """See the protocol."""
        draw, boost = self.draws(position), self.boost.at(position)
        worth = self.utility(seconds)
        # Seen alive at or after K: it is to be killed and counts 0.
        return np.where(draw < boost * worth, np.maximum(worth, 1.0 / boost), 0.0)
