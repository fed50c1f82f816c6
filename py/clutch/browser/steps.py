"""The result of a submitted step, to await."""

import struct
from collections.abc import Generator
from typing import Any

from clutch.browser.failures import translated
from clutch.gpu.device import StepResult


class StepFuture:
    """Awaits the promise of `Replay.step`: four words, read with one FFI call.

    Args:
        promise: resolves to a Uint32Array of token, log-probability, entropy, position.
    """

    def __init__(self, promise: Any) -> None:
        self._promise = promise

    def __await__(self) -> Generator[Any, Any, StepResult]:
        return self._read().__await__()

    async def _read(self) -> StepResult:
        with translated():
            words = await self._promise
        return StepResult(*struct.unpack("<IffI", words.to_bytes()))
