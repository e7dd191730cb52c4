"""ConfigSpace's YAML, through a loader that knows plain data only: no tags, and no aliases of anything nested."""

from typing import Any

from captime.errors import MissingExtra, ScenarioError


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
