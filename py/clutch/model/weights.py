"""The weights: which tensors of the file form which matrix on the GPU, and how many bytes that takes.

Matrices that one kernel reads together are one matrix: q, k and v below each other, gate and up row by row. On the GPU
a matrix is one or more slabs of rows, each in one quantisation and small enough to be bound; a slab is two buffers,
`quants` and `scales`, laid out as `wgsl/format_*.wgsl` say. A vector is a matrix of one column.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby

from clutch.errors import UnsupportedModelError
from clutch.formats.gguf import GGUFHeader
from clutch.formats.gguf_tensors import TensorInfo
from clutch.formats.quants import QuantType
from clutch.gpu.device import Buffer
from clutch.gpu.ledger import Scope
from clutch.gpu.weight_formats import format_of
from clutch.model.spec import ModelSpec
from clutch.model.tensor_set import EMBEDDING, OUTPUT

BLOCK = 32


@dataclass(frozen=True)
class Part:
    """A tensor's place in a matrix: its row r is the matrix's row r * row_stride + row_offset.

    With `half_head` its rows i and i + half_head of every 2 half_head become neighbours first.
    """

    tensor: TensorInfo
    row_stride: int = 1
    row_offset: int = 0
    half_head: int = 0

    @property
    def columns(self) -> int:
        """Weights of a row."""
        return self.tensor.shape[0] if len(self.tensor.shape) > 1 else 1

    @property
    def rows(self) -> int:
        """Rows of the tensor."""
        return self.tensor.shape[-1]

    @property
    def row_bytes(self) -> int:
        """Bytes of a row in the file."""
        return self.tensor.size_bytes // self.rows

    def rows_in(self, slab: "SlabPlan") -> range:
        """Return the tensor's rows that belong into `slab`, which holds whole heads."""
        first, end = (
            min(max(0, -((self.row_offset - row) // self.row_stride)), self.rows)
            for row in (slab.first_row, slab.first_row + slab.rows)
        )
        return range(first, end)


@dataclass(frozen=True)
class SlabPlan:
    """Rows of a matrix in one quantisation, before they have buffers."""

    label: str
    first_row: int
    rows: int
    columns: int
    type: QuantType

    @property
    def quants_bytes(self) -> int:
        """Size of the buffer of quants."""
        return self._n_blocks * format_of(self.type).quants_bytes

    @property
    def scales_bytes(self) -> int:
        """Size of the buffer of scales; a format without scales still binds the smallest buffer."""
        return max(16, self._n_blocks * format_of(self.type).scales_bytes)

    @property
    def _n_blocks(self) -> int:
        return self.rows * self.columns // self.type.block_size


@dataclass(frozen=True)
class MatrixPlan:
    """A matrix before it has buffers; `parts` fill each of its rows at most once, `slabs` hold each exactly once."""

    name: str
    rows: int
    columns: int
    parts: tuple[Part, ...]
    slabs: tuple[SlabPlan, ...]


@dataclass(frozen=True)
class Slab:
    """Rows of a matrix on the GPU: `rows` of them from `first_row` on, row-major, in a weight format."""

    first_row: int
    rows: int
    format: str
    quants: Buffer
    scales: Buffer


@dataclass(frozen=True)
class Matrix:
    """A matrix on the GPU: rows x columns, its slabs in the order of the rows."""

    rows: int
    columns: int
    slabs: tuple[Slab, ...]


@dataclass(frozen=True)
class Layer:
    """The weights of one transformer block.

    `attention_vectors` is the norm's gain, then the biases of q, k and v: zeros where the model has none.
    """

    attention_vectors: Buffer
    qkv: Matrix
    attention_output: Matrix
    mlp_norm: Buffer
    gate_up: Matrix
    down: Matrix


@dataclass(frozen=True)
class Weights:
    """All weights of a model; `output` is `embedding` where the file has no output matrix."""

    embedding: Matrix
    layers: tuple[Layer, ...]
    output_norm: Buffer
    output: Matrix


_LAYER = "blk.{}.{}"


class WeightPlan:
    """The matrices of a model, by name, and what they take.

    Args:
        spec, header: of the model's file.
        largest_buffer_bytes: the GPU's limit; a matrix above it is cut into slabs of rows.
    """

    def __init__(self, spec: ModelSpec, header: GGUFHeader, largest_buffer_bytes: int) -> None:
        self._spec = spec
        self._tensors = header.tensors
        self._limit = largest_buffer_bytes
        self.matrices = {plan.name: plan for plan in self._plan()}

    @property
    def slabs(self) -> list[SlabPlan]:
        """The slabs of all matrices."""
        return [slab for plan in self.matrices.values() for slab in plan.slabs]

    @property
    def size_bytes(self) -> int:
        """Bytes of all buffers."""
        return sum(slab.quants_bytes + slab.scales_bytes for slab in self.slabs)

    @property
    def largest_buffer(self) -> tuple[str, int]:
        """The name and bytes of the largest buffer."""
        return max(((slab.label, slab.quants_bytes) for slab in self.slabs), key=lambda item: item[1])

    def uploads(self) -> list[tuple[Part, MatrixPlan]]:
        """Every tensor once, in the order of the file."""
        every = [(part, plan) for plan in self.matrices.values() for part in plan.parts]
        return sorted(every, key=lambda item: item[0].tensor.offset)

    async def allocate(self, scope: Scope) -> Weights:
        """Make the buffers of every matrix.

        Raises:
            OutOfMemory: one does not fit.
        """
        made = {plan.name: await _allocate(plan, scope) for plan in self.matrices.values()}

        def vector(name: str) -> Buffer:
            (slab,) = made[name].slabs
            return slab.quants

        layers = tuple(
            Layer(
                attention_vectors=vector(_LAYER.format(i, "attention_vectors")),
                qkv=made[_LAYER.format(i, "qkv")],
                attention_output=made[_LAYER.format(i, "attn_output")],
                mlp_norm=vector(_LAYER.format(i, "ffn_norm")),
                gate_up=made[_LAYER.format(i, "gate_up")],
                down=made[_LAYER.format(i, "ffn_down")],
            )
            for i in range(self._spec.n_layers)
        )
        self.buffers = made
        output = EMBEDDING if self._spec.tied_output else OUTPUT
        return Weights(made[EMBEDDING], layers, vector("output_norm"), made[output])

    def _plan(self) -> Iterator[MatrixPlan]:
        spec = self._spec
        yield self._matrix(EMBEDDING, [self._part(EMBEDDING)])
        yield self._matrix("output_norm", [self._part("output_norm.weight")])
        if not spec.tied_output:
            yield self._matrix(OUTPUT, [self._part(OUTPUT)])
        for i in range(spec.n_layers):
            block = f"blk.{i}"
            for name in ("attn_output", "ffn_norm", "ffn_down"):
                yield self._matrix(f"{block}.{name}", [self._part(f"{block}.{name}.weight")])
            yield self._matrix(f"{block}.qkv", self._qkv(block, "weight"), grain=spec.head_dim)
            vectors = [self._part(f"{block}.attn_norm.weight")]
            if spec.has_qkv_bias:
                vectors += self._qkv(block, "bias", spec.hidden_size)
            n_biases = (spec.n_heads + 2 * spec.n_kv_heads) * spec.head_dim
            yield self._matrix(f"{block}.attention_vectors", vectors, rows=spec.hidden_size + n_biases)
            gate_up = [self._part(f"{block}.ffn_{name}.weight", i, 2) for i, name in enumerate(("gate", "up"))]
            yield self._matrix(f"{block}.gate_up", gate_up)

    def _qkv(self, block: str, kind: str, row_offset: int = 0) -> list[Part]:
        spec = self._spec
        half_head = spec.head_dim // 2 if spec.pairs_halves else 0
        q_rows, kv_rows = spec.n_heads * spec.head_dim, spec.n_kv_heads * spec.head_dim
        return [
            self._part(f"{block}.attn_q.{kind}", row_offset, half_head=half_head),
            self._part(f"{block}.attn_k.{kind}", row_offset + q_rows, half_head=half_head),
            self._part(f"{block}.attn_v.{kind}", row_offset + q_rows + kv_rows),
        ]

    def _part(self, name: str, row_offset: int = 0, row_stride: int = 1, half_head: int = 0) -> Part:
        return Part(self._tensors[name], row_stride, row_offset, half_head)

    def _matrix(self, name: str, parts: list[Part], *, rows: int = 0, grain: int = 2) -> MatrixPlan:
        """Plan a matrix.

        Args:
            name: of the matrix.
            parts: its tensors in the order of their rows.
            rows: of the matrix, where the parts do not fill it.
            grain: a slab ends at a multiple of it, or with the matrix.
        """
        rows, columns = rows or sum(part.rows for part in parts), parts[0].columns
        runs = [SlabPlan(name, first, end - first, columns, quant) for first, end, quant in _runs(name, parts, rows)]
        slabs = [slab for run in runs for slab in _cut(run, self._limit, grain)]
        if len(slabs) > 1:
            slabs = [replace(slab, label=f"{name} from row {slab.first_row}") for slab in slabs]
        return MatrixPlan(name, rows, columns, tuple(parts), tuple(slabs))


def _runs(name: str, parts: list[Part], rows: int) -> Iterator[tuple[int, int, QuantType]]:
    """Yield (first row, end row, quantisation) of the rows that are stored alike.

    Raises:
        UnsupportedModelError: rows that alternate differ.
    """
    groups = [(quant, next(run)) for quant, run in groupby(parts, key=lambda part: part.tensor.type)]
    if len(groups) > 1 and any(part.row_stride > 1 for part in parts):
        mixed = ", ".join(f"{part.tensor.name} {part.tensor.type.name}" for part in parts)
        raise UnsupportedModelError(
            f"{name} mixes quantisations row by row: {mixed}.",
            hint="Choose a file that quantises the gate and the up matrix of a layer alike.",
            tensor=name,
        )
    ends = [part.row_offset for _, part in groups[1:]] + [rows]
    first_row = 0
    for (quant, _), end_row in zip(groups, ends, strict=True):
        yield first_row, end_row, quant
        first_row = end_row


def _cut(run: SlabPlan, limit_bytes: int, grain: int) -> list[SlabPlan]:
    """Cut a run of rows into slabs of about the same size whose buffers are within the limit, if a grain of rows is."""
    row_bytes = run.quants_bytes // run.rows
    most_rows = max(limit_bytes // row_bytes // grain, 1) * grain
    n_slabs = -(-run.rows // most_rows)
    step = -(-run.rows // (n_slabs * grain)) * grain
    end_row = run.first_row + run.rows
    return [replace(run, first_row=row, rows=min(step, end_row - row)) for row in range(run.first_row, end_row, step)]


async def _allocate(plan: MatrixPlan, scope: Scope) -> Matrix:
    slabs = []
    for slab in plan.slabs:
        quants = await scope.buffer(f"{slab.label} quants", slab.quants_bytes)
        scales = await scope.buffer(f"{slab.label} scales", slab.scales_bytes)
        slabs.append(Slab(slab.first_row, slab.rows, format_of(slab.type).name, quants, scales))
    return Matrix(plan.rows, plan.columns, tuple(slabs))
