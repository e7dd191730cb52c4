"""The suites of captime.testing over captime's own registers; and members that break a contract are caught by them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest

from captime.arrays import FloatArray
from captime.certificate import Certificate, Orders, no_orders
from captime.procedures import PROCEDURES
from captime.procedures.race import Race
from captime.spaces.formats import FORMATS, read_space_section, write_space
from captime.spaces.formats.section import section_in
from captime.testing import ConformanceError, procedure_checks, space_format_checks, utility_checks
from captime.utilities import UTILITIES
from captime.utilities.formula import Formula, Seconds

SPACE = """
[space]
decay = { type = "float", low = 0.5, high = 0.9, default = 0.75 }
restarts = { type = "int", low = 1, high = 100, default = 10 }
phase = { type = "categorical", choices = ["a", "b"], default = "a" }
"""
# The oracle and the verification are told all runtimes by the problem; COUP and its kin want a pool or a space.
RACING = ("race", "fixed-captimes", "up", "oup", "naive")


def _utility_cases() -> dict[str, Callable[[], None]]:
    texts = {str(getattr(member, "example")) for member in UTILITIES.values()}  # noqa: B009 (not part of the protocol)
    plain = sorted(text for text in texts if not text.startswith(("python", "tabulated")))
    return {f"{text}: {name}": check for text in plain for name, check in utility_checks(text).items()}


UTILITY_CASES = _utility_cases()
PROCEDURE_CASES = {
    f"{name}: {check}": run for name in RACING for check, run in procedure_checks(PROCEDURES[name]).items()
}


@pytest.mark.parametrize("case", UTILITY_CASES)
def test_every_utility_passes_its_suite(case: str) -> None:
    """The examples of the register."""
    UTILITY_CASES[case]()


@pytest.mark.parametrize("case", PROCEDURE_CASES)
def test_procedures_pass_their_suite(case: str) -> None:
    """Those that need nothing but a list."""
    PROCEDURE_CASES[case]()


@pytest.mark.parametrize("name", [name for name, each in FORMATS.items() if each.read and each.write])
def test_every_format_passes_its_suite(name: str, tmp_path: Any) -> None:
    """With a small space, written by the format itself."""
    space = read_space_section(section_in(SPACE, "space.toml"), "space.toml", tmp_path)
    form = FORMATS[name]
    suite = space_format_checks(form, write_space(space, name), f"space{form.endings[0]}")
    for check in suite.values():
        check()


@dataclass(frozen=True, slots=True)
class _Rising(Formula):
    """Worth that comes back."""

    scale: Seconds
    name: ClassVar[str] = "rising"
    example: ClassVar[str] = "rising(1)"

    def _worth(self, t: FloatArray) -> FloatArray:
        return np.asarray(np.cos(t / self.scale) ** 2)

    def _moment(self, x: FloatArray) -> FloatArray:
        return np.asarray(self.scale * np.arccos(np.sqrt(x)))


def test_a_utility_that_rises_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the check of that name."""
    monkeypatch.setitem(UTILITIES, "rising", _Rising)
    with pytest.raises(ConformanceError, match="later is never better"):
        utility_checks("rising(1)")["never rises"]()


class _Boastful(Race):
    """Claims the goal before the first run."""

    def certificate(self) -> Certificate:
        return replace(super().certificate(), epsilon=0.0)


def test_a_procedure_that_claims_too_much_is_caught() -> None:
    """Before the first run nothing is known."""
    with pytest.raises(ConformanceError, match="before the first run"):
        procedure_checks(_Boastful)["claims nothing before it knows"]()


def test_a_procedure_that_waits_for_ever_is_caught() -> None:
    """Not finished, nothing under way, nothing asked."""

    class Silent(Race):
        def ask(self, slots: int) -> Orders:
            return no_orders()

    with pytest.raises(ConformanceError, match="asks for nothing"):
        procedure_checks(Silent)["certificates are intervals"]()


def test_a_format_that_reads_anything_is_caught() -> None:
    """Nonsense must be refused in captime's words."""
    honest = FORMATS["pcs"]
    assert honest.read is not None
    space = honest.read("decay real [0.5, 0.9] [0.75]\nphase categorical {a, b} [a]", "x.pcs")
    lazy = replace(honest, read=lambda text, file: space)
    suite = space_format_checks(lazy, "decay real [0.5, 0.9] [0.75]", "x.pcs")
    with pytest.raises(ConformanceError, match="expected a ScenarioError"):
        suite["nonsense is refused"]()
