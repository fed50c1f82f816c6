"""The browser's WebGPU as a `gpu.device.Device`: the only Python that touches it.

Buffers, pipelines and bind groups are made from here, one FFI call each, at load time; steps are replayed by
`worker/replay.js`, one FFI call a step.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import clutch_worker
import js
from pyodide.ffi import create_once_callable, create_proxy, to_js

from clutch.browser.failures import translated
from clutch.browser.pipelines import Pipelines, handle_of
from clutch.browser.steps import StepResults
from clutch.errors import OutOfMemory
from clutch.gpu.device import Buffer, ByteStream, Dispatch, Move, Piece, StepResult, Usage
from clutch.gpu.kernels import Kernel, texts_id
from clutch.gpu.limits import AdapterInfo, Limits

_USAGES = {
    Usage.STORAGE: js.GPUBufferUsage.STORAGE | js.GPUBufferUsage.COPY_DST | js.GPUBufferUsage.COPY_SRC,
    Usage.UNIFORM: js.GPUBufferUsage.UNIFORM | js.GPUBufferUsage.COPY_DST,
    Usage.READBACK: js.GPUBufferUsage.MAP_READ | js.GPUBufferUsage.COPY_DST,
}


@dataclass(frozen=True, eq=False)
class WebGPUBuffer:
    """Implements `gpu.device.Buffer`; `handle` is the GPUBuffer."""

    label: str
    size_bytes: int
    handle: Any

    def destroy(self) -> None:
        """Give its memory back."""
        self.handle.destroy()


async def open_device(wgsl_root: Path) -> "WebGPUDevice":
    """Return a device with all that the adapter allows, from a new adapter.

    Raises:
        CapabilityError: there is no adapter any more, or it gives no device.
    """
    opening = asyncio.ensure_future(clutch_worker.openGpu())
    try:
        with translated():
            return WebGPUDevice(await asyncio.shield(opening), wgsl_root)
    except asyncio.CancelledError:
        # A promise cannot be cancelled: the device still comes.
        opening.add_done_callback(_give_back)
        raise


def _give_back(opening: asyncio.Future[Any]) -> None:
    if opening.exception() is None:
        opening.result().close()


class WebGPUDevice:
    """Implements `gpu.device.Device`.

    Args:
        gpu: the `Gpu` of `worker/gpu.js`.
        wgsl_root: folder of the kernels.
    """

    def __init__(self, gpu: Any, wgsl_root: Path) -> None:
        adapter, limits = gpu.adapter, gpu.device.limits
        self.adapter = AdapterInfo(
            adapter.vendor,
            adapter.architecture,
            adapter.description,
            bool(adapter.is_fallback),
            int(adapter.subgroup_size),
        )
        self.limits = Limits(
            int(limits.maxBufferSize),
            int(limits.maxStorageBufferBindingSize),
            int(limits.maxComputeWorkgroupStorageSize),
        )
        self._gpu = gpu
        self._wgsl_root = wgsl_root
        self._pipelines = Pipelines(gpu, wgsl_root)
        self._replay: Any = None
        self._results = StepResults()

    @property
    def kernels_id(self) -> str:
        """A name for the texts of all kernels."""
        return texts_id(self._wgsl_root)

    async def allocate(self, label: str, size_bytes: int, usage: Usage) -> WebGPUBuffer:
        """Make a buffer; `settle` says whether it fits."""
        return WebGPUBuffer(label, size_bytes, self._gpu.allocate(label, size_bytes, _USAGES[usage]))

    async def settle(self) -> None:
        """Wait until everything allocated is there."""
        with translated():
            refused = await self._gpu.settle()
        if refused is not None:
            raise OutOfMemory(
                f"{refused.label} needs {refused.size} bytes; the GPU refused: {refused.message}",
                hint="Close other tabs, or choose a smaller model or context.",
                buffer=refused.label,
                asked_bytes=int(refused.size),
                limit_bytes=self.limits.largest_buffer_bytes,
            )

    async def compile(self, kernels: Sequence[Kernel], on_progress: Callable[[int, int], None]) -> None:
        """Make the pipelines that `kernels` lack, all together."""
        await self._pipelines.compile(kernels, on_progress)

    def record(self, dispatches: Sequence[Dispatch]) -> Any:
        """Turn dispatches into a plan of `worker/replay.js`."""
        pipelines = [self._pipelines.pipeline(d.kernel) for d in dispatches]
        groups = [self._pipelines.bind_group(d.kernel.spec, d.buffers) for d in dispatches]
        grid = [number for d in dispatches for number in (d.workgroups, d.tokens_per_workgroup)]
        return clutch_worker.Plan.new(to_js(pipelines), to_js(groups), js.Int32Array.new(to_js(grid)))

    def run(self, dispatches: Sequence[Dispatch]) -> None:
        """Record and submit once."""
        clutch_worker.run(self._gpu.device, self.record(dispatches))

    def write(self, buffer: Buffer, data: bytes, offset: int = 0) -> None:
        """Write `data` behind everything submitted so far."""
        self._gpu.queue.writeBuffer(handle_of(buffer), offset, to_js(data))

    async def read(self, pieces: Sequence[tuple[Buffer, int, int]], via: Buffer) -> bytes:
        """Return pieces of storage buffers, one behind the other, copied through `via`."""
        buffers, offsets, sizes = zip(*pieces, strict=True)
        handles = [handle_of(buffer) for buffer in buffers]
        with translated():
            read = await self._gpu.read(to_js(handles), to_js(offsets), to_js(sizes), handle_of(via))
            data: bytes = read.to_bytes()
            return data

    def copy(self, moves: Sequence[Move]) -> None:
        """Copy bytes between storage buffers: one FFI call and one submit."""
        buffers = [handle_of(buffer) for source, _, target, _, _ in moves for buffer in (source, target)]
        numbers = [number for _, start, _, to, size in moves for number in (start, to, size)]
        self._gpu.copy(to_js(buffers), to_js(numbers))

    async def upload(self, stream: ByteStream, staging: Buffer, uniform: Buffer, pieces: Sequence[Piece]) -> None:
        """Pour the next pieces of `stream` through `staging`, each to its place: one FFI call, one wait."""
        sizes = [number for piece in pieces for number in (piece.skip_bytes, piece.size_bytes)]
        words = to_js(b"".join(piece.words for piece in pieces))
        plan = self.record([piece.dispatch for piece in pieces])
        with translated():
            await handle_of(stream).pour(
                self._gpu.device, handle_of(staging), handle_of(uniform), to_js(sizes), words, plan
            )

    def prepare_steps(self, uniforms: Buffer, result: Buffer, readbacks: Sequence[Buffer]) -> None:
        """Say where steps keep their uniforms and results."""
        self._replay = clutch_worker.Replay.new(
            self._gpu,
            handle_of(uniforms),
            self._pipelines.step_group(uniforms),
            handle_of(result),
            to_js([handle_of(readback) for readback in readbacks]),
            create_proxy(self._results.settle),
        )

    def configure(self, slot: int, settings: bytes) -> None:
        """Set the words of the sequence in `slot` behind its position."""
        self._replay.configure(slot, to_js(settings))

    def step(
        self, plan: Any, sequences: Sequence[tuple[int, int]], tokens_per_sequence: int
    ) -> Awaitable[list[StepResult]]:
        """Submit one step at once: one FFI call, of numbers alone, which need no conversion."""
        return self._results.expect(self._replay.step(plan, tokens_per_sequence, *chain.from_iterable(sequences)))

    @property
    def has_timestamps(self) -> bool:
        """Whether this browser gives timestamps on this GPU."""
        return bool(self._gpu.device.features.has("timestamp-query"))

    async def measure(
        self, plan: Any, sequences: Sequence[tuple[int, int]], tokens_per_sequence: int, repeats: int
    ) -> float:
        """Return the time for `repeats` runs of `plan`, in us."""
        with translated():
            flat = chain.from_iterable(sequences)
            return float(await self._replay.measure(plan, repeats, tokens_per_sequence, *flat))

    async def idle(self) -> None:
        """Wait until everything submitted is done."""
        with translated():
            await self._gpu.idle()

    def clear(self, buffer: Buffer, offset: int, size_bytes: int) -> None:
        """Overwrite part of a storage buffer with zeros."""
        self._gpu.clear(handle_of(buffer), offset, size_bytes)

    def on_lost(self, callback: Callable[[], None]) -> None:
        """Call `callback` once when the device is lost, unless `destroy` did it."""
        self._gpu.onLost(create_once_callable(callback))

    def destroy(self) -> None:
        """Give the whole device back."""
        self._gpu.close()
