import re
from typing import Any

import pytest

from captime.programs.judge import SelfReport
from captime.programs.wrappers import WRAPPERS, Called
from captime.supervision.messages import Report

CALLED = Called("/data/i 1.cnf", 42, 2, 7, 1.5, ["-a", "1"])


def read(name: str, stdout: bytes = b"", exit_code: int = 0) -> SelfReport:
    """What a wrapper's output says; patterns are matched as a supervisor does, the last line wins."""
    matches: dict[str, bytes] = {}
    for key, pattern in WRAPPERS[name].patterns.items():
        for line in stdout.splitlines():
            found = re.search(pattern.encode(), line)
            if found is not None:
                matches[key] = found.group("value")
    report = Report(1, "exit", exit_code, stdout_head=stdout, stdout_tail=stdout, matches=matches)
    return WRAPPERS[name].read(report, 60.0)


def test_every_convention_is_called_as_its_users_expect() -> None:
    """The words after the wrapper's own command, one by one; the cutoff leaves us time to stop the run ourselves."""
    expected = {
        "aclib1": ["/data/i 1.cnf", "0", "3", "2147483647", "42", "-a", "1"],
        "aclib2": ["--instance", "/data/i 1.cnf", "--cutoff", "3", "--seed", "42", "--config", "-a", "1"],
        "irace": ["3", "8", "42", "/data/i 1.cnf", "3", "-a", "1"],
        "smac3": ["--instance=/data/i 1.cnf", "--seed=42", "-a", "1"],
    }
    assert {name: wrapper.words(CALLED) for name, wrapper in WRAPPERS.items()} == expected


def test_every_convention_writes_settings_in_its_own_way() -> None:
    """Two words, or one; without exponents for irace, without blanks for SMAC3."""
    settings: dict[str, Any] = {"rate": 1e-7, "mode": "a b"}
    assert WRAPPERS["aclib1"].style(settings) == ["-rate", "1e-07", "-mode", "a b"]
    assert WRAPPERS["aclib2"].style(settings) == ["-rate", "1e-07", "-mode", "a b"]
    assert WRAPPERS["irace"].style(settings) == ["--rate", "0.0000001", "--mode", "a b"]
    assert WRAPPERS["smac3"].style(settings) == ["--rate=1e-07", "--mode=ab"]


def test_endless_captimes_have_the_largest_cutoff() -> None:
    """What a 32-bit program takes for "no limit"."""
    assert Called("i", 1, 0, 0, float("inf"), []).cutoff == "2147483647"
    assert Called("i", 1, 0, 0, 2.0, []).cutoff == "3"


@pytest.mark.parametrize(
    ("line", "word", "seconds", "answer"),
    [
        (b"Result for SMAC: SAT, 1.5, 0, 0, 42", "solved", 1.5, b"SAT"),
        (b"Result for ParamILS: UNSAT, 2, 0, 0, 42, some, more", "solved", 2.0, b"UNSAT"),
        (b"Result of this Algorithm Run: SUCCESS, .5, 0, 0, 42", "solved", 0.5, None),
        (b"Result for GPS: success, 1.25, 0.0, misc", "solved", 1.25, None),
        (b"noise\nResult for SMAC: TIMEOUT, 5.0, 0, 0, 1\nmore", "timeout", 5.0, None),
        (b"Result for SMAC: StatusType.CRASHED, 0.1, 0, 0, 1", "crashed", 0.1, None),
        (b"Result for SMAC: ABORT, 0.1, 0, 0, 1", "abort", 0.1, None),
        (b"Result for SMAC: MEMOUT, 0.1, 0, 0, 1", "memout", 0.1, None),
        (b"Result for SMAC: WHATEVER, 0.1, 0, 0, 1", "crashed", 0.1, None),
        (b"Result for SMAC: SAT, soon, 0, 0, 1", "crashed", None, None),
        (b"Result for SMAC:", "crashed", None, None),
        (b"SAT", "crashed", None, None),
        (b"Result for SMAC: SAT, 1, 0, 0, 1\nResult for SMAC: UNSAT, 2, 0, 0, 1", "solved", 2.0, b"UNSAT"),
    ],
)
def test_the_old_line_of_commas_is_understood(
    line: bytes, word: str, seconds: float | None, answer: bytes | None
) -> None:
    """In any case, with anything after the fifth comma, the last one wins; what is not understood is a crash."""
    told = read("aclib1", line)
    assert (told.word, told.seconds, told.answer) == (word, seconds, answer)


@pytest.mark.parametrize(
    ("line", "word", "seconds"),
    [
        (
            b'Result of this algorithm run: {"status": "SUCCESS", "cost": 1.0, "runtime": 0.5, "misc": ""}',
            "solved",
            0.5,
        ),
        (b'Result of this algorithm run: {"status": "TIMEOUT", "runtime": 5}', "timeout", 5.0),
        (b'Result of this algorithm run: {"status": "SAT"}', "solved", None),
        (b'Result of this algorithm run: {"status": "ABORT", "misc": "no licence"}', "abort", None),
        (b"Result of this algorithm run: {status: SUCCESS}", "crashed", None),
        (b"Result of this algorithm run: [1]", "crashed", None),
        (b"nothing", "crashed", None),
    ],
)
def test_the_new_line_of_json_is_understood(line: bytes, word: str, seconds: float | None) -> None:
    """JSON after the colon, or a crash."""
    told = read("aclib2", line)
    assert (told.word, told.seconds) == (word, seconds)


@pytest.mark.parametrize(
    ("stdout", "exit_code", "word", "seconds"),
    [
        (b"12.5\n", 0, "solved", None),
        (b"12.5 0.75\n", 0, "solved", 0.75),
        (b" 0 0 \n", 0, "solved", 0.0),
        (b"300 300\n", 0, "timeout", 300.0),
        (b"Inf\n", 0, "crashed", None),
        (b"Inf 0\n", 0, "crashed", 0.0),
        (b"1 2 3\n", 0, "nothing", None),
        (b"", 0, "nothing", None),
        (b"cost 1\n", 0, "nothing", None),
        (b"1 soon\n", 0, "nothing", None),
        (b"1 2\n", 1, "crashed", None),
    ],
)
def test_one_or_two_numbers_of_a_target_runner_are_understood(
    stdout: bytes, exit_code: int, word: str, seconds: float | None
) -> None:
    """A cost, perhaps a time, and nothing else; infinity rejects the configuration."""
    told = read("irace", stdout, exit_code)
    assert (told.word, told.seconds) == (word, seconds)


@pytest.mark.parametrize(
    ("stdout", "word", "seconds"),
    [
        (b"cost=0.5; runtime=0.01; status=SUCCESS; additional_info=test", "solved", 0.01),
        (b"cost=0.5,0.4", "solved", None),
        (b"log line\ncost=1;cpu_time=2\n", "solved", 2.0),
        (b"cost=0; status=TIMEOUT; runtime=3", "timeout", 3.0),
        (b"cost=0; status=MEMORYOUT", "memout", None),
        (b"status=SUCCESS; runtime=1", "crashed", None),
        (b"", "crashed", None),
    ],
)
def test_keys_and_values_of_a_script_are_understood(stdout: bytes, word: str, seconds: float | None) -> None:
    """Separated by semicolons; without a cost it has crashed."""
    told = read("smac3", stdout)
    assert (told.word, told.seconds) == (word, seconds)


def test_nothing_a_wrapper_prints_makes_reading_fail() -> None:
    """Bytes that are no text, and too much of everything."""
    for name in WRAPPERS:
        for stdout in (b"\xff\xfe\x00", b"=;" * 1000, b"Result for SMAC: " + b",," * 1000):
            assert read(name, stdout).word in ("crashed", "nothing")
