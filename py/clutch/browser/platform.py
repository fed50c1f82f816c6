"""The engine's outside world in the browser."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import clutch_worker
import js
from pyodide.ffi import to_js

from clutch.browser.choice_store import OpfsChoiceStore
from clutch.browser.failures import translated
from clutch.browser.port import Port
from clutch.browser.session_store import OpfsSessionStore
from clutch.browser.storage import ModelSource
from clutch.browser.webgpu import WebGPUDevice, open_device
from clutch.engine.control import SharedMark
from clutch.engine.session_store import SessionStore
from clutch.model.choices import ChoiceStore


class BrowserPlatform:
    """Implements `engine.platform.Platform`.

    Args:
        root_url: of the page; URLs of models are relative to it.
        wgsl_root: folder of the kernels.
        port: to the page.
    """

    def __init__(self, root_url: str, wgsl_root: Path, port: Port) -> None:
        self._root_url = root_url
        self._wgsl_root = wgsl_root
        self._port = port
        self._store = OpfsSessionStore()
        self._choice_store = OpfsChoiceStore()

    @property
    def shared_mark(self) -> SharedMark | None:
        """The page's stop mark."""
        return self._port.shared_mark

    @property
    def store(self) -> SessionStore:
        """The browser's own file system."""
        return self._store

    @property
    def choice_store(self) -> ChoiceStore:
        """The same."""
        return self._choice_store

    async def open_device(self) -> WebGPUDevice:
        """Return a new device from a new adapter."""
        return await open_device(self._wgsl_root)

    async def open_url(self, url: str) -> ModelSource:
        """Return the model file at `url`; only this server's, as the page's policy says too."""
        with translated():
            return ModelSource(await clutch_worker.Source.fromUrl(js.URL.new(url, self._root_url).href))

    def open_file(self, file: object) -> ModelSource:
        """Return the model file that the user chose."""
        return ModelSource(clutch_worker.Source.fromFile(file))

    async def open_encoder(self, tokenizer_json: bytes) -> Callable[[str], list[int]]:
        """Return the encoder of @mlc-ai/web-tokenizers (Hugging Face tokenizers in WASM)."""
        tokenizer = await clutch_worker.openTokenizer(to_js(tokenizer_json))

        def encode(text: str) -> list[int]:
            ids: Any = tokenizer.encode(text)
            return list(ids.to_py())

        return encode

    def send(self, kind: str, **fields: object) -> None:
        """Post an event to the page."""
        self._port.send(kind, **fields)

    def clock(self) -> float:
        """Return seconds that never run backwards."""
        return time.perf_counter()
