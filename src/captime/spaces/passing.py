"""How one value reaches the command line: a template of words, with the value in one of them."""

import shlex
from dataclasses import dataclass

from captime.errors import ScenarioError
from captime.spaces.values import Value

VALUE = "{value}"
WORDS = "{words}"


@dataclass(frozen=True, slots=True)
class Passing:
    """The words for one parameter; words that come out empty are left out.

    Attributes:
        template: for example `--decay={value}` (one word) or `-w {value}` (two). `{words}` in the place of `{value}`
            gives a value that holds blanks as several words. A template without either, for a boolean, stands for
            true. An empty one passes nothing: the parameter only decides about others.
        off: the words for false, if the template has no place for the value; usually nothing.
    """

    template: str
    off: str = ""

    def arguments(self, value: Value, text: str) -> list[str]:
        """The words for this value, which has that text."""
        if VALUE not in self.template and WORDS not in self.template:
            return (self.template if value else self.off).split()
        if WORDS in self.template:
            return _split(self.template.replace(WORDS, text))
        # The template is cut first: blanks inside the value stay inside its word.
        return [word for part in self.template.split() if (word := part.replace(VALUE, text))]

    def check(self, name: str, *, boolean: bool) -> None:
        """Refuse a template that would say the same whatever the value is."""
        says_value = VALUE in self.template or WORDS in self.template
        if self.template and not says_value and not boolean:
            raise ScenarioError(
                f'parameter {name}: pass = "{self.template}" has no place for the value, expected {VALUE} in it, as in '
                f'"--{name}={VALUE}"; only a boolean can do without'
            )
        if self.off and (says_value or not boolean):
            raise ScenarioError(
                f'parameter {name}: off = "{self.off}" is only of use for a boolean whose pass has no {VALUE}; leave '
                "one of the two out"
            )


def _split(text: str) -> list[str]:
    """As a shell would; a text whose quotes do not close is cut at its blanks."""
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()
