"""The results of submitted steps: JavaScript brings them, Python awaits them.

A promise for each would cost Python twice as much as a step costs it otherwise (44 us, measured, Pyodide).
"""

import asyncio
import struct
from typing import Any

from clutch.browser.failures import translation
from clutch.gpu.device import StepResult


class StepResults:
    """Those that are awaited; refers to nothing of JavaScript, which holds `settle`."""

    def __init__(self) -> None:
        self._awaited: dict[int, asyncio.Future[list[StepResult]]] = {}

    def expect(self, step: int) -> asyncio.Future[list[StepResult]]:
        """Return the results of a step that was just submitted, to await."""
        future = self._awaited[step] = asyncio.get_running_loop().create_future()
        return future

    def settle(self, step: int, words: Any = None, error: Any = None) -> None:
        """Take the results of a step, or why there are none; called by `Replay`.

        Args:
            step: its number.
            words: a Uint32Array of token, log-probability, entropy, position of each sequence; read with one FFI call.
            error: what JavaScript was told.
        """
        future = self._awaited.pop(step)
        if future.done():
            # Whoever waited was cancelled.
            return
        if error is None:
            future.set_result([StepResult(*result) for result in struct.iter_unpack("<IffI", words.to_bytes())])
        else:
            future.set_exception(translation(error))
            # Nobody may want to know, which is no mistake.
            future.exception()
