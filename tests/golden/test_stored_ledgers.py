"""Ledgers of every kind, as an earlier captime has written them, are read, checked, copied and resumed by this one.

`make_ledgers.py` says how they were made. A ledger whose rules of deciding are not those of this captime is not
resumed, and everything else is still done with it.
"""

import json
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from captime import certificate
from captime.campaign.identity import recorded
from captime.cli import app
from captime.errors import LedgerDamaged, ScenarioDiffers, ScenarioError
from captime.ledger import LedgerReader, connection, reading, schema, store, writer
from captime.ledger.rows import outcome_values
from captime.ledger.schema import Values, version_of
from captime.scenario import Scenario, identity, load_scenario
from captime.scenario.identity import rules_of

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
    # Orders of a fixed order were not on record when this one was made.
    trust = ("--trust", "orders") if kind == "fixed" else ()
    told = captime("verify", f"{kind}.ledger", *trust, expected=(0,) if kind in CAMPAIGNS else (0, 3))
    assert "rows are whole" in told


def other_rules(kind: str) -> bool:
    """Whether this captime decides otherwise than the one that made the ledger; a survey decides nothing."""
    if kind not in CAMPAIGNS:
        return False
    with LedgerReader(f"{kind}.ledger") as reader:
        return rules_of(recorded(reader)[0]) != certificate.RULES


@pytest.mark.parametrize("kind", KINDS)
def test_a_stored_ledger_is_resumed(folder: Path, kind: str) -> None:
    """The same command makes what is missing, and the result is confirmed; nothing is run twice."""
    if other_rules(kind):
        assert "rules" in refused(*RESUMES[kind])
        return
    before = runs_in(folder / f"{kind}.ledger")
    told = json.loads(captime(*RESUMES[kind], expected=(0, 3)))
    after = runs_in(folder / f"{kind}.ledger")
    assert after == before if kind == "validate" else after > before
    if kind in CAMPAIGNS:
        assert told["certificate"]["epsilon"] <= 0.5
    test_a_stored_certificate_is_confirmed(folder, kind)


# ---------------------------------------------------------------- captime's own version, and its rules of deciding


def refused(*words: str) -> str:
    """The complaint of a command that is refused because the ledger belongs to something else."""
    done = CliRunner().invoke(app, words)
    assert isinstance(done.exception, ScenarioDiffers), done.output
    return str(done.exception)


def another_version(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Have everything in this process believe that captime has another version."""
    for module in ("ledger.writer.metadata", "campaign.run", "campaign.identity", "scenario.scenario"):
        monkeypatch.setattr(f"captime.{module}.version", lambda _: name, raising=False)


@pytest.mark.parametrize("kind", ["race", "pool", "measure"])
def test_a_later_version_resumes_a_ledger(folder: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """The version is a note in the ledger, one for each time it was opened, and no part of the identity."""
    another_version(monkeypatch, "7.7.7")
    test_a_stored_ledger_is_resumed(folder, kind)
    if other_rules(kind):
        return
    with LedgerReader(f"{kind}.ledger") as reader:
        told = [event.facts.get("captime") for event in reader.events() if event.kind in ("began", "resumed")]
        assert reader.captime_version != "7.7.7"
    assert told[-1] == "7.7.7"


@pytest.mark.parametrize("kind", ["race", "fixed", "pool"])
def test_other_rules_do_everything_but_resume(folder: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """Resuming is refused with the remedy and changes nothing; the ledger is read and verified as before."""
    monkeypatch.setattr("captime.scenario.scenario.RULES", 1000)
    monkeypatch.setattr("captime.certificate.RULES", 1000)
    another_version(monkeypatch, "7.7.7")
    before = (folder / f"{kind}.ledger").read_bytes()
    told = refused(*RESUMES[kind][:-1])
    with LedgerReader(f"{kind}.ledger") as reader:
        made_by = reader.captime_version
    assert "decides by rules 1000" in told
    assert f"install captime {made_by}" in told
    assert "--ledger NEW" in told
    assert (folder / f"{kind}.ledger").read_bytes() == before
    test_a_stored_ledger_is_read_and_copied(folder, kind)
    test_a_stored_certificate_is_confirmed(folder, kind)


def test_rules_of_a_newer_captime_are_not_judged_by_these(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`verify` says that the rows are whole, and which captime can check the certificate."""
    monkeypatch.setattr(sys.modules["captime.skeptic.audit"], "RULES", 0)
    told = " ".join(captime("verify", "race.ledger", expected=(3,)).split())
    assert "The rows are whole, but the certificate could NOT be verified: it was decided by rules 1" in told
    assert "or a later one" in told


def test_a_measurement_has_no_rules(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It decides nothing, so it is resumed whatever the rules are."""
    monkeypatch.setattr("captime.scenario.scenario.RULES", 1000)
    monkeypatch.setattr("captime.certificate.RULES", 1000)
    test_a_stored_ledger_is_resumed(folder, "measure")
    test_a_stored_ledger_is_resumed(folder, "validate")


def test_a_field_that_a_target_could_not_say_was_its_default() -> None:
    """A scenario file learns a new word with a release: older ledgers are not thereby of another scenario."""
    now = scenario_of_stored("race").canonical()
    then = {**now, "target": {name: value for name, value in now["target"].items() if name != "disk_limit"}}
    assert identity.difference(identity.as_recorded_now(then), now) == []
    other = {**now, "target": {**now["target"], "disk_limit": 5}}
    assert identity.difference(identity.as_recorded_now(then), other) == ["target.disk_limit: was null, is 5"]


def scenario_of_stored(kind: str) -> Scenario:
    """A stored scenario."""
    return load_scenario(STORED / f"{kind}.toml")


# ---------------------------------------------------------------- tables that have grown since


@contextmanager
def later_tables() -> Iterator[int]:
    """Make captime as it may be one day: a column and a table more, and the tables have a new version."""
    later = schema.VERSION + 1
    before = schema.OUTCOME.columns
    wide = (*before, schema.Column("energy", "REAL", since=later))

    def as_written_then(*args: Any, **more: Any) -> Values:
        return {**outcome_values(*args, **more), "energy": 1.5}

    with pytest.MonkeyPatch.context() as patch:
        for module in (schema, connection, writer):
            patch.setattr(module, "VERSION", later)
        weather = schema.Table("weather", (schema.Column("degrees", "REAL", since=later),), since=later)
        tables = (*schema.TABLES, weather)
        for module in (schema, connection, writer):
            patch.setattr(module, "TABLES", tables)
        patch.setattr(store, "outcome_values", as_written_then)
        patch.setattr(reading, "_FLAT_COLUMNS", (*reading._FLAT_COLUMNS, ("energy", "o.energy")))
        try:
            _put_columns(wide)
            yield later
        finally:
            _put_columns(before)


def _put_columns(columns: tuple[schema.Column, ...]) -> None:
    object.__setattr__(schema.OUTCOME, "columns", columns)
    for cached in ("names", "blobs", "_insert", "_select", "_newest"):
        schema.OUTCOME.__dict__.pop(cached, None)


def columns_of(path: Path) -> list[str]:
    """The columns of the table of outcomes."""
    with closing(sqlite3.connect(path)) as file:
        return [name for _, name, *_ in file.execute("PRAGMA table_info(outcome)")]


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_column_does_no_harm_to_older_ledgers(folder: Path, kind: str) -> None:
    """They are read, copied, verified and resumed with the columns they have, and an older captime reads them still."""
    with later_tables():
        test_a_stored_ledger_is_read_and_copied(folder, kind)
        test_a_stored_certificate_is_confirmed(folder, kind)
        if kind != "dask":
            test_a_stored_ledger_is_resumed(folder, kind)
        with LedgerReader(f"{kind}.ledger") as reader:
            assert {row[-1] for row in reader.flat()} == {None}
    for name in (f"{kind}.ledger", "copy.ledger", "saved.ledger"):
        assert "energy" not in columns_of(folder / name)
    test_a_stored_certificate_is_confirmed(folder, kind)


def test_a_new_column_is_written_and_hashed_in_new_ledgers(folder: Path) -> None:
    """It stands in ledgers that are made with it and in their copies; changing it breaks the chain."""
    (folder / "race.ledger").unlink()
    with later_tables() as later:
        captime("run", "race.toml", "--json")
        captime("verify", "race.ledger")
        captime("salvage", "race.ledger", "-o", "saved.ledger")
        captime("backup", "race.ledger", "-o", "copy.ledger")
        for name in ("race.ledger", "saved.ledger", "copy.ledger"):
            with LedgerReader(name) as reader:
                assert {row[-1] for row in reader.flat()} == {1.5}
                assert version_of(reader._connection) == later
        with closing(sqlite3.connect("race.ledger")) as file:
            file.executescript("DROP TRIGGER outcome_no_update; UPDATE outcome SET energy = 2.5 WHERE config = 1")
        with LedgerReader("race.ledger") as reader, pytest.raises(LedgerDamaged, match="its hash does not fit"):
            list(reader.replay())


def test_a_ledger_of_newer_tables_is_refused_in_a_sentence(folder: Path) -> None:
    """By every command; the file is left as it is, and nothing is said to be wrong with it."""
    (folder / "race.ledger").unlink()
    with later_tables() as later:
        captime("run", "race.toml", "--json")
    before = (folder / "race.ledger").read_bytes()
    for words in (
        ("run", "race.toml"),
        *((command, "race.ledger") for command in ("verify", "status", "best")),
        *((command, "race.ledger", "-o", "new.csv") for command in ("export", "report", "backup", "salvage")),
    ):
        complaint = CliRunner().invoke(app, words).exception
        assert isinstance(complaint, ScenarioError), words
        assert f"made by a newer captime ({metadata.version('captime')}): its tables have version {later}" in str(
            complaint
        )
    assert (folder / "race.ledger").read_bytes() == before


def test_nobody_slips_a_column_into_an_older_ledger(folder: Path) -> None:
    """A file that is altered into a newer version does not have the hashes of that version."""
    with later_tables() as later:
        with closing(sqlite3.connect("race.ledger")) as file:
            file.execute("DROP TRIGGER campaign_no_update")
            file.execute("ALTER TABLE outcome ADD COLUMN energy REAL")
            file.execute("CREATE TABLE weather (seq INTEGER PRIMARY KEY, degrees REAL, hash BLOB)")
            file.execute("UPDATE campaign SET schema_version = ?", (later,))
            file.commit()
            file.execute(f"PRAGMA user_version = {later}")
        refused = r"its hash does not fit|no such column"
        with LedgerReader("race.ledger") as reader, pytest.raises(LedgerDamaged, match=refused):
            list(reader.replay())
