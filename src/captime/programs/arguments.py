"""How settings become words of a command line where a command says `{settings}`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from captime.programs.configurations import Setting
from captime.programs.template import text_of

SettingsToArguments = Callable[[Mapping[str, Setting]], list[str]]
"""Settings into words; a parameter space brings its own."""


def without_exponent(value: Setting) -> str:
    """Return a value as a word; numbers written out, as some readers know no exponents.

    >>> without_exponent(1e-07), without_exponent(2.5), without_exponent("a b")
    ('0.0000001', '2.5', 'a b')
    """
    text = text_of(value)
    return f"{Decimal(text):f}" if isinstance(value, float) and "e" in text else text


@dataclass(frozen=True, slots=True)
class ArgumentStyle:
    """The same few words for every setting, or a switch of its own for some.

    Attributes:
        words: For one setting, with `{name}` and `{value}`: `["-{name}", "{value}"]` or `["--{name}={value}"]`.
        switches: What to write before the value of a setting, by name: `--decay=` is glued to it, `-w ` with a blank at
            its end is a word of its own.
        text: How a value is written.
    """

    words: tuple[str, ...] = ("-{name}", "{value}")
    switches: Mapping[str, str] = field(default_factory=dict)
    text: Callable[[Setting], str] = text_of

    def __call__(self, settings: Mapping[str, Setting]) -> list[str]:
        """Return the words for these settings, in their order."""
        return [word for name, value in settings.items() for word in self._worded(name, value)]

    def _worded(self, name: str, value: Setting) -> Sequence[str]:
        if isinstance(value, list):
            # The user wrote the words themselves; there is nothing to add.
            return value
        text, switch = self.text(value), self.switches.get(name)
        if switch is None:
            # The name is put in first and cannot be mistaken for a place for the value afterwards.
            return [word.replace("{value}", "\0").replace("{name}", name).replace("\0", text) for word in self.words]
        if switch.endswith(" "):
            return [switch.strip(), text]
        return [switch + text] if switch + text else []
