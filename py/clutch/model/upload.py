"""Streams the weights of a file to the GPU: front to back, piece by piece, repacked there to where they belong.

The bytes never enter the Python heap; a piece lies in a staging buffer until its repack kernel has read it, and
the queue keeps that order.
"""

import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from clutch.formats.quants import QuantType
from clutch.gpu.device import Buffer, ByteStream, Device, Dispatch, Piece, Usage
from clutch.gpu.kernels import Kernel, kernel
from clutch.gpu.ledger import Ledger
from clutch.gpu.weight_formats import format_of
from clutch.model.weights import BLOCK, MatrixPlan, Part, SlabPlan, WeightPlan

# Wait for the GPU at least this often, so that what is queued stays bounded.
_QUEUE_BYTES = 32 << 20
# Pour about so much with one call; also how often progress is told.
_BATCH_BYTES = 2 << 20

# (phase, done, total, unit), as in the `progress` message.
Progress = Callable[[str, int, int, str], None]


class Source(Protocol):
    """A model file, wherever it lies."""

    @property
    def size_bytes(self) -> int:
        """Its size."""

    async def read(self, offset: int, length: int) -> bytes:
        """Return bytes of it.

        Raises:
            SourceError: they cannot be read.
        """

    async def stream(self, offset: int) -> ByteStream:
        """Return its bytes from `offset` on, for the GPU."""


class Upload:
    """One pass over the weights of a file.

    Args:
        weights: which tensor goes where; its buffers are allocated.
        device: where to.
        staging_bytes: the staging buffer; 16 bytes of it stay unused, because a repack kernel may read the word
            behind its last block.
    """

    def __init__(self, weights: WeightPlan, device: Device, *, staging_bytes: int) -> None:
        self._weights = weights
        self._device = device
        self._staging_bytes = staging_bytes

    @property
    def kernels(self) -> list[Kernel]:
        """What must be compiled before `run`."""
        return [_repack(slab.type) for slab in self._weights.slabs]

    async def run(self, source: Source, ledger: Ledger, on_progress: Progress) -> None:
        """Upload everything.

        Raises:
            SourceError: the file ends early or cannot be read.
        """
        at = self._weights.uploads()[0][0].tensor.offset
        stream = await source.stream(at)
        try:
            with ledger.scope(self._device) as scope:
                staging = await scope.buffer("upload staging", self._staging_bytes)
                rows = await scope.buffer("repack rows", 256, Usage.UNIFORM)
                await scope.settle()
                queued = 0
                for batch in _batches(self._pieces(at, staging, rows)):
                    await self._device.upload(stream, staging, rows, batch)
                    n_bytes = sum(piece.skip_bytes + piece.size_bytes for piece in batch)
                    at += n_bytes
                    queued += n_bytes
                    if queued >= _QUEUE_BYTES:
                        await self._device.idle()
                        queued = 0
                    on_progress("reading_weights", at, source.size_bytes, "bytes")
                await self._device.idle()
        finally:
            stream.close()

    def _pieces(self, at: int, staging: Buffer, rows: Buffer) -> Iterator[Piece]:
        """Yield the pieces of a stream that begins at byte `at` of the file."""
        for part, plan in self._weights.uploads():
            gap = part.tensor.offset - at
            for slab, piece in _pieces(part, plan, self._staging_bytes - 16):
                made = self._weights.buffers[plan.name].slabs[slab]
                dispatch = Dispatch(
                    _repack(part.tensor.type),
                    (staging, made.quants, made.scales, rows),
                    len(piece) * _threads_of_row(part),
                )
                size_bytes = len(piece) * part.row_bytes
                yield Piece(gap, size_bytes, _rows(part, plan.slabs[slab], piece), dispatch)
                at, gap = part.tensor.offset + (piece.stop * part.row_bytes), 0


def _batches(pieces: Iterable[Piece]) -> Iterator[list[Piece]]:
    """Gather pieces until they have _BATCH_BYTES."""
    batch: list[Piece] = []
    n_bytes = 0
    for piece in pieces:
        batch.append(piece)
        n_bytes += piece.size_bytes
        if n_bytes >= _BATCH_BYTES:
            yield batch
            batch, n_bytes = [], 0
    if batch:
        yield batch


def _repack(quant: QuantType) -> Kernel:
    return kernel(f"repack_{format_of(quant).name}")


def _threads_of_row(part: Part) -> int:
    return part.columns // min(BLOCK, part.tensor.type.block_size)


def _pieces(part: Part, plan: MatrixPlan, most_bytes: int) -> Iterator[tuple[int, range]]:
    """Yield (number of the slab, rows of the tensor), each of at most `most_bytes`; a row always fits."""
    step = most_bytes // part.row_bytes
    for i, slab in enumerate(plan.slabs):
        inside = part.rows_in(slab)
        for first in range(inside.start, inside.stop, step):
            yield i, range(first, min(first + step, inside.stop))


def _rows(part: Part, slab: SlabPlan, piece: range) -> bytes:
    """Return the `rows` uniform of the repack kernels (wgsl/rows.wgsl)."""
    blocks_per_row = _threads_of_row(part)
    offset = (part.row_offset - slab.first_row) % (1 << 32)
    n_blocks = len(piece) * blocks_per_row
    return struct.pack("<6I8x", n_blocks, blocks_per_row, piece.start, part.row_stride, offset, part.half_head)
