"""Files on another machine: is what lies there what was meant, and where does it lie?

A file is what it holds. The coordinator names the files of a launch with their digests; a station looks at its own copy
once, and from then on its supervisors watch that copy as they would at home. With `transfer`, the instances themselves
are sent, once to each station, and launches are reworded to where they lie there.
"""

import hashlib
import os
import re
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from captime.streams.files import digest_of_file, fingerprint_of
from captime.supervision.messages import Fingerprint, Launch, Report
from captime.supervision.scratch import FOLDER_PREFIX, remove

# A name may continue with these: /data/1 is no part of /data/10, /data/1.cnf or /data/1/x.
_GOES_ON = r"(?![\w./-])"
Named = tuple[str, str]
"""A path and the digest of what has to be there."""


class Digests:
    """What the files of launches hold, as the coordinator sees them; each is read once."""

    def __init__(self) -> None:
        self._known: dict[Fingerprint, str] = {}

    def named(self, guarded: Iterable[Fingerprint]) -> tuple[list[Named], str]:
        """These files with their digests, and which of them has changed since it was looked at; "" if none has."""
        named = []
        for fingerprint in guarded:
            if fingerprint not in self._known:
                path = fingerprint[0]
                try:
                    digest = digest_of_file(Path(path))
                    found = fingerprint_of(path, digest)
                    # A new mode or link changes the status only; the content is what counts.
                    same_status = found[5] == fingerprint[5]
                    unchanged = found[:5] == fingerprint[:5] and (same_status or digest == fingerprint[6])
                except OSError:
                    unchanged = False
                if not unchanged:
                    return [], path
                self._known[fingerprint] = digest
            named.append((fingerprint[0], self._known[fingerprint]))
        return named, ""


@dataclass(frozen=True, slots=True)
class LaunchReady:
    """A launch as it can be done here.

    Attributes:
        launch: With the paths and fingerprints of this machine.
        elsewhere: Paths here by the paths they stand for.
    """

    launch: Launch
    elsewhere: dict[str, str]

    def reworded(self, report: Report) -> Report:
        """Return the report with the names that the coordinator knows."""
        problem, changed = report.problem, report.changed_file
        for path, here in self.elsewhere.items():
            problem = problem.replace(here, path)
            changed = path if changed == here else changed
        return replace(report, problem=problem, changed_file=changed)


@dataclass(frozen=True, slots=True)
class FilesMissing:
    """What stands in the way of a launch here.

    Attributes:
        to_send: Instances that can be sent, as path and digest.
        why: What is wrong with the others; "" if nothing is.
    """

    to_send: list[Named]
    why: str


class FileStore:
    """The files that a station knows.

    Args:
        tag: Of the campaign; folders of dead stations with this tag are removed.
    """

    def __init__(self, tag: str) -> None:
        self._prefix = f"{FOLDER_PREFIX}{tag}-files-"
        self._folder: Path | None = None
        self._checked: dict[Named, Fingerprint] = {}
        _remove_left_behind(self._prefix)

    def made_ready(self, launch: Launch, files: Sequence[Named], instance: str | None) -> LaunchReady | FilesMissing:
        """Return the launch as it can be done here, or what stands in the way.

        Args:
            launch: As the coordinator would do it.
            files: What has to be there.
            instance: The file that is sent if it is not there; None if nothing is ever sent.
        """
        elsewhere: dict[str, str] = {}
        made = None if launch.preparation is None else launch.preparation.output
        if instance is not None and instance == made:
            elsewhere[instance] = str(self.folder / "made" / Path(instance).name)
        to_send, wrong, guarded = [], [], []
        for path, digest in files:
            if path == made and not Path(elsewhere.get(path, path)).exists():
                continue
            sent = path == instance and path != made
            fingerprint = self._checked.get((path, digest))
            if fingerprint is None and not sent:
                fingerprint, trouble = _looked_at(elsewhere.get(path, path), digest)
                wrong += [trouble] if trouble else []
            if fingerprint is None:
                to_send += [(path, digest)] if sent else []
                continue
            self._checked[path, digest] = fingerprint
            guarded.append(fingerprint)
            if fingerprint[0] != path:
                elsewhere[path] = fingerprint[0]
        if to_send or wrong:
            return FilesMissing(to_send, "; ".join(wrong))
        return LaunchReady(replace(_reworded(launch, elsewhere), guarded=tuple(guarded)), elsewhere)

    def take(self, path: str, digest: str, content: bytes) -> None:
        """Keep an instance that was sent; one that is here already stays as it is, for runs under way are using it."""
        if hashlib.sha256(content).hexdigest() != digest:
            raise OSError(f"{path} arrived damaged: {len(content)} bytes that are not what was sent")
        place = self.folder / digest
        place.mkdir(exist_ok=True)
        here = place / Path(path).name
        kept, _ = _looked_at(str(here), digest)
        if kept is not None:
            self._checked[path, digest] = kept
            return
        part = here.with_name(f"{here.name}.part")
        part.write_bytes(content)
        part.replace(here)
        self._checked[path, digest] = fingerprint_of(str(here), digest)

    @property
    def folder(self) -> Path:
        """Where instances are kept that were sent or made here."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix=f"{self._prefix}{os.getpid()}-"))
        return self._folder

    def close(self) -> None:
        """Take away what was sent."""
        if self._folder is not None:
            remove(str(self._folder))
            self._folder = None


def _looked_at(path: str, digest: str) -> tuple[Fingerprint | None, str]:
    """Return the file's fingerprint here; or nothing, and what is wrong with it."""
    try:
        # Before and after, so that what is watched from now on is what was read.
        before, found, after = fingerprint_of(path, digest), digest_of_file(Path(path)), fingerprint_of(path, digest)
    except OSError as trouble:
        return None, f"{path} cannot be read there ({trouble.strerror})"
    if before != after or found != digest:
        return None, f"{path} holds something else there"
    return after, ""


def _reworded(launch: Launch, elsewhere: dict[str, str]) -> Launch:
    """Return the same launch with other paths."""
    for path, here in elsewhere.items():
        pattern = re.compile(re.escape(path) + _GOES_ON)

        def moved(word: str, pattern: re.Pattern[str] = pattern, here: str = here) -> str:
            return pattern.sub(lambda _: here, word)

        preparation = launch.preparation
        if preparation is not None and preparation.output == path:
            preparation = replace(preparation, output=here)
        launch = replace(
            launch,
            argv=tuple(map(moved, launch.argv)),
            stdin=None if launch.stdin is None else moved(launch.stdin),
            verifier=None if launch.verifier is None else tuple(map(moved, launch.verifier)),
            preparation=preparation,
        )
    return launch


def _remove_left_behind(prefix: str) -> None:
    """Folders of stations whose processes were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        owner = folder.name.removeprefix(prefix).partition("-")[0]
        if owner.isdigit() and not _is_alive(int(owner)):
            remove(str(folder))


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
