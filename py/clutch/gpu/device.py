"""The device as a small protocol, implemented by `browser/webgpu.py` and by a fake in the tests.

Nothing here knows WebGPU. Sizes are bytes, word layouts are little-endian u32.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol

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


# (source, its offset, target, its offset, size in bytes); the two are not the same.
Move = tuple[Buffer, int, Buffer, int, int]


@dataclass(frozen=True)
class Dispatch:
    """One dispatch of a plan.

    Args:
        kernel: the pipeline.
        buffers: one a binding of group 0, in order.
        threads: invocations along x; rounded up to whole workgroups.
        tokens_per_workgroup: a row of workgroups for each so many tokens of the step; 0 = for each sequence of it.
    """

    kernel: Kernel
    buffers: tuple[Buffer, ...]
    threads: int
    tokens_per_workgroup: int = 0

    @property
    def workgroups(self) -> int:
        """Workgroups along x."""
        return -(-self.threads // self.kernel.workgroup_size)


class StepResult(NamedTuple):
    """What a step that samples brings back for one sequence.

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

    def close(self) -> None:
        """Let go of the file."""


@dataclass(frozen=True)
class Piece:
    """A part of a stream, and what becomes of it on the GPU.

    Args:
        skip_bytes: of the stream, dropped before it.
        size_bytes: its size.
        words: what `dispatch` must know of it, whole words; every piece of an upload has as many.
        dispatch: what takes it to its place.
    """

    skip_bytes: int
    size_bytes: int
    words: bytes
    dispatch: Dispatch


class Device(Protocol):
    """A GPU. Every method that waits races the device's loss and a deadline."""

    @property
    def adapter(self) -> AdapterInfo:
        """Which GPU this is."""

    @property
    def limits(self) -> Limits:
        """What fits."""

    @property
    def kernels_id(self) -> str:
        """A name for the texts of all kernels: another for every change."""

    async def allocate(self, label: str, size_bytes: int, usage: Usage) -> Buffer:
        """Make a buffer, zeroed. Only the ledger calls this. That it fits is certain after `settle`.

        Raises:
            OutOfMemory, DeviceLost, DeviceTimeout: as for `settle`, if it is known at once.
        """

    async def settle(self) -> None:
        """Wait until everything allocated is there; one wait for hundreds of buffers.

        Raises:
            OutOfMemory: a buffer does not fit; the first that does not is named in the error's data.
            DeviceLost, DeviceTimeout: as for every wait.
        """

    async def compile(self, kernels: Sequence[Kernel], on_progress: Callable[[int, int], None]) -> None:
        """Make the pipelines that `kernels` lack, all together; `on_progress(done, total)` after each."""

    def record(self, dispatches: Sequence[Dispatch]) -> Plan:
        """Turn dispatches into a plan that a step can replay; everything a step needs is created here."""

    def run(self, dispatches: Sequence[Dispatch]) -> None:
        """Record and submit once, without a step and without a result (loading)."""

    def write(self, buffer: Buffer, data: bytes, offset: int = 0) -> None:
        """Write `data` (a multiple of 4 bytes) behind everything submitted so far."""

    async def read(self, pieces: Sequence[tuple[Buffer, int, int]], via: Buffer) -> bytes:
        """Return pieces of storage buffers, (buffer, offset, size) each, one behind the other.

        They are copied through `via` (READBACK) all at once; slow, for logits, saving and tests.
        """

    def copy(self, moves: Sequence[Move]) -> None:
        """Copy bytes between storage buffers, one move after the other, behind everything submitted so far."""

    async def upload(self, stream: ByteStream, staging: Buffer, uniform: Buffer, pieces: Sequence[Piece]) -> None:
        """Pour the next `pieces` of `stream` through `staging`: a piece, its words into `uniform`, its dispatch.

        All of them with one wait, because a wait in Python costs more than a small piece.

        Raises:
            SourceError: the stream ends early.
        """

    def prepare_steps(self, uniforms: Buffer, result: Buffer, readbacks: Sequence[Buffer]) -> None:
        """Say where steps keep their uniforms (`step.SLOT_BYTES` each) and results; one readback a step in flight."""

    def configure(self, slot: int, settings: bytes) -> None:
        """Set the words of the sequence in `slot` behind its position; they hold until the next call."""

    def step(
        self, plan: Plan, sequences: Sequence[tuple[int, int]], tokens_per_sequence: int
    ) -> Awaitable[list[StepResult]]:
        """Submit one step at once and return the results of its sequences to await.

        At most as many steps may be in flight as there are readbacks.

        Args:
            plan: what to do.
            sequences: (slot, position of its first token) of each.
            tokens_per_sequence: how many tokens of each.
        """

    @property
    def has_timestamps(self) -> bool:
        """Whether `measure` goes by the GPU's own clock; else by the wall's, which also sees the browser."""

    async def measure(
        self, plan: Plan, sequences: Sequence[tuple[int, int]], tokens_per_sequence: int, repeats: int
    ) -> float:
        """Return the time for `repeats` runs of `plan` one behind the other, in us; no step may be in flight.

        The clock is brought up first, except on a software adapter: as many runs again go before, and are not counted.
        Browsers round timestamps, Chromium to 65.5 us; a short plan needs many repeats.

        Args:
            plan, sequences, tokens_per_sequence: as for `step`; what the plan leaves behind is worth nothing.
            repeats: at least 1.
        """

    def clear(self, buffer: Buffer, offset: int, size_bytes: int) -> None:
        """Overwrite part of a storage buffer with zeros, behind everything submitted so far."""

    def on_lost(self, callback: Callable[[], None]) -> None:
        """Call `callback` once when the device is lost, unless `destroy` did it."""

    async def idle(self) -> None:
        """Wait until everything submitted is done."""

    def destroy(self) -> None:
        """Give the whole device back."""
