"""Files of other tuners, read as they wrote them: real ones of Optuna, SMAC3 and irace, and broken ones."""

import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from captime.errors import ScenarioError
from captime.tuners import TUNERS, read_incumbents
from captime.tuners import irace as irace_format

FILES = Path(__file__).parents[1] / "tuners"
BEST = {"decay": 0.8533765869166171, "restarts": 50, "phase": "false"}


@pytest.mark.parametrize("name", ["optuna.db", "optuna.journal"])
def test_both_storages_of_optuna_tell_the_same_incumbent(name: str) -> None:
    """Numbers are turned back into choices and whole numbers; a pruned trial is no candidate."""
    found = read_incumbents(FILES / name)
    assert found.tuner == "optuna"
    assert [each.settings for each in found.incumbents] == [BEST]
    assert found.incumbents[0].about == "trial 12 of study decay, value 0.0533766"
    assert found.instances is None


def test_more_incumbents_come_best_first() -> None:
    """With `top`, and no two of one trial."""
    found = read_incumbents(FILES / "optuna.db", top=30)
    values = [float(each.about.rpartition(" ")[2]) for each in found.incumbents]
    assert values == sorted(values)
    assert len(values) == 24
    active = [("noise" in each.settings) == (each.settings["phase"] == "random") for each in found.incumbents]
    assert all(active)


def test_a_maximised_study_is_read_the_other_way_round(tmp_path: Path) -> None:
    """The direction of the study decides which trial is best."""
    path = tmp_path / "study.db"
    shutil.copy(FILES / "optuna.db", path)
    with sqlite3.connect(path) as database:
        database.execute("UPDATE study_directions SET direction = 'MAXIMIZE'")
    worst = read_incumbents(FILES / "optuna.db", top=30).incumbents[-1]
    assert read_incumbents(path).incumbents[0].settings == worst.settings


def test_a_journal_that_was_cut_off_in_its_last_line_is_read(tmp_path: Path) -> None:
    """A worker may have been killed while it wrote; a broken line in the middle is another matter."""
    whole = (FILES / "optuna.journal").read_bytes()
    cut = tmp_path / "cut.log"
    cut.write_bytes(whole + b'{"op_code": 6, "trial')
    assert read_incumbents(cut).incumbents[0].settings == BEST
    lines = whole.splitlines(keepends=True)
    cut.write_bytes(b"".join([*lines[:5], b'{"op_code"\n', *lines[5:]]))
    with pytest.raises(ScenarioError, match="not as Optuna writes it"):
        read_incumbents(cut)


def test_a_storage_with_several_studies_wants_a_name(tmp_path: Path) -> None:
    """The message lists them; a wrong name likewise."""
    path = tmp_path / "two.log"
    extra = {"op_code": 0, "worker_id": "w", "study_name": "other", "directions": [2]}
    path.write_bytes((FILES / "optuna.journal").read_bytes() + json.dumps(extra).encode() + b"\n")
    with pytest.raises(ScenarioError, match=r"2 studies \(decay, other\), expected one; name it with --study"):
        read_incumbents(path)
    assert read_incumbents(path, study="decay").incumbents[0].settings == BEST
    with pytest.raises(ScenarioError, match="none is complete"):
        read_incumbents(path, study="other")
    with pytest.raises(ScenarioError, match="there are: decay, other"):
        read_incumbents(path, study="third")


def test_smac_names_its_incumbent_and_its_instances(tmp_path: Path) -> None:
    """From intensifier.json if it is there; without it, the configuration with the most trials and the lowest cost."""
    found = read_incumbents(FILES / "smac3" / "runhistory.json")
    named = json.loads((FILES / "smac3" / "intensifier.json").read_text())["incumbent_ids"]
    assert [each.about.split(",")[0] for each in found.incumbents] == [f"configuration {number}" for number in named]
    assert found.instances == [f"train/{number}.cnf" for number in range(6)]
    alone = tmp_path / "runhistory.json"
    shutil.copy(FILES / "smac3" / "runhistory.json", alone)
    assert read_incumbents(alone).incumbents[0].settings == found.incumbents[0].settings


def test_run_histories_of_both_major_versions_are_read(tmp_path: Path) -> None:
    """Trials were written as key and value, then as one list, then as objects."""
    configs = {"1": {"a": 1}, "2": {"a": 2}}
    shapes = (
        [[[1, "x", 0, 0.0], [0.9, 1.0, {"__enum__": "StatusType.SUCCESS"}]], [[2, "x", 0, 0.0], [0.5, 1.0, {}]]],
        [[1, "x", 0, None, 0.9, 1.0, 1], [2, "x", 0, None, 0.5, 1.0, 1]],
        [
            {"config_id": 1, "instance": "x", "seed": 0, "budget": None, "cost": 0.9},
            {"config_id": 2, "instance": "x", "seed": 0, "budget": None, "cost": 0.5},
        ],
    )
    for number, data in enumerate(shapes):
        path = tmp_path / f"{number}.json"
        path.write_text(json.dumps({"data": data, "configs": configs}))
        found = read_incumbents(path)
        assert found.incumbents[0].settings == {"a": 2}
        assert found.instances == ["x"]


def test_a_log_of_irace_is_read_by_r(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reader understands what R prints of the log; R itself is played by a script, because it may not be here."""
    printed = (FILES / "irace.csv").read_text() + "captime: instances\ntrain/0.cnf\ntrain/1.cnf\n"
    script = tmp_path / "bin" / "Rscript"
    script.parent.mkdir()
    script.write_text(f"#!/bin/sh\ncat <<'END'\n{printed}END\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{script.parent}:/usr/bin:/bin")
    found = read_incumbents(FILES / "irace.Rdata")
    assert found.incumbents[0].settings == {"decay": 0.834, "restarts": 47, "phase": False}
    assert found.instances == ["train/0.cnf", "train/1.cnf"]
    script.write_text("#!/bin/sh\necho 'Error: bad restore file' >&2\nexit 1\n")
    with pytest.raises(ScenarioError, match=r"R cannot read this as a log of irace \(Error: bad restore file\)"):
        read_incumbents(FILES / "irace.Rdata")


def test_without_r_the_message_says_how_to_export(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the exported file is read like any table: what R and irace add to it is no setting."""
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ScenarioError, match=r"no Rscript here; export it .* write\.csv"):
        read_incumbents(FILES / "irace.Rdata")
    assert "irace.csv" in irace_format.EXPORT
    found = read_incumbents(FILES / "irace.csv")
    assert found.incumbents[0].settings == {"decay": 0.834, "restarts": 47, "phase": False}


def test_a_table_of_settings_has_names_and_gaps(tmp_path: Path) -> None:
    """All rows, or the first few; an empty cell and NA are settings that are not there."""
    path = tmp_path / "mine.csv"
    path.write_text('"",name,decay,phase\n1,one,0.9,NA\n2,,0.8,"true"\n')
    found = read_incumbents(path)
    assert [(each.name, each.settings) for each in found.incumbents] == [
        ("one", {"decay": 0.9}),
        ("", {"decay": 0.8, "phase": True}),
    ]
    assert len(read_incumbents(path, top=1).incumbents) == 1


BROKEN = {
    "empty.csv": (b"", "0 columns of settings and 0 rows"),
    "header.csv": (b"a,b\n", "2 columns of settings and 0 rows"),
    "wide.csv": (b"a\n1,2\n", "row 1 has 2 cells"),
    "twice.csv": (b"a,a\n1,2\n", "two columns are called 'a'"),
    "latin.csv": (b"a\n\xff\n", "no text in UTF-8"),
    "runhistory.json": (b"{", "this is no JSON"),
    "data.json": (b'{"data": []}', "no run history as SMAC3 writes it"),
    "none.json": (b'{"data": [], "configs": {"1": {"a": 1}}}', "no finished trial"),
    "other.db": (b"SQLite format 3\x00 and no more", "no storage of Optuna that can be read"),
    "notes.md": (b"# Notes", "of no kind that is known here"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_cannot_be_read_is_refused_in_one_sentence(name: str, tmp_path: Path) -> None:
    """The file, what was found, and what was expected."""
    content, words = BROKEN[name]
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ScenarioError, match=words) as refusal:
        read_incumbents(path)
    assert name in str(refusal.value)


def test_a_missing_file_and_a_study_of_another_tuner_are_refused(tmp_path: Path) -> None:
    """Before anything is run."""
    with pytest.raises(ScenarioError, match=r"gone\.db cannot be read"):
        read_incumbents(tmp_path / "gone.db")
    with pytest.raises(ScenarioError, match="a file of csv, which has no studies"):
        read_incumbents(FILES / "irace.csv", study="decay")
    assert list(TUNERS) == ["optuna", "smac3", "irace", "csv"]
