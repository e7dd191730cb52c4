"""Functions to be configured. A slot imports this file to call them, so it imports nothing that takes time."""

import random
import time
from pathlib import Path
from typing import Any

FAST, SLOW = 0.002, 0.2
"""CPU seconds of a lucky and of an unlucky run."""
CHANCES = {"a": 0.9, "b": 0.7, "c": 0.55, "d": 0.4}
"""How likely each configuration is to be lucky."""


def burn(settings: dict[str, float], instance: int, seed: int) -> bool:
    """Burn CPU time: little if lucky, much if not; the seed decides, with its own luck for every configuration."""
    lucky = random.Random(f"{seed} {settings['chance']}").random() < settings["chance"]  # noqa: S311 (a law, not a secret)
    until = time.process_time() + (FAST if lucky else SLOW)
    while time.process_time() < until:
        pass
    return instance >= 0


def solve_if_it_works(settings: Any, instance: int, seed: int) -> bool:
    """Answer at once, or not at all; the seed is taken and changes nothing."""
    if not settings["works"] and instance % 3 and seed:
        raise RuntimeError("no answer")
    return True


def steady(settings: Any, instance: int, seed: int) -> bool:
    """Answer at once, with every seed."""
    return True


def restless(settings: Any, instance: int, seed: int) -> bool:
    """Take another time at every call: much more or much less than the last one."""
    marker = Path(settings["folder"]) / f"{instance}-{seed}"
    first = not marker.exists()
    marker.write_text("seen", encoding="utf-8")
    end = time.process_time() + (0.3 if first else 0.0)
    while time.process_time() < end:
        pass
    return True


def unseeded(settings: Any, instance: int) -> bool:
    """Answer at once; no seed is taken."""
    return bool(settings) and instance >= 0


def unseeded_restless(settings: Any, instance: int) -> bool:
    """Take another time at every call; no seed is taken."""
    return restless(settings, instance, 0)


def solve_space(settings: Any, instance: int, seed: int) -> bool:
    """Answer at once where the setting is large enough for the instance."""
    if settings["x"] < (instance * 7 % 10) / 10.0 and seed:
        raise RuntimeError("no answer")
    return True


def count(settings: dict[str, int], instance: int, seed: int) -> bool:
    """Takes time by its pace."""
    return sum(range(1000 * settings["pace"])) + instance + seed >= 0


def by_steps(settings: dict[str, int], instance: int, seed: int) -> bool:
    """Takes time by its steps."""
    return sum(range(instance * settings["steps"])) + seed >= 0
