import os
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from captime.executors.dask_files import Digests, FilesMissing, FileStore, LaunchReady
from captime.streams.files import digest_of_file, fingerprint_of
from captime.supervision.messages import Preparation, lost_by_change
from captime.supervision.run import changed_file
from supervised import launch


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FileStore:
    """The files of a station whose temporary folder is the test's."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return FileStore("test")


def named(path: Path) -> tuple[str, str]:
    """A file by path and content."""
    return str(path), sha256(path.read_bytes()).hexdigest()


def test_the_same_content_is_the_same_file_wherever_it_lies(shelf: FileStore, tmp_path: Path) -> None:
    """Other machines have other devices and inodes; from then on their own copy is watched."""
    file = tmp_path / "solver"
    file.write_bytes(b"\x7fELF")
    there = launch(str(file), guarded=((str(file), 1, 2, 3, 4, 5, ""),))
    ready = shelf.made_ready(there, [named(file)], None)
    assert isinstance(ready, LaunchReady)
    assert ready.launch.guarded == (fingerprint_of(str(file), digest_of_file(file)),)
    assert ready.launch.argv == there.argv


def test_another_content_is_another_file(shelf: FileStore, tmp_path: Path) -> None:
    """A worker with another version of the program, or without it, is told apart before it runs anything."""
    file = tmp_path / "solver"
    file.write_bytes(b"one")
    asked = named(file)
    file.write_bytes(b"two")
    differs = shelf.made_ready(launch(str(file)), [asked], None)
    assert isinstance(differs, FilesMissing)
    assert differs.why.endswith("holds something else there")
    file.unlink()
    vanished = shelf.made_ready(launch(str(file)), [asked], None)
    assert isinstance(vanished, FilesMissing)
    assert "cannot be read there" in vanished.why


def test_an_instance_that_was_sent_takes_the_place_of_the_one_at_home(shelf: FileStore, tmp_path: Path) -> None:
    """In every word of the command, whole, and in nothing that only begins like it; reports use the old name."""
    home = tmp_path / "home"
    home.mkdir()
    file = home / "1"
    file.write_bytes(b"content")
    path, digest = named(file)
    there = launch(
        "solve", path, f"--in={path}", f"{path}0", f"{path}.cnf", f"{path},x", stdin=path, verifier=("v", path)
    )
    wanted = shelf.made_ready(there, [(path, digest)], path)
    assert isinstance(wanted, FilesMissing)
    assert (wanted.to_send, wanted.why) == ([(path, digest)], "")
    shelf.take(path, digest, b"content")
    file.unlink()
    ready = shelf.made_ready(there, [(path, digest)], path)
    assert isinstance(ready, LaunchReady)
    here = ready.elsewhere[path]
    assert Path(here).read_bytes() == b"content"
    assert Path(here).name == "1"
    assert ready.launch.argv == ("solve", here, f"--in={here}", f"{path}0", f"{path}.cnf", f"{here},x")
    assert (ready.launch.stdin, ready.launch.verifier) == (here, ("v", here))
    assert ready.launch.guarded == (fingerprint_of(here, digest_of_file(Path(here))),)
    reworded = ready.reworded(lost_by_change(1, here, f"{here} changed"))
    assert (reworded.problem, reworded.changed_file) == (f"{path} changed", path)
    shelf.close()
    assert not Path(here).exists()


def test_an_instance_that_arrives_twice_stays_the_file_that_runs_are_using(shelf: FileStore) -> None:
    """Sent again by a coordinator that lost patience, or under another path: to a run under way nothing has changed."""
    digest = sha256(b"content").hexdigest()
    shelf.take("/data/1.cnf", digest, b"content")
    first = shelf.made_ready(launch("solve", "/data/1.cnf"), [("/data/1.cnf", digest)], "/data/1.cnf")
    assert isinstance(first, LaunchReady)
    shelf.take("/data/1.cnf", digest, b"content")
    shelf.take("/more/1.cnf", digest, b"content")
    assert changed_file(first.launch.guarded) is None
    # What was damaged meanwhile is replaced.
    Path(first.elsewhere["/data/1.cnf"]).write_bytes(b"something else")
    shelf.take("/data/1.cnf", digest, b"content")
    assert Path(first.elsewhere["/data/1.cnf"]).read_bytes() == b"content"
    shelf.close()


def test_what_arrives_damaged_is_refused(shelf: FileStore) -> None:
    """Content-addressed: the bytes have to be those that were asked for."""
    with pytest.raises(OSError, match="damaged"):
        shelf.take("/data/1.cnf", sha256(b"whole").hexdigest(), b"half")
    shelf.close()


def test_instances_that_are_made_on_demand_are_made_where_they_are_needed(shelf: FileStore, tmp_path: Path) -> None:
    """Under the same path if folders are shared; in the station's own folder if they are not."""
    output = str(tmp_path / "made" / "7.cnf")
    preparation = Preparation(("gen", "7"), output, to_stdout=True, timeout=1.0)
    there = replace(launch("solve", output), preparation=preparation)
    shared = shelf.made_ready(there, [(output, "0" * 64)], None)
    assert isinstance(shared, LaunchReady)
    assert (shared.launch, shared.elsewhere) == (there, {})
    own = shelf.made_ready(there, [], output)
    assert isinstance(own, LaunchReady)
    assert own.launch.preparation is not None
    assert own.launch.preparation.output == own.launch.argv[1] == own.elsewhere[output] != output
    shelf.close()


def test_folders_of_dead_stations_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that was killed cannot tidy up; the next one of the campaign does. The living keep theirs."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    dead, alive = tmp_path / "captime-test-files-999999999-x", tmp_path / f"captime-test-files-{os.getpid()}-y"
    other = tmp_path / "captime-another-files-999999999-x"
    for folder in (dead, alive, other):
        folder.mkdir()
    FileStore("test")
    assert [folder.exists() for folder in (dead, alive, other)] == [False, True, True]


def test_digests_are_those_of_the_files_that_were_looked_at(tmp_path: Path) -> None:
    """Each is read once; one that has changed since is named."""
    file = tmp_path / "1"
    file.write_bytes(b"one")
    before = fingerprint_of(str(file))
    digests = Digests()
    assert digests.named([before]) == ([named(file)], "")
    file.write_bytes(b"another")
    assert Digests().named([before]) == ([], str(file))
