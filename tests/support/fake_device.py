"""A device that computes with the NumPy references and can fail its k-th call; it lives here, never in the product.

Every call of the protocol that can fail on a real GPU passes `Script.point`, which counts it, may act at it and may
raise.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from clutch.errors import ClutchError, DeviceLost, OutOfMemory, SourceError
from clutch.gpu.device import StepResult
from clutch.gpu.limits import AdapterInfo, Limits
from tests.support.kernel_reference import Step, compute

GUARANTEED = Limits(max_buffer_bytes=256 << 20, max_binding_bytes=128 << 20)


@dataclass
class Script:
    """What happens at which call.

    Args:
        fail_at: number of the call, from 1, that raises `error`; 0 for none.
        for_ever: every later call raises too.
        only: count and fail only calls with this name; "" for all.
        error: what to raise; after DeviceLost every call of that device raises it.
        act_at: number of the call at which `act` is called.
    """

    fail_at: int = 0
    for_ever: bool = False
    only: str = ""
    error: type[ClutchError] = DeviceLost
    act_at: int = 0
    act: Callable[[], None] = lambda: None
    calls: Counter[str] = field(default_factory=Counter)
    n_counted: int = 0

    def point(self, name, device=None):
        """Pass a call; raises what the script says."""
        self.calls[name] += 1
        if device is not None and device.is_lost:
            raise DeviceLost("the fake GPU is lost")
        if self.only and name != self.only:
            return
        self.n_counted += 1
        if self.n_counted == self.act_at:
            self.act()
        if self.n_counted == self.fail_at or (self.for_ever and 0 < self.fail_at < self.n_counted):
            if device is not None and self.error is DeviceLost:
                device.lose()
            raise self.error(f"the script fails {name}, call {self.n_counted}")


class FakeBuffer:
    """Bytes; touching it after `destroy` is an error."""

    def __init__(self, label, size_bytes, on_destroy):
        self.label = label
        self.size_bytes = size_bytes
        self._on_destroy = on_destroy
        self._data = np.zeros(size_bytes, np.uint8)

    @property
    def data(self):
        assert self._data is not None, f"{self.label} was destroyed"
        return self._data

    def destroy(self):
        assert self._data is not None, f"{self.label} destroyed twice"
        self._data = None
        self._on_destroy(self.size_bytes)


class FakeStream:
    """The rest of a file."""

    def __init__(self, data, script):
        self._data = data
        self._script = script
        self.is_closed = False

    def take(self, size_bytes):
        taken, self._data = self._data[:size_bytes], self._data[size_bytes:]
        if len(taken) < size_bytes:
            raise SourceError("the file ended early")
        return taken

    async def skip(self, size_bytes):
        self._script.point("skip")
        await asyncio.sleep(0)
        self.take(size_bytes)

    def close(self):
        self.is_closed = True


class FakeDevice:
    """Implements `clutch.gpu.device.Device`.

    Args:
        script: what happens at which call.
        room_bytes: all that its buffers may take together.
    """

    def __init__(self, script=None, *, limits=GUARANTEED, is_fallback=False, room_bytes=1 << 30):
        self.room_bytes = room_bytes
        self.script = script or Script()
        self.limits = limits
        self.adapter = AdapterInfo("fake", "numpy", "", is_fallback)
        self.is_destroyed = False
        self.is_lost = False
        self._on_lost = lambda: None
        self.n_in_flight = 0
        self._compiled = set()
        self._step_words = Step().pack()

    async def allocate(self, label, size_bytes, usage):
        await self._wait("allocate")
        if size_bytes > min(self.limits.largest_buffer_bytes, self.room_bytes):
            raise OutOfMemory(f"{label} does not fit", asked_bytes=size_bytes)
        self.room_bytes -= size_bytes
        return FakeBuffer(label, size_bytes, self._give_back)

    def _give_back(self, size_bytes):
        self.room_bytes += size_bytes

    async def compile(self, kernels, on_progress):
        for done, kernel in enumerate(kernels, start=1):
            await self._wait("compile")
            self._compiled.add(kernel)
            on_progress(done, len(kernels))

    def record(self, dispatches):
        assert all(dispatch.kernel in self._compiled for dispatch in dispatches)
        return list(dispatches)

    def run(self, dispatches):
        self._submit(dispatches, Step())

    def write(self, buffer, data, offset=0):
        buffer.data[offset : offset + len(data)] = np.frombuffer(data, np.uint8)

    async def read(self, buffer, via, size_bytes):
        await self._wait("read")
        via.data[:size_bytes] = buffer.data[:size_bytes]
        return via.data[:size_bytes].tobytes()

    async def upload(self, stream, buffer, size_bytes):
        await self._wait("upload")
        self.write(buffer, stream.take(size_bytes))

    def prepare_steps(self, uniforms, result, readbacks):
        self._result = result
        self._n_readbacks = len(readbacks)

    def configure(self, settings):
        self._step_words = bytes(8) + settings

    def step(self, plan, position, n_tokens):
        self.script.point("submit", self)
        self.n_in_flight += 1
        assert self.n_in_flight <= self._n_readbacks
        words = np.array([position, n_tokens], np.uint32).tobytes() + self._step_words[8:]
        self._submit(plan, Step.unpack(words))
        return self._result_of_step(self._result.data.copy())

    async def idle(self):
        await self._wait("idle")

    def clear(self, buffer):
        buffer.data[:] = 0

    def on_lost(self, callback):
        self._on_lost = callback

    def lose(self):
        """Lose the GPU; the browser says so a moment later."""
        self.is_lost = True
        asyncio.get_running_loop().call_soon(lambda: None if self.is_destroyed else self._on_lost())

    def destroy(self):
        self.is_destroyed = True

    def _submit(self, dispatches, step):
        for dispatch in dispatches:
            compute(dispatch.kernel, [buffer.data for buffer in dispatch.buffers], step)

    async def _result_of_step(self, result):
        try:
            await self._wait("result")
        finally:
            self.n_in_flight -= 1
        token_id, position = result.view(np.uint32)[[0, 3]].tolist()
        log_probability, entropy = result[4:12].view(np.float32).tolist()
        return StepResult(token_id, log_probability, entropy, position)

    async def _wait(self, name):
        self.script.point(name, self)
        await asyncio.sleep(0)
