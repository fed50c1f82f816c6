"""Run a script inside the engine's worker before the worker's own code: no hook in the product is needed.

The request for the worker is answered with a two-line module that imports the script and then the real worker
under another address. Static imports run before the first message is delivered, so that none is lost.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import BrowserContext, Page, Route

COUNTING = Path(__file__).with_name("counting_worker.js")
_WORKER = "**/worker/engine_worker.js"
_SCRIPT = "**/worker/test_only_patch.js"
_WRAPPER = 'import "./test_only_patch.js";\nimport "./engine_worker.js?real";\n'
_ASK = """() => new Promise(resolve => {
    const channel = new BroadcastChannel("clutch-test-counts");
    channel.onmessage = ({ data }) => { channel.close(); resolve(data); };
    channel.postMessage("ask");
})"""


def patch_worker(context: BrowserContext, script: str | Path | Callable[[], str]) -> None:
    """Let every worker of `context` run `script` first: source text, a file, or a function asked for each worker."""

    def source() -> str:
        if isinstance(script, Path):
            return script.read_text(encoding="utf-8")
        return script if isinstance(script, str) else script()

    context.route(_WORKER, lambda route: _answer(route, _WRAPPER))
    context.route(_SCRIPT, lambda route: _answer(route, source()))


def counts(page: Page) -> dict[str, Any]:
    """Return what `counting_worker.js` has counted so far."""
    answer: dict[str, Any] = page.evaluate(_ASK)
    return answer


def _answer(route: Route, body: str) -> None:
    # The real worker's headers: its policies must hold for the wrapper too.
    address = route.request.url.replace("test_only_patch.js", "engine_worker.js")
    headers = route.fetch(url=address).headers
    kept = {name: value for name, value in headers.items() if name not in ("content-length", "etag")}
    route.fulfill(body=body, headers=kept)
