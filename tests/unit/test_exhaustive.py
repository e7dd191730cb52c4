"""A new status, verdict or reason to stop cannot be overlooked: types, constraints and decisions follow the enums.

Decisions on a `Status` ask for its `meaning`, or are a `match` that ends with `assert_never`, so that the type checker
finds every one of them when a member is added.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

import captime
from captime.bounds.betting import sine_nodes
from captime.certificate import Certificate, Mode
from captime.ledger import ConfigRow, Ledger, LedgerReader, SampleRow
from captime.ledger.rows import Observed
from captime.ledger.schema import OUTCOME, Origin
from captime.runs import STATUS_OF, Measurement, RunOutcome, RunRequest, Status, Verdict
from captime.skeptic import books, outcomes
from captime.skeptic.directed import Bets

SOURCE = Path(captime.__file__).parent
ENUMERATIONS = ("Status", "Verdict", "Halt")


def modules() -> Iterator[tuple[str, ast.Module]]:
    """Every file of the package, parsed."""
    for path in sorted(SOURCE.rglob("*.py")):
        yield str(path.relative_to(SOURCE)), ast.parse(path.read_text(encoding="utf-8"))


def members_in(node: ast.AST, names: tuple[str, ...]) -> list[str]:
    """Members of these enumerations that are named anywhere inside."""
    return [
        f"{each.value.id}.{each.attr}"
        for each in ast.walk(node)
        if isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name) and each.value.id in names
    ]


def ends_with_assert_never(found: ast.Match) -> bool:
    """Whether the last case takes all that is left, and is unreachable by its type."""
    last = found.cases[-1]
    takes_all = isinstance(last.pattern, ast.MatchAs) and last.pattern.pattern is None
    return takes_all and "assert_never" in ast.unparse(last)


def test_every_match_on_an_enumeration_is_exhaustive() -> None:
    """It ends with `assert_never`; there are some, or this test looks at nothing."""
    seen, loose = 0, []
    for name, tree in modules():
        for node in ast.walk(tree):
            if isinstance(node, ast.Match) and any(members_in(case.pattern, ENUMERATIONS) for case in node.cases):
                seen += 1
                loose += [] if ends_with_assert_never(node) else [f"{name}:{node.lineno}"]
    assert seen >= 7
    assert loose == []


def test_no_status_is_compared_one_by_one() -> None:
    """`status is Status.LOST` would silently be false for a status that is added later."""
    compared = [
        f"{name}:{node.lineno}: {ast.unparse(node)}"
        for name, tree in modules()
        for node in ast.walk(tree)
        if (isinstance(node, ast.Compare) and members_in(node, ("Status",)))
        or (isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".index") and members_in(node, ("Status",)))
    ]
    assert compared == []


def test_a_new_member_is_announced_by_the_type_checker(tmp_path: Path) -> None:
    """The file that says what members mean is checked with a status and a verdict more; both are missed."""
    pytest.importorskip("mypy")
    text = (SOURCE / "runs.py").read_text(encoding="utf-8")
    for place, member in (("\n    @property\n    def meaning", "PAUSED"), ("\n\nclass Halt", "DREAMT")):
        assert text.count(place) == 1
        text = text.replace(place, f'    {member} = "{member.lower()}"\n{place}')
    (tmp_path / "captime").mkdir()
    for name, content in (
        ("__init__.py", ""),
        ("errors.py", (SOURCE / "errors.py").read_text(encoding="utf-8")),
        ("runs.py", text),
    ):
        (tmp_path / "captime" / name).write_text(content, encoding="utf-8")
    words = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "captime/runs.py"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    missed = [line for line in done.stdout.splitlines() if "assert_never" in line]
    assert done.returncode == 1, done.stdout + done.stderr
    assert [word in line for word, line in zip(("Status.PAUSED", "Verdict.DREAMT"), missed, strict=True)] == [
        True,
        True,
    ]


def test_a_ledger_holds_every_member(tmp_path: Path) -> None:
    """Constraints are made from the enumerations: every status, verdict, origin and mode is written and comes back."""
    verdicts = [None, *Verdict]
    requests = [RunRequest(0, place, 1.0) for place in range(len(verdicts) * len(Status))]
    written = [
        RunOutcome(request, list(Status)[place % len(Status)], 0.5, 0.5, "", verdicts[place // len(Status)])
        for place, request in enumerate(requests)
    ]
    origins = [ConfigRow(place, f"c{place}", {}, origin) for place, origin in enumerate(get_args(Origin))]
    with Ledger.create(tmp_path / "a.ledger", {}, origins) as ledger:
        ledger.started(requests, {each.instance: SampleRow(each.instance, "i") for each in requests})
        ledger.observed(written)
        for mode in get_args(Mode):
            ledger.certified(Certificate(0, 0.5, 0.1, 1, 0.0, 1.0, mode=mode), 1, 1.0, 1.0, 1)
    with LedgerReader(tmp_path / "a.ledger") as reader:
        told = [event for event in reader.replay() if isinstance(event, Observed)]
        assert list(told[0].outcomes) == written
        assert [config.origin for config in reader.configs] == list(get_args(Origin))
        assert [each.certificate.mode for each in reader.certificates()] == list(get_args(Mode))


def test_a_measurement_has_a_column_for_every_field(tmp_path: Path) -> None:
    """What is measured is written and comes back; a field without a column would be lost without a word."""
    assert {each.name for each in fields(Measurement)} <= set(OUTCOME.names)
    measured = Measurement(1, 2, 3, 4, 5, b"6", 7.0, 8, 9, 10, 11, b"12", b"13", "14", 15, ("idle", "contended"))
    outcome = RunOutcome(RunRequest(0, 0, 1.0), Status.FAILED, 0.5, 0.5, "d", Verdict.CRASH, measured)
    with Ledger.create(tmp_path / "a.ledger", {}, [ConfigRow(0, "c")]) as ledger:
        ledger.started([outcome.request], {0: SampleRow(0, "i")})
        ledger.observed([outcome])
    with LedgerReader(tmp_path / "a.ledger") as reader:
        assert reader.newest(1) == [outcome]


def test_every_member_means_something_of_its_own() -> None:
    """No two statuses mean the same, one of them does not count, and every verdict has its status."""
    meanings = [status.meaning for status in Status]
    assert len(set(meanings)) == len(Status)
    assert [status for status in Status if not status.meaning.counts] == [Status.LOST]
    assert all(each.answered + each.never + each.unfinished == 1 for each in meanings)
    assert set(STATUS_OF) == set(Verdict)


def test_the_check_knows_every_member() -> None:
    """It has tables of its own, which say the same: a verdict that it does not know would refuse honest ledgers."""
    assert {verdict.value: STATUS_OF[verdict].value for verdict in Verdict} == {
        verdict: statuses[0] for verdict, statuses in outcomes.STATUSES.items()
    }
    assert {status.value for status in Status if status.meaning.final} == books._FINAL


@pytest.mark.parametrize("count", [1, 4, 64])
def test_the_check_bets_the_same_shares(count: int) -> None:
    """It has the shares from the documents, not from the engine: other shares have to be written in both places."""
    np.testing.assert_allclose(Bets.documented(count).shares, sine_nodes(count), rtol=1e-14)


# The independent check derives these tables again, and calls them by their names in the proofs.
DERIVED_TWICE = {"ArrivalTable", "ShareTable"}


def test_no_two_classes_have_the_same_name() -> None:
    """A class is known by its name alone, wherever it is imported from."""
    places: dict[str, list[str]] = {}
    for name, tree in modules():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(name)
    assert len(places) > 400
    assert {name: found for name, found in places.items() if len(found) > 1 and name not in DERIVED_TWICE} == {}
