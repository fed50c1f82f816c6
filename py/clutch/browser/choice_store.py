"""The choice of kernels in the browser's own file system (OPFS); only this site sees it."""

from typing import Any

import js
from pyodide.ffi import JsException, to_js

_DIRECTORY, _FILE = "kernels", "choices.json"


class OpfsChoiceStore:
    """Implements `model.choices.ChoiceStore`. Old browsers lack parts of it, private windows and full disks refuse."""

    async def read(self) -> bytes:
        """Return what was written last; empty without it."""
        try:
            file = await (await _open_file(create=False)).getFile()
            data: bytes = (await file.arrayBuffer()).to_bytes()
            return data
        except (JsException, AttributeError):
            return b""

    async def write(self, data: bytes) -> None:
        """Keep `data`, if the browser lets us; a write that is cut off leaves what was there."""
        try:
            stream = await (await _open_file(create=True)).createWritable()
            await stream.write(to_js(data))
            await stream.close()
        except (JsException, AttributeError) as error:
            js.console.info(f"The choice of kernels is not kept: {error}")


async def _open_file(*, create: bool) -> Any:
    options = to_js({"create": create}, dict_converter=js.Object.fromEntries)
    root = await js.navigator.storage.getDirectory()
    return await (await root.getDirectoryHandle(_DIRECTORY, options)).getFileHandle(_FILE, options)
