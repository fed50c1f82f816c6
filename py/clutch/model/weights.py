"""The weights: which tensors of the file form which matrix on the GPU, and how many bytes that takes.

Matrices that one kernel reads together are one matrix: q, k and v below each other, gate and up row by row. On the
GPU a matrix is two buffers, `quants` and `scales`, laid out as `wgsl/format_*.wgsl` say.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from clutch.errors import UnsupportedModelError
from clutch.formats.gguf import GGUFHeader
from clutch.formats.gguf_tensors import TensorInfo
from clutch.formats.quants import QuantType, row_size_bytes
from clutch.gpu.device import Buffer
from clutch.gpu.ledger import Scope
from clutch.gpu.weight_formats import format_of
from clutch.model.spec import ModelSpec
from clutch.model.tensor_set import EMBEDDING, OUTPUT

BLOCK = 32


@dataclass(frozen=True)
class Part:
    """A tensor's place in a matrix: its row r is the matrix's row r * row_stride + row_offset."""

    tensor: TensorInfo
    row_stride: int = 1
    row_offset: int = 0


@dataclass(frozen=True)
class MatrixPlan:
    """A matrix before it has buffers; `parts` together fill its rows exactly once."""

    name: str
    type: QuantType
    rows: int
    columns: int
    parts: tuple[Part, ...]

    @property
    def row_bytes(self) -> int:
        """Bytes of a row in the file."""
        return row_size_bytes(self.type, self.columns)

    @property
    def n_blocks(self) -> int:
        """Blocks of its quantisation."""
        return self.rows * self.columns // self.type.block_size

    @property
    def quants_bytes(self) -> int:
        """Size of the buffer of quants."""
        return self.n_blocks * format_of(self.type).quants_bytes

    @property
    def scales_bytes(self) -> int:
        """Size of the buffer of scales; a format without scales still binds the smallest buffer."""
        return max(16, self.n_blocks * format_of(self.type).scales_bytes)


@dataclass(frozen=True)
class Matrix:
    """A matrix on the GPU: rows x columns, row-major, in a weight format."""

    rows: int
    columns: int
    format: str
    quants: Buffer
    scales: Buffer


@dataclass(frozen=True)
class Layer:
    """The weights of one transformer block."""

    attention_norm: Buffer
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
    """The matrices of a llama model, by name, and what they take."""

    def __init__(self, spec: ModelSpec, header: GGUFHeader) -> None:
        self._spec = spec
        self._tensors = header.tensors
        self.matrices = {plan.name: plan for plan in self._plan()}

    @property
    def size_bytes(self) -> int:
        """Bytes of all buffers."""
        return sum(plan.quants_bytes + plan.scales_bytes for plan in self.matrices.values())

    @property
    def largest_buffer(self) -> tuple[str, int]:
        """The name and bytes of the largest buffer."""
        return max(((p.name, p.quants_bytes) for p in self.matrices.values()), key=lambda item: item[1])

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
        layers = tuple(
            Layer(
                attention_norm=made[_LAYER.format(i, "attn_norm")].quants,
                qkv=made[_LAYER.format(i, "qkv")],
                attention_output=made[_LAYER.format(i, "attn_output")],
                mlp_norm=made[_LAYER.format(i, "ffn_norm")].quants,
                gate_up=made[_LAYER.format(i, "gate_up")],
                down=made[_LAYER.format(i, "ffn_down")],
            )
            for i in range(self._spec.n_layers)
        )
        self.buffers = made
        output = EMBEDDING if self._spec.tied_output else OUTPUT
        return Weights(made[EMBEDDING], layers, made["output_norm.weight"].quants, made[output])

    def _plan(self) -> Iterator[MatrixPlan]:
        spec = self._spec
        q_rows, kv_rows = spec.n_heads * spec.head_dim, spec.n_kv_heads * spec.head_dim
        yield self._matrix(EMBEDDING, (EMBEDDING, 1, 0))
        yield self._matrix("output_norm.weight", ("output_norm.weight", 1, 0))
        if not spec.tied_output:
            yield self._matrix(OUTPUT, (OUTPUT, 1, 0))
        for i in range(spec.n_layers):
            for part in ("attn_norm", "attn_output", "ffn_norm", "ffn_down"):
                yield self._matrix(_LAYER.format(i, part), (f"blk.{i}.{part}.weight", 1, 0))
            yield self._matrix(
                _LAYER.format(i, "qkv"),
                (f"blk.{i}.attn_q.weight", 1, 0),
                (f"blk.{i}.attn_k.weight", 1, q_rows),
                (f"blk.{i}.attn_v.weight", 1, q_rows + kv_rows),
            )
            yield self._matrix(
                _LAYER.format(i, "gate_up"),
                (f"blk.{i}.ffn_gate.weight", 2, 0),
                (f"blk.{i}.ffn_up.weight", 2, 1),
            )

    def _matrix(self, name: str, *parts: tuple[str, int, int]) -> MatrixPlan:
        placed = tuple(Part(self._tensors[tensor], stride, offset) for tensor, stride, offset in parts)
        types = {part.tensor.type for part in placed}
        if len(types) > 1:
            mixed = ", ".join(f"{part.tensor.name} {part.tensor.type.name}" for part in placed)
            raise UnsupportedModelError(
                f"{name} mixes quantisations: {mixed}.",
                hint="Choose a file that quantises the matrices of a layer alike.",
                tensor=name,
            )
        rows = sum(_rows(part.tensor) for part in placed)
        return MatrixPlan(name, types.pop(), rows, placed[0].tensor.shape[0], placed)


def _rows(tensor: TensorInfo) -> int:
    return tensor.shape[1] if len(tensor.shape) > 1 else 1


async def _allocate(plan: MatrixPlan, scope: Scope) -> Matrix:
    quants = await scope.buffer(f"{plan.name} quants", plan.quants_bytes)
    scales = await scope.buffer(f"{plan.name} scales", plan.scales_bytes)
    return Matrix(plan.rows, plan.columns, format_of(plan.type).name, quants, scales)
