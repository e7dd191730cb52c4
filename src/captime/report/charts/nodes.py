"""Elements of a page or of a picture, as a tree: text is escaped when the tree is written out, here and nowhere else.

No page is ever glued together from strings, so no name of a configuration, instance or host can become markup.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import TypeAlias

Child: TypeAlias = "Node | str"
Json: TypeAlias = "str | list[object]"

# Elements that have no closing tag in HTML.
_VOID = frozenset({"meta", "br", "hr", "input", "link", "col"})
# Control characters that no page can show and some parsers trip over; they are written as \xNN.
_CONTROL = {code: f"\\x{code:02x}" for code in (*range(9), 11, 12, *range(14, 32), 127)}


@dataclass(slots=True)
class Node:
    """An element.

    Attributes:
        tag: Its name; always one of ours, never data.
        attributes: By name; None and False leave one out.
        children: Elements and texts.
    """

    tag: str
    attributes: Mapping[str, str | float | bool | None] = field(default_factory=dict)
    children: list[Child] = field(default_factory=list)

    def text(self) -> str:
        """As HTML or SVG."""
        return "".join(self.parts())

    def parts(self) -> Iterator[str]:
        """As HTML or SVG, piece by piece."""
        yield f"<{self.tag}"
        for name, value in self.attributes.items():
            if value is None or value is False:
                continue
            yield f" {name}" if value is True else f' {name}="{escape(_shown(value))}"'
        yield ">"
        if self.tag in _VOID:
            return
        for child in self.children:
            if isinstance(child, Node):
                yield from child.parts()
            else:
                yield escape(visible(child), quote=False)
        yield f"</{self.tag}>"

    def json(self) -> Json:
        """As lists that JSON knows: [tag, attributes, child, …]; for a page that makes its own elements."""
        attributes = {name: _shown(value) for name, value in self.attributes.items() if value not in {None, False}}
        children = [child.json() if isinstance(child, Node) else visible(child) for child in self.children]
        return [self.tag, attributes, *children]

    def add(self, *children: Child) -> "Node":
        """Append children; returns the node."""
        self.children.extend(children)
        return self


@dataclass(slots=True)
class Raw(Node):
    """Our own style sheet or script, written as it is; never data."""

    tag: str = ""
    source: str = ""

    def parts(self) -> Iterator[str]:
        """The source."""
        yield self.source


def element(tag: str, *children: Child, **attributes: str | float | bool | None) -> Node:
    """An element; `_` in attribute names stands for `-`, and `class_` for `class`."""
    named = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
    return Node(tag, named, list(children))


def visible(text: str) -> str:
    r"""A text without characters that cannot be shown: control characters become \xNN, lone surrogates too."""
    return text.translate(_CONTROL).encode("utf-8", "backslashreplace").decode("utf-8")


def _shown(value: str | float | bool) -> str:
    if isinstance(value, str):
        return visible(value)
    # A hundredth of a pixel is finer than any screen.
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
