"""The device as a small protocol, implemented by `browser/webgpu.py` and by a fake in the tests.

Nothing here knows WebGPU. Sizes are bytes, word layouts are little-endian u32.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from clutch.gpu.kernels import Kernel
from clutch.gpu.limits import AdapterInfo, Limits


class Usage(StrEnum):
    """What a buffer is for."""

    STORAGE = "storage"
    UNIFORM = "uniform"
    READBACK = "readback"


class Buffer(Protocol):
    """A buffer of the device; made by `Device.allocate`, owned by a scope of the ledger."""

    @property
    def label(self) -> str:
        """What it holds, for errors."""

    @property
    def size_bytes(self) -> int:
        """Its size."""

    def destroy(self) -> None:
        """Give its memory back; later use is a bug."""


@dataclass(frozen=True)
class Dispatch:
    """One dispatch of a plan.

    Args:
        kernel: the pipeline.
        buffers: one a binding of group 0, in order.
        threads: invocations along x; rounded up to whole workgroups.
        tokens_per_workgroup: 0 = one row of workgroups; else a row for each so many tokens of the step.
    """

    kernel: Kernel
    buffers: tuple[Buffer, ...]
    threads: int
    tokens_per_workgroup: int = 0

    @property
    def workgroups(self) -> int:
        """Workgroups along x."""
        return -(-self.threads // self.kernel.spec.workgroup_size)


@dataclass(frozen=True)
class StepResult:
    """What a step that samples brings back.

    Args:
        token_id: the chosen token.
        log_probability: of the chosen token at temperature 1, nats.
        entropy: of the distribution at temperature 1, nats.
        position: where the token stands in the sequence.
    """

    token_id: int
    log_probability: float
    entropy: float
    position: int


class Plan(Protocol):
    """A recorded list of dispatches; opaque."""


class ByteStream(Protocol):
    """Bytes that go from a file to the GPU without entering the Python heap."""

    async def skip(self, size_bytes: int) -> None:
        """Drop so many bytes."""

    def close(self) -> None:
        """Let go of the file."""


class Device(Protocol):
    """A GPU. Every method that waits races the device's loss and a deadline."""

    @property
    def adapter(self) -> AdapterInfo:
        """Which GPU this is."""

    @property
    def limits(self) -> Limits:
        """What fits."""

    async def allocate(self, label: str, size_bytes: int, usage: Usage) -> Buffer:
        """Make a buffer, zeroed. Only the ledger calls this.

        Raises:
            OutOfMemory: it does not fit.
            DeviceLost, DeviceTimeout: as for every wait.
        """

    async def compile(self, kernels: Sequence[Kernel], on_progress: Callable[[int, int], None]) -> None:
        """Make the pipelines of `kernels`, all together; `on_progress(done, total)` after each."""

    def record(self, dispatches: Sequence[Dispatch]) -> Plan:
        """Turn dispatches into a plan that a step can replay; everything a step needs is created here."""

    def run(self, dispatches: Sequence[Dispatch]) -> None:
        """Record and submit once, without a step and without a result (loading)."""

    def write(self, buffer: Buffer, data: bytes, offset: int = 0) -> None:
        """Write `data` (a multiple of 4 bytes) behind everything submitted so far."""

    async def read(self, buffer: Buffer, via: Buffer, size_bytes: int) -> bytes:
        """Return the beginning of a storage buffer, copied through `via` (READBACK); slow, for logits and tests."""

    async def upload(self, stream: ByteStream, buffer: Buffer, size_bytes: int) -> None:
        """Pour the next `size_bytes` of `stream` into the beginning of `buffer`.

        Raises:
            SourceError: the stream ends early.
        """

    def prepare_steps(self, uniforms: Buffer, result: Buffer, readbacks: Sequence[Buffer]) -> None:
        """Say where steps keep their uniforms (256 bytes each) and results; one readback a step in flight."""

    def configure(self, settings: bytes) -> None:
        """Set the words of the step uniform behind position and n_tokens; they hold until the next call."""

    def step(self, plan: Plan, position: int, n_tokens: int) -> Awaitable[StepResult]:
        """Submit one step at once and return its result to await; at most as many in flight as readbacks."""

    def clear(self, buffer: Buffer) -> None:
        """Overwrite a storage buffer with zeros, behind everything submitted so far."""

    def on_lost(self, callback: Callable[[], None]) -> None:
        """Call `callback` once when the device is lost, unless `destroy` did it."""

    async def idle(self) -> None:
        """Wait until everything submitted is done."""

    def destroy(self) -> None:
        """Give the whole device back."""
