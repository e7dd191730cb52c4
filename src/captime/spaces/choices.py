"""Parameters that are one of some values: without an order (categorical, booleans, constants) or with one (ordinal)."""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from captime.arrays import FloatArray
from captime.errors import ScenarioError
from captime.spaces.passing import Passing
from captime.spaces.values import Value, same, text_of


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several values; what both kinds share.

    Attributes:
        name: what the program calls it.
        choices: the values, all different, also as texts.
        default: the value of the default configuration.
        weights: how often each is drawn, in any unit; None: all the same.
        passing: how the value is put on the command line, if not as the others.
        assumed: the default was not given, the first choice stands for it.
    """

    name: str
    choices: tuple[Value, ...]
    default: Value
    weights: tuple[float, ...] | None = None
    passing: Passing | None = None
    assumed: bool = False

    def __post_init__(self) -> None:
        texts = [text_of(choice) for choice in self.choices]
        if not texts:
            raise ScenarioError(f"parameter {self.name}: there is no value to choose from, expected at least one")
        if len(set(texts)) < len(texts):
            twice = next(text for text in texts if texts.count(text) > 1)
            raise ScenarioError(f"parameter {self.name}: the value {twice} stands there twice; remove one")
        if self.code(self.default) is None:
            raise ScenarioError(
                f"parameter {self.name}: the default {text_of(self.default)!r} is none of its values "
                f"({listed(self.choices)}); correct one"
            )
        if self.weights is not None:
            self._check_weights(self.weights)

    def _check_weights(self, weights: tuple[float, ...]) -> None:
        if (
            len(weights) != len(self.choices)
            or not all(0 <= weight < np.inf for weight in weights)
            or sum(weights) <= 0
        ):
            raise ScenarioError(
                f"parameter {self.name}: weights {list(weights)}, expected {len(self.choices)} numbers of at least 0, "
                "one for each value, not all 0"
            )

    @property
    def size(self) -> int:
        """How many values there are."""
        return len(self.choices)

    def at(self, shares: FloatArray) -> FloatArray:
        """The places in the list below which these shares of random values lie."""
        if self.weights is None:
            places = np.floor(shares * len(self.choices))
        else:
            until = np.cumsum(self.weights) / np.sum(self.weights)
            places = np.searchsorted(until, shares, side="right").astype(np.float64)
            # Shares near 1 may pass the last sum by a rounding error: they belong to the last value that is ever drawn.
            places = np.minimum(places, np.flatnonzero(self.weights)[-1])
        return np.clip(places, 0.0, len(self.choices) - 1.0)

    def rounded(self, values: FloatArray) -> FloatArray:
        """The nearest places in the list."""
        return np.clip(np.rint(values), 0.0, len(self.choices) - 1.0)

    def unit(self, codes: FloatArray) -> FloatArray:
        """Where places lie between the first (0) and the last (1)."""
        return codes / max(len(self.choices) - 1, 1)

    def code(self, value: Value) -> float | None:
        """The place of a value in the list; a text finds what it is the text of. None if it is not there."""
        for place, choice in enumerate(self.choices):
            if same(choice, value):
                return float(place)
        text = text_of(value)
        return next((float(place) for place, choice in enumerate(self.choices) if text_of(choice) == text), None)

    def value(self, code: float) -> Value:
        """The value at a place in the list."""
        return self.choices[int(code)]


@dataclass(frozen=True, slots=True)
class Categorical(Choice):
    """One of several values that have no order; also booleans (true and false) and constants (a single value)."""

    @classmethod
    def of(
        cls,
        name: str,
        choices: tuple[Value, ...],
        default: Value,
        weights: tuple[float, ...] | None = None,
        passing: Passing | None = None,
        *,
        assumed: bool = False,
    ) -> Self:
        """As the constructor, but true and false always in the same order, so that their draws are the same too."""
        if len(choices) == 2 and all(isinstance(choice, bool) for choice in choices) and choices[0] is True:
            choices, weights = choices[::-1], None if weights is None else weights[::-1]
        return cls(name, choices, default, weights, passing, assumed)

    @property
    def kind(self) -> str:
        """categorical, bool or constant."""
        if len(self.choices) == 1:
            return "constant"
        return "bool" if self.boolean else "categorical"

    @property
    def boolean(self) -> bool:
        """Whether its values are true and false."""
        return all(isinstance(choice, bool) for choice in self.choices)


@dataclass(frozen=True, slots=True)
class Ordinal(Choice):
    """One of several values in the order in which they are listed."""

    kind: ClassVar[str] = "ordinal"
    boolean: ClassVar[bool] = False


def listed(values: tuple[Value, ...]) -> str:
    """Some values for a message, the rest counted."""
    shown = ", ".join(text_of(value) for value in values[:8])
    return shown if len(values) <= 8 else f"{shown}, and {len(values) - 8} more"
