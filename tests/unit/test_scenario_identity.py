import copy
import json
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from captime.certificate import RULES
from captime.scenario import difference, grown, scenario_hash, scenario_of

Document = dict[str, Any]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Programs and instances to point at."""
    for name in ("solver.py", "other.py", "check.py"):
        (tmp_path / name).write_text(f"print({name!r})", encoding="utf-8")
    for number in range(4):
        (tmp_path / f"{number}.cnf").write_text(str(number), encoding="utf-8")
    return tmp_path


def base() -> Document:
    """A scenario with something in every section."""
    return {
        "utility": "uniform(60)",
        "delta": 0.1,
        "seed": 1,
        "options": {"boost": 2.0},
        "order": "fixed",
        "target": {
            "command": [sys.executable, "solver.py", "{instance}", "{a}"],
            "answer": "^yes",
            "verifier": [sys.executable, "check.py"],
            "environment": {"inherit": ["PATH"], "set": {"KEY": "1"}},
        },
        "configurations": {"one": {"a": 1}, "two": {"a": 2}},
        "instances": {"list": "list.txt", "sampling": "given"},
        "stop": {"epsilon": 0.1},
    }


def canonical(folder: Path, changed: Document, instances: int = 3) -> Document:
    """What the ledger would remember, as it comes back from JSON."""
    (folder / "list.txt").write_text("".join(f"{number}.cnf\n" for number in range(instances)), encoding="utf-8")
    found: Document = json.loads(json.dumps(scenario_of(changed, folder).canonical()))
    return found


def at(*path: str) -> Callable[[Document, Any], None]:
    """A function that sets one field."""

    def put(document: Document, value: Any) -> None:
        for part in path[:-1]:
            document = document.setdefault(part, {})
        document[path[-1]] = value

    return put


CHANGES: list[tuple[str, tuple[str, ...], Any]] = [
    ("utility", ("utility",), "uniform(61)"),
    ("delta", ("delta",), 0.11),
    ("seed", ("seed",), 2),
    ("captime_first", ("captime_first",), "2s"),
    ("procedure", ("procedure",), "up"),
    ("options.boost", ("options", "boost"), 2.5),
    ("order", ("order",), "arrival"),
    ("window", ("window",), 9),
    ("clock", ("target", "clock"), "wall"),
    ("target.command", ("target", "command"), [sys.executable, "other.py", "{instance}", "{a}"]),
    ("target.settings_style", ("target", "settings_style"), ["--{name}", "{value}"]),
    ("target.switches", ("target", "switches"), {"a": "-a"}),
    ("target.stdin", ("target", "stdin"), "{instance}"),
    ("target.answer", ("target", "answer"), "^yep"),
    ("target.exit_codes", ("target", "exit_codes"), [1]),
    ("target.verifier", ("target", "verifier"), [sys.executable, "check.py", "-v"]),
    ("target.verifier_timeout", ("target", "verifier_timeout"), "2s"),
    ("target.tolerance", ("target", "tolerance"), 0.1),
    ("target.ceiling", ("target", "ceiling"), "9s"),
    ("target.wall_factor", ("target", "wall_factor"), 6),
    ("target.memory", ("target", "memory"), "1GB"),
    ("target.output_limit", ("target", "output_limit"), "1GB"),
    ("target.disk_limit", ("target", "disk_limit"), "1GB"),
    ("target.processes", ("target", "processes"), 7),
    ("target.directory", ("target", "directory"), "."),
    ("target.repeatable", ("target", "repeatable"), True),
    ("target.environment.inherit", ("target", "environment", "inherit"), ["HOME"]),
    ("target.environment.set.KEY", ("target", "environment", "set"), {"KEY": "2"}),
    ("configurations.two.settings.a", ("configurations", "two", "a"), 3),
    ("configurations: 1 added ('three')", ("configurations", "three"), {"a": 3}),
    ("instances.sampling", ("instances", "sampling"), "replace"),
]


@pytest.mark.parametrize(("field", "path", "value"), CHANGES, ids=[field for field, _, _ in CHANGES])
def test_every_changed_field_is_named(folder: Path, field: str, path: tuple[str, ...], value: Any) -> None:
    """One field each: the hash differs, the difference begins with its name, and grown() sees no mere growth (F25)."""
    before, document = canonical(folder, base()), base()
    at(*path)(document, value)
    after = canonical(folder, document)
    named = difference(before, after)
    assert [line for line in named if line.startswith(field)], named
    # A command that names another file brings that file's digest with it; everything else stands alone.
    follows = ("target.programs", "instances.seed", *(["window"] if field == "order" else []))
    assert len([line for line in named if not line.startswith(follows)]) == 1, named
    assert scenario_hash(before) != scenario_hash(after)
    assert (grown(before, after) is not None) == ("added" in field)


@pytest.mark.parametrize(
    ("name", "field"),
    [("solver.py", "target.programs.solver.py"), ("check.py", "target.programs.check.py"), ("1.cnf", "instances:")],
)
def test_one_changed_byte_in_a_file_is_named(folder: Path, name: str, field: str) -> None:
    """Programs, verifiers and instances by their content (F26, F27)."""
    before = canonical(folder, base())
    path = folder / name
    path.write_bytes(path.read_bytes() + b" ")
    found = difference(before, canonical(folder, base()))
    assert len(found) == 1
    assert found[0].startswith(field)
    assert (f"the program {name!r} has changed" in found[0]) == field.startswith("target.programs")
    assert name in found[0]


def test_rules_are_part_of_the_identity_and_the_version_is_not(folder: Path) -> None:
    """Rows that were decided by different rules are not mixed; which captime wrote them does not matter."""
    before = canonical(folder, base())
    assert difference(before | {"rules": 0}, before) == [f"rules: was 0, is {RULES}"]
    assert metadata.version("captime") not in json.dumps(before)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("jobs",), 1),
        (("oversubscribe",), True),
        (("isolation",), "posix"),
        (("ledger",), "elsewhere"),
        (("stop", "epsilon"), 0.01),
        (("stop", "cpu"), "1d"),
        (("stop", "wall"), "1d"),
        (("stop", "until"), "18:30"),
        (("target", "compare_answers"), False),
    ],
)
def test_going_on_differently_is_the_same_question(folder: Path, path: tuple[str, ...], value: Any) -> None:
    """More jobs, a smaller epsilon, more time, another name of the ledger."""
    document = base()
    at(*path)(document, value)
    assert difference(canonical(folder, base()), canonical(folder, document)) == []


def test_the_hash_depends_on_nothing_but_the_fields(folder: Path) -> None:
    """Not on the order in which they were written, nor on where the folder lies."""
    document = base()
    swapped = dict(reversed(list(copy.deepcopy(document).items())))
    assert scenario_hash(canonical(folder, document)) == scenario_hash(canonical(folder, swapped))
    moved = folder / "moved"
    moved.mkdir()
    for path in folder.glob("*.*"):
        (moved / path.name).write_bytes(path.read_bytes())
    assert difference(canonical(folder, document), canonical(moved, document)) == []


def test_growth_at_the_end_can_be_told_from_a_change(folder: Path) -> None:
    """More instances or configurations at the end are an extension; anything else is not."""
    before = canonical(folder, base())
    document = base()
    document["configurations"]["three"] = {"a": 3}
    longer = canonical(folder, document, instances=4)
    assert grown(before, longer) == (1, 1)
    assert grown(before, before) == (0, 0)
    assert grown(longer, before) is None
    assert grown(before, longer | {"delta": 0.2}) is None


def test_instances_that_were_there_keep_their_answers_and_groups() -> None:
    """Runs judged by two rules do not belong into one ledger; what is new may bring its own."""
    old: dict[str, Any] = {"list": [["a", "#a"], ["b", "#b"]], "answers": {"a": "00"}, "groups": ["x", "y"]}

    def added(**changed: Any) -> tuple[int, int] | None:
        longer: dict[str, Any] = {
            "list": [*old["list"], ["c", "#c"]],
            "answers": {"a": "00", "c": "11"},
            "groups": ["x", "y", "z"],
        }
        none: dict[str, Any] = {"configurations": {"list": []}}
        return grown({**none, "instances": old}, {**none, "instances": {**longer, **changed}})

    assert added() == (0, 1)
    assert added(answers={"a": "ff", "c": "11"}) is None
    assert added(answers={"a": "00", "b": "01"}) is None
    assert added(answers={}) is None
    assert added(groups=["x", "x", "z"]) is None
    assert added(groups=None) is None


def test_lists_that_lost_or_swapped_members_say_so(folder: Path) -> None:
    """Gone, added, in another order."""
    before = canonical(folder, base())
    document = base()
    document["configurations"] = {"two": {"a": 2}, "one": {"a": 1}}
    assert difference(before, canonical(folder, document)) == ["configurations: the order changed"]
    assert difference(before, canonical(folder, base(), instances=2)) == ["instances: 1 gone ('2.cnf')"]
