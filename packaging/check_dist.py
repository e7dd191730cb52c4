"""Install the packages of a folder in clean environments: `check_dist.py dist python3.11 python3.12 [--size]`.

Every interpreter gets two environments, one for the wheel and one for the sdist. In each, captime prints its
version, its members, its tables and a utility. An interpreter that is not there is left out, by name.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

TRIALS = (
    ("--version",),
    ("list",),
    ("data", "list"),
    ("utility", "--half-after", "1min"),
)


def installed(python: str, package: Path, folder: Path) -> Path:
    """Install a package in a new environment and return the folder of its commands."""
    subprocess.run([python, "-m", "venv", str(folder)], check=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, str(package)], check=True)
    return folder / "bin"


def sizes(folder: Path) -> dict[str, float]:
    """Return the megabytes of everything in site-packages, by name, the largest first."""
    place = next(folder.glob("lib/python*/site-packages"))
    found: dict[str, float] = {}
    for path in place.iterdir():
        files = [path] if path.is_file() else [each for each in path.rglob("*") if each.is_file()]
        # Libraries of a wheel stand beside it in NAME.libs.
        name = path.name.partition("-")[0].removesuffix(".libs")
        found[name] = found.get(name, 0.0) + sum(each.stat().st_size for each in files) / 1e6
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def main() -> None:
    """Install, try, and print what was done."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("dist", type=Path)
    arguments.add_argument("pythons", nargs="+")
    arguments.add_argument("--size", action="store_true", help="print what the wheel's environment takes, without pip")
    options = arguments.parse_args()
    packages = sorted([*options.dist.glob("captime-*.whl"), *options.dist.glob("captime-*.tar.gz")])
    if not packages:
        sys.exit(f"no packages of captime in {options.dist}; run `make dist` first")
    for python in options.pythons:
        if shutil.which(python) is None:
            print(f"{python}: not there, left out")
            continue
        for package in packages:
            if options.size and package.suffix != ".whl":
                continue
            with tempfile.TemporaryDirectory() as folder:
                commands = installed(python, package, Path(folder) / "venv")
                for trial in TRIALS:
                    done = subprocess.run(
                        [str(commands / "captime"), *trial], check=True, capture_output=True, text=True, cwd=folder
                    )
                    if trial == TRIALS[0]:
                        print(f"{python}: {package.name} installed, {done.stdout.strip()}", flush=True)
                if options.size:
                    found = {name: size for name, size in sizes(Path(folder) / "venv").items() if name != "pip"}
                    print(f"{sum(found.values()):.0f} MB without pip")
                    print("\n".join(f"{size:7.1f} {name}" for name, size in found.items() if size >= 1.0))


if __name__ == "__main__":
    main()
