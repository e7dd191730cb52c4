"""What a function returned, read without running any code: plain values and NumPy's numbers, nothing else.

An object of the user's own is never made: a stand-in takes its place. That it was returned at all is an answer.
"""

import io
import pickle
from collections import OrderedDict
from typing import Any, Self

import numpy as np

from captime.programs.hints import did_you_mean
from captime.programs.judge import Told

KEYS = ("answer", "solved", "seconds")
"""Keys of a dict by which a function tells more: the answer, whether there is one, CPU seconds by its own account."""

_LISTED = ", ".join(KEYS)
# A key is a misspelt one if it is as near as this (see difflib).
_NEAR = 0.8
_NUMPY = {"scalar", "dtype", "_reconstruct", "ndarray", "_frombuffer"}


class _Opaque:
    """Stands in for an object of the user's own, whatever it is made of."""

    def __new__(cls, *_: object, **__: object) -> Self:
        """Take no notice of the arguments."""
        return super().__new__(cls)

    def __setstate__(self, state: object) -> None:
        """Take no notice of the state."""

    def append(self, member: object) -> None:
        """Take no notice of a member, if it is a list."""

    def __setitem__(self, key: object, member: object) -> None:
        """Take no notice of a member, if it is a mapping."""


class _Plain(pickle.Unpickler):
    """Knows NumPy's numbers; puts a stand-in in place of every other class and function."""

    def find_class(self, module: str, name: str) -> Any:
        """See pickle."""
        if module.partition(".")[0] == "numpy" and (name in _NUMPY or name.endswith("DType")):
            return super().find_class(module, name)
        return OrderedDict if (module, name) == ("collections", "OrderedDict") else _Opaque


def account_of(returned: bytes) -> Told:
    """Return what the pickled return value of a function says about the run.

    None and everything that is true in Python's sense is an answer; False, 0 and empty values are none. A dict with
    one of the keys `answer`, `solved` and `seconds` says it in words, and may have no other key: one that is unknown
    was meant to say something. A dict with none of them is a value like any other, unless one of its keys looks like
    a misspelt one.
    """
    try:
        value = _Plain(io.BytesIO(returned)).load()
    except (pickle.UnpicklingError, AttributeError, ImportError, LookupError, EOFError, TypeError, ValueError):
        return Told("solved")
    if isinstance(value, dict) and (strange := _strange_key(value)) is not None:
        near = did_you_mean(str(strange).lower(), KEYS, _NEAR)
        return Told(
            "abort",
            problem=f"the function returned a dict with the key {strange!r}{near or f'; there are {_LISTED}.'} A dict "
            "is read as an account of the run; whatever else it has to say goes under 'answer'",
        )
    if isinstance(value, dict) and any(key in value for key in KEYS):
        return _in_words(value)
    try:
        answered = value is None or bool(value)
    except ValueError:
        # An array of several numbers is neither true nor false, but it is something.
        answered = True
    return (
        Told("solved") if answered else Told("nothing", problem=f"the function returned {value!r}, which is no answer")
    )


def _strange_key(value: dict[Any, Any]) -> object:
    """Return the first key that cannot be meant as it is written; None if there is none."""
    strange = [key for key in value if key not in KEYS]
    if any(key in value for key in KEYS):
        return next(iter(strange), None)
    return next((key for key in strange if isinstance(key, str) and did_you_mean(key.lower(), KEYS, _NEAR)), None)


def _in_words(value: dict[Any, Any]) -> Told:
    answer, seconds, solved = (_plain(value.get(key)) for key in ("answer", "seconds", "solved"))
    if solved is None:
        solved = answer is not False
    if not isinstance(solved, int):
        return Told("abort", problem=f"the function returned 'solved': {solved!r}; expected True or False")
    if seconds is not None and not (_is_number(seconds) and 0 <= seconds < float("inf")):
        return Told("abort", problem=f"the function returned 'seconds': {seconds!r}; expected a number of seconds")
    if not solved:
        return Told("nothing", problem="the function says that it found no answer")
    if isinstance(answer, bool | _Opaque) or answer is None:
        said = None
    else:
        said = answer if isinstance(answer, bytes) else str(answer).encode("utf-8", "surrogateescape")
    return Told("solved", None if seconds is None else float(seconds), said)


def _plain(value: Any) -> Any:
    """Return NumPy's numbers and truth values as Python's own."""
    return value.item() if isinstance(value, np.generic) else value


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
