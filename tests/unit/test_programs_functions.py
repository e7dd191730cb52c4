import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from captime.errors import ScenarioError
from captime.programs import Conditions, Configuration, FunctionProgram
from captime.programs.returned import account_of
from captime.programs.signatures import Arguments
from captime.runs import RunRequest
from captime.streams import FiniteStream, Instance

ONE = Configuration("one", {"a": 1, "b": "x"})


def named(instance: object, seed: int, a: int, *, b: str, config: str = "", other: int = 7) -> None:
    """By names."""


def positional(settings: dict[str, Any], path: str, number: int) -> None:
    """By position."""


def everything(instance: object, settings: dict[str, Any]) -> None:
    """All settings in one."""


def open_ended(instance: object, **settings: Any) -> None:
    """All settings by name."""


def strange(x: int) -> None:
    """Nobody knows how to call it."""


def test_a_function_is_called_as_it_wants_to_be() -> None:
    """By the names it has, or with settings, instance and seed."""
    assert Arguments(named, "f").of(ONE, "i", 5) == (
        (),
        {"a": 1, "b": "x", "instance": "i", "seed": 5, "config": "one"},
    )
    assert Arguments(positional, "f").of(ONE, "i", 5) == (({"a": 1, "b": "x"}, "i", 5), {})
    assert Arguments(everything, "f").of(ONE, "i", 5) == ((), {"settings": {"a": 1, "b": "x"}, "instance": "i"})
    assert Arguments(open_ended, "f").of(ONE, "i", 5) == ((), {"a": 1, "b": "x", "instance": "i"})


def test_a_function_that_takes_the_seed_repeats_itself() -> None:
    """Others are not believed to."""
    assert Arguments(named, "f").seeded
    assert Arguments(positional, "f").seeded
    assert not Arguments(open_ended, "f").seeded


def test_settings_have_to_fit_the_parameters() -> None:
    """Missing and unknown ones are named."""
    with pytest.raises(ScenarioError, match="expected three parameters"):
        Arguments(strange, "strange")
    with pytest.raises(ScenarioError, match="needs 'b'"):
        Arguments(named, "f").check(Configuration("c", {"a": 1}))
    with pytest.raises(ScenarioError, match="'othr' is no parameter of function f; did you mean 'other'"):
        Arguments(named, "f").check(Configuration("c", {"a": 1, "b": "", "othr": 2}))
    Arguments(open_ended, "f").check(Configuration("c", {"anything": 1}))


class _Own:
    """An object that only its author knows."""

    def __str__(self) -> str:
        """The same in every process, because tests are named after it."""
        return "an object of its own"


@pytest.mark.parametrize(
    ("value", "word", "seconds", "answer"),
    [
        (None, "solved", None, None),
        (True, "solved", None, None),
        (False, "nothing", None, None),
        (0, "nothing", None, None),
        ([1], "solved", None, None),
        ("text", "solved", None, None),
        (np.float64(3.0), "solved", None, None),
        (np.bool_(False), "nothing", None, None),
        (np.arange(3), "solved", None, None),
        (_Own(), "solved", None, None),
        ({"answer": 0}, "solved", None, b"0"),
        ({"answer": "SAT", "seconds": 1.5}, "solved", 1.5, b"SAT"),
        ({"solved": False, "answer": 3}, "nothing", None, None),
        ({"answer": False}, "nothing", None, None),
        ({"other": 1}, "solved", None, None),
        ({"seconds": float("inf")}, "solved", None, None),
    ],
    ids=str,
)
def test_what_a_function_returns_is_understood(
    value: object, word: str, seconds: float | None, answer: bytes | None
) -> None:
    """None and what is true is an answer; a dict says more."""
    told = account_of(pickle.dumps(value))
    assert (told.word, told.seconds, told.answer) == (word, seconds, answer)


class _Bomb:
    """Runs a function when it is unpickled."""

    def __reduce__(self) -> tuple[Any, tuple[str, ...]]:
        return (exec, ("raise SystemExit('executed')",))


def test_nothing_a_function_returns_is_executed() -> None:
    """An object of somebody's own is taken note of, not made."""
    assert account_of(pickle.dumps(_Bomb())).word == "solved"
    assert account_of(b"no pickle at all").word == "solved"


def test_references_that_lead_nowhere_are_refused(tmp_path: Path) -> None:
    """A module that is not there, a name that is not in it, no colon."""
    stream = FiniteStream([Instance("i", value=1)])
    (tmp_path / "empty_one.py").write_text("", encoding="utf-8")
    for reference, complaint in (
        ("nowhere_at_all:f", "importing nowhere_at_all failed"),
        ("empty_one:f", "has no function 'f'"),
        ("f", "expected module:function"),
    ):
        with pytest.raises(ScenarioError, match=complaint):
            FunctionProgram(stream, [ONE], reference, folder=tmp_path, conditions=Conditions())


def test_a_function_tells_what_it_is_and_how_it_is_called(tmp_path: Path) -> None:
    """Its source is part of the identity and watched; the call can be pasted."""
    stream = FiniteStream([Instance("i", value=1)])
    program = FunctionProgram(stream, [ONE], named, folder=tmp_path, conditions=Conditions())
    assert program.command_line(0, "x.cnf", 3) == ["named(a=1, b='x', instance='x.cnf', seed=3, config='one')"]
    launch = program.launch(RunRequest(0, 0, 1.0), 1, "t")
    assert launch.call is not None
    assert launch.argv == ()
    assert [entry[0] for entry in launch.guarded] == [__file__]
    assert list(program.programs()) == ["named"]
    nested = FunctionProgram(
        stream, [ONE], lambda settings, instance, seed: 1, folder=tmp_path, conditions=Conditions()
    )
    assert nested.repeatable
