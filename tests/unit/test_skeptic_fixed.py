# ruff: noqa: S608 (the forger writes SQL, without any input in it)
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from captime.certificate import Certificate
from captime.errors import LedgerDamaged
from captime.skeptic.books import Story
from captime.skeptic.fixed import Cells, FixedCheck, _hoeffding
from captime.utilities import parse_utility
from forgery import PAID, forge
from written_ledgers import audited, runtimes, written

_LAST = "(SELECT max(seq) FROM certificate)"
KINDS: dict[str, tuple[str, dict[str, object], float]] = {
    "up": ("up", {}, 0.55),
    "up as the paper has it": ("up", {"variant": "paper"}, 0.6),
    "up with two events": ("up", {"events": 2}, 0.55),
    "up as published": ("up", {"variant": "as-published"}, 0.65),
    "oup": ("oup", {}, 0.6),
    "oup by the old rule": ("oup", {"rule": "old"}, 0.6),
    "fixed captimes": ("fixed-captimes", {}, 0.2),
    "naive": ("naive", {}, 0.55),
    "naive with what the bounds show": ("naive", {"variant": "recommended"}, 0.55),
}


def _recorded(path: Path, kind: str) -> float:
    procedure, options, epsilon = KINDS[kind]
    held = written(
        path,
        runtimes(2, 4, 1.0),
        procedure=procedure,
        options=options,
        epsilon=epsilon,
        loses=lambda request: 0.01 if request.instance % 17 == 3 and request.attempt == 0 else None,
    )
    assert held.epsilon <= epsilon
    return held.epsilon


@pytest.mark.parametrize("kind", KINDS)
def test_procedures_with_fixed_captimes_are_confirmed_and_not_more(kind: str, tmp_path: Path) -> None:
    """The epsilon claimed follows from the rows; a slightly smaller one, with fresh hashes, does not."""
    path = tmp_path / "a.ledger"
    epsilon = _recorded(path, kind)
    assert audited(path).verdict == "confirmed"
    # Bets are rounded to a grid by the engine and not by the skeptic; naive claims what was asked, not what is shown.
    share = 0.5 if kind in ("fixed captimes", "naive") else 0.999
    forge(path, f"UPDATE certificate SET epsilon = epsilon * {share} - 0.001 WHERE seq = {_LAST} AND epsilon > 0.01")
    if epsilon > 0.01 and kind != "naive":
        with pytest.raises(LedgerDamaged, match="but the rows show"):
            audited(path)


def test_interval_captimes_and_prefixes_are_checked_too(tmp_path: Path) -> None:
    """A narrower interval, a captime that is on no ladder, a run less, another delta."""
    wrong = {
        "is worth between": f"UPDATE certificate SET utility_low = utility_low + 0.01 WHERE seq = {_LAST}",
        "not on the ladder": "UPDATE start SET captime = captime * 1.5 WHERE position = 5 AND config = 1",
        "at delta 0.2": "UPDATE certificate SET delta = 0.2",
    }
    for number, (words, change) in enumerate(wrong.items()):
        path = tmp_path / f"{number}.ledger"
        _recorded(path, "up")
        forge(path, change)
        with pytest.raises(LedgerDamaged, match=words):
            audited(path)
    path = tmp_path / "stepped.ledger"
    _recorded(path, "up")
    deleted = (f"DELETE FROM {table} WHERE position = 6 AND config = 2" for table in ("outcome", "look", "start"))
    forge(path, *deleted, PAID)
    with pytest.raises(LedgerDamaged, match="stepped over"):
        audited(path)


def test_an_upper_end_that_delta_does_not_cover_is_not_confirmed() -> None:
    """Early ledgers of fixed-captimes show the leader's own bound: that is said; a smaller end is a contradiction."""
    question: Any = SimpleNamespace(procedure="fixed-captimes")
    lower, upper = np.array([0.5, 0.3]), np.array([0.6, 0.68])
    said = Certificate(0, 0.2, 0.1, 2, utility_low=0.45, utility_high=0.68)
    covered, own, smaller = (
        FixedCheck(cast("Any", None), question, replace(said, utility_high=end)) for end in (0.68, 0.62, 0.55)
    )
    covered._compare(lower, upper)
    assert covered.account
    assert not covered.why
    own._compare(lower, upper)
    assert "which delta does not cover" in own.why
    with pytest.raises(LedgerDamaged, match="is worth between"):
        smaller._compare(lower, upper)


@pytest.mark.parametrize(
    ("procedure", "options", "words"),
    [("up", {"bound": "kl"}, "bound kl"), ("coup", {}, "procedure coup"), ("coup-plus", {}, "procedure coup-plus")],
)
def test_what_has_no_check_yet_is_said(procedure: str, options: dict[str, object], words: str, tmp_path: Path) -> None:
    """Whole, but not verified: never passed in silence."""
    path = tmp_path / "a.ledger"
    written(path, runtimes(2, 3, 1.0), procedure=procedure, options=options, epsilon=0.7, budget=200.0)
    found = audited(path)
    assert found.verdict == "not-verifiable"
    assert re.search(words, found.why)


def test_a_given_up_run_is_no_cut_one() -> None:
    """Last seen after 1 s of 8 and never tried again, it may have answered just then; nothing proves more or less."""
    n, utility = 400, parse_utility("uniform(10)")
    nothing = np.full(n, np.nan)
    told = Story(
        position=np.arange(n),
        began=np.arange(n),
        captime=np.full(n, 8.0),
        seen=np.full(n, 1.0),
        runtime=nothing,
        failed=np.zeros(n, dtype=np.bool_),
        cut=np.zeros(n, dtype=np.bool_),
        settled=np.ones(n, dtype=np.bool_),
    )
    question: Any = SimpleNamespace(utility=utility)
    cells = Cells(lambda m, _: np.full(len(m), 3.0), np.array([8.0]))
    low, high = _hoeffding(question, told, cells)
    assert low == 0.0
    assert 0.9 <= high < 1.0
    assert _hoeffding(question, replace(told, seen=np.full(n, 8.0)), cells)[1] < 0.3
