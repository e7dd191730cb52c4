"""What a function returned, read without running any code: plain values and NumPy's numbers, nothing else.

An object of the user's own is never made: a stand-in takes its place. That it was returned at all is an answer.
"""

import io
import pickle
import re
import sys
from collections import OrderedDict
from typing import Any, Self

import numpy as np

from captime.programs.judge import SelfReport
from captime.programs.protocol import did_you_mean

KEYS = ("answer", "solved", "seconds")
"""Keys of a dict by which a function tells more: the answer, whether there is one, CPU seconds by its own account."""

_LISTED = ", ".join(KEYS)
# A key is a misspelt one if it is as near as this (see difflib).
_NEAR = 0.8
_WIDTH = 200
# Truth values, numbers and texts of NumPy, with their sizes. Objects are pointers: bytes must not be taken for them.
_PLAIN_KIND = re.compile(r"[biufcSU]\d{1,9}")


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


class _Kind:
    """Stands in for NumPy's dtype, whose own reader trusts every byte that it is given."""

    def __init__(self, code: object = "", *_: object) -> None:
        self._code = code
        self._order = "="

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        """Take notice of the byte order alone."""
        self._order = state[1]

    def array(self, data: object, shape: object, order: object) -> object:
        """Return the numbers that these bytes are; a stand-in if they are none."""
        plain = (
            isinstance(self._code, str) and _PLAIN_KIND.fullmatch(self._code) and self._order in {"<", ">", "|", "="}
        )
        if not plain or not isinstance(data, bytes | bytearray):
            return _Opaque()
        kind = np.dtype(f"{self._order}{self._code}")
        flat: Any = np.frombuffer(bytes(data), kind) if data else np.empty(0, kind)
        flat.tolist()  # letters that do not exist are found out here
        return flat.reshape(shape, order=order)


class _Array:
    """Stands in for an array that is being read; shown and judged as the array itself."""

    def __init__(self, *_: object) -> None:
        self._value: object = _Opaque()

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        """Take shape, kind, order and bytes."""
        _, shape, kind, by_columns, data = state
        self._value = _read(data, kind, shape, "F" if by_columns else "C")

    def __bool__(self) -> bool:
        return bool(self._value)

    def __repr__(self) -> str:
        return repr(self._value)

    def __str__(self) -> str:
        return str(self._value)


def _read(data: object, kind: object, shape: object, order: object = "C") -> object:
    return kind.array(data, shape, order) if isinstance(kind, _Kind) else _Opaque()


def _scalar(kind: object, data: object = None) -> object:
    found = _read(data, kind, ())
    return found[()] if isinstance(found, np.ndarray) else found


_NUMPY = {"dtype": _Kind, "scalar": _scalar, "_reconstruct": _Array, "_frombuffer": _read}


class _Plain(pickle.Unpickler):
    """Reads NumPy's numbers and arrays of them; puts a stand-in in place of every other class and function."""

    def find_class(self, module: str, name: str) -> Any:
        """See pickle."""
        if module.partition(".")[0] == "numpy" and name in _NUMPY:
            return _NUMPY[name]
        return OrderedDict if (module, name) == ("collections", "OrderedDict") else _Opaque


# What a return value that was not written by pickle itself can end in.
_UNREADABLE = (
    pickle.UnpicklingError,
    ArithmeticError,
    AttributeError,
    EOFError,
    ImportError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
)


def account_of(returned: bytes) -> SelfReport:
    """Return what the pickled return value of a function says about the run.

    None and everything that is true in Python's sense is an answer; False, 0 and empty values are none. A dict with
    one of the keys `answer`, `solved` and `seconds` says it in words, and may have no other key: one that is unknown
    was meant to say something. A dict with none of them is a value like any other, unless one of its keys looks like
    a misspelt one.
    """
    try:
        value = _Plain(io.BytesIO(returned)).load()
    except _UNREADABLE:
        return SelfReport("solved")
    if isinstance(value, dict) and (strange := _strange_key(value)) is not None:
        near = did_you_mean(strange.lower(), KEYS, _NEAR) if isinstance(strange, str) else ""
        return SelfReport(
            "abort",
            problem=f"the function returned a dict with the key {_shown(strange)}{near or f'; there are {_LISTED}.'} "
            "A dict is read as an account of the run; whatever else it has to say goes under 'answer'",
        )
    if isinstance(value, dict) and any(key in value for key in KEYS):
        return _in_words(value)
    try:
        answered = value is None or bool(value)
    except ValueError:
        # An array of several numbers is neither true nor false, but it is something.
        answered = True
    return (
        SelfReport("solved")
        if answered
        else SelfReport("nothing", problem=f"the function returned {_shown(value)}, which is no answer")
    )


def _strange_key(value: dict[Any, Any]) -> object:
    """Return the first key that cannot be meant as it is written; None if there is none."""
    strange = [key for key in value if key not in KEYS]
    if any(key in value for key in KEYS):
        return next(iter(strange), None)
    return next((key for key in strange if isinstance(key, str) and did_you_mean(key.lower(), KEYS, _NEAR)), None)


def _in_words(value: dict[Any, Any]) -> SelfReport:
    answer, seconds, solved = (_plain(value.get(key)) for key in ("answer", "seconds", "solved"))
    if solved is None:
        solved = answer is not False
    if not isinstance(solved, int):
        return SelfReport("abort", problem=f"the function returned 'solved': {_shown(solved)}; expected True or False")
    # A whole number may be finite and yet too large for a float.
    if seconds is not None and not (_is_number(seconds) and 0 <= seconds <= sys.float_info.max):
        return SelfReport(
            "abort", problem=f"the function returned 'seconds': {_shown(seconds)}; expected a number of seconds"
        )
    if not solved:
        return SelfReport("nothing", problem="the function says that it found no answer")
    if isinstance(answer, bool | _Opaque) or answer is None:
        said = None
    else:
        try:
            # Python's own texts may hold code points that no encoding knows.
            said = answer if isinstance(answer, bytes) else str(answer).encode("utf-8", "backslashreplace")
        except ValueError as reason:
            return SelfReport(
                "abort",
                problem=f"the function returned an 'answer' that cannot be written as text ({reason}); return a text, "
                "or a number of fewer digits",
            )
    return SelfReport("solved", None if seconds is None else float(seconds), said)


def _shown(value: object) -> str:
    """Return a value as Python writes it, shortened; its type if it cannot be written."""
    try:
        text = repr(value)
    except ValueError:  # a whole number of thousands of digits
        return f"a value of type {type(value).__name__} that cannot be written"
    return text if len(text) <= _WIDTH else f"{text[:_WIDTH]}…"


def _plain(value: Any) -> Any:
    """Return NumPy's numbers and truth values as Python's own."""
    return value.item() if isinstance(value, np.generic) else value


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
