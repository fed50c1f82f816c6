"""What is alive in the engine's worker: GPU buffers, proxies, references, Python's objects; see `leak_worker.js`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import BrowserContext, Page

from tests.support.worker_patch import patch_worker

LEAKS = Path(__file__).with_name("leak_worker.js")
# Pyodide is reached by wrapping the one function that makes it; proxies are noted only when asked for.
_PYODIDE = "**/pyodide/pyodide.mjs"
_WRAPPER = """import { loadPyodide as load } from "./pyodide.mjs?real";
export async function loadPyodide(...options) {
    const pyodide = await load(...options);
    pyodide._module.enable_pyproxy_allocation_tracing();
    return (self.pyodideOfTheTest = pyodide);
}"""
_ASK = """() => new Promise(resolve => {
    const channel = new BroadcastChannel("clutch-test-leaks");
    channel.onmessage = ({ data }) => { channel.close(); resolve(data); };
    channel.postMessage("ask");
})"""


@dataclass(frozen=True)
class Alive:
    """What the worker holds: counts, and bytes of buffers and of the wasm heap."""

    buffers: int
    bytes: int
    devices: int
    references: int
    proxies: int
    objects: int
    heap: int


def watch_leaks(context: BrowserContext) -> None:
    """Let every worker of `context` count."""
    patch_worker(context, LEAKS)

    def wrap(route: Any) -> None:
        headers = {
            name: value for name, value in route.fetch().headers.items() if name not in ("content-length", "etag")
        }
        route.fulfill(body=_WRAPPER, headers=headers)

    context.route(_PYODIDE, wrap)


def alive(page: Page) -> Alive:
    """Return what is alive now."""
    counted = page.evaluate(_ASK)
    return Alive(**{name: counted[name] for name in Alive.__dataclass_fields__})


def submits(page: Page) -> list[float]:
    """Return when the worker submitted something to the GPU: ms since 1970, by the browser's clock."""
    times: list[float] = page.evaluate(_ASK)["submits"]
    return times
