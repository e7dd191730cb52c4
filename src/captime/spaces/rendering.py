"""From settings to words of a command line: `--p=v`, `-p v`, `--flag` or nothing, or a template per parameter.

The words are in the order of the parameters. An inactive parameter has no setting, and so no word.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from captime.errors import ScenarioError
from captime.spaces.parameters import Parameter
from captime.spaces.values import Value, text_of

# Names for the usual ways; anything with {name} and {value} in it is as good.
STYLES = {
    "gnu": "--{name}={value}",
    "gnu-words": "--{name} {value}",
    "dash": "-{name}={value}",
    "dash-words": "-{name} {value}",
    "assignment": "{name}={value}",
}


@dataclass(frozen=True, slots=True)
class Style:
    """How parameters are passed that do not say so themselves.

    Attributes:
        arguments: a template with {name} and {value}, such as `--{name}={value}`; blanks separate words.
        true: a template with {name} for a boolean that is true, such as `--{name}`; None: as any other value.
        false: the same for false; None: nothing if `true` is given, else as any other value.
        words: what true and false are called where they are values.
    """

    arguments: str = STYLES["gnu"]
    true: str | None = None
    false: str | None = None
    words: tuple[str, str] = ("true", "false")

    def __post_init__(self) -> None:
        for mark in ("{name}", "{value}"):
            if mark not in self.arguments:
                raise ScenarioError(
                    f'arguments = "{self.arguments}" has no {mark}, expected both {{name}} and {{value}} as in '
                    f'"{STYLES["gnu"]}", or one of the names {", ".join(STYLES)}'
                )

    def arguments_of(self, parameter: Parameter, value: Value) -> list[str]:
        """The words for one parameter."""
        text = text_of(self.worded(value))
        if parameter.passing is not None:
            return parameter.passing.arguments(value, text)
        if isinstance(value, bool) and self.true is not None:
            return (self.true if value else self.false or "").replace("{name}", parameter.name).split()
        # Cut first, filled afterwards: blanks in a name or a value stay inside their word.
        return [word.replace("{name}", parameter.name).replace("{value}", text) for word in self.arguments.split()]

    def worded(self, value: Value) -> Value:
        """A boolean in the program's words; anything else as it is."""
        return value if not isinstance(value, bool) or self.words == ("true", "false") else self.words[not value]


def arguments(parameters: Sequence[Parameter], settings: Mapping[str, Value], style: Style | None = None) -> list[str]:
    """The words for these settings, in the order of the parameters.

    Args:
        parameters: All parameters of the space.
        settings: The active ones and their values.
        style: How to pass those that do not say so themselves; left out, `--name=value`.
    """
    style = style or Style()
    chosen = [each for each in parameters if each.name in settings]
    return [word for each in chosen for word in style.arguments_of(each, settings[each.name])]
