"""A headless Chromium for the dashboard's tests: the system's own, driven by Playwright."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
# No sandbox, since tests run as root in CI; and no word to the browser's makers at every start.
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Skips where there is no Chromium; fails if that is in CI, where there must be one."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_executable(), args=[*ARGUMENTS])
        yield browser
        browser.close()


@contextmanager
def page_without_errors(
    browser: Browser, *, width: int = 1280, color_scheme: str = "light", expected: str = "\0"
) -> Iterator[Page]:
    """A page in a context of its own; in the end nothing may have gone to its console.

    `expected` is part of messages that are meant to come: the browser itself reports a 4xx.
    """
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        color_scheme="dark" if color_scheme == "dark" else "light",
    )
    page = context.new_page()
    page.set_default_timeout(10_000)
    said: list[str] = []
    page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: said.append(f"uncaught: {error}"))
    page.on("requestfailed", lambda request: said.append(f"{request.failure}: {request.url}"))
    yield page
    # A reload cuts off the poll that is under way: the page's own doing, and no failure.
    known = (expected, "net::ERR_ABORTED")
    assert [] == [line for line in said if not any(part in line for part in known)]
    context.close()


def _executable() -> str:
    named = os.environ.get("SPECSERVE_CHROMIUM")
    found = named or next(filter(None, map(shutil.which, NAMES)), None)
    if found is not None:
        return found
    reason = (
        "THE DASHBOARD IS NOT TESTED: no Chromium on this machine. "
        "Install it (Debian: apt-get install chromium), or name it in SPECSERVE_CHROMIUM"
    )
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)
