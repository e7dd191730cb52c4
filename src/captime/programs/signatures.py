"""What a function is called with: the parameters it names, or settings, instance and seed in this order."""

import inspect
from collections.abc import Callable
from typing import Any

from captime.errors import ScenarioError
from captime.programs.configurations import Configuration
from captime.programs.hints import did_you_mean

OFFERED = ("settings", "instance", "seed", "config")
"""What a function may ask for by name, besides single settings."""

_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class Arguments:
    """How a function wants to be called.

    A function that has a parameter called `instance` is called by names: each parameter is one of `settings`,
    `instance`, `seed`, `config` (the configuration's name) or a setting. Any other function is called with settings (a
    dict), instance and seed.

    Args:
        function: The function.
        name: How to call it in messages.

    Attributes:
        seeded: Whether it is given the seed.
    """

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self._name = name
        try:
            parameters = inspect.signature(function).parameters.values()
        except (TypeError, ValueError):
            parameters = {}.values()
        self._named = {each.name: each.default is not each.empty for each in parameters if each.kind in _NAMED}
        self._open = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters)
        self._by_name = "instance" in self._named
        if not self._by_name and parameters:
            self._check_three(function)
        self.seeded = not self._by_name or "seed" in self._named

    def _check_three(self, function: Callable[..., Any]) -> None:
        try:
            inspect.signature(function).bind({}, None, 0)
        except TypeError:
            raise ScenarioError(
                f"function {self._name} takes ({', '.join(self._named)}); expected three parameters for settings, "
                "instance and seed, or parameters called 'instance', 'seed' and like the settings"
            ) from None

    def check(self, configuration: Configuration) -> None:
        """Refuse a configuration whose settings do not fit the function's parameters."""
        if not self._by_name:
            return
        where, settings = f"configuration {configuration.name!r}", configuration.settings
        for parameter, optional in self._named.items():
            if parameter not in OFFERED and parameter not in settings and not optional:
                raise ScenarioError(
                    f"{where}: function {self._name} needs {parameter!r}, but the configuration has no such setting; "
                    "add it, or give the parameter a default"
                )
        if self._open or "settings" in self._named:
            return
        for name in settings:
            if name not in self._named:
                raise ScenarioError(
                    f"{where}: setting {name!r} is no parameter of function {self._name}"
                    f"{did_you_mean(name, self._named)} Rename it, or let the function take 'settings', a dict of all"
                )

    def of(self, configuration: Configuration, instance: Any, seed: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Positional and keyword arguments of one call."""
        settings = dict(configuration.settings if configuration.given is None else configuration.given)
        if not self._by_name:
            return (settings, instance, seed), {}
        offered = {"settings": settings, "instance": instance, "seed": seed, "config": configuration.name}
        named = {name: offered[name] for name in offered if name in self._named}
        single = {name: value for name, value in settings.items() if name in self._named or self._open}
        return (), single | named
