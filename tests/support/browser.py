"""Start the full Chromium in its new headless mode, through Playwright's sync API."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from playwright.sync_api import Browser, Playwright

from tests.support.flags import SWIFTSHADER, flags_for

# Playwright's own flag asks for the headless shell's mode.
_UNWANTED = ["--headless"]


@contextmanager
def launch(
    playwright: Playwright, executable: str, *, adapter: str = SWIFTSHADER, extra_flags: Sequence[str] = ()
) -> Iterator[Browser]:
    """Give a browser and close it afterwards.

    Args:
        playwright: a started Playwright.
        executable: path of Chromium or Chrome.
        adapter: see `flags.flags_for`.
        extra_flags: given last, so they win.
    """
    arguments = [*flags_for(adapter), *extra_flags]
    browser = playwright.chromium.launch(
        executable_path=executable, headless=True, args=arguments, ignore_default_args=_UNWANTED
    )
    try:
        yield browser
    finally:
        browser.close()
