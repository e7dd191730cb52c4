"""`python -m captime`."""

from captime.cli import main

if __name__ == "__main__":
    main()
