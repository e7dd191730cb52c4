"""`python -m captime`, and the program `captime`."""

import sys

from captime import __version__


def main() -> None:
    """Run a command; Ctrl-C while its modules are still being loaded leaves no traceback."""
    if sys.argv[1:] == ["--version"]:
        # The command line answers this too, but loads a library to convert the option.
        sys.stdout.write(f"captime {__version__}\n")
        return
    try:
        from captime.cli import main as run  # noqa: PLC0415 (loading takes a while, and may be interrupted)
    except KeyboardInterrupt:
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
