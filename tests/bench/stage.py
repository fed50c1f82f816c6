"""What every benchmark stands on: the served site and a browser."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from tests.bench.arguments import Job
from tests.runner import chromium, parts
from tests.support.browser import launch
from tests.support.flags import SWIFTSHADER
from tests.support.site import serve

_OWN_GPU = "own"
_HERE = Path(__file__).parent


@contextmanager
def stage(job: Job) -> Iterator[tuple[Browser, str]]:
    """Give a browser and the site's address, with its slash at the end."""
    executable = chromium.ensure(job.chromium)
    parts.ensure()
    adapter = _OWN_GPU if job.wants_real_gpu else SWIFTSHADER
    with (
        serve([job.model] if job.model else []) as url,
        sync_playwright() as playwright,
        launch(playwright, executable, adapter=adapter, extra_flags=job.chromium_flags) as browser,
    ):
        yield browser, url


def bring_script(page: Page, name: str) -> None:
    """Bring a script of this folder into a page, with what all of them wait with."""
    texts = [(_HERE / part).read_text(encoding="utf-8") for part in ("waiters.js", name)]
    page.evaluate("\n".join(texts))


def model_url(job: Job) -> str | None:
    """Return the model's path on the server, or None for the default one."""
    return f"models/{job.model.name}" if job.model else None


def say(text: str) -> None:
    """Tell whoever waits how far it is."""
    print(f"[bench] {text}", file=sys.stderr, flush=True)
