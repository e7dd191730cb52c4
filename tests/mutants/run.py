"""Break one line at a time and see whether a test notices: `make mutants`.

Every mutant of catalogue.py names a file of the package, a text in it, what that text is replaced by, and the tests
that must fail then. Each is tried on a copy of the package in a temporary folder. A mutant that its tests let live is
a survivor: a claim of the documents that nothing checks. Exit code 0: none survives. 1: some do. 2: a mutant or its
tests do not fit the code any more.
"""

import argparse
import compileall
import importlib
import os
import py_compile
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import pytest

from mutants.catalogue import MUTANTS, Mutant

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "captime"
# A mutant that makes a test wait for ever is found out too. On a busy machine all tests together may take longer.
PATIENCE = 600.0
_FAILED, _PASSED = 1, 0


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def problems(mutants: Sequence[Mutant]) -> list[str]:
    """Return which mutants do not fit the code: their text is not there exactly once, or a named test is missing."""
    found = []
    for mutant in mutants:
        text = (PACKAGE / mutant.file).read_text(encoding="utf-8")
        if text.count(mutant.old) != 1:
            found.append(f"{mutant.name}: its text stands {text.count(mutant.old)} times in {mutant.file}; expected 1")
        elif mutant.old == mutant.new:
            found.append(f"{mutant.name}: it changes nothing")
        for test in mutant.tests:
            file, _, name = test.partition("::")
            path = ROOT / "tests" / file
            named = f"def {name.partition('[')[0]}(" if name else ""
            if not path.is_file() or named not in path.read_text(encoding="utf-8"):
                found.append(f"{mutant.name}: there is no test {test}")
    return found


def chosen(mutants: Sequence[Mutant], sample: int | None, seed: int, only: str) -> list[Mutant]:
    """Return the mutants to try: all, those whose names contain a text, or a number of them drawn at random."""
    fitting = [mutant for mutant in mutants if only in mutant.name]
    if sample is None or sample >= len(fitting):
        return fitting
    return random.Random(seed).sample(fitting, sample)  # noqa: S311 (a choice of tests, no secret)


def part_of(mutants: Sequence[Mutant], part: str) -> list[Mutant]:
    """Return the part `K/N` of the mutants; all parts together are all mutants, each once."""
    which, _, parts = part.partition("/")
    if not (which.isdecimal() and parts.isdecimal() and 1 <= int(which) <= int(parts)):
        raise SystemExit(f"--part is {part!r}; expected K/N with 1 <= K <= N, such as 2/4")
    return list(mutants[int(which) - 1 :: int(parts)])


def preload() -> None:
    """Import what the tests need, so that every child finds it in memory; the package itself is forgotten again."""
    import captime.campaign  # noqa: PLC0415 (only here, and only for what it brings along)

    del captime
    for package in ("scipy.stats", "typer.testing"):
        importlib.import_module(package)
    for name in [name for name in sys.modules if name.partition(".")[0] == "captime"]:
        del sys.modules[name]


def tested(tests: Sequence[str], folder: Path, patience: float) -> tuple[int, str]:
    """Run tests against the copy of the package in that folder; return pytest's exit code and what it said.

    They run in a child of this process: most of the time of a fresh one would be spent on imports.
    """
    said = folder / "said"
    child = os.fork()
    if child == 0:
        _run_tests(tests, folder, said)
    deadline = time.monotonic() + patience
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status), said.read_text(encoding="utf-8", errors="replace")
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return _FAILED, "it did not end"
        time.sleep(0.05)


def _run_tests(tests: Sequence[str], folder: Path, said: Path) -> NoReturn:
    code = 70
    try:
        told = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(told, 1)
        os.dup2(told, 2)
        os.chdir(ROOT)
        sys.path.insert(0, str(folder))
        os.environ["PYTHONPATH"] = os.pathsep.join((str(folder), str(ROOT / "tests")))
        paths = [str(ROOT / "tests" / test) for test in tests]
        code = int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-m", "not slow and not fault", *paths]))
        found = Path(str(sys.modules["captime"].__file__)).parent
        if found != folder / "captime":
            sys.stdout.write(f"the tests have tested {found}\n")
            code = 71
        sys.stdout.flush()
    except BaseException:  # noqa: BLE001 (whatever it is, the parent has to hear of it)
        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(code)


def main(arguments: Sequence[str] | None = None) -> int:
    """Try mutants and print survivors."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, help="how many to try, drawn at random")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--only", default="", help="try those whose names contain this")
    parser.add_argument(
        "--part", default="1/1", help="K/N: every Nth of them, beginning with the Kth; N processes share the work"
    )
    asked = parser.parse_args(arguments)
    for problem in (wrong := problems(MUTANTS)):
        say(problem)
    if wrong:
        return 2
    mutants = part_of(chosen(MUTANTS, asked.sample, asked.seed, asked.only), asked.part)
    preload()
    with tempfile.TemporaryDirectory(prefix="captime-mutants-") as made:
        folder = Path(made)
        copy = folder / "captime"
        shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
        # By content, not by date: two mutants of one file may be written within one tick of the clock.
        compileall.compile_dir(copy, quiet=2, invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH)
        every_test = sorted({test for mutant in mutants for test in mutant.tests})
        began = time.monotonic()
        code, said = tested(every_test, folder, PATIENCE * len(every_test))
        if code != _PASSED:
            say(f"the tests fail without any mutant:\n{said[-3000:]}")
            return 2
        # A part of these tests takes less than all of them, unless the machine has become much busier since.
        patience = max(PATIENCE, 2.0 * (time.monotonic() - began))
        survivors = [mutant for mutant in mutants if not _killed(mutant, copy, folder, patience)]
    say(f"{len(mutants) - len(survivors)} of {len(mutants)} mutants were killed.")
    for mutant in survivors:
        say(f"SURVIVES {mutant.name} ({mutant.file}): {mutant.old.strip()!r} -> {mutant.new.strip()!r}")
    return 1 if survivors else 0


def _killed(mutant: Mutant, copy: Path, folder: Path, patience: float) -> bool:
    path, began = copy / mutant.file, time.monotonic()
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
    try:
        code, said = tested(mutant.tests, folder, patience)
    finally:
        path.write_text(text, encoding="utf-8")
    if code not in (_FAILED, _PASSED):
        raise SystemExit(f"{mutant.name}: its tests could not be run (pytest's exit code {code}):\n{said[-3000:]}")
    told = "killed" if code == _FAILED else "SURVIVES"
    say(f"{told:8s} {mutant.name} ({time.monotonic() - began:.0f} s)")
    return code == _FAILED


if __name__ == "__main__":
    sys.exit(main())
