"""A real browser for tests, if there is one: Debian's Chromium, or whatever CAPTIME_CHROMIUM names."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

# The network is closed, and nothing here is worth a GPU.
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)


def chromium() -> str | None:
    """Where it is."""
    named = os.environ.get("CAPTIME_CHROMIUM")
    return named or next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@contextmanager
def browser() -> Iterator[Any]:
    """A browser that is running; the test is skipped where there is none."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="Playwright is not installed (pip install playwright)"
    )
    where = chromium()
    if where is None:
        pytest.skip("no Chromium here: apt-get install chromium, or set CAPTIME_CHROMIUM to one")
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=where, args=list(FLAGS))
        try:
            yield running
        finally:
            running.close()


class Page:
    """A page that takes down everything that goes wrong on it.

    Attributes:
        page: Playwright's page.
        troubles: Console messages of warnings and errors, exceptions, dialogs, requests to other places.
    """

    def __init__(self, running: Any, *, width: int = 1100, height: int = 900, scheme: str = "light") -> None:
        self.page: Any = running.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
        self.troubles: list[str] = []
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.troubles.append(f"exception: {error}"))
        self.page.on("dialog", self._dialog)

    def _console(self, message: Any) -> None:
        if message.type in {"error", "warning"}:
            self.troubles.append(f"{message.type}: {message.text}")

    def _dialog(self, dialog: Any) -> None:
        self.troubles.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def count(self, selector: str) -> int:
        """How many elements there are."""
        return int(self.page.locator(selector).count())

    def overflow(self) -> int:
        """By how many pixels the page is wider than its window."""
        return int(self.page.evaluate("document.documentElement.scrollWidth - window.innerWidth"))
