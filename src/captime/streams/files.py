"""From what a scenario says to a list of instances: patterns, lists of names, tables, plain values.

Every file is read once, for its digest; the same content counts twice only if the user says so.
"""

import csv
import glob
import hashlib
import io
import json
import os
import stat
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np

from captime.errors import ScenarioError
from captime.files import read_limited
from captime.streams.finite import Instance
from captime.supervision.messages import Fingerprint

# What a file holds and whether it is still the same: digests for identity, fingerprints for noticing changes.

_PIECE = 1 << 20


def digest_of_file(path: Path) -> str:
    """SHA-256 of the content, in hexadecimal digits."""
    found = hashlib.sha256()
    with path.open("rb") as stream:
        while piece := stream.read(_PIECE):
            found.update(piece)
    return found.hexdigest()


def digest_of_value(value: object) -> str:
    """SHA-256 of a value's canonical text; of its pickled form if JSON does not know it."""
    try:
        told = json.dumps(value, sort_keys=True).encode("ascii")
    except (TypeError, ValueError):
        # A `repr` would not do: it may hold an address, or leave out the middle of an array.
        told = cloudpickle.dumps(value)
    return hashlib.sha256(told).hexdigest()


def fingerprint_of(path: str | os.PathLike[str], digest: str = "") -> Fingerprint:
    """Return what a replaced or edited file changes, links followed.

    The time of change of content can be set back by a program that changes it; that of status cannot. The latter
    also moves when nothing but a mode or a link was changed: then the digest tells.

    Args:
        path: The file.
        digest: SHA-256 of its content, if that is known; without it any change of status counts.
    """
    found = os.stat(path)  # noqa: PTH116 (called before every launch of a generated instance; a Path each is slow)
    looks = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
    return (os.fspath(path), *looks, digest)


def require_readable(path: Path, where: str) -> None:
    """Refuse what is not a regular file one can read; `where` says where it is named."""
    try:
        kind = path.stat().st_mode
    except OSError as error:
        raise ScenarioError(
            f"{where}: {str(path)!r} cannot be looked at ({error.strerror}); expected a file, check its name"
        ) from None
    if not stat.S_ISREG(kind):
        what = "a folder" if stat.S_ISDIR(kind) else "no regular file"
        raise ScenarioError(f"{where}: {str(path)!r} is {what}; expected a file, name one or a pattern such as dir/*")
    if not os.access(path, os.R_OK):
        raise ScenarioError(f"{where}: {str(path)!r} may not be read; change its permissions or leave it out")


_LONGEST_NAME = 100
# Lists of a million paths have a tenth of this.
_LARGEST = 1 << 30
_NAMES = ("instance", "file", "path", "name")


@dataclass(frozen=True, slots=True)
class Listed:
    """An instance as it was listed, not yet looked at.

    Attributes:
        path: The file, absolute or as seen from the folder.
        answer: Its known answer.
        group: Instances of one group are variations of each other, and only one of them counts as a sample.
    """

    path: str
    answer: bytes | None = None
    group: str | None = None


def from_patterns(patterns: Sequence[str], folder: Path, where: str) -> list[Listed]:
    """Every file that one of these patterns matches, sorted by name; a pattern that matches nothing is refused."""
    found: set[str] = set()
    for pattern in patterns:
        matched = glob.glob(pattern, root_dir=folder, recursive=True)  # noqa: PTH207 (names of any bytes, as given)
        files = {name for name in matched if os.path.isfile(os.path.join(folder, name))}  # noqa: PTH113, PTH118 (same)
        if not files:
            raise ScenarioError(
                f"{where}: no file matches {pattern!r} in {str(folder)!r}; {_nearby(pattern, folder)}patterns are seen "
                "from the folder of the scenario, and ** stands for any folders"
            )
        found |= files
    return [Listed(name) for name in sorted(found, key=os.fsencode)]


def _nearby(pattern: str, folder: Path) -> str:
    """Return a hint at what there is instead."""
    parent = folder / os.path.dirname(glob.escape(pattern) if not glob.has_magic(pattern) else pattern)  # noqa: PTH120 (a pattern is no path)
    if glob.has_magic(str(parent)) or not parent.is_dir():
        return "its folder does not exist; "
    there = sorted(each.name for each in parent.iterdir())[:3]
    return f"its folder holds {', '.join(map(repr, there))}, …; " if there else "its folder is empty; "


def from_list(path: Path, where: str) -> list[Listed]:
    """One path per line, seen from the list's own folder; blank lines and lines that begin with # are passed over."""
    lines = _content(path, where).splitlines()
    names = [os.fsdecode(line) for line in lines if line.strip() and not line.lstrip().startswith(b"#")]
    if not names:
        raise ScenarioError(f"{where}: {str(path)!r} lists no instance; write one path per line")
    return [Listed(os.path.join(path.parent, name)) for name in names]  # noqa: PTH118 (names of any bytes)


def _content(path: Path, where: str) -> bytes:
    require_readable(path, where)
    try:
        return read_limited(path, _LARGEST)
    except OSError as error:
        raise ScenarioError(
            f"{where}: {str(path)!r} cannot be read ({error.strerror}); expected a list with a line for each instance. "
            "Is it the right file?"
        ) from None


def from_csv(path: Path, where: str) -> list[Listed]:
    """Return a table with a column `instance` of paths, and perhaps `answer` and `group`."""
    rows = read_rows(path, where)
    header = list(rows[0]) if rows else []
    column = next((name for name in _NAMES if name in header), None)
    if column is None:
        raise ScenarioError(
            f"{where}: {str(path)!r} has the columns {', '.join(header) or 'none at all'}; expected one called "
            "'instance' with the paths, and perhaps 'answer' and 'group'"
        )
    return [
        Listed(
            os.path.join(path.parent, row[column]),  # noqa: PTH118 (names of any bytes)
            answer=os.fsencode(row["answer"]) if row.get("answer") else None,
            group=row.get("group") or None,
        )
        for row in rows
    ]


def read_rows(path: Path, where: str) -> list[dict[str, str]]:
    """Return the rows of a CSV file by column; rows of another length than the header are refused with their line."""
    text = _content(path, where).decode("utf-8-sig", "surrogateescape")
    with io.StringIO(text, newline="") as stream:
        reader = csv.reader(stream, strict=True)
        try:
            header = [name.strip() for name in next(reader, [])]
            if len(set(header)) < len(header):
                raise ScenarioError(f"{where}: {str(path)!r} has two columns of the same name; give each its own")
            rows = []
            for cells in reader:
                if not cells:
                    continue
                if len(cells) != len(header):
                    raise ScenarioError(
                        f"{where}: line {reader.line_num} of {str(path)!r} has {len(cells)} cells; expected "
                        f"{len(header)}, as in its header"
                    )
                rows.append({name: cell.strip() for name, cell in zip(header, cells, strict=True)})
        except csv.Error as error:
            raise ScenarioError(f"{where}: line {reader.line_num} of {str(path)!r} is no CSV: {error}") from None
    return rows


def read_answers(path: Path, where: str) -> dict[str, bytes]:
    """Known answers by the name of the instance, from a CSV file with the columns `instance` and `answer`."""
    rows = read_rows(path, where)
    if not rows or not {"instance", "answer"} <= set(rows[0]):
        raise ScenarioError(f"{where}: {str(path)!r} has to be a CSV file with the columns 'instance' and 'answer'")
    return {row["instance"]: os.fsencode(row["answer"]) for row in rows if row["answer"]}


def with_answers(instances: Sequence[Instance], answers: Mapping[str, bytes], where: str) -> list[Instance]:
    """The same instances with what is known about them; found by name, or by the file's own name if that is unique."""
    base = [os.path.basename(instance.name) for instance in instances]  # noqa: PTH119 (names of any bytes)
    times = Counter(base)
    known: list[Instance] = []
    for instance, short in zip(instances, base, strict=True):
        key = instance.name if instance.name in answers else short if times[short] == 1 else ""
        known.append(replace(instance, answer=answers[key]) if key in answers else instance)
    if answers and all(found is given for found, given in zip(known, instances, strict=True)):
        stranger = next(iter(answers))
        near = get_close_matches(stranger, [*base, *(each.name for each in instances)], n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ScenarioError(f"{where}: no instance is called {stranger!r}, nor like any other of the file{hint}")
    return known


def look_at(
    listed: Iterable[Listed], folder: Path, where: str, *, allow_duplicates: bool
) -> tuple[list[Instance], list[str] | None]:
    """Instances with digest and fingerprint, and their groups (None if there are none).

    Args:
        listed: As they were listed.
        folder: Names are shown as seen from here.
        where: Who wants them, for messages.
        allow_duplicates: Whether two files may hold the same.
    """
    entries = list(listed)
    instances: list[Instance] = []
    for entry in entries:
        path = os.path.normpath(os.path.join(folder, entry.path))  # noqa: PTH118 (names of any bytes)
        require_readable(Path(path), where)
        name = os.path.relpath(path, folder)
        shown = name if not name.startswith(os.pardir) else path
        digest = digest_of_file(Path(path))
        instances.append(Instance(shown, path, None, digest, fingerprint_of(path, digest), None, entry.answer))
    instances = _unique(instances, where, allow_duplicates=allow_duplicates)
    if all(entry.group is None for entry in entries):
        return instances, None
    return instances, [entry.group or f"\0{index}" for index, entry in enumerate(entries)]


def from_values(values: Sequence[Any], where: str, *, allow_duplicates: bool) -> list[Instance]:
    """Plain values as instances, named by their text or by what kind of thing they are."""
    instances = []
    for number, value in enumerate(values, start=1):
        try:
            digest = digest_of_value(value)
        except Exception as error:
            raise ScenarioError(
                f"{where}: number {number}, a {type(value).__name__}, cannot be sent to the process of a run "
                f"({error}); give plain values or names of files, and let the function make the rest from them"
            ) from error
        instances.append(Instance(_name_of(value), None, value, digest))
    if not instances:
        raise ScenarioError(f"{where}: there is no instance; name at least one")
    return _unique(instances, where, allow_duplicates=allow_duplicates)


def with_seeds(
    instances: Sequence[Instance], groups: Sequence[str] | None, seeds: int, where: str
) -> tuple[list[Instance], list[str] | None]:
    """Return every instance once for each seed, as members of the set, with their groups.

    The seed itself belongs to the position (`Seeds`); here a member gets a name of its own. A group has one member for
    each seed.

    Args:
        instances: Each once.
        groups: The group of each; None if there are none.
        seeds: With how many seeds each is run.
        where: Who wants them, for messages.
    """
    members: list[Instance] = []
    member_groups: list[str] = []
    for index, each in enumerate(instances):
        for number in range(1, seeds + 1):
            members.append(each if number == 1 else replace(each, name=f"{each.name} (seed {number})"))
            if groups is not None:
                member_groups.append(groups[index] if number == 1 else f"{groups[index]}\0seed {number}")
    twice = [name for name, count in Counter(each.name for each in members).items() if count > 1]
    if twice:
        raise ScenarioError(
            f"{where} is {seeds}, and an instance is called {twice[0]!r}, which is what captime calls another one with "
            "a further seed; rename the file"
        )
    return members, None if groups is None else member_groups


def _name_of(value: Any) -> str:
    """Short enough to be shown; names that are not unique get numbers."""
    try:
        plain = value.item() if isinstance(value, np.generic) else value
        text = plain if isinstance(plain, str) else json.dumps(plain)
    except (TypeError, ValueError):
        text = type(value).__name__
    return text if len(text) <= _LONGEST_NAME else f"{text[:_LONGEST_NAME]}…"


def _unique(instances: list[Instance], where: str, *, allow_duplicates: bool) -> list[Instance]:
    """Refuse contents that occur twice; where they are allowed, at least the names are made to differ."""
    first: dict[str, Instance] = {}
    twice = [(first[each.digest], each) for each in instances if first.setdefault(each.digest, each) is not each]
    if twice and not allow_duplicates:
        one, other = twice[0]
        raise ScenarioError(
            f"{where}: {len(twice)} of {len(instances)} instances hold the same as another one, such as {one.name!r} "
            f"and {other.name!r}; a repeated instance is no independent sample. Remove them, or set "
            "allow_duplicates = true (--allow-duplicates of captime compare), which the certificate will then mention"
        )
    times: dict[str, int] = {}
    named = []
    for each in instances:
        times[each.name] = times.get(each.name, 0) + 1
        named.append(each if times[each.name] == 1 else replace(each, name=f"{each.name}#{times[each.name]}"))
    return named
