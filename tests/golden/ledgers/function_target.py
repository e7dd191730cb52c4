"""A function to be configured: it answers at once on some seeds, and fails on the others."""


def solve(share: float, instance: int, seed: int) -> dict[str, object]:
    """Answer for `share` percent of all seeds."""
    return {"answer": instance, "solved": seed // 7 % 100 < share}
