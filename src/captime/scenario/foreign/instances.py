"""Lists of instances as other tools write them: `<instance> [specifics]` per line, perhaps with a seed before it."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from captime.errors import ScenarioError
from captime.scenario.foreign.draft import Draft, existing

_LIST = "imported-instances.txt"


def read_instances(path: Path, draft: Draft) -> None:
    """Read a list of instances alone; the program is for the user to fill in."""
    draft.worth(None, "")
    draft.target["command"] = ["./program", "{seed}", "{settings}", "{instance}"]
    draft.target["answer"] = "^(SATISFIABLE|UNSATISFIABLE)"
    draft.space["level"] = {"type": "int", "low": 1, "high": 9, "default": 5}
    draft.decided.append("[target] and [space] are examples to be replaced: a list of instances names no program")
    take_list(path, [path.parent, Path()], draft)
    draft.goal()


def take_list(path: Path, places: Sequence[Path], draft: Draft, *, extra: str = "the words behind an instance") -> None:
    """Carry a list of instances over into a file beside the scenario; files are looked for in these places."""
    try:
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise ScenarioError(f"{path}, a list of instances, cannot be read: {error.strerror}") from None
    rows = [_words(line, path, number) for number, line in enumerate(text.splitlines(), start=1)]
    rows = [row for row in rows if row]
    if not rows:
        raise ScenarioError(f"{path}, a list of instances, is empty; expected one instance per line")
    seeded = all(len(row) > 1 and row[0].isdigit() and existing(row[0], places) is None for row in rows)
    names = [row[1] if seeded else row[0] for row in rows]
    found = [existing(name, places) for name in names]
    unique = list(dict.fromkeys(draft.named(each) if each else name for each, name in zip(found, names, strict=True)))
    missing = sum(each is None for each in found)
    if missing == len(names) and all(not Path(name).suffix and "/" not in name for name in names):
        draft.instances["values"] = unique
        draft.decided.append(f"instances.values has the {len(unique)} entries of {path.name}, none of which is a file")
    else:
        draft.companions[_LIST] = "\n".join([*unique, ""])
        draft.instances["list"] = _LIST
        draft.decided.append(f"instances.list is {_LIST}, with the {len(unique)} instances of {path.name}")
        if missing:
            draft.lost.append(
                f"{missing} instances of {path.name} were not found: {names[found.index(None)]!r}, for one"
            )
    if seeded:
        draft.lost.append(
            f"the seeds in {path.name}: captime ties a seed of its own to every position of the stream, the same for "
            "all configurations"
        )
    if len(unique) < len(names):
        draft.decided.append(f"{len(names) - len(unique)} repeated lines of {path.name} count once")
    if any(len(row) > 1 + seeded for row in rows):
        draft.lost.append(f"{extra} in {path.name}: no word of a command can differ between instances")


def _words(line: str, path: Path, number: int) -> list[str]:
    try:
        return shlex.split(line, comments=True)
    except ValueError as flaw:
        raise ScenarioError(f"{path}, line {number}: {flaw}; expected words, perhaps in quotes") from None
