"""Whether a configuration's settings and a command fit together: nothing missing, nothing unused, nothing too long."""

from difflib import get_close_matches

from captime.errors import ScenarioError
from captime.programs.configurations import Configuration
from captime.programs.hints import did_you_mean
from captime.programs.template import FILLED_LATER, Template, text_of

RESERVED = ("seed", "instance", "captime", "config", "here", "settings", *FILLED_LATER)
"""Placeholders that are not settings."""

# One word of a command line cannot be longer than this on Linux, its end included.
_LONGEST_WORD = 131_072 - 1


def check_settings(configuration: Configuration, template: Template, where: str, *, all_passed: bool) -> None:
    """Refuse settings that do not fit the command.

    Args:
        configuration: The configuration with the settings.
        template: The command.
        where: How to call the configuration in messages.
        all_passed: Whether every setting is passed on in any case, as wrappers do.
    """
    settings = configuration.settings
    for name in settings:
        if name in RESERVED:
            raise ScenarioError(f"{where} has a setting called {name!r}, which already means something; rename it")
    known = [*settings, *(name for name in RESERVED if name != "stdout")]
    missing = sorted(name for name in template.names if name not in known)
    if missing:
        near = get_close_matches(missing[0], known, n=1)
        hint = f"; it has {near[0]!r}, perhaps that is meant" if near else ""
        raise ScenarioError(
            f"{where}: the command needs {{{missing[0]}}}, but the configuration has no such setting{hint}. Add it, or "
            "correct the command; braces that stand for themselves are written {{ and }}"
        )
    if not all_passed and "settings" not in template.names:
        for name in settings:
            if name not in template.names:
                raise ScenarioError(
                    f"{where}: setting {name!r} is not used by the command{did_you_mean(name, sorted(template.names))} "
                    f"Write {{{name}}} where it belongs, or {{settings}} for all of them"
                )
    for name, value in settings.items():
        for text in value if isinstance(value, list) else [text_of(value)]:
            if len(text.encode("utf-8", "surrogateescape")) > _LONGEST_WORD - 1024:
                raise ScenarioError(
                    f"{where}: setting {name!r} has {len(text):,} characters, and a word of a command line cannot have "
                    f"more than {_LONGEST_WORD - 1024:,} or so; write it to a file and pass the file's name"
                )
