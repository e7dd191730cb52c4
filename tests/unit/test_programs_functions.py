import pickle
import threading
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from captime.errors import ScenarioError
from captime.programs import Conditions, Configuration, FunctionProgram
from captime.programs.function import Arguments
from captime.programs.returned import account_of
from captime.runs import RunRequest
from captime.streams import FiniteStream, Instance
from captime.streams.files import from_values

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
    """A function without a known signature."""


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

    def as_in_smac(config: object, instance: object, seed: int) -> None:
        """Expects its settings under the name that SMAC3 gives them."""

    with pytest.raises(ScenarioError, match=r"of function f; rename it.*'config' is the configuration's name"):
        Arguments(as_in_smac, "f").check(Configuration("c", {"alpha": 1}))


class _Own:
    """A class whose pickles need its module."""

    def __repr__(self) -> str:
        """Return the same text in every process: test ids are made of it."""
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
        ({"answer": np.int64(7), "seconds": np.int64(2)}, "solved", 2.0, b"7"),
        ({"answer": np.bool_(False)}, "nothing", None, None),
        ({"solved": np.bool_(False), "answer": 1}, "nothing", None, None),
        ({"solved": False, "answer": _Own()}, "nothing", None, None),
        ({"answer": _Own()}, "solved", None, None),
        (OrderedDict(solved=False), "nothing", None, None),
        ([_Own(), {"a": _Own()}], "solved", None, None),
        (np.zeros(1), "nothing", None, None),
        (np.array([_Own()]), "solved", None, None),
        ({"answer": np.array([[1, 2], [3, 4]], order="F")}, "solved", None, b"[[1 2]\n [3 4]]"),
        ({"answer": np.array(["SAT"], dtype=">U3")}, "solved", None, b"['SAT']"),
        ({"answer": "\ud800"}, "solved", None, b"\\ud800"),
    ],
    ids=ascii,
)
def test_what_a_function_returns_is_understood(
    value: object, word: str, seconds: float | None, answer: bytes | None
) -> None:
    """None and what is true is an answer; a dict says more."""
    told = account_of(pickle.dumps(value))
    assert (told.word, told.seconds, told.answer) == (word, seconds, answer)


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ({"answerr": 3}, "the key 'answerr'; did you mean 'answer'?"),
        ({"Solved": False}, "the key 'Solved'; did you mean 'solved'?"),
        ({"answer": 3, "second": 0.5}, "the key 'second'; did you mean 'seconds'?"),
        ({"answer": 3, "time": 0.5}, "the key 'time'; there are answer, solved, seconds"),
        ({"answer": 3, "seconds": "0.5"}, "'seconds': '0.5'; expected a number of seconds"),
        ({"seconds": float("inf")}, "'seconds': inf; expected a number of seconds"),
        ({"seconds": -1}, "'seconds': -1; expected a number of seconds"),
        ({"seconds": True}, "'seconds': True; expected a number of seconds"),
        ({"answer": 1, "solved": "no"}, "'solved': 'no'; expected True or False"),
        ({"answer": 10**5000}, "an 'answer' that cannot be written as text"),
        ({"seconds": 10**400}, "; expected a number of seconds"),
        ({"seconds": -(10**5000)}, "a value of type int that cannot be written; expected a number of seconds"),
        ({"answer": 1, 10**5000: 1}, "the key a value of type int that cannot be written; there are answer"),
    ],
    ids=range(13),
)
def test_an_account_that_cannot_be_meant_stops_everything(value: object, sentence: str) -> None:
    """A misspelt key was an answer, silently; every run of the function returns it, so the campaign stops."""
    told = account_of(pickle.dumps(value))
    assert told.word == "abort"
    assert sentence in told.problem


class _Bomb:
    """Runs a function when it is unpickled."""

    def __reduce__(self) -> tuple[Any, tuple[str, ...]]:
        return (exec, ("raise SystemExit('executed')",))


def test_nothing_a_function_returns_is_executed() -> None:
    """An object of a user's class is taken note of, not made."""
    assert account_of(pickle.dumps(_Bomb())).word == "solved"
    assert account_of(b"no pickle at all").word == "solved"


class _Pointer:
    """Would have NumPy take bytes for the address of an object."""

    def __reduce__(self) -> tuple[Any, tuple[object, ...]]:
        scalar = np.int64(1).__reduce__()[0]
        return (scalar, (np.dtype("O"), b"\x08" * 8))


class _Pointers:
    """The same for an array of objects."""

    def __reduce__(self) -> tuple[Any, ...]:
        made = np.zeros(1).__reduce__()
        return (*made[:2], (1, (1,), np.dtype("O"), False, b"\x08" * 8))


def test_bytes_are_never_taken_for_objects() -> None:
    """NumPy's own reader trusts what it is given, and the coordinator would die of it."""
    assert account_of(pickle.dumps(_Pointer())).word == "solved"
    assert account_of(pickle.dumps(_Pointers())).word == "solved"


def test_references_that_lead_nowhere_are_refused(tmp_path: Path) -> None:
    """A module that is not there, a name that is not in it, no colon."""
    stream = FiniteStream([Instance("i", value=1)])
    (tmp_path / "empty_one.py").write_text("", encoding="utf-8")
    for reference, complaint in (
        ("nowhere_at_all:f", "importing nowhere_at_all failed"),
        ("empty_one:f", "has no function 'f'"),
        ("f", "expected module:function"),
        ("empty_one.py:f", "names a file; expected the name of its module: write 'empty_one:f'"),
        ("sub/empty_one.py:f", "write 'empty_one:f'"),
    ):
        with pytest.raises(ScenarioError, match=complaint):
            FunctionProgram(stream, [ONE], reference, folder=tmp_path, conditions=Conditions())


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("def f(:\n", r"broken_0\.py, line 1: SyntaxError: .*mend the module"),
        ("x = 1\ny = x / 0\n", r"broken_1\.py, line 2: ZeroDivisionError: division by zero; .*mend the module"),
        ("import no_such_thing\n", r"broken_2\.py, line 1: ModuleNotFoundError: .*installed that it imports"),
        ("raise SystemExit('no licence')\n", r"broken_3\.py, line 1: SystemExit: no licence"),
        ("def slove(settings, instance, seed): ...\n", r"has no function 'solve'; did you mean 'slove'"),
    ],
)
def test_a_module_that_cannot_be_imported_is_named_with_its_line(
    tmp_path: Path, request: pytest.FixtureRequest, source: str, complaint: str
) -> None:
    """One sentence, whatever the module raises; it was a traceback for anything but a missing module."""
    number = request.node.callspec.indices["source"]
    (tmp_path / f"broken_{number}.py").write_text(source, encoding="utf-8")
    stream = FiniteStream([Instance("i", value=1)])
    with pytest.raises(ScenarioError, match=complaint) as refused:
        FunctionProgram(stream, [ONE], f"broken_{number}:solve", folder=tmp_path, conditions=Conditions())
    assert "\n" not in str(refused.value)


def test_a_file_behind_an_installed_module_of_the_same_name_is_told_from_it(tmp_path: Path) -> None:
    """`random.py` beside the scenario is not what `import random` gives."""
    (tmp_path / "random.py").write_text("def solve(settings, instance, seed): ...\n", encoding="utf-8")
    stream = FiniteStream([Instance("i", value=1)])
    with pytest.raises(ScenarioError, match=r"random is another module here .*rename the file"):
        FunctionProgram(stream, [ONE], "random:solve", folder=tmp_path, conditions=Conditions())


def test_a_function_that_cannot_be_sent_to_a_run_is_refused(tmp_path: Path) -> None:
    """With what stands in the way."""
    stream, lock = FiniteStream([Instance("i", value=1)]), threading.Lock()

    def solve(settings: dict[str, Any], instance: object, seed: int) -> bool:
        with lock:
            return bool(settings) or instance is None or seed > 0

    with pytest.raises(ScenarioError, match=r"cannot be sent to the process of a run: TypeError: cannot pickle"):
        FunctionProgram(stream, [ONE], solve, folder=tmp_path, conditions=Conditions())


def test_an_instance_that_cannot_be_sent_to_a_run_is_refused() -> None:
    """With its place in the list."""
    with pytest.raises(ScenarioError, match=r"instances: number 2, a lock, cannot be .*cannot pickle '_thread.lock'"):
        from_values([1, threading.Lock()], "instances", allow_duplicates=False)


def test_numbers_of_numpy_are_instances_with_names() -> None:
    """They were called int64, int64#2 and so on."""
    assert [each.name for each in from_values(list(np.arange(3)), "x", allow_duplicates=False)] == ["0", "1", "2"]


def test_a_function_tells_what_it_is_and_how_it_is_called(tmp_path: Path) -> None:
    """Its source is part of the identity and watched; the call can be pasted."""
    stream = FiniteStream([Instance("i", value=1)])
    program = FunctionProgram(stream, [ONE], named, folder=tmp_path, conditions=Conditions())
    assert program.how_started(0, Instance("1", value=1), 3) == (
        "The call was: named(a=1, b='x', instance=1, seed=3, config='one')"
    )
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
