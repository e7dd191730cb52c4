"""Members that other packages add to captime's families, found by their entry points.

A package names them in its pyproject.toml, the name of the entry point being the name in the register:

    [project.entry-points."captime.utilities"]
    weibull = "my_package:Weibull"

The groups are `captime.utilities` (classes that fit `Utility`), `captime.procedures` (callables that take a `Problem`
and keyword options), `captime.space_formats` (objects of `captime.spaces.formats.Format`) and `captime.baselines`
(objects of `captime.procedures.baselines.Baseline`, to compare with). A member that cannot be
loaded is left out, and the reason is told; nothing of captime's own is replaced.
"""

from collections.abc import Callable, Iterable, MutableMapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from captime.procedures import PROCEDURES
from captime.procedures.baselines import BASELINES, Baseline
from captime.spaces.formats import FORMATS, Format
from captime.utilities import UTILITIES

UTILITY_GROUP = "captime.utilities"
PROCEDURE_GROUP = "captime.procedures"
SPACE_FORMAT_GROUP = "captime.space_formats"
BASELINE_GROUP = "captime.baselines"


@dataclass(frozen=True, slots=True)
class _Family:
    """A register that packages may add to.

    Attributes:
        register: Members by name.
        expected: What a member has to be, in words.
        fits: Whether an object can be one; the conformance suites of `captime.testing` ask for more.
    """

    register: MutableMapping[str, Any]
    expected: str
    fits: Callable[[Any], bool]


def _is_utility(member: Any) -> bool:
    return isinstance(member, type) and all(
        hasattr(member, each) for each in ("__call__", "inverse", "name", "example")
    )


_FAMILIES: dict[str, _Family] = {
    UTILITY_GROUP: _Family(UTILITIES, "a class with a name, an example and an inverse", _is_utility),
    PROCEDURE_GROUP: _Family(PROCEDURES, "a callable that takes a Problem", callable),
    SPACE_FORMAT_GROUP: _Family(
        FORMATS, "an object of captime.spaces.formats.Format", lambda it: isinstance(it, Format)
    ),
    BASELINE_GROUP: _Family(
        BASELINES, "an object of captime.procedures.baselines.Baseline", lambda it: isinstance(it, Baseline)
    ),
}


def load_plugins(found: Iterable[EntryPoint] | None = None) -> list[str]:
    """Add the members of installed packages to the registers; return what was left out, and why, a sentence each.

    Args:
        found: The entry points; those of all installed packages if left out.
    """
    installed = entry_points() if found is None else None
    points = (
        list(found or ()) if installed is None else [p for group in _FAMILIES for p in installed.select(group=group)]
    )
    return [problem for problem in map(_added, points) if problem is not None]


_PROBLEMS: list[list[str]] = []


def load_once() -> list[str]:
    """Load the plugins of this process at the first call; return what was left out, and why, a sentence each."""
    if not _PROBLEMS:
        # The entry comes first: a plugin that imports names of captime calls this function again.
        _PROBLEMS.append([])
        _PROBLEMS[0].extend(load_plugins())
    return _PROBLEMS[0]


def _added(point: EntryPoint) -> str | None:
    family = _FAMILIES[point.group]
    package = point.dist.name if point.dist is not None else "a package without a name"
    where = f"{point.name!r} in {point.group} of {package}"
    try:
        member = point.load()
    except Exception as error:  # noqa: BLE001 (a plugin's code: whatever it raises must not stop captime)
        return (
            f"the plugin {where} cannot be loaded ({type(error).__name__}: {error}) and is left out; update {package}"
        )
    if not family.fits(member):
        kind = type(member).__name__
        return f"the plugin {where} is {kind}, expected {family.expected}; it is left out. Correct {package}"
    if family.register.get(point.name, member) is not member:
        return f"the plugin {where} has a name that is taken, so it is left out; choose another name in {package}"
    family.register[point.name] = member
    return None
