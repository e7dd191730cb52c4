"""`python -m captime`, and the program `captime`."""

import sys


def main() -> None:
    """Run a command; whoever presses Ctrl-C while its words are still being loaded sees no traceback."""
    try:
        from captime.cli import main as run  # noqa: PLC0415 (loading takes a while, and may be interrupted)
    except KeyboardInterrupt:
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
