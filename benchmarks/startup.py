"""What the start of a command costs: CPU time as a multiple of `import numpy`, and the number of modules.

    python benchmarks/startup.py

Each process is started nine times; the smallest CPU time of a process counts, because everything else on the machine
only adds to it.
"""

import resource
import subprocess
import sys

COMMANDS = ("--version", "--help", "list", "run --help", "status --help", "simulate --help", "report --help")
REPEATS = 9


def cpu_seconds(*words: str) -> float:
    """Return the smallest CPU time of a process with these arguments to Python."""
    return min(_once(words) for _ in range(REPEATS))


def _once(words: tuple[str, ...]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)


def modules(*words: str) -> int:
    """Count the modules that such a process imports."""
    done = subprocess.run([sys.executable, "-X", "importtime", *words], capture_output=True, text=True, check=True)
    return sum(line.startswith("import time:") for line in done.stderr.splitlines()) - 1


def main() -> None:
    """Print a row for each command."""
    unit = cpu_seconds("-c", "import numpy")
    print(f"{'':24}{'CPU seconds':>12}{'x numpy':>10}{'modules':>10}")
    print(f"{'import numpy':24}{unit:12.3f}{1.0:10.2f}{modules('-c', 'import numpy'):10d}")
    for command in COMMANDS:
        words = ("-m", "captime", *command.split())
        spent = cpu_seconds(*words)
        print(f"{'captime ' + command:24}{spent:12.3f}{spent / unit:10.2f}{modules(*words):10d}")


if __name__ == "__main__":
    main()
