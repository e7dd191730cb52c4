"""What a function returned, read without running any code: plain values and NumPy's numbers, nothing else.

Something that cannot be read like this is an object of the user's own; that it was returned at all is the answer.
"""

import io
import pickle
from typing import Any

from captime.programs.judge import Told

KEYS = ("answer", "solved", "seconds")
"""Keys of a dict by which a function tells more: the answer, whether there is one, CPU seconds by its own account."""

_NUMPY = {"scalar", "dtype", "_reconstruct", "ndarray", "_frombuffer"}


class _Plain(pickle.Unpickler):
    """Knows NumPy's numbers; refuses every other class and function."""

    def find_class(self, module: str, name: str) -> Any:
        """See pickle."""
        if module.partition(".")[0] == "numpy" and (name in _NUMPY or name.endswith("DType")):
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name} is no plain value")


def account_of(returned: bytes) -> Told:
    """What the pickled return value of a function says about the run.

    None and everything that is true in Python's sense is an answer; False, 0 and empty values are none. A dict with
    one of the keys `answer`, `solved` and `seconds` says it in words.
    """
    try:
        value = _Plain(io.BytesIO(returned)).load()
    except (pickle.UnpicklingError, AttributeError, ImportError, EOFError, IndexError):
        return Told("solved")
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


def _in_words(value: dict[Any, Any]) -> Told:
    answer, seconds = value.get("answer"), value.get("seconds")
    if isinstance(answer, bool) or answer is None:
        said = None
    else:
        said = answer if isinstance(answer, bytes) else str(answer).encode("utf-8", "surrogateescape")
    solved = value.get("solved", answer is not False)
    if not solved:
        return Told("nothing", problem="the function says that it found no answer")
    reported = float(seconds) if isinstance(seconds, int | float) and 0 <= seconds < float("inf") else None
    return Told("solved", reported, said)
