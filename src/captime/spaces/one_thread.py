"""Keep matrix arithmetic on one core: the others belong to the programs that are being timed.

NumPy's usual wheels carry OpenBLAS, which takes all cores for matrices of a hundred rows and lets them spin while they
wait for each other. There is no switch for it in NumPy, but the library itself has one. Where it is another library, or
the switch is not found, nothing is changed: it costs time, not correctness.
"""

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import numpy as np

# Names of the two functions, as the wheels of different years have them.
_PREFIXES = ("scipy_openblas_", "openblas_")
_SUFFIXES = ("64_", "")
_Switch = tuple[Callable[[], int], Callable[[int], None]]


@contextmanager
def one_thread() -> Iterator[None]:
    """Inside, matrix arithmetic takes one core; afterwards it is as before."""
    switch = _found()
    if switch is None:
        yield
        return
    get, put = switch
    before = get()
    put(1)
    try:
        yield
    finally:
        put(before)


@cache
def _found() -> _Switch | None:
    """Reads and sets the number of threads."""
    for path in sorted((Path(np.__file__).parents[1] / "numpy.libs").glob("lib*openblas*")):
        try:
            library = ctypes.CDLL(str(path))
        except OSError:
            continue
        for prefix in _PREFIXES:
            for suffix in _SUFFIXES:
                get = getattr(library, f"{prefix}get_num_threads{suffix}", None)
                put = getattr(library, f"{prefix}set_num_threads{suffix}", None)
                if get is not None and put is not None:
                    return get, put
    return None
