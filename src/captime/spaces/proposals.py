"""Who joins the pool next: the default, the user's favourites, then random draws and proposals of a model in turn.

The order is fixed before the first run: index 0 is the default configuration, then the favourites, then a few random
draws, then every second one is proposed. Only the random draws speak for the space (they carry gamma), and random draw
r is `space.draw(seed, r)` whatever was observed. A proposal is a configuration like any other: it is raced and bounded
by the same rules, so a bad model wastes runs and nothing else.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from captime.arrays import FloatArray
from captime.errors import ScenarioError
from captime.spaces.model import Known, Surrogate
from captime.spaces.neighbours import neighbours_of_each
from captime.spaces.space import Space
from captime.spaces.values import Settings

Origin = Literal["default", "favourite", "random", "model"]

# So many random draws come before the first proposal, if nobody says otherwise.
DRAWS_FIRST = 4
# A model needs so many configurations with scores before it is asked.
_FEWEST = 4
# A new model is grown when there are so many times as many configurations, or scores.
_MORE_CONFIGURATIONS = 1.3
_MORE_SCORES = 3.0
# Local searches: how many begin at the best known and at the best random candidates, and how many steps they go.
_KNOWN_STARTS, _RANDOM_STARTS, _STEPS = 8, 4, 6
_RANDOM_CANDIDATES = 600
# Each step of each search varies at most so many parameters.
_MOST_VARIED = 24
_MODEL_STREAM = 0x40DE1


class Proposer:
    """Configurations by index, for a pool that grows.

    Args:
        space: The space.
        seed: Of the random draws and of the model.
        model: Whether a model proposes every second one.
        draws_first: So many random draws come before the first proposal, to learn from.
        listed: The favourites; left out, those of the space.

    Attributes:
        n_listed: The default and the favourites: indices 0, …, n_listed - 1.
        refits: How often a model was grown.
    """

    def __init__(
        self,
        space: Space,
        seed: int,
        *,
        model: bool = True,
        draws_first: int = DRAWS_FIRST,
        listed: Sequence[Settings] | None = None,
    ) -> None:
        if draws_first < 0:
            raise ScenarioError(f"draws_first is {draws_first}, expected a number of at least 0")
        self.space = space
        self.seed = seed
        self.model = model
        self.draws_first = draws_first
        wanted = [space.default, *(space.favourites if listed is None else listed)]
        # Who names the default as a favourite means one configuration, not two.
        self._listed = [each for place, each in enumerate(wanted) if each not in wanted[:place]]
        self.n_listed = len(self._listed)
        self.refits = 0
        self._search: Search | None = None
        self._rows: list[tuple[Settings, FloatArray]] = []
        self._learnt_from = (0, 0)

    def origin(self, index: int) -> Origin:
        """Where the configuration of that index comes from; the same before the first run as after the last."""
        if index == 0:
            return "default"
        if index < self.n_listed:
            return "favourite"
        place = index - self.n_listed - self.draws_first
        return "model" if self.model and place >= 0 and place % 2 == 1 else "random"

    def random_number(self, index: int) -> int:
        """Which of the random draws that index is, counted from 0."""
        place = index - self.n_listed
        beyond = max(place - self.draws_first, 0) if self.model else 0
        return place - beyond // 2

    def random_draws(self, size: int) -> int:
        """How many of the first `size` configurations are random draws: the number that gamma is computed from."""
        return sum(self.origin(index) == "random" for index in range(size))

    def propose(self, index: int, known: Sequence[Known] = ()) -> Settings:
        """The configuration of that index.

        Args:
            index: Its place in the pool.
            known: What is known of those before it; only a model's proposals depend on it.
        """
        match self.origin(index):
            case "default" | "favourite":
                return dict(self._listed[index])
            case "random":
                return self.space.draw(self.seed, self.random_number(index))
            case "model":
                return self._from_model(index, known)

    def _from_model(self, index: int, known: Sequence[Known]) -> Settings:
        """The best of what the last search found; a new search when much more is known."""
        told = [each for each in known if each.n > 0]
        rng = np.random.default_rng([_MODEL_STREAM, self.seed, index])
        if len(told) < _FEWEST:
            return self.space.sample(rng)
        configurations, scores = len(told), sum(each.n for each in told)
        before = self._learnt_from
        grown = configurations >= _MORE_CONFIGURATIONS * before[0] or scores >= _MORE_SCORES * before[1]
        if self._search is None or grown:
            self._search = Search(Surrogate(self.space, told, seed=int(rng.integers(2**32))), rng)
            self._learnt_from = (configurations, scores)
            self.refits += 1
        row = self._search.best(self._rows_of(known), rng)
        return self.space.sample(rng) if row is None else self.space.settings(row)

    def _rows_of(self, known: Sequence[Known]) -> FloatArray:
        """The matrix of the pool; whoever was in it before is not read again."""
        for place, each in enumerate(known):
            if place == len(self._rows):
                self._rows.append((each.settings, self.space.codes(each.settings)))
            elif self._rows[place][0] is not each.settings and self._rows[place][0] != each.settings:
                self._rows[place] = (each.settings, self.space.codes(each.settings))
        return np.array([row for _, row in self._rows[: len(known)]])


class Search:
    """Candidates that a model thinks well of: random ones, and those that local searches came by.

    Args:
        surrogate: The model.
        rng: Of random candidates and of the steps of local searches.

    Attributes:
        candidates: A row each.
        mean: What the trees expect of them on average; minus infinity once they are in the pool.
        doubt: How far the trees differ about them.
    """

    def __init__(self, surrogate: Surrogate, rng: np.random.Generator) -> None:
        space = surrogate.space
        drawn = space.drawn(rng, _RANDOM_CANDIDATES)
        self._surrogate = surrogate
        # Expected improvement is over the best that the model believes in, not over the luckiest mean.
        self._goal = float(surrogate.opinions(surrogate.rows).mean(axis=0).max())
        best_known = surrogate.rows[np.argsort(-_trusted(surrogate), kind="stable")[:_KNOWN_STARTS]]
        best_drawn = drawn[np.argsort(-self._improvement(surrogate.opinions(drawn)), kind="stable")[:_RANDOM_STARTS]]
        seen = [drawn, *self._searches(np.concatenate([best_known, best_drawn]), rng)]
        distinct = _distinct(np.concatenate(seen))
        self.candidates: FloatArray = np.array(list(distinct.values()))
        opinions = surrogate.opinions(self.candidates)
        self.mean: FloatArray = opinions.mean(axis=0)
        self.doubt: FloatArray = opinions.std(axis=0)
        self._place = {key: place for place, key in enumerate(distinct)}

    def _improvement(self, opinions: FloatArray) -> FloatArray:
        """Expected improvement, the trees taken as equally likely truths."""
        return np.asarray(np.maximum(opinions - self._goal, 0.0).mean(axis=0) + 1e-3 * opinions.mean(axis=0))

    def _searches(self, here: FloatArray, rng: np.random.Generator) -> list[FloatArray]:
        """Hill climbing from each of these places at once; everything that was looked at."""
        seen: list[FloatArray] = []
        worth = self._improvement(self._surrogate.opinions(here))
        for _ in range(_STEPS):
            around, owners = neighbours_of_each(self._surrogate.space, here, rng, _MOST_VARIED)
            if not len(around):
                break
            seen.append(around)
            values = self._improvement(self._surrogate.opinions(around))
            tops = [int(np.where(owners == owner, values, -np.inf).argmax()) for owner in range(len(here))]
            moving = [top for owner, top in enumerate(tops) if owners[top] == owner and values[top] > worth[owner]]
            if not moving:
                break
            here, worth = around[moving], values[moving]
        return seen

    def best(self, taken: FloatArray, rng: np.random.Generator) -> FloatArray | None:
        """The best candidate that is not in the pool; None if there is none left.

        Each asks for a different mixture of high expectation and doubt, so that many proposals of one model spread out.
        """
        for key in _distinct(taken):
            if key in self._place:
                self.mean[self._place.pop(key)] = -np.inf
        if not self._place:
            return None
        chosen: FloatArray = self.candidates[int((self.mean + rng.exponential() * self.doubt).argmax())]
        return chosen


def _trusted(surrogate: Surrogate) -> FloatArray:
    """Means, less what may be luck: one standard deviation."""
    return surrogate.means - np.sqrt(1.0 / surrogate.weights)


def _distinct(rows: FloatArray) -> dict[bytes, FloatArray]:
    """Each row once, by its bytes; not-a-numbers have but one form here, and minus zero is zero."""
    return {row.tobytes(): row for row in rows + 0.0}
