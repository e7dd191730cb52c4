"""Who joins the pool next: the default, the user's favourites, then random draws and proposals of a model in turn.

The order is fixed before the first run: index 0 is the default configuration, then the favourites, then a few random
draws, then one or more proposals after each further draw (`ArrivalOrder`). Only the random draws speak for the space
(they carry gamma), and random draw r is `space.draw(seed, r)` whatever was observed. A proposal is a configuration like
any other: it is raced and bounded by the same rules, so a bad model wastes runs and nothing else.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from captime.arrays import FloatArray
from captime.errors import ScenarioError
from captime.spaces.model import Known, Surrogate
from captime.spaces.model_cost import Restraint, one_thread
from captime.spaces.search import Nursery, Search, keys
from captime.spaces.space import Space
from captime.spaces.values import Settings

Origin = Literal["default", "favourite", "random", "model"]
Way = Literal["blend", "variation", "maximum"]
"""How a proposal of a batch is made."""

# A model needs this many configurations with scores before it is asked.
FEWEST = 4
# A new model is fitted when configurations or scores have grown by these factors; and if that is affordable.
_MORE_CONFIGURATIONS = 1.1
_MORE_SCORES = 2.0
# A proposal of a batch is the most promising of four variations of the best six; in large batches of twenty-four.
_MODELS, _VARIATIONS, _MORE_VARIATIONS = 6, 4, 24
# In batches of at least this many, proposals are made in four ways in turn: two in eight are maxima of the model.
_LARGE = 8
_TURNS: tuple[Way, ...] = ("blend", "variation", "blend", "variation", "blend", "variation", "maximum", "maximum")
# A blend is the most promising of eight, and takes half of its parameters from a fresh random configuration.
_BLENDS, _FRESH = 8, 0.5
# Of each, what is left after luck is taken off: this many standard deviations less, and means of few scores count less.
_CAREFUL, _FEW, _LEAST_BETWEEN = 0.3, 4.0, 0.0004
# While no model is affordable, a proposal is a child of the best four: the first of eight that is new.
_PARENTS, _LITTER = 4, 8
_MODEL_STREAM = 0x40DE1


@dataclass(frozen=True, slots=True)
class ArrivalOrder:
    """In which order random draws and proposals join a pool.

    Attributes:
        draws_first: This many random draws come before the first proposal, to learn from.
        proposals: After them, this many proposals follow each random draw.
    """

    draws_first: int = 4
    proposals: int = 1


USUAL_ORDER = ArrivalOrder()
# A model that has seen few configurations proposes nothing better than draws, and its proposals cost more: the leader
# has to be run where they are run. Later they are better than most draws, which are slow besides. docs/spaces.md has
# the figures.
_ORDERS = {"search": ArrivalOrder(draws_first=2, proposals=8)}


def order_for(effort: object) -> ArrivalOrder:
    """Return the order of arrivals that a new campaign with this effort has, unless the space names another."""
    return _ORDERS.get(str(effort), USUAL_ORDER)


class Proposer:
    """Configurations by index, for a pool that grows.

    Args:
        space: The space.
        seed: Of the random draws and of the model.
        model: Whether a model proposes some of them.
        draws_first: How many random draws come before the first proposal, to learn from.
        proposals: How many proposals follow each random draw after these.
        listed: The favourites; left out, those of the space.

    Attributes:
        n_listed: The default and the favourites: indices 0, …, n_listed - 1.
        refits: How often a model was fitted.
        restraint: What the model may cost, and what it has cost.
    """

    def __init__(
        self,
        space: Space,
        seed: int,
        *,
        model: bool = True,
        draws_first: int = USUAL_ORDER.draws_first,
        proposals: int = USUAL_ORDER.proposals,
        listed: Sequence[Settings] | None = None,
    ) -> None:
        if draws_first < 0:
            raise ScenarioError(f"draws_first is {draws_first}, expected a number of at least 0")
        if proposals < 1:
            raise ScenarioError(f"proposals is {proposals}, expected a number of at least 1; model = false has none")
        self.space = space
        self.seed = seed
        self.model = model
        self.draws_first = draws_first
        self.proposals = proposals
        wanted = [space.default, *(space.favourites if listed is None else listed)]
        # Who names the default as a favourite means one configuration, not two.
        self._listed = [each for place, each in enumerate(wanted) if each not in wanted[:place]]
        self.n_listed = len(self._listed)
        self.refits = 0
        self.restraint = Restraint(space)
        self._search: Search | None = None
        self._model: Surrogate | None = None
        self._rows: list[tuple[Settings, FloatArray]] = []
        self._learnt_from = (0, 0)

    def origin(self, index: int) -> Origin:
        """Where the configuration of that index comes from; the same before the first run as after the last."""
        if index == 0:
            return "default"
        if index < self.n_listed:
            return "favourite"
        place = index - self.n_listed - self.draws_first
        return "model" if self.model and place >= 0 and place % (1 + self.proposals) else "random"

    def random_number(self, index: int) -> int:
        """Which of the random draws that index is, counted from 0."""
        place = index - self.n_listed
        beyond = max(place - self.draws_first, 0) if self.model else 0
        return place - self.proposals * (beyond // (1 + self.proposals))

    def random_draws(self, size: int) -> int:
        """How many of the first `size` configurations are random draws: the number that gamma is computed from."""
        return sum(self.origin(index) == "random" for index in range(size))

    def propose(
        self, index: int, known: Sequence[Known] = (), spent: float = math.inf, taught: Sequence[Known] = ()
    ) -> Settings:
        """The configuration of that index.

        Args:
            index: Its place in the pool.
            known: What is known of those before it; only a model's proposals depend on it.
            spent: CPU seconds of all runs so far; the model takes a small share of them at most.
            taught: What the model knows of others, from elsewhere; they are not in the pool, and may be proposed.
        """
        match self.origin(index):
            case "default" | "favourite":
                return dict(self._listed[index])
            case "random":
                return self.space.draw(self.seed, self.random_number(index))
            case "model":
                return self._from_model(index, known, spent, taught)

    def _from_model(self, index: int, known: Sequence[Known], spent: float, taught: Sequence[Known]) -> Settings:
        """The best of what the last search found; a new model when more is known and it may cost that much."""
        told = [each for each in (*known, *taught) if each.n > 0]
        rng = np.random.default_rng([_MODEL_STREAM, self.seed, index])
        if len(told) < FEWEST:
            return self.space.sample(rng)
        configurations, scores = len(told), sum(each.n for each in told)
        before = self._learnt_from
        grown = configurations >= _MORE_CONFIGURATIONS * before[0] or scores >= _MORE_SCORES * before[1]
        taken = self._rows_of(known)
        with one_thread():
            if grown and self.restraint.takes(configurations, spent):
                self._model = Surrogate(self.space, told)
                self._search = Search(self._model, rng)
                self._learnt_from = (configurations, scores)
                self.refits += 1
            match self._way(index):
                case "blend":
                    row = self._blend(told, taken, rng)
                case "variation":
                    row = self._variation(told, taken, rng)
                case "maximum":
                    row = self._child(told, taken, rng) if self._search is None else self._search.best(taken, rng)
        return self.space.sample(rng) if row is None else self.space.settings(row)

    def _way(self, index: int) -> Way:
        """Return how the proposal of that index is made."""
        if self.proposals >= _LARGE:
            place = (index - self.n_listed - self.draws_first - 1) % (1 + self.proposals)
            return _TURNS[place % len(_TURNS)]
        return "variation" if self.proposals > 1 and index % 2 else "maximum"

    def _blend(self, told: Sequence[Known], taken: FloatArray, rng: np.random.Generator) -> FloatArray | None:
        """Return a mixture of the best known with a fresh random configuration, the most promising of several.

        Before anything is known, the best known is the default. Mixtures with it are better than draws in the mean,
        and as different from each other.
        """
        best = self.space.codes(told[int(_standing(told).argmax())].settings)
        draws = self.space.drawn(rng, _BLENDS)
        first, second = (np.where(np.isnan(each), self.space.default_row, each) for each in (best, draws))
        made = self.space.deactivated(np.where(rng.random(second.shape) < _FRESH, second, first))
        return self._most_promising(made[self.space.allowed(made)], taken)

    def _most_promising(self, made: FloatArray, taken: FloatArray) -> FloatArray | None:
        """Return the one that the model expects most of, of those that are not in the pool; None if all are."""
        gone = set(keys(taken))
        new = made[[key not in gone for key in keys(made)]]
        if not len(new):
            return None
        chosen: FloatArray = new[0 if self._model is None else int(self._model.expected(new)[0].argmax())]
        return chosen

    def _variation(self, told: Sequence[Known], taken: FloatArray, rng: np.random.Generator) -> FloatArray | None:
        """One of a batch: of a few variations of the best, the one that the model expects most of.

        Proposals of one batch rest on the same lessons. The maxima of a model are all alike, and what is wrong about
        one is wrong about all of them, so a batch of maxima is little more than one proposal. Variations differ.
        """
        standing = _standing(told)
        best = np.argsort(-standing, kind="stable")[:_MODELS]
        parents = np.array([self.space.codes(told[place].settings) for place in best.tolist()])
        count = _MORE_VARIATIONS if self.proposals >= _LARGE else _VARIATIONS
        return self._most_promising(Nursery(self.space, rng).variations(parents, rng, count), taken)

    def _child(self, told: Sequence[Known], taken: FloatArray, rng: np.random.Generator) -> FloatArray | None:
        """Something like the best known ones, for hardly any time; None if nothing new came of it."""
        # Means, less what may be luck.
        best = sorted(told, key=lambda each: 0.5 / np.sqrt(each.n) - (each.low + each.high) / 2.0)[:_PARENTS]
        parents = np.array([self.space.codes(each.settings) for each in best])
        litter = Nursery(self.space, rng).children(parents, rng, _LITTER)
        gone = set(keys(taken))
        return next((row for row, key in zip(litter, keys(litter), strict=True) if key not in gone), None)

    def _rows_of(self, known: Sequence[Known]) -> FloatArray:
        """Return the matrix of the pool; rows that were read before are not read again."""
        for place, each in enumerate(known):
            if place == len(self._rows):
                self._rows.append((each.settings, self.space.codes(each.settings)))
            elif self._rows[place][0] is not each.settings and self._rows[place][0] != each.settings:
                self._rows[place] = (each.settings, self.space.codes(each.settings))
        return np.array([row for _, row in self._rows[: len(known)]])


def _standing(told: Sequence[Known]) -> FloatArray:
    """What configurations seem to be worth, those with few scores drawn towards the usual."""
    mean, n, variance = np.array([((each.low + each.high) / 2.0, each.n, each.variance) for each in told]).T
    error, weight = variance / n, n / (n + _FEW)
    usual = float(np.average(mean, weights=weight))
    spread = max(float(np.average((mean - usual) ** 2 - error, weights=weight)), _LEAST_BETWEEN)
    trust = spread / (spread + error)
    return np.asarray(usual + trust * (mean - usual) - _CAREFUL * np.sqrt(trust * error))
