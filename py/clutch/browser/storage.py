"""Model files: bytes for Python to read, or a stream that goes straight to the GPU (`worker/upload.js`)."""

from typing import Any

from clutch.browser.failures import translated


class FileStream:
    """Implements `gpu.device.ByteStream`; `handle` is the JS stream, for `WebGPUDevice.upload`."""

    def __init__(self, handle: Any) -> None:
        self.handle = handle

    def close(self) -> None:
        """Let go of the file."""
        self.handle.close()


class ModelSource:
    """Implements `model.upload.Source` over the JS class of the same purpose."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle

    @property
    def size_bytes(self) -> int:
        """Its size."""
        return int(self._handle.size)

    async def read(self, offset: int, length: int) -> bytes:
        """Return bytes of it."""
        with translated():
            data: bytes = (await self._handle.read(offset, offset + length)).to_bytes()
            return data

    async def stream(self, offset: int) -> FileStream:
        """Return its bytes from `offset` on."""
        with translated():
            return FileStream(await self._handle.stream(offset))
