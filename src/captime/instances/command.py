"""The command line of a generator: options from its signature, text to a file or to stdout.

Start-up time matters here: a generator runs once per instance, often for a solver that takes milliseconds. So nothing
but the standard library, and of that as little as possible (argparse alone costs more than writing a formula).
"""

import os
import sys
from collections.abc import Callable, Sequence

Range = tuple[int, int]
Option = int | float | Range
Generate = Callable[..., str]


def run(generate: Generate, words: Sequence[str], name: str) -> int:
    """Read the words, make the instance, write it; the exit code is 2 if the words make no sense.

    Args:
        generate: `generate(seed, *, option=default, ...)`, which returns the text of the file.
        words: What stands behind the name of the program.
        name: What the program is called in messages.
    """
    known: dict[str, Option] = dict(generate.__kwdefaults__ or {})
    if "-h" in words or "--help" in words:
        print(usage(name, known), generate.__doc__ or "", sep="\n\n")  # noqa: T201 (a program's answer)
        return 0
    try:
        seed, output, options = understood(words, known)
        text = generate(seed, **options)
    except ValueError as error:
        print(f"{name}: {error}\n{usage(name, known)}", file=sys.stderr)  # noqa: T201 (a program's complaint)
        return 2
    if output is None:
        sys.stdout.write(text)
        return 0
    try:
        write(text, output)
    except OSError as error:
        print(f"{name}: cannot write {output}: {error.strerror}; name a file in a folder that exists", file=sys.stderr)  # noqa: T201
        return 2
    return 0


def usage(name: str, known: dict[str, Option]) -> str:
    """One line that can be typed."""
    said = "".join(f" [--{option} {_shown(value)}]" for option, value in known.items())
    return f"usage: {name} --seed K{said} [-o FILE]"


def understood(words: Sequence[str], known: dict[str, Option]) -> tuple[int, str | None, dict[str, Option]]:
    """Seed, output file and options from the words of a command line.

    Args:
        words: Such as `["--seed", "7", "--size", "80-200"]`.
        known: Options with their defaults, whose types say how a value is read.

    Raises:
        ValueError: A word is unknown, a value is missing or of the wrong kind.
    """
    seed, output, options = None, None, dict(known)
    waiting = iter(words)
    for word in waiting:
        value = next(waiting, None)
        if value is None:
            raise ValueError(f"{word!r} needs a value")
        option = word.removeprefix("--").replace("-", "_")
        if word == "--seed":
            seed = int(_number(word, value, int))
        elif word in ("-o", "--output"):
            output = value
        elif word.startswith("--") and option in known:
            options[option] = _read(word, value, known[option])
        else:
            raise ValueError(f"there is no option {word!r}")
    if seed is None:
        raise ValueError("--seed is missing; name an instance of the family, such as --seed 1")
    return seed, output, options


def write(text: str, output: str) -> None:
    """Write to a temporary name first: a file of the right name is a whole file."""
    part = f"{output}.part-{os.getpid()}"
    with open(part, "w", encoding="ascii", newline="\n") as file:  # noqa: PTH123 (pathlib costs 15 ms a start)
        file.write(text)
    os.replace(part, output)  # noqa: PTH105 (as above)


def _read(word: str, value: str, default: Option) -> Option:
    if isinstance(default, tuple):
        low, _, high = value.partition("-")
        return int(_number(word, low, int)), int(_number(word, high or low, int))
    return _number(word, value, type(default))


def _number(word: str, value: str, kind: type[int] | type[float]) -> int | float:
    try:
        return kind(value)
    except ValueError:
        expected = "a whole number" if kind is int else "a number"
        raise ValueError(f"{word} is {value!r}, expected {expected}") from None


def _shown(value: Option) -> str:
    return f"{value[0]}-{value[1]}" if isinstance(value, tuple) else f"{value:g}"
