"""What stands between brackets: lists of values and numbers, as all PCS dialects write them."""

from captime.errors import ScenarioError
from captime.spaces.values import number_in


def enclosed(text: str, opening: str, closing: str) -> tuple[str, str]:
    """What stands between a pair of brackets at the beginning of a text, and what comes after them."""
    text = text.strip()
    if not text.startswith(opening):
        found = f"found {text[:20]!r}" if text else "the line ends"
        raise ScenarioError(f"{found}, expected {opening} ... {closing}")
    inside, found_closing, after = text[1:].partition(closing)
    if not found_closing:
        raise ScenarioError(f"found {text[:20]!r} without its {closing}, expected {opening} ... {closing}")
    return inside, after.strip()


def values_in(inside: str) -> list[str]:
    """Values with commas between them; a value in quotation marks loses them."""
    values = [_bare(value.strip()) for value in inside.split(",")]
    if "" in values:
        raise ScenarioError(f"found an empty value in {{{inside}}}, expected values with commas between them")
    return values


def _bare(value: str) -> str:
    if not value.startswith(('"', "'")):
        return value
    if len(value) < 2 or value[-1] != value[0]:
        raise ScenarioError(
            f"found {value}, whose quotation mark is not closed; expected values without commas in them"
        )
    return value[1:-1]


def numbers_in(inside: str, count: int, what: str) -> list[float]:
    """Read `count` numbers with commas between them."""
    numbers = [number_in(part.strip()) for part in inside.split(",")]
    if len(numbers) != count or None in numbers:
        raise ScenarioError(
            f"found [{inside}], expected {what} as {'numbers' if count > 1 else 'a number'} in brackets"
        )
    return [number for number in numbers if number is not None]
