"""Ledgers of every kind, as an earlier captime has written them, are read, checked, copied and resumed by this one.

`make_ledgers.py` says how they were made. A ledger whose rules of deciding are not those of this captime is not
resumed, and everything else is still done with it.
"""

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from captime.cli import app
from captime.ledger import LedgerReader

STORED = Path(__file__).parent / "ledgers"
CAMPAIGNS = ("race", "fixed", "pool", "function", "late", "resumed", "dask")
KINDS = (*CAMPAIGNS, "measure", "validate")
RESUMES = {
    **{kind: ("run", f"{kind}.toml", "--epsilon", "0.35", "--json") for kind in CAMPAIGNS},
    "pool": ("run", "pool.toml", "--epsilon", "0.5", "--json"),
    "measure": ("measure", "measure.toml", "-o", "measure.npz", "--json"),
    "validate": (
        *("validate", "race.ledger", "--instances", "held-out/*.txt", "--scenario", "race.toml"),
        *("--ledger", "validate.ledger", "--json"),
    ),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The stored files, in a folder where they may be written to."""
    copy = tmp_path / "ledgers"
    shutil.copytree(STORED, copy)
    monkeypatch.chdir(copy)
    monkeypatch.syspath_prepend(str(copy))
    return copy


def captime(*words: str, expected: tuple[int, ...] = (0,)) -> str:
    """What a command prints."""
    done = CliRunner().invoke(app, words, catch_exceptions=True)
    assert done.exit_code in expected, f"{words}: {done.exit_code}\n{done.output}\n{done.exception!r}"
    return done.stdout


def runs_in(path: Path) -> int:
    """How many runs a ledger has, whatever became of them."""
    with LedgerReader(path) as reader:
        return sum(count for count, _ in reader.counts().values())


def test_every_kind_is_stored() -> None:
    """A kind that is added to the list is stored too, closed in good order, and small."""
    assert {path.stem for path in STORED.glob("*.ledger")} == set(KINDS)
    assert not list(STORED.glob("*.ledger[-.]*"))
    assert max(path.stat().st_size for path in STORED.glob("*.ledger")) < 150_000


@pytest.mark.parametrize("kind", KINDS)
def test_a_stored_ledger_is_read_and_copied(folder: Path, kind: str) -> None:
    """Its rows are whole; status, export, report, backup and salvage work."""
    name = f"{kind}.ledger"
    with LedgerReader(name) as reader:
        events, rows = list(reader.replay()), reader.last_sequence
    assert events
    assert rows > 50
    captime("status", name)
    captime("export", name, "-o", "runs.csv")
    assert len((folder / "runs.csv").read_text(encoding="utf-8").splitlines()) == 1 + runs_in(folder / name)
    captime("report", name, "-o", "report.html")
    captime("backup", name, "-o", "copy.ledger")
    captime("salvage", name, "-o", "saved.ledger")
    for copy in ("copy.ledger", "saved.ledger"):
        with LedgerReader(copy) as reader:
            assert reader.last_sequence == rows + 1
            assert len(list(reader.replay())) == len(events) + 1


@pytest.mark.parametrize("kind", KINDS)
def test_a_stored_certificate_is_confirmed(folder: Path, kind: str) -> None:
    """What was certified follows from the rows, as it did then; where no check exists, the rows at least are whole."""
    certified = kind in CAMPAIGNS and kind != "fixed"
    told = captime("verify", f"{kind}.ledger", expected=(0,) if certified else (0, 3))
    assert "rows are whole" in told


@pytest.mark.parametrize("kind", KINDS)
def test_a_stored_ledger_is_resumed(folder: Path, kind: str) -> None:
    """The same command makes what is missing, and the result is confirmed; nothing is run twice."""
    before = runs_in(folder / f"{kind}.ledger")
    told = json.loads(captime(*RESUMES[kind], expected=(0, 3)))
    after = runs_in(folder / f"{kind}.ledger")
    assert after == before if kind == "validate" else after > before
    if kind in CAMPAIGNS:
        assert told["certificate"]["epsilon"] <= 0.5
    test_a_stored_certificate_is_confirmed(folder, kind)
