"""Files without an end, numbers without measure, names with commands to the terminal: refused in words, at once."""

import os
import resource
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from captime.errors import CaptimeError, ScenarioError, TableError
from captime.files import check_limited, open_limited, read_limited
from captime.ledger import ConfigRow, Ledger, LedgerReader
from captime.ledger.file_watch import backup, salvage
from captime.ledger.ownership import lock_path, read_mark
from captime.report.simulated import read_trace_story
from captime.report.words import LONGEST_MESSAGE, message
from captime.scenario import load_scenario
from captime.scenario.models import ExecutorSection, InstancesSection, ScenarioModel, StopSection, TargetSection
from captime.sources import read_table
from captime.spaces.formats import read_space
from captime.streams.files import from_csv, from_list, read_answers

SCENARIO = """utility = "uniform(60)"
[target]
command = ["true"]
[instances]
values = ["a", "b"]
[configurations]
one = {}
two = {}
"""
DOCUMENT: dict[str, Any] = {
    "utility": '"uniform(60)"',
    "target": {"command": '["true"]'},
    "instances": {"values": '["a", "b"]'},
    "configurations": {"one": "{}", "two": "{}"},
}
READERS: dict[str, Callable[[Path], object]] = {
    "scenario": load_scenario,
    "space": read_space,
    "list": lambda path: from_list(path, "instances.list"),
    "csv": lambda path: from_csv(path, "instances.csv"),
    "answers": lambda path: read_answers(path, "instances.answers"),
    "ledger": LedgerReader,
    "writer": Ledger.open,
    "backup": lambda path: backup(path, path.with_name("copy")),
    "salvage": lambda path: salvage(path, path.with_name("copy")),
}
ENDINGS = {"space": ".pcs", "csv": ".csv", "answers": ".csv", "scenario": ".toml"}


@pytest.fixture
def little_memory() -> Iterator[None]:
    """A reader of a file without an end fails soon; without this the machine would."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    now = (
        int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() if sys.platform == "linux" else 0
    )
    resource.setrlimit(resource.RLIMIT_AS, (now + (1 << 30), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def zeros(path: Path) -> None:
    """A device that never ends."""
    path.symlink_to("/dev/zero")


def pipe(path: Path) -> None:
    """A pipe that is never written to."""
    os.mkfifo(path)


def folder_of(path: Path) -> None:
    """A folder."""
    path.mkdir()


def holes(path: Path) -> None:
    """A file of 16 TB, without content."""
    with path.open("wb") as file:
        try:
            file.truncate(1 << 44)
        except OSError:
            file.truncate(1 << 40)


def listener(path: Path) -> None:
    """A socket."""
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


KINDS = [zeros, pipe, folder_of, holes, listener]


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reader", READERS)
def test_what_is_no_small_file_is_refused_before_it_is_read(
    tmp_path_factory: pytest.TempPathFactory, kind: Callable[[Path], None], reader: str
) -> None:
    """Every reader, every kind: an error of ours, no memory, no waiting."""
    path = tmp_path_factory.mktemp("h") / f"x{ENDINGS.get(reader, '')}"
    kind(path)
    with pytest.raises(CaptimeError):
        READERS[reader](path)


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ending", [".csv", ".npy", ".npz", ".parquet", ".jsonl", "aslib"])
def test_tables_and_traces_too(
    tmp_path_factory: pytest.TempPathFactory, kind: Callable[[Path], None], ending: str
) -> None:
    """Also the files in the folder of an ASlib scenario."""
    path = tmp_path_factory.mktemp("h") / f"x{ending}"
    if ending == "aslib":
        path.mkdir()
        kind(path / "description.txt")
        kind(path / "algorithm_runs.arff")
    else:
        kind(path)
    with pytest.raises((TableError, ScenarioError)):
        read_table(path)
    if ending in (".csv", ".jsonl", ".parquet"):
        with pytest.raises(ScenarioError):
            read_trace_story(path)


def test_a_lock_file_of_another_kind_is_not_waited_for(tmp_path: Path) -> None:
    """A pipe in its place says nothing."""
    ledger = tmp_path / "a.ledger"
    Ledger.create(ledger, {}, [ConfigRow(0, "one")]).close()
    lock_path(ledger).unlink()
    pipe(lock_path(ledger))
    assert read_mark(ledger) is None
    with LedgerReader(ledger) as reader:
        assert reader.missing == ""


def test_limits_are_kept_to_the_byte(tmp_path: Path) -> None:
    """The largest file is read, one byte more is refused with both numbers."""
    path = tmp_path / "x"
    path.write_bytes(b"x" * 1000)
    assert read_limited(path, 1000) == b"x" * 1000
    open_limited(path, 1000).close()
    check_limited(path, 1000)
    for refuse in (read_limited, open_limited, check_limited):
        with pytest.raises(OSError, match=r"1,000 bytes, more than 999"):
            refuse(path, 999)


# ---------------------------------------------------------------------- numbers


def numbers() -> list[str]:
    """Numbers that no machine holds."""
    return ["9" * 400, "-" + "9" * 400, "0x" + "f" * 400, "0x" + "f" * 9000, "9" * 5000, "1e400", "-inf", "nan"]


SECTIONS: dict[str, type[BaseModel]] = {
    "": ScenarioModel,
    "target": TargetSection,
    "instances": InstancesSection,
    "stop": StopSection,
    "executor": ExecutorSection,
}


@pytest.mark.parametrize("number", numbers(), ids=lambda number: f"{number[:3]}-{len(number)}")
def test_a_number_that_no_machine_holds_is_no_traceback(tmp_path: Path, number: str) -> None:
    """In every field of a scenario: taken, or refused in a few words."""
    path = tmp_path / "scenario.toml"
    for section, model in SECTIONS.items():
        for name in model.model_fields:
            document = {each: dict(found) if isinstance(found, dict) else found for each, found in DOCUMENT.items()}
            (document.setdefault(section, {}) if section else document)[name] = number
            path.write_text(_written(document))
            told = ""
            try:
                load_scenario(path).build()
            except CaptimeError as error:
                told = str(error)
            assert len(told) < 2000, (section, name)


@pytest.mark.parametrize("number", numbers(), ids=lambda number: f"{number[:3]}-{len(number)}")
def test_in_spaces_too(tmp_path: Path, number: str) -> None:
    """In every format that has numbers."""
    texts = {
        "a.toml": "[space]\nx = {{ type = '{kind}', low = 1, high = {number} }}\n",
        "b.toml": "[space]\nx = {{ type = '{kind}', low = {number}, high = 5, default = 2 }}\n",
        "a.json": '{{"x": {{"type": "{kind}", "low": 1, "high": {number}}}}}',
        "a.yaml": "x:\n  type: {kind}\n  low: 1\n  high: {number}\n",
        "a.pcs": "x {kind} [1, {number}] [1]\n",
        "b.pcs": "x [1, {number}] [1]i\n",
        "a.txt": 'x "--x " i (1, {number})\n',
    }
    for name, text in texts.items():
        for kind in ("int", "float", "integer", "real"):
            path = tmp_path / name
            path.write_text(text.format(kind=kind, number=number))
            told = ""
            try:
                read_space(path)
            except CaptimeError as error:
                told = str(error)
            assert len(told) < 20_000, (name, kind)


def _written(document: dict[str, Any]) -> str:
    plain = [f"{name} = {value}\n" for name, value in document.items() if not isinstance(value, dict)]
    tables = [(name, value) for name, value in document.items() if isinstance(value, dict)]
    return "".join(plain) + "".join(
        f"[{name}]\n" + "".join(f"{key} = {each}\n" for key, each in value.items()) for name, value in tables
    )


# ---------------------------------------------------------------------- messages


def test_messages_cannot_command_a_terminal_and_have_an_end() -> None:
    """Escapes are shown, lines stay lines, and what is too much is counted."""
    assert message("a\x1b[31m\tb\nc\x07\x9b\u202e") == "a\\x1b[31m\\tb\nc\\x07\\x9b\\u202e"
    assert message("x" * LONGEST_MESSAGE) == "x" * LONGEST_MESSAGE
    assert message("x" * (LONGEST_MESSAGE + 5)).endswith("x… (5 more characters)")


NASTY = "\x1b]0;owned\x07\x1b[2J"


@pytest.mark.parametrize(
    "case", ["missing", "option", "argument", "key", "section", "value", "list", "long"], ids=lambda case: case
)
def test_no_complaint_of_a_command_carries_control_characters(tmp_path: Path, case: str) -> None:
    """File names, options, keys and values, through the real program."""
    scenario = tmp_path / f"s{NASTY}.toml"
    texts = {
        "key": f'"{_toml(NASTY)}" = 1\n' + SCENARIO,
        "section": SCENARIO + f'["{_toml(NASTY)}"]\nx = 1\n',
        "value": SCENARIO.replace("uniform(60)", _toml(NASTY)),
        "list": SCENARIO.replace('values = ["a", "b"]', f'list = "{_toml(NASTY)}"'),
        "long": SCENARIO.replace("[configurations]", '[configurations]\n"' + "x" * 9000 + '" = 5'),
    }
    if case in texts:
        scenario.write_text(texts[case])
    words = {
        "missing": ["status", str(scenario)],
        "option": ["run", f"--{NASTY}"],
        "argument": ["status", "x", NASTY],
    }.get(case, ["run", str(scenario)])
    done = subprocess.run([sys.executable, "-m", "captime", *words], capture_output=True, check=False)
    assert done.returncode == 2, done.stderr
    assert b"Traceback" not in done.stderr
    shown = done.stdout + done.stderr
    assert not [byte for byte in b"\x1b\x07" if byte in shown], shown
    assert len(shown) < 2 * LONGEST_MESSAGE


def _toml(text: str) -> str:
    return "".join(f"\\u{ord(each):04x}" if not each.isprintable() else each for each in text)


def test_a_name_that_is_too_long_is_no_traceback(tmp_path: Path) -> None:
    """Wherever a command meets it first."""
    long = str(tmp_path / ("x" * 300))
    scenario = tmp_path / "s.toml"
    scenario.write_text(SCENARIO)
    for words in (
        ["run", long],
        ["status", long],
        ["run", str(scenario), "--ledger", long],
        ["simulate", long + ".csv"],
    ):
        done = subprocess.run([sys.executable, "-m", "captime", *words], capture_output=True, check=False)
        assert done.returncode in (2, 6), (words, done.stderr)
        assert b"Traceback" not in done.stderr, words
