"""The results of a submitted step, to await."""

import struct
from collections.abc import Generator
from typing import Any

from clutch.browser.failures import translated
from clutch.gpu.device import StepResult


class StepFuture:
    """Awaits the promise of `Replay.step`: four words a sequence, read with one FFI call.

    Args:
        promise: resolves to a Uint32Array of token, log-probability, entropy, position of each.
    """

    def __init__(self, promise: Any) -> None:
        self._promise = promise

    def __await__(self) -> Generator[Any, Any, list[StepResult]]:
        return self._read().__await__()

    async def _read(self) -> list[StepResult]:
        with translated():
            words = await self._promise
        return [StepResult(*result) for result in struct.iter_unpack("<IffI", words.to_bytes())]
