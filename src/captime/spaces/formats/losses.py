"""What a format cannot say. A writer that would lose something about the space itself refuses, and names it."""

from captime.errors import ScenarioError


def refuse(format_name: str, lost: list[str]) -> None:
    """Raise if something would be lost."""
    if lost:
        shown = "; ".join(lost[:5]) + (f"; and {len(lost) - 5} more" if len(lost) > 5 else "")
        raise ScenarioError(
            f"{format_name} files cannot say everything this space says, and without it they would be another space: "
            f"{shown}. Write toml instead, or simplify the space"
        )
