"""A table whose rows are random configurations of a space: the rows are all there is, and a model chooses among them.

Random draws and proposals must not share rows: a row that a model has passed over would be no random draw any more. So
with a model every second row is a draw, in the order of the table, and the others wait to be proposed.

The default is no draw: the user chose it. It would count for gamma as if the space had been searched once more.
"""

import json
from collections.abc import Sequence
from typing import Literal

import numpy as np

from captime.arrays import FloatArray
from captime.errors import ScenarioError, TableError
from captime.procedures.pool_terms import PoolTerms
from captime.sources import RuntimeTable
from captime.sources.window import stream_of
from captime.spaces import Known, Settings, Space
from captime.spaces.model import Surrogate
from captime.spaces.model_cost import Restraint, one_thread
from captime.spaces.proposals import FEWEST, USUAL_ORDER
from captime.utilities import Utility

_CHOICES = 0x20435
_NAMED = (
    "On a space the rows of a table are named by their settings: a JSON object, or words such as --restarts=100 -decay "
    "0.9. captime measure scenario.toml --draws 100 -o table.npz makes such a table"
)


def settings_of_rows(space: Space, table: RuntimeTable) -> list[Settings]:
    """The configurations of a table, read from their names: JSON objects, or words such as `--luby=no -rfirst 30`.

    A parameter that a name does not mention has its default.
    """
    return [_settings(space, name, f"{table.name}, row {row}") for row, name in enumerate(table.configs, start=1)]


def default_row(space: Space, settings: Sequence[Settings]) -> int | None:
    """Return the row of the default that was put there on purpose: the first one equal to it; None if there is none.

    `captime measure` writes the default first, so what equals it further down was drawn, and stays a draw. If all were
    drawn, one draw is lost: the pool has that configuration anyway, and the other draws hit the rest of the space no
    less often for it, so gamma is only on the safe side.
    """
    wanted = _key(space, space.default)
    return next((row for row, each in enumerate(settings) if _key(space, each) == wanted), None)


def _without(settings: Sequence[Settings], row: int | None) -> list[Settings]:
    return [each for place, each in enumerate(settings) if place != row]


def _settings(space: Space, name: str, row: str) -> Settings:
    where = f"{row}: configuration {name[:60]!r}"
    try:
        said = json.loads(name) if name.lstrip().startswith("{") else settings_of(name)
    except json.JSONDecodeError as flaw:
        raise TableError(f"{where} begins like JSON, but is none: {flaw}; expected an object of settings") from None
    if said == {"name": name} and "name" not in space.by_name:
        raise TableError(f"{where} is only called so, and does not say what is set. {_NAMED}")
    try:
        return space.completed({key: _value(space, key, value) for key, value in said.items()}, where)
    except ScenarioError as flaw:
        raise TableError(f"{flaw}. {_NAMED}") from None


def _value(space: Space, name: str, value: object) -> bool | int | float | str:
    """A value as its parameter has it; texts may stand for numbers."""
    parameter = space.by_name.get(name)
    if parameter is None or not isinstance(value, str) or parameter.code(value) is not None:
        return value  # type: ignore[return-value] # the space itself says what is wrong with anything else
    try:
        return float(value)
    except ValueError:
        return value


class Rows:
    """A target that has a table's rows and nothing else; the attributes are those of the protocol.

    Args:
        space: The space.
        table: The table.
        settings: Of its rows.
        sampling: In which order instances are met.
        seed: Of that order.
    """

    def __init__(
        self,
        space: Space,
        table: RuntimeTable,
        settings: Sequence[Settings],
        *,
        sampling: str = "shuffle",
        seed: int = 0,
    ) -> None:
        self.name = table.name
        self.limit = table.limit
        self.n_instances = table.n_instances
        self.law = f"The space is represented by the {table.n_configs:,} configurations recorded in {table.name}."
        self._table = table
        self._stream = stream_of(sampling, table.groups, seed)
        self.length = self._stream.length
        self.population = self._stream.population
        # Of several rows with the same settings the first stands for all.
        self._row = {_key(space, each): row for row, each in reversed(list(enumerate(settings)))}
        self._space = space
        self._drawn = _without(settings, default_row(space, settings))
        self._rows: list[int] = []

    def add(self, settings: Settings) -> None:
        """See the protocol."""
        self._rows.append(self._row[_key(self._space, settings)])

    def seconds(self, config: int, first: int, last: int) -> FloatArray:
        """See the protocol."""
        seconds: FloatArray = self._table.seconds[self._rows[config]].take(self._stream.rows(first, last))
        return seconds

    def worths(self, settings: Sequence[Settings], utility: Utility) -> FloatArray:
        """See the protocol."""
        rows = [self._row[_key(self._space, each)] for each in settings]
        seconds = self._table.seconds[rows]
        return np.asarray(np.where(seconds < self.limit, utility(seconds), 0.0).mean(axis=1))

    def random_settings(self, count: int) -> list[Settings]:
        """See the protocol; never more than there are, and without the default, which was not drawn."""
        return self._drawn[:count]


def _key(space: Space, settings: Settings) -> bytes:
    return (space.codes(settings) + 0.0).tobytes()


class RowProposer:
    """Draws and proposals from the rows of a table; the default comes first if the table has it.

    Args:
        space: The space.
        settings: Of the rows, in the order of the table.
        seed: Of the model.
        model: Whether it proposes every second one.
        draws_first: How many draws come before the first proposal.

    Attributes:
        n_listed: 1 if a row is the default, which counts for nothing but itself; otherwise 0. See `default_row`.
        model: As given.
        draws_first: As given.
        proposals: One for each draw: half of the rows are draws.
        limit: How large the pool can become before draws, or rows to propose, are used up.
    """

    def __init__(
        self,
        space: Space,
        settings: Sequence[Settings],
        seed: int,
        *,
        model: bool = True,
        draws_first: int = USUAL_ORDER.draws_first,
    ) -> None:
        self.model = model
        self.draws_first = draws_first
        self.proposals = 1
        self._space = space
        self._seed = seed
        default = default_row(space, settings)
        self._listed = [] if default is None else [settings[default]]
        self.n_listed = len(self._listed)
        others = _without(settings, default)
        self._draws = others[::2] if model else others
        self._waiting = others[1::2] if model else []
        self._terms = PoolTerms(self.n_listed, model=model, draws_first=draws_first)
        self._restraint = Restraint(space)
        self.limit = self.n_listed
        drawn = 0
        while True:
            drawn += self.origin(self.limit) == "random"
            if drawn > len(self._draws) or self.limit + 1 - self.n_listed - drawn > len(self._waiting):
                break
            self.limit += 1

    def origin(self, index: int) -> Literal["default", "random", "model"]:
        """The default, a random draw, or a proposal."""
        origin = self._terms.origin(index)
        return "default" if origin == "listed" else origin

    def propose(self, index: int, known: Sequence[Known] = (), spent: float = np.inf) -> Settings:
        """The configuration of that index; the arguments are those of `Proposer.propose`."""
        if index < self.n_listed:
            return self._listed[index]
        if self.origin(index) == "random":
            return self._draws[sum(self.origin(before) == "random" for before in range(index))]
        return self._waiting.pop(self._choice(index, [each for each in known if each.n > 0], spent))

    def _choice(self, index: int, told: Sequence[Known], spent: float) -> int:
        """Which of the waiting rows; the next one, while nothing is known or a model costs too much."""
        if len(told) < FEWEST or not self._restraint.takes(len(told), spent):
            return 0
        rng = np.random.default_rng([_CHOICES, self._seed, index])
        with one_thread():
            mean, doubt = Surrogate(self._space, told).expected(
                np.array([self._space.codes(each) for each in self._waiting])
            )
        return int((mean + rng.exponential() * doubt).argmax())


def settings_of(name: str) -> dict[str, str]:
    """Read the settings in a name; a name that says nothing (`c17`) is a setting of its own.

    >>> settings_of("-luby -rfirst=30 --mode fast")
    {'luby': 'yes', 'rfirst': '30', 'mode': 'fast'}
    """
    found: dict[str, str] = {}
    waiting = ""
    for word in name.split():
        if word.startswith("-") or "=" in word:
            key, _, value = word.lstrip("-").partition("=")
            negated = key.startswith("no-") and not value
            key = key.removeprefix("no-") if negated else key
            found[key] = "no" if negated else value or "yes"
            waiting = "" if value or negated else key
        elif waiting:
            found[waiting], waiting = word, ""
        else:
            return {"name": name}
    return found or {"name": name}
