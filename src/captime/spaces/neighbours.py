"""Configurations that differ in one parameter: what a local search looks at next."""

import numpy as np

from captime.arrays import FloatArray, IntArray
from captime.spaces.parameters import Choice, Ordinal, Parameter
from captime.spaces.space import Space

# A number tries so many others, so far away on its scale from 0 to 1 (a standard deviation). [COUP+]: 4 and 0.2.
_TRIES = 4
_SPREAD = 0.2
# Of a long list of choices so many are tried.
_MOST_CHOICES = 12


def neighbours(space: Space, row: FloatArray, rng: np.random.Generator, most: int | None = None) -> FloatArray:
    """One-exchange neighbours of a configuration that may be run; each differs in one active parameter.

    Parameters that become active take their default value.

    Args:
        space: The space.
        row: The configuration.
        rng: Chooses among the values of numbers and long lists.
        most: At most so many parameters are varied, chosen at random; left out, all of them.
    """
    return neighbours_of_each(space, row[np.newaxis], rng, most)[0]


def neighbours_of_each(
    space: Space, rows: FloatArray, rng: np.random.Generator, most: int | None = None
) -> tuple[FloatArray, IntArray]:
    """The neighbours of several configurations, and of which of them each is one; the arguments are as above.

    All at once, because asking what is active costs about the same for one configuration as for a thousand.
    """
    varied: list[FloatArray] = []
    owners: list[int] = []
    for owner, row in enumerate(rows):
        filled = np.where(np.isnan(row), space.default_row, row)
        for place in _places(space, row, rng, most):
            others = _others(space.parameters[place], float(row[place]), rng)
            changed = np.repeat(filled[np.newaxis], len(others), axis=0)
            changed[:, place] = others
            varied.append(changed)
            owners += [owner] * len(others)
    if not varied:
        return np.empty((0, len(space.parameters))), np.empty(0, dtype=np.int64)
    codes = space.deactivated(np.concatenate(varied))
    allowed = space.allowed(codes)
    return codes[allowed], np.array(owners, dtype=np.int64)[allowed]


def _places(space: Space, row: FloatArray, rng: np.random.Generator, most: int | None) -> list[int]:
    """The parameters to vary: active ones that have more than one value."""
    places = [place for place, each in enumerate(space.parameters) if each.size != 1 and not np.isnan(row[place])]
    if most is None or len(places) <= most:
        return places
    return sorted(rng.choice(places, most, replace=False).tolist())


def _others(parameter: Parameter, code: float, rng: np.random.Generator) -> FloatArray:
    """Some other values of one parameter, each once."""
    if isinstance(parameter, Choice) and not isinstance(parameter, Ordinal):
        places = np.delete(np.arange(parameter.size), int(code))
        if parameter.weights is not None:
            # What is never drawn at random is not proposed either.
            places = places[np.array(parameter.weights)[places] > 0]
        chosen = places if len(places) <= _MOST_CHOICES else rng.choice(places, _MOST_CHOICES, replace=False)
        return np.sort(chosen).astype(np.float64)
    if isinstance(parameter, Choice):
        near = np.array([code - 1, code + 1, *rng.integers(parameter.size, size=2)])
    else:
        here = float(np.clip(parameter.unit(np.array([code]))[0], 0.0, 1.0))
        near = parameter.scale.at(_reflected(here + _SPREAD * rng.standard_normal(_TRIES)))
    return np.array([value for value in np.unique(parameter.rounded(near)).tolist() if value != code])


def _reflected(units: FloatArray) -> FloatArray:
    """Places beyond an end, folded back: a normal step that never leaves the range, without drawing again."""
    folded = np.abs(units) % 2.0
    return np.where(folded > 1.0, 2.0 - folded, folded)
