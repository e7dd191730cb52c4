# ruff: noqa: S608 (the forger writes SQL, without any input in it)
import json
import re
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from captime.certificate import Certificate
from captime.errors import LedgerDamaged
from captime.ledger import ConfigRow, Ledger, LedgerReader
from captime.skeptic import Trust
from forgery import PAID, forge
from written_ledgers import audited, runtimes, written


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign with lost runs, looks and three workers, certified."""
    path = tmp_path_factory.mktemp("race") / "a.ledger"
    held = written(path, runtimes(1, 4, 1.0), epsilon=0.15, loses=_sometimes)
    assert held.epsilon <= 0.15
    return path


def _sometimes(request: object) -> float | None:
    told = re.findall(r"=(\d+)", str(request))
    return 0.01 if (int(told[0]) + int(told[1])) % 17 == 0 and str(request).endswith("attempt=0)") else None


@pytest.fixture
def ledger(original: Path, tmp_path: Path) -> Path:
    """A copy to do harm to."""
    return Path(shutil.copyfile(original, tmp_path / "copy.ledger"))


def test_an_honest_ledger_is_confirmed(original: Path) -> None:
    """With an account of what was checked."""
    found = audited(original)
    assert (found.verdict, found.why) == ("confirmed", "")
    with LedgerReader(original) as reader:
        assert (found.rows, found.head) == (reader.last_sequence, reader.head)
        assert found.certified == reader.last_certificate()
        assert len(reader.outcomes()["config"]) > 50
    told = "\n".join(found.account)
    assert "within 0.15 of all others" in told
    assert "written down before the first run they govern" in told


KINDS: dict[str, tuple[int, float, dict[str, Any]]] = {
    "many configurations": (40, 0.5, {"epsilon": 0.1, "workers": 2}),
    "all intervals at once": (12, 0.3, {"utility": "uniform(3)", "options": {"mode": "simultaneous"}, "workers": 8}),
    "a utility that jumps": (6, 0.5, {"utility": "step(1)", "options": {"boost": 2.0}, "workers": 1}),
    "without duels": (5, 0.4, {"utility": "uniform(2)", "options": {"boost": 1.0, "paired": False}}),
    "many, with short captimes": (44, 0.5, {"utility": "uniform(2)"}),
    "many that all answer at once": (44, 0.0, {"utility": "uniform(60)", "workers": 1}),
    "alone": (1, 0.4, {"utility": "uniform(2)", "workers": 1}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_campaigns_of_every_kind_are_confirmed(kind: str, tmp_path: Path) -> None:
    """Many workers, modes, boosts, utilities with jumps; the goal need not be reached."""
    n_configs, spread, wishes = KINDS[kind]
    path = tmp_path / "a.ledger"
    held = written(path, runtimes(n_configs, n_configs, spread), budget=2000.0, **{"epsilon": 0.2, **wishes})
    assert audited(path).verdict == "confirmed"
    assert held.epsilon < 1.0


def test_a_scout_that_is_good_enough_for_anyone_is_confirmed(tmp_path: Path) -> None:
    """Most configurations never ran; the champion's own bound does it, from the positions after it was chosen."""
    path = tmp_path / "a.ledger"
    held = written(path, 0.001 * runtimes(5, 100, 0.1), epsilon=0.2, workers=1, short=False)
    assert held.epsilon <= 0.2
    assert any("within epsilon of the best possible" in line for line in audited(path).account)
    # One position earlier the champion was not chosen yet: its luck there must not count.
    forge(path, f"UPDATE certificate SET epsilon = {held.epsilon / 3}, utility_low = {1 - held.epsilon / 3}")
    with pytest.raises(LedgerDamaged, match="rows do not show it"):
        audited(path)


# ---------------------------------------------------------------------- forgeries

_BETTER = (
    "UPDATE outcome SET status = 'completed', runtime = 0.0001 WHERE status = 'capped' AND config = "
    "(SELECT config FROM certificate ORDER BY seq DESC LIMIT 1)"
)
_LAST = "(SELECT max(seq) FROM certificate)"
_RACING = "(SELECT max(position) FROM start WHERE attempt = 0 AND config = 0)"
_MIDDLE = f"config = 0 AND position = {_RACING} - 3"

CHANGED = {
    "a runtime": "UPDATE outcome SET runtime = runtime / 2 WHERE seq = (SELECT min(seq) FROM outcome)",
    "a status": "UPDATE outcome SET status = 'failed' WHERE seq = (SELECT min(seq) FROM outcome)",
    "an epsilon": f"UPDATE certificate SET epsilon = epsilon / 2 WHERE seq = {_LAST}",
    "a name": "UPDATE config SET name = x'00' WHERE config = 1",
    "a hash": "UPDATE note SET hash = zeroblob(32)",
    "the scenario": "UPDATE campaign SET scenario = replace(scenario, '0.1', '0.2')",
    "an outcome less": "DELETE FROM outcome WHERE seq = (SELECT seq FROM outcome LIMIT 1 OFFSET 20)",
    "the first row": "DELETE FROM campaign",
    "a look less": "DELETE FROM look WHERE seq = (SELECT min(seq) FROM look)",
    "a note more": "INSERT INTO note SELECT (SELECT max(seq) + 1 FROM note), 'closed', '{}', 0, zeroblob(32)",
}


@pytest.mark.parametrize("what", CHANGED)
def test_any_changed_missing_or_added_row_is_found(what: str, ledger: Path) -> None:
    """The hash chain names the first row that is not right."""
    forge(ledger, CHANGED[what], rechain=False)
    with pytest.raises(LedgerDamaged, match=r"row \d+|is empty"):
        audited(ledger)


FORGED = {
    "re-scored": ((_BETTER,), "allows|not show|was not started|worth at|tries a run again"),
    "a stronger epsilon": ((f"UPDATE certificate SET epsilon = 0.05 WHERE seq = {_LAST}",), "rows do not show it"),
    "another leader": ((f"UPDATE certificate SET config = 1 - config % 2 WHERE seq = {_LAST}",), "not show|worth at"),
    "a better worth": (
        (f"UPDATE certificate SET utility_low = utility_low + 0.2 WHERE seq = {_LAST}",),
        "worth at least",
    ),
    "a narrower worth": ((f"UPDATE certificate SET utility_high = utility_low + 0.01 WHERE seq = {_LAST}",), "at most"),
    "another delta": ((f"UPDATE certificate SET delta = 0.01 WHERE seq = {_LAST}",), "was asked"),
    "fewer configurations": (("UPDATE certificate SET n_configs = 3",), "are registered"),
    "more for the duels": (("UPDATE certificate SET shares = replace(shares, '0.41', '0.61')",), "not documented"),
    "a run stepped over": (
        (
            f"DELETE FROM outcome WHERE {_MIDDLE}",
            f"DELETE FROM look WHERE {_MIDDLE}",
            f"DELETE FROM start WHERE {_MIDDLE}",
            PAID,
        ),
        "stepped over",
    ),
    "runs without an order": (("UPDATE ask SET n = zeroblob(length(n))",), "was not ordered"),
    "an outcome of nothing": (
        ("UPDATE outcome SET attempt = 7 WHERE seq = (SELECT max(seq) FROM outcome)",),
        "was not started",
    ),
    "an answer set aside": (
        ("UPDATE outcome SET orphan = 1 WHERE seq = (SELECT min(seq) FROM outcome)",),
        "it is the attempt that counts",
    ),
    "a longer captime": (("UPDATE start SET captime = 1e9 WHERE config = 2",), "the draw of that position allows"),
}


@pytest.mark.parametrize("what", FORGED)
def test_forgeries_with_fresh_hashes_are_found(what: str, ledger: Path) -> None:
    """A forger who makes all hashes fit again is caught by what the rows say."""
    changes, words = FORGED[what]
    forge(ledger, *changes)
    with pytest.raises(LedgerDamaged, match=words):
        audited(ledger)


def test_the_forger_himself_is_harmless(ledger: Path) -> None:
    """Fresh hashes alone change nothing: what is found above is found in the rows."""
    forge(ledger)
    assert audited(ledger).verdict == "confirmed"


def _facts(path: Path) -> tuple[int, list[int]]:
    connection = sqlite3.connect(path)
    told = json.loads(connection.execute("SELECT facts FROM note WHERE kind = 'facts' ORDER BY seq DESC").fetchone()[0])
    connection.close()
    return told["start"], told["ranking"]


def _ranked(start: int, ranking: list[int]) -> str:
    return f"UPDATE note SET facts = '{json.dumps({'ranking': ranking, 'start': start})}' WHERE kind = 'facts'"


def test_a_wrong_prior_is_found(original: Path, ledger: Path, tmp_path: Path) -> None:
    """Another order, a name twice, a configuration left out, another start, or none at all."""
    start, ranking = _facts(original)
    wrong = {
        "before": _ranked(start, ranking[::-1]),
        "better": _ranked(start, [ranking[1], ranking[0], *ranking[2:]]),
        "one rank": _ranked(start, [ranking[0], *ranking[:-1]]),
        "orders start": _ranked(start - 1, ranking),
        "not written down": "DELETE FROM note WHERE kind = 'facts'",
    }
    for words, change in wrong.items():
        path = Path(shutil.copyfile(ledger, tmp_path / "wrong.ledger"))
        forge(path, change)
        with pytest.raises(LedgerDamaged, match=words):
            audited(path)


def test_a_prior_written_down_too_late_is_found(ledger: Path) -> None:
    """Fixed before the first run that it governs, or not at all."""
    late = "UPDATE note SET seq = (SELECT max(seq) FROM outcome) + 1000000 WHERE kind = 'facts'"
    last = f"UPDATE certificate SET seq = seq + 2000000 WHERE seq = {_LAST}"
    forge(ledger, late, last, PAID)
    with pytest.raises(LedgerDamaged, match="before row"):
        audited(ledger, Trust.DATES)


def test_an_edited_runtime_is_found_when_the_certificate_needs_the_true_one(ledger: Path) -> None:
    """Slower runs of the leader, with fresh hashes: what was certified does not follow any more."""
    forge(
        ledger,
        "UPDATE outcome SET status = 'failed' WHERE status = 'completed' AND seq % 2 = 0 AND config = "
        "(SELECT config FROM certificate ORDER BY seq DESC LIMIT 1)",
    )
    with pytest.raises(LedgerDamaged, match=r"not show|tries a run again|was changed"):
        audited(ledger)


def test_what_nobody_can_check_is_said_not_passed(tmp_path: Path) -> None:
    """A procedure without a check, a utility that is code, a scenario that says nothing."""
    held = Certificate(0, 0.1, 0.1, 1, 0.5, 0.9)
    whole = {"utility": "uniform(2)", "delta": 0.1, "procedure": "race", "seed": 1}
    for number, (change, words) in enumerate(
        [
            ({"procedure": "coup"}, "procedure coup"),
            ({"utility": "python('os:getcwd')"}, "executes no code"),
            ({"utility": "nonsense"}, "cannot be read"),
        ]
    ):
        path = tmp_path / f"{number}.ledger"
        with Ledger.create(path, {**whole, **change}, [ConfigRow(0, "a")]) as ledger:
            ledger.certified(held, 1, 0.0, 1.0, 1)
        found = audited(path)
        assert found.verdict == "not-verifiable"
        assert re.search(words, found.why)


def test_a_ledger_without_a_certificate_is_only_whole(tmp_path: Path) -> None:
    """Nothing is claimed, so there is nothing to confirm."""
    Ledger.create(tmp_path / "a.ledger", {}, [ConfigRow(0, "a")]).close()
    assert audited(tmp_path / "a.ledger").verdict == "nothing"
