# noqa: INP001 (a script beside its scenario, not part of a package)
"""Make this example ready: `python prepare.py` links kissat and writes its parameter space.

kissat comes from the wheel passagemath-kissat (`pip install passagemath-kissat`) or from the PATH. It prints all its
options with their bounds (`kissat --range`): name, smallest value, default, largest value. Two things are added here.
Bounds like 2147483647 are no ranges to search, so wide ones are narrowed to a factor of ten around the
default. And an option whose name begins with that of a switch matters only if the switch is on.
"""

import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).parent
# These say what is printed, or are set by the caller.
NOT_SEARCHED = {"flushproof", "incremental", "profile", "quiet", "seed", "statistics", "verbose"}
# Their values are not "off" and "on", so nothing depends on them.
NO_SWITCHES = {"phase", "stable", "target", "tier1", "tier2"}


def find_kissat() -> Path:
    """The solver's binary."""
    on_path = shutil.which("kissat")
    if on_path is not None:
        return Path(on_path)
    wheel = find_spec("sage_wheels")
    for folder in [] if wheel is None else wheel.submodule_search_locations or []:
        if (Path(folder) / "bin" / "kissat").is_file():
            return Path(folder) / "bin" / "kissat"
    sys.exit("kissat was not found; install it with: pip install passagemath-kissat")


def declaration(name: str, low: int, default: int, high: int) -> str:
    """The line of one option in a PCS file."""
    if (low, high) == (0, 1):
        return f"{name} categorical {{0, 1}} [{default}]"
    if high > 100 and high > 10 * max(default, 1):
        low, high = max(low, default // 10), max(10 * default, 10)
    log = " log" if low >= 1 and high >= 20 * low else ""
    return f"{name} integer [{low}, {high}] [{default}]{log}"


def space(ranges: str) -> str:
    """The whole file from what `kissat --range` prints."""
    options = {}
    for line in ranges.splitlines():
        name, *numbers = line.split()
        if name not in NOT_SEARCHED:
            options[name] = tuple(int(number) for number in numbers)
    lines = ["# Made by prepare.py from the output of kissat --range.", ""]
    lines += [declaration(name, low, default, high) for name, (low, default, high) in options.items()]
    lines += ["", "Conditionals:"]
    switches = {name for name, (low, _, high) in options.items() if low == 0 and high <= 4} - NO_SWITCHES
    for name in options:
        above = [switch for switch in switches if name.startswith(switch) and name != switch]
        if above:
            lines.append(f"{name} | {max(above, key=len)} {'== 1' if options[max(above, key=len)][2] == 1 else '> 0'}")
    return "\n".join([*lines, ""])


def main() -> None:
    """Link the solver and write the space."""
    kissat, link = find_kissat(), HERE / "kissat"
    link.unlink(missing_ok=True)
    link.symlink_to(kissat)
    printed = subprocess.run([kissat, "--range"], check=True, capture_output=True, text=True)  # noqa: S603 (the solver)
    (HERE / "space.pcs").write_text(space(printed.stdout), encoding="utf-8")


if __name__ == "__main__":
    main()
