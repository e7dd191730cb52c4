"""ConfigSpace's YAML, through a loader that knows plain data only: no tags, no anchors, no aliases."""

from typing import Any

from captime.errors import MissingExtra, ScenarioError


def yaml_document(text: str, file: str) -> object:
    """The data in the text of a YAML file."""
    yaml = _yaml()

    class Plain(yaml.SafeLoader):  # type: ignore[name-defined,misc]  # the module is known at run time only
        """Refuses aliases: a few lines of them can stand for more than memory holds."""

        def compose_node(self, parent: object, index: object) -> object:
            if self.check_event(yaml.AliasEvent):
                mark = self.peek_event().start_mark
                raise ScenarioError(
                    f"{file}, line {mark.line + 1}: found an alias (*name), expected plain data; write it out"
                )
            return super().compose_node(parent, index)

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
