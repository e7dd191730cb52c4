"""Instance generators: seeded families of problems for solvers. One file per family; this door is the register.

A member is a module with `generate(seed, *, option=default, ...)`, which returns the text of one instance file, and
`SUFFIX`. Every module uses the standard library alone and also runs as a plain script. Three roads to the same bytes:

- `captime.instances.generate("colouring", 7)` in Python,
- `python -m captime.instances colouring --seed 7 -o 7.cnf` on the command line,
- `python -I PATH --seed 7 -o 7.cnf` with `PATH = captime.instances.script("colouring")`, which starts in a tenth of the
  time because it does not import the package: the one to give to a campaign that makes an instance per run.
"""

from pathlib import Path
from types import ModuleType

from captime.errors import ScenarioError
from captime.instances import auction, cascade, colouring, fuzz, quasigroup
from captime.instances.command import Option

INSTANCES: dict[str, ModuleType] = {
    "auction": auction,
    "cascade": cascade,
    "colouring": colouring,
    "fuzz": fuzz,
    "quasigroup": quasigroup,
}


def family(name: str) -> ModuleType:
    """Return the module of that family.

    Raises:
        ScenarioError: there is no such family.
    """
    if name not in INSTANCES:
        raise ScenarioError(f"there is no family of instances {name!r}; there are {', '.join(INSTANCES)}")
    return INSTANCES[name]


def generate(name: str, seed: int, **options: Option) -> str:
    """Return the text of one instance file; the same name, seed and options give the same bytes."""
    text: str = family(name).generate(seed, **options)
    return text


def script(name: str) -> Path:
    """The family's file, for `python -I FILE --seed K [options] [-o OUTPUT]`; without `-o` it writes to stdout."""
    return Path(str(family(name).__file__))


__all__ = ["INSTANCES", "family", "generate", "script"]
