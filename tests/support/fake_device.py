"""A device that computes with the NumPy references and can fail its k-th call; it lives here, never in the product.

Every call of the protocol that can fail on a real GPU passes `Script.point`, which counts it, may act at it and may
raise.
"""

import asyncio
import struct
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from clutch.errors import ClutchError, DeviceLost, OutOfMemory, SourceError
from clutch.gpu.device import StepResult
from clutch.gpu.limits import AdapterInfo, Limits
from clutch.gpu.step import RESULT_BYTES
from tests.support.kernel_reference import Sequence, Step, compute

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

    def __init__(self, data):
        self._data = data
        self.is_closed = False

    def take(self, size_bytes):
        taken, self._data = self._data[:size_bytes], self._data[size_bytes:]
        if len(taken) < size_bytes:
            raise SourceError("the file ended early")
        return taken

    def close(self):
        self.is_closed = True


class FakeDevice:
    """Implements `clutch.gpu.device.Device`.

    Args:
        script: what happens at which call.
        room_bytes: all that its buffers may take together.
        us_per_dispatch: what its timestamps say that a dispatch takes, or a function of its kernel; None: it has none.
        timestamp_us: their steps.
        subgroup_size: of its adapter.
    """

    kernels_id = "as they are"

    def __init__(
        self,
        script=None,
        *,
        limits=GUARANTEED,
        is_fallback=False,
        room_bytes=1 << 30,
        us_per_dispatch=None,
        timestamp_us=0.125,
        subgroup_size=0,
    ):
        self.room_bytes = room_bytes
        self.us_per_dispatch = us_per_dispatch
        self.timestamp_us = timestamp_us
        # As in the browser: known only when somebody waits for it.
        self._refused = None
        self.script = script or Script()
        self.limits = limits
        self.adapter = AdapterInfo("fake", "numpy", "", is_fallback, subgroup_size)
        self.is_destroyed = False
        self.is_lost = False
        self._on_lost = lambda: None
        self.n_in_flight = 0
        self._compiled = set()
        self._settings = {}

    async def allocate(self, label, size_bytes, usage):
        await self._wait("allocate")
        if size_bytes > min(self.limits.largest_buffer_bytes, self.room_bytes):
            self._refused = self._refused or OutOfMemory(f"{label} does not fit", buffer=label, asked_bytes=size_bytes)
            return FakeBuffer(label, size_bytes, lambda _: None)
        self.room_bytes -= size_bytes
        return FakeBuffer(label, size_bytes, self._give_back)

    def _give_back(self, size_bytes):
        self.room_bytes += size_bytes

    async def settle(self):
        await self._wait("settle")
        refused, self._refused = self._refused, None
        if refused:
            raise refused

    async def compile(self, kernels, on_progress):
        missing = [kernel for kernel in dict.fromkeys(kernels) if kernel not in self._compiled]
        for done, kernel in enumerate(missing, start=1):
            await self._wait("compile")
            self._compiled.add(kernel)
            on_progress(done, len(missing))

    def record(self, dispatches):
        assert all(dispatch.kernel in self._compiled for dispatch in dispatches)
        return list(dispatches)

    def run(self, dispatches):
        self._submit(dispatches, Step())

    def write(self, buffer, data, offset=0):
        buffer.data[offset : offset + len(data)] = np.frombuffer(data, np.uint8)

    async def read(self, pieces, via):
        # Copied when it is submitted, not when it is waited for.
        data = b"".join(buffer.data[offset : offset + size].tobytes() for buffer, offset, size in pieces)
        assert len(data) <= via.size_bytes
        await self._wait("read")
        return data

    def copy(self, moves):
        for source, start, target, to, size_bytes in moves:
            assert source is not target
            target.data[to : to + size_bytes] = source.data[start : start + size_bytes]

    async def upload(self, stream, staging, uniform, pieces):
        for piece in pieces:
            await self._wait("upload")
            stream.take(piece.skip_bytes)
            self.write(staging, stream.take(piece.size_bytes))
            self.write(uniform, piece.words)
            self.run([piece.dispatch])

    def prepare_steps(self, uniforms, result, readbacks):
        self._result = result
        self._n_readbacks = len(readbacks)

    def configure(self, slot, settings):
        self._settings[slot] = settings

    def step(self, plan, sequences, tokens_per_sequence):
        self.script.point("submit", self)
        self.n_in_flight += 1
        assert self.n_in_flight <= self._n_readbacks
        self._submit(plan, self._step(sequences, tokens_per_sequence))
        return self._result_of_step(self._result.data[: RESULT_BYTES * len(sequences)].copy())

    def _step(self, sequences, tokens_per_sequence):
        rows = [np.uint32(position).tobytes() + self._settings[slot] for slot, position in sequences]
        return Step(tuple(map(Sequence.unpack, rows)), tokens_per_sequence)

    @property
    def has_timestamps(self):
        return self.us_per_dispatch is not None

    async def measure(self, plan, sequences, tokens_per_sequence, repeats):
        assert not self.n_in_flight
        await self._wait("measure")
        # What it leaves behind is worth nothing, whether once or a thousand times.
        self._submit(plan, self._step(sequences, tokens_per_sequence))
        us_of = self.us_per_dispatch if callable(self.us_per_dispatch) else lambda _: self.us_per_dispatch or 0
        return sum(us_of(dispatch.kernel) for dispatch in plan) * repeats // self.timestamp_us * self.timestamp_us

    async def idle(self):
        await self._wait("idle")

    def clear(self, buffer, offset, size_bytes):
        buffer.data[offset : offset + size_bytes] = 0

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
        return [StepResult(*words) for words in struct.iter_unpack("<IffI", result.tobytes())]

    async def _wait(self, name):
        self.script.point(name, self)
        await asyncio.sleep(0)
