"""A space as the dictionary of a `[space]` section: complete, JSON-able, and the same for the same space."""

from captime.spaces.clause_text import clause_text
from captime.spaces.formats.section import WORDS
from captime.spaces.laws import Beta, Normal
from captime.spaces.parameters import Categorical, Choice, Float, Integer, Parameter
from captime.spaces.rendering import Style
from captime.spaces.space import Space


def section_of(space: Space) -> dict[str, object]:
    """What would stand under `[space]`; reading it gives the same space."""
    section: dict[str, object] = {parameter.name: _table(parameter) for parameter in space.parameters}
    if not section.keys().isdisjoint({*WORDS, "parameters"}):
        section = {"parameters": section}
    if space.conditions:
        section["conditions"] = [f"{name} | {clause_text(clause)}" for name, clause in space.conditions.items()]
    if space.forbidden:
        section["forbidden"] = [clause_text(clause) for clause in space.forbidden]
    if space.favourites:
        section["favourites"] = [dict(settings) for settings in space.favourites]
    return section | _style(space.style)


def _table(parameter: Parameter) -> dict[str, object]:
    table: dict[str, object] = {"type": parameter.kind}
    if parameter.kind == "constant":
        table["value"] = parameter.default
    elif isinstance(parameter, Choice):
        table |= _choices(parameter)
    else:
        table |= _range(parameter)
    if parameter.kind != "constant" and not parameter.assumed:
        table["default"] = parameter.default
    if parameter.passing is not None:
        table["pass"] = parameter.passing.template
        if parameter.passing.off:
            table["off"] = parameter.passing.off
    return table


def _choices(parameter: Choice) -> dict[str, object]:
    boolean = isinstance(parameter, Categorical) and parameter.kind == "bool"
    table: dict[str, object] = {} if boolean else {"choices": list(parameter.choices)}
    if parameter.weights is not None:
        weights = dict(zip(parameter.choices, parameter.weights, strict=True))
        table["weights"] = [weights[False], weights[True]] if boolean else list(parameter.weights)
    return table


def _range(parameter: Float | Integer) -> dict[str, object]:
    table: dict[str, object] = {"low": parameter.low, "high": parameter.high}
    if parameter.log:
        table["log"] = True
    match parameter.law:
        case Normal(mean, deviation):
            table |= {"prior": "normal", "mean": mean, "sd": deviation}
        case Beta(alpha, beta):
            table |= {"prior": "beta", "alpha": alpha, "beta": beta}
        case _:
            pass
    if isinstance(parameter, Float) and parameter.digits is not None:
        table["digits"] = parameter.digits
    return table


def _style(style: Style) -> dict[str, object]:
    usual = Style()
    section: dict[str, object] = {}
    if style.arguments != usual.arguments:
        section["arguments"] = style.arguments
    if style.true is not None:
        section["true"] = style.true
    if style.false is not None:
        section["false"] = style.false
    if style.words != usual.words:
        section["words"] = list(style.words)
    return section
