# noqa: INP001 (a script beside its scenario, not part of a package)
"""Make this example ready: `python prepare.py` links HiGHS, which comes from the wheel highsbox, into this folder."""

import sys
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).parent


def main() -> None:
    """Link the folder that holds the program and its libraries."""
    wheel = find_spec("highsbox")
    if wheel is None or wheel.origin is None:
        sys.exit("highsbox is not installed; install it with: pip install highsbox")
    link = HERE / "highs"
    link.unlink(missing_ok=True)
    link.symlink_to(Path(wheel.origin).parent / "highs_dist")


if __name__ == "__main__":
    main()
