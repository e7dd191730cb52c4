"""Configurations that differ in one parameter: what a local search looks at next."""

import numpy as np

from captime.arrays import FloatArray
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
    filled = np.where(np.isnan(row), space.default_row, row)
    candidates: list[FloatArray] = []
    places = [place for place, each in enumerate(space.parameters) if each.size != 1 and not np.isnan(row[place])]
    if most is not None and len(places) > most:
        places = sorted(rng.choice(places, most, replace=False).tolist())
    for place in places:
        others = _others(space.parameters[place], float(row[place]), rng)
        changed = np.repeat(filled[np.newaxis], len(others), axis=0)
        changed[:, place] = others
        candidates.append(changed)
    if not candidates:
        return np.empty((0, len(row)))
    codes = space.deactivated(np.concatenate(candidates))
    return codes[space.allowed(codes)]


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
