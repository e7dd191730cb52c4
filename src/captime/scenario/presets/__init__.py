"""Scenarios for well-known solvers, ready but for the instances: one TOML file each, written as it stands.

A preset has the command, what an answer looks like, exit codes, the seed and a parameter space with ranges around the
defaults. Files that its command needs stand beside it here and are written beside the scenario.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files

from captime.errors import ScenarioError
from captime.programs.protocol import did_you_mean

_COMPANIONS = {"highs": ("highs.sh",), "cp-sat": ("cp_sat.py",), "zstd": ("zstd.sh",)}

INSTALL: Mapping[str, str] = {
    "kissat": "pip install passagemath-kissat (examples/kissat links it), or build it from its sources",
    "cadical": "apt install cadical",
    "minisat": "apt install minisat",
    "clasp": "apt install clasp",
    "clingo": "apt install gringo",
    "z3": "apt install z3, or pip install z3-solver",
    "cvc5": "apt install cvc5",
    "highs": "pip install highsbox (examples/highs-auctions links it), or get it from highs.dev",
    "scip": "get it from scipopt.org",
    "cbc": "apt install coinor-cbc",
    "glpk": "apt install glpk-utils",
    "cp-sat": "pip install ortools",
    "zstd": "apt install zstd",
}
"""The presets by name, each with the usual way to get its solver."""


@dataclass(frozen=True, slots=True)
class Preset:
    """What `captime init --solver` writes.

    Attributes:
        name: The name of the solver.
        scenario: The text of the scenario.
        companions: Texts of the files that its command needs, by name.
        install: How to get the solver.
    """

    name: str
    scenario: str
    companions: Mapping[str, str] = field(default_factory=dict)
    install: str = ""


def preset(name: str) -> Preset:
    """Return the preset of a solver; an unknown name is refused with those that are known."""
    if name not in INSTALL:
        raise ScenarioError(
            f"--solver is {name!r}; expected one of {', '.join(INSTALL)}, or leave it out for a scenario of any program"
            f"{did_you_mean(name, INSTALL)}"
        )
    folder = files("captime.scenario.presets")
    return Preset(
        name,
        folder.joinpath(f"{name}.toml").read_text(encoding="utf-8"),
        {each: folder.joinpath(each).read_text(encoding="utf-8") for each in _COMPANIONS.get(name, ())},
        INSTALL[name],
    )


__all__ = ["INSTALL", "Preset", "preset"]
