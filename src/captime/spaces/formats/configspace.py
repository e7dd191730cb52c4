"""ConfigSpace's JSON and YAML files (format 0.4), read and written."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from captime.errors import MissingExtra, ScenarioError
from captime.spaces.clauses import (
    MIRRORED,
    Among,
    Both,
    Clause,
    Constant,
    Either,
    Neither,
    Reading,
    Relation,
    both,
    clause_text,
    either,
    spread,
)
from captime.spaces.formats.reading import items, number, plain, refuse, some, text
from captime.spaces.laws import EVENLY, Beta, Law, Normal
from captime.spaces.matching import Written, compared, value_of
from captime.spaces.parameters import Categorical, Choice, Float, Integer, Ordinal, Parameter, integer_from, middle
from captime.spaces.space import Space
from captime.spaces.values import Passing, Value, text_of

if TYPE_CHECKING:
    from ConfigSpace import ConfigurationSpace


# ConfigSpace's JSON and YAML files (format 0.4), from the dictionary in them to a space.
#
# Read here and not by ConfigSpace, so that errors name the place in the file and values keep their kind and digits.

_SIGNS = {"EQ": "==", "NEQ": "!=", "LT": "<", "GT": ">", "LE": "<=", "GE": ">="}
_DEEPEST = 40

P = ParamSpec("P")
R = TypeVar("R")


def read_configspace(document: object, file: str) -> Space:
    """The space of a whole document."""
    if not isinstance(document, Mapping) or not isinstance(document.get("hyperparameters"), list):
        raise ScenarioError(
            f"{file}: found no list called hyperparameters at the top, expected a file written by ConfigSpace's "
            "to_json or to_yaml"
        )
    parameters: dict[str, Parameter] = {}
    for place, item in enumerate(document["hyperparameters"]):
        parameter = _at(f"{file}, hyperparameters[{place}]", _parameter, item)
        if parameter.name in parameters:
            raise ScenarioError(f"{file}, hyperparameters[{place}]: {parameter.name} is declared twice; remove one")
        parameters[parameter.name] = parameter
    conditions: dict[str, Clause] = {}
    for place, item in enumerate(_perhaps(document, "conditions", file)):
        where = f"{file}, conditions[{place}]"
        child = _at(where, _text, item, "child")
        if child not in parameters:
            raise ScenarioError(f"{where}: the child {child} is no hyperparameter of this file; correct it")
        clause = _at(where, _condition, item, parameters, 0)
        conditions[child] = both([conditions[child], clause]) if child in conditions else clause
    forbidden = tuple(
        _at(f"{file}, forbiddens[{place}]", _forbidden, item, parameters, 0)
        for place, item in enumerate(_perhaps(document, "forbiddens", file))
    )
    try:
        space = Space(tuple(parameters.values()), conditions, forbidden)
        space.default  # noqa: B018 (asked for its complaint)
    except ScenarioError as flaw:
        raise ScenarioError(f"{file}: {flaw}") from None
    return space


def _perhaps(document: Mapping[str, Any], key: str, file: str) -> list[Any]:
    """A list that may be missing."""
    return [] if document.get(key) is None else _at(file, items, document[key], key)


def _at(where: str, read: Callable[P, R], *arguments: P.args, **words: P.kwargs) -> R:
    """What `read` makes of its arguments; its errors get a place."""
    try:
        return read(*arguments, **words)
    except ScenarioError as flaw:
        raise ScenarioError(f"{where}: {flaw}") from None


# ---------------------------------------------------------------- hyperparameters


def _parameter(item: object) -> Parameter:
    name, kind = _text(item, "name"), _text(item, "type")
    table: Mapping[str, Any] = item if isinstance(item, Mapping) else {}
    if table.get("q") is not None:
        raise ScenarioError(f"{name} has q, the step of a quantised number, which ConfigSpace dropped too; remove it")
    default = table.get("default_value", table.get("default"))
    passing = _passing(table)
    if kind == "constant":
        value = plain(table.get("value"), "value")
        return Categorical.of(name, (value,), value, None, passing)
    if kind == "categorical":
        choices = _values(table, "choices")
        weights = table.get("weights", table.get("probabilities"))
        shares = None if weights is None else tuple(number(each, "weights") for each in items(weights, "weights"))
        start = choices[0] if default is None else plain(default, "default_value")
        return Categorical.of(name, choices, start, shares, passing, assumed=default is None)
    if kind == "ordinal":
        choices = _values(table, "sequence")
        start = choices[0] if default is None else plain(default, "default_value")
        return Ordinal(name, choices, start, None, passing, default is None)
    return _numeric(name, kind, table, default, passing)


def _numeric(name: str, kind: str, table: Mapping[str, Any], default: object, passing: Passing | None) -> Parameter:
    prior, _, sort = kind.partition("_")
    if prior not in ("uniform", "normal", "beta") or sort not in ("float", "int"):
        raise ScenarioError(
            f"{name} has the type {kind!r}, expected uniform_float, uniform_int, normal_float, normal_int, beta_float, "
            "beta_int, categorical, ordinal or constant"
        )
    low, high, log = (
        number(table.get("lower"), "lower"),
        number(table.get("upper"), "upper"),
        bool(table.get("log", False)),
    )
    law: Law = EVENLY
    if prior == "normal":
        law = Normal(number(table.get("mu"), "mu"), number(table.get("sigma"), "sigma"))
    if prior == "beta":
        law = Beta(number(table.get("alpha"), "alpha"), number(table.get("beta"), "beta"))
    start = None if default is None else number(default, "default_value")
    if sort == "int":
        return integer_from(name, low, high, start, log=log, law=law, passing=passing)
    value = middle(low, high, log=log, integer=False) if start is None else start
    return Float(name, low, high, value, log, law, None, passing, start is None)


def _passing(table: Mapping[str, Any]) -> Passing | None:
    """How the value is passed, if captime wrote it into the field that ConfigSpace leaves to its users."""
    meta = table.get("meta")
    ours = meta.get("captime") if isinstance(meta, Mapping) else None
    if not isinstance(ours, Mapping) or not isinstance(ours.get("pass"), str):
        return None
    return Passing(ours["pass"], str(ours.get("off", "")))


# ---------------------------------------------------------------- clauses


def _condition(item: object, parameters: Mapping[str, Parameter], depth: int) -> Clause:
    kind = _text(item, "type")
    table: Mapping[str, Any] = item if isinstance(item, Mapping) else {}
    if kind in ("AND", "OR"):
        inner = [_condition(each, parameters, _deeper(depth)) for each in some(table.get("conditions"), "conditions")]
        return both(inner) if kind == "AND" else either(inner)
    parent = _named(table, "parent", parameters)
    if kind == "IN":
        return _among(parent, table)
    if kind not in ("EQ", "NEQ", "LT", "GT"):
        raise ScenarioError(f"found the type {kind!r}, expected EQ, NEQ, LT, GT, IN, AND or OR")
    return compared(parent, _SIGNS[kind], Written(text_of(plain(table.get("value"), "value"))))


def _forbidden(item: object, parameters: Mapping[str, Parameter], depth: int) -> Clause:
    kind = _text(item, "type")
    table: Mapping[str, Any] = item if isinstance(item, Mapping) else {}
    if kind in ("AND", "OR"):
        inner = [_forbidden(each, parameters, _deeper(depth)) for each in some(table.get("clauses"), "clauses")]
        return both(inner) if kind == "AND" else either(inner)
    if kind == "RELATION":
        kind = f"RELATION_{_text(table, 'lambda')}"
    family, _, sign = kind.rpartition("_")
    if family == "RELATION" and sign in _SIGNS:
        return compared(_named(table, "left", parameters), _SIGNS[sign], _named(table, "right", parameters))
    if kind not in ("EQUALS", "IN") and not (family == "CLAUSE" and sign in _SIGNS):
        raise ScenarioError(
            f"found the type {kind!r}, expected EQUALS, IN, AND, OR, CLAUSE_LT/LE/GT/GE or RELATION_LT/LE/EQ/GT/GE"
        )
    parameter = _named(table, "name", parameters)
    if kind == "IN":
        return _among(parameter, table)
    value = text_of(plain(table.get("value"), "value"))
    return compared(parameter, "==" if kind == "EQUALS" else _SIGNS[sign], Written(value))


def _among(parameter: Parameter, table: Mapping[str, Any]) -> Clause:
    return Among(parameter, tuple(value_of(parameter, text_of(value)) for value in _values(table, "values")))


def _deeper(depth: int) -> int:
    if depth >= _DEEPEST:
        raise ScenarioError(f"more than {_DEEPEST} conjunctions inside each other; flatten them")
    return depth + 1


# ---------------------------------------------------------------- pieces


def _text(item: object, key: str) -> str:
    value = item.get(key) if isinstance(item, Mapping) else None
    if not isinstance(value, str) or not value:
        raise ScenarioError(f"{key} is {value!r}, expected a text")
    return text(value, key)


def _values(table: Mapping[str, Any], key: str) -> tuple[Value, ...]:
    return tuple(plain(value, key) for value in some(table.get(key), key))


def _named(table: Mapping[str, Any], key: str, parameters: Mapping[str, Parameter]) -> Parameter:
    name = _text(table, key)
    if name not in parameters:
        raise ScenarioError(f"{key} is {name}, which is no hyperparameter of this file; correct it")
    return parameters[name]


# Spaces as ConfigSpace's dictionary (format 0.4), and as its own objects.

_NAMES = {"==": "EQ", "!=": "NEQ", "<": "LT", ">": "GT", "<=": "LE", ">=": "GE"}


def write_configspace(space: Space, name: str | None = None) -> dict[str, Any]:
    """The dictionary of a file; refuses what ConfigSpace cannot say."""
    lost = [
        f"{each.name} is rounded to {each.digits} digits"
        for each in space.parameters
        if isinstance(each, Float) and each.digits is not None
    ]
    conditions, forbidden = [], []
    for child, clause in space.conditions.items():
        try:
            conditions.append(_condition_table(child, spread(clause)))
        except _Unspeakable:
            lost.append(f"{child} | {clause_text(clause)}")
    for clause in space.forbidden:
        try:
            forbidden.append(_forbidden_table(spread(clause)))
        except _Unspeakable:
            lost.append(f"forbidden: {clause_text(clause)}")
    refuse("ConfigSpace", lost)
    return {
        "name": name,
        "hyperparameters": [_parameter_table(parameter) for parameter in space.parameters],
        "conditions": conditions,
        "forbiddens": forbidden,
        "python_module_version": "1.2.0",
        "format_version": 0.4,
    }


def as_configspace(space: Space) -> "ConfigurationSpace":
    """Return the space as an object of ConfigSpace, for other tools of the field."""
    try:
        from ConfigSpace import ConfigurationSpace  # noqa: PLC0415 (optional: reading and writing files needs none)
    except ImportError:
        raise MissingExtra("an object of ConfigSpace", "configspace") from None

    try:
        return ConfigurationSpace.from_serialized_dict(write_configspace(space))
    except (ValueError, TypeError, KeyError) as flaw:
        raise ScenarioError(
            f"ConfigSpace does not accept this space ({flaw}); its rules are narrower than ours. Change what it names"
        ) from flaw


# ---------------------------------------------------------------- hyperparameters


def _parameter_table(parameter: Parameter) -> dict[str, Any]:
    item: dict[str, Any] = {"name": parameter.name}
    if parameter.size == 1:
        item |= {"type": "constant", "value": parameter.default}
    elif isinstance(parameter, Choice):
        item |= _choice(parameter) | {"default_value": parameter.default}
    else:
        item |= _range(parameter) | {"default_value": parameter.default, "log": parameter.log}
    item["meta"] = None
    if parameter.passing is not None:
        item["meta"] = {"captime": {"pass": parameter.passing.template, "off": parameter.passing.off}}
    return item


def _choice(parameter: Choice) -> dict[str, Any]:
    if isinstance(parameter, Ordinal):
        return {"type": "ordinal", "sequence": list(parameter.choices)}
    weights = None if parameter.weights is None else list(parameter.weights)
    return {"type": "categorical", "choices": list(parameter.choices), "weights": weights}


def _range(parameter: Float | Integer) -> dict[str, Any]:
    kind = "int" if isinstance(parameter, Integer) else "float"
    ends = {"lower": parameter.low, "upper": parameter.high}
    match parameter.law:
        case Normal(mean, deviation):
            return {"type": f"normal_{kind}", "mu": mean, "sigma": deviation, **ends}
        case Beta(alpha, beta):
            return {"type": f"beta_{kind}", "alpha": alpha, "beta": beta, **ends}
        case _:
            return {"type": f"uniform_{kind}", **ends}


# ---------------------------------------------------------------- clauses


class _Unspeakable(Exception):  # noqa: N818 (never leaves this file)
    """There are no words for this clause."""


def _condition_table(child: str, clause: Clause) -> dict[str, Any]:
    """A clause as a condition; `<=` and `>=` are made of two."""
    match clause:
        case Both(parts) | Either(parts):
            kind = "AND" if isinstance(clause, Both) else "OR"
            return {"type": kind, "child": child, "conditions": [_condition_table(child, part) for part in parts]}
        case Among(parameter, (value,)):
            return {"type": "EQ", "child": child, "parent": parameter.name, "value": value}
        case Among(parameter, values):
            return {"type": "IN", "child": child, "parent": parameter.name, "values": list(values)}
        case Neither(Among(parameter, (value,))):
            # Not NEQ: ConfigSpace takes that for true where the parent is inactive.
            leaf: dict[str, Any] = {"child": child, "parent": parameter.name}
            if isinstance(parameter, Choice) and parameter.size > 1:
                others = [choice for choice in parameter.choices if choice != value]
                return {"type": "IN", **leaf, "values": others}
            beside = [{"type": kind, **leaf, "value": value} for kind in ("LT", "GT")]
            return {"type": "OR", "child": child, "conditions": beside}
        case Relation():
            parameter, sign, value = _against_a_number(clause)
            leaf = {"child": child, "parent": parameter.name, "value": value}
            if parameter.code(value) is None:
                raise _Unspeakable  # ConfigSpace only compares with values the parent can have
            if sign in ("<=", ">="):
                two = [{"type": _NAMES[sign[0]], **leaf}, {"type": "EQ", **leaf}]
                return {"type": "OR", "child": child, "conditions": two}
            return {"type": _NAMES[sign], **leaf}
        case _:
            raise _Unspeakable


def _forbidden_table(clause: Clause) -> dict[str, Any]:
    match clause:
        case Both(parts) | Either(parts):
            return {
                "type": "AND" if isinstance(clause, Both) else "OR",
                "clauses": [_forbidden_table(part) for part in parts],
            }
        case Among(parameter, (value,)):
            return {"type": "EQUALS", "name": parameter.name, "value": value}
        case Among(parameter, values):
            return {"type": "IN", "name": parameter.name, "values": list(values)}
        case Neither(Among(parameter, (value,))) if isinstance(parameter, Choice):
            others = [choice for choice in parameter.choices if choice != value]
            return {"type": "IN", "name": parameter.name, "values": others}
        case Relation(Reading(left), sign, Reading(right)) if sign != "!=" and not _texts(left, right):
            return {"type": f"RELATION_{_NAMES[sign]}", "left": left.name, "right": right.name}
        case Relation():
            parameter, sign, value = _against_a_number(clause)
            if sign in ("==", "!=") or parameter.code(value) is None:
                raise _Unspeakable
            return {"type": f"CLAUSE_{_NAMES[sign]}", "name": parameter.name, "value": value}
        case _:
            raise _Unspeakable


def _against_a_number(clause: Relation) -> tuple[Float | Integer, str, Value]:
    """A comparison of a number parameter with a number, the parameter first."""
    left, sign, right = clause.left, clause.sign, clause.right
    if isinstance(left, Constant):
        left, sign, right = right, MIRRORED[sign], left
    if isinstance(left, Reading) and isinstance(right, Constant) and isinstance(left.parameter, Float | Integer):
        number = right.number
        whole = isinstance(left.parameter, Integer) and number.is_integer()
        return left.parameter, sign, int(number) if whole else number
    raise _Unspeakable


def _texts(*parameters: Parameter) -> bool:
    """Whether one of them holds numbers as texts, which ConfigSpace would compare letter by letter."""
    return any(isinstance(value, str) for each in parameters if isinstance(each, Choice) for value in each.choices)


# ConfigSpace's YAML, through a loader that knows plain data only: no tags, and no aliases of anything nested.


def yaml_document(text: str, file: str) -> object:
    """The data in the text of a YAML file."""
    yaml = _yaml()

    class Plain(yaml.SafeLoader):  # type: ignore[name-defined,misc]  # the module is known at run time only
        """Refuses aliases of nested data: a few lines of them can stand for more than memory holds.

        Others are in ConfigSpace's own files, wherever two conditions share a list of values.
        """

        def compose_node(self, parent: object, index: object) -> object:
            if self.check_event(yaml.AliasEvent):
                event = self.peek_event()
                if not self.is_flat(self.anchors.get(event.anchor)):
                    raise ScenarioError(
                        f"{file}, line {event.start_mark.line + 1}: found an alias (*{event.anchor}), expected plain "
                        "data; write out what it stands for"
                    )
            return super().compose_node(parent, index)

        @staticmethod
        def is_flat(node: Any) -> bool:
            """Whether nothing is nested in it, not even itself: it has an end."""
            if node is None or node.end_mark is None:
                return False
            inside = node.value if isinstance(node, yaml.CollectionNode) else [node]
            parts = [part for each in inside for part in (each if isinstance(each, tuple) else (each,))]
            return all(isinstance(part, yaml.ScalarNode) for part in parts)

    try:
        return yaml.load(text, Loader=Plain)
    except yaml.YAMLError as flaw:
        mark = getattr(flaw, "problem_mark", None)
        where = file if mark is None else f"{file}, line {mark.line + 1}"
        problem = getattr(flaw, "problem", None) or "it cannot be read"
        raise ScenarioError(f"{where}: this is no plain YAML ({problem}); correct the line") from None
    except (RecursionError, ValueError) as flaw:
        raise ScenarioError(f"{file}: this YAML cannot be read ({flaw}); expected what ConfigSpace writes") from None


def yaml_text(document: dict[str, Any]) -> str:
    """Data as the text of a YAML file."""
    return str(_yaml().safe_dump(document, sort_keys=False, allow_unicode=True))


def _yaml() -> Any:
    try:
        import yaml  # type: ignore[import-untyped]  # noqa: PLC0415 (an optional package, asked for when needed)
    except ImportError:
        raise MissingExtra("a YAML file", "yaml") from None
    return yaml
