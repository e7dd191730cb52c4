"""A space in a few lines: for people, and as a dictionary for programs."""

from captime.spaces.clause_text import clause_text
from captime.spaces.laws import Beta, Normal
from captime.spaces.parameters import Choice, Float, Parameter
from captime.spaces.space import Space
from captime.spaces.values import text_of


def domain_text(parameter: Parameter) -> str:
    """The values of a parameter in one line."""
    if isinstance(parameter, Choice):
        shown = ", ".join(repr(choice) if choice == "" else text_of(choice) for choice in parameter.choices[:12])
        rest = f", … ({len(parameter.choices)} values)" if len(parameter.choices) > 12 else ""
        mark = " (weighted)" if parameter.weights is not None else ""
        return f"{{{shown}{rest}}}{mark}"
    marks = [word for word, there in (("log", parameter.log), (_prior(parameter), _prior(parameter))) if there]
    if isinstance(parameter, Float) and parameter.digits is not None:
        marks.append(f"{parameter.digits} digits")
    return f"{text_of(parameter.low)} … {text_of(parameter.high)}" + (f" ({', '.join(marks)})" if marks else "")


def _prior(parameter: Parameter) -> str:
    law = None if isinstance(parameter, Choice) else parameter.law
    return "normal prior" if isinstance(law, Normal) else "beta prior" if isinstance(law, Beta) else ""


def size_text(space: Space) -> str:
    """How many configurations there are, as far as that can be said."""
    if space.size is not None:
        return f"{space.size:,} configurations"
    if space.combinations is None:
        return "infinitely many configurations"
    return f"at most {_large(space.combinations)} configurations"


def _large(count: int) -> str:
    return f"{count:,}" if count < 10**9 else f"10^{len(str(count))}"


def counts_text(space: Space) -> str:
    """How many parameters of each kind, conditions and forbidden combinations."""
    kinds = [parameter.kind for parameter in space.parameters]
    by_kind = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
    return (
        f"{len(kinds)} parameter{'s'[: len(kinds) != 1]} ({by_kind}), {len(space.conditions)} conditional, "
        f"{len(space.forbidden)} forbidden combination{'s'[: len(space.forbidden) != 1]}"
    )


def conditions_text(space: Space) -> list[str]:
    """The conditions, one line each."""
    return [f"{name} | {clause_text(clause)}" for name, clause in space.conditions.items()]


def forbidden_text(space: Space) -> list[str]:
    """The forbidden combinations, one line each."""
    return [f"{{{clause_text(clause)}}}" for clause in space.forbidden]
