"""The size of the package, and the way of one run through it.

    python benchmarks/house.py size     # files and lines in the wheel, by part
    python benchmarks/house.py trace    # files in which one `captime run` executes functions

The trace is of the coordinator of a small listed race on this machine, with `--quiet`, threads included; the
supervisors of the slots are processes of their own and are not counted. Code that only runs while a module is imported
is not counted either.
"""

import argparse
import os
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path
from types import FrameType

import captime

PACKAGE = Path(captime.__file__).parent
SCENARIO = """
utility = "uniform(2s)"
seed = 1
[target]
command = ["sh", "-c", "exit {code}", "{instance}"]
[configurations]
good = { code = 0 }
bad = { code = 1 }
[instances]
files = "*.instance"
sampling = "replace"
[stop]
epsilon = 0.5
"""


def part_of(path: Path) -> str:
    """Name the part of the package that a file belongs to: its folder, or the top."""
    inside = path.relative_to(PACKAGE)
    return inside.parts[0] if len(inside.parts) > 1 else "(top)"


def size() -> None:
    """Print files and lines of Python by part, and in all."""
    files, lines = Counter[str](), Counter[str]()
    for path in sorted(PACKAGE.rglob("*.py")):
        files[part_of(path)] += 1
        lines[part_of(path)] += len(path.read_text(encoding="utf-8").splitlines())
    for part in sorted(files, key=lambda name: -lines[name]):
        print(f"{part:16}{files[part]:6d} files{lines[part]:9,d} lines")
    print(f"{'in all':16}{files.total():6d} files{lines.total():9,d} lines")


def trace() -> None:
    """Run one campaign and print the number of files and functions that it executes, by part."""
    called: set[tuple[str, str, int]] = set()

    def notice(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_name != "<module>" and code.co_filename.startswith(f"{PACKAGE}{os.sep}"):
            called.add((code.co_filename, code.co_qualname, code.co_firstlineno))

    with tempfile.TemporaryDirectory() as folder:
        scenario = Path(folder) / "scenario.toml"
        scenario.write_text(SCENARIO, encoding="utf-8")
        for name in "abcd":
            (scenario.parent / f"{name}.instance").write_text(name, encoding="utf-8")
        # Imported before the count begins, so that class bodies and registers are not part of the way.
        from captime.cli import command_of, main  # noqa: PLC0415

        command_of("run")
        sys.argv = ["captime", "run", str(scenario), "--quiet"]
        threading.setprofile(notice)
        sys.setprofile(notice)
        ended = 0
        try:
            main()
        except SystemExit as end:
            ended = int(end.code or 0)
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    names = {Path(name) for name, _, _ in called}
    files = Counter(part_of(name) for name in names)
    for part, count in files.most_common():
        print(f"{part:16}{count:6d} files")
    print(f"{'in all':16}{files.total():6d} files, {len(called):,d} functions; the command ended with {ended}")


def main() -> None:
    """Print what is asked for."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("what", choices=["size", "trace"])
    {"size": size, "trace": trace}[arguments.parse_args().what]()


if __name__ == "__main__":
    main()
