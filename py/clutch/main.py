"""The composition root of the worker: builds the platform and the engine, and feeds it the messages in order."""

import asyncio
from pathlib import Path
from typing import Any

from clutch.browser.platform import BrowserPlatform
from clutch.browser.port import Port
from clutch.config import EngineConfig
from clutch.engine.engine import Engine
from clutch.errors import ClutchError

WGSL_ROOT = Path("/engine/wgsl")


async def serve(port: Port, engine: Engine) -> None:
    """Hand every message to the engine, one after the other."""
    while True:
        try:
            message, file = await port.receive()
        except ClutchError as error:
            engine.report(error, None)
        else:
            await engine.handle(message, file)


def start(root_url: str, early: Any) -> Any:
    """Start the engine; called once by `worker/engine_worker.js`.

    Args:
        root_url: of the page.
        early: the messages so far, a JS array; the first carries the stop mark.
    """
    port = Port(early)
    platform = BrowserPlatform(root_url, WGSL_ROOT, port)
    engine = Engine(platform, EngineConfig())
    engine.announce()
    return asyncio.ensure_future(serve(port, engine))
