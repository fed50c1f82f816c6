"""The forward pass of the llama architecture (Touvron et al. 2023) as a list of dispatches; reads like the paper.

T tokens of one step go through together: `x` (T, hidden_size) is the residual stream. A recipe says how: fused, a
layer is six dispatches, with norms on the way into the next product; or in separate dispatches, where `h` is the
normalised copy of `x`.
"""

from collections.abc import Callable, Iterable, Mapping

from clutch.gpu.device import Buffer, Dispatch
from clutch.gpu.kernels import Kernel, kernel
from clutch.gpu.products import NORMED, PLAIN, Product, Rows
from clutch.kv.layout import Q8
from clutch.model.memory import MemoryPlan
from clutch.model.recipe import (
    ATTENTION_OUTPUT,
    DOWN,
    GATE_UP,
    LM_HEAD,
    QKV,
    Prefill,
    Recipe,
    SplitAttention,
    TileAttention,
)
from clutch.model.spec import ModelSpec
from clutch.model.state import State
from clutch.model.weights import BLOCK, Layer, Matrix, Slab, Weights


class Llama:
    """Writes the dispatches of a step.

    Args:
        spec: the model's shape.
        weights: its matrices on the GPU.
        state: activations and KV pages.
        memory: sizes of the state.
        recipe: which kernels.
    """

    def __init__(self, spec: ModelSpec, weights: Weights, state: State, memory: MemoryPlan, recipe: Recipe) -> None:
        self._spec = spec
        self._weights = weights
        self._state = state
        self._recipe = recipe
        self._splits = memory.attention_splits
        self._context_length = memory.context_length
        self._kv_format = memory.kv.format
        self._eps = float(spec.rms_eps)

    def decode(self) -> list[Dispatch]:
        """From the last token of each sequence to the next; or from a few tokens of one sequence."""
        decode = self._recipe.decode
        if decode.attention is None:
            return [*self._separate(decode.products.__getitem__, None), *self._head(decode.products[LM_HEAD])]
        return [*self._fused(decode.products, decode.attention), *self._head(decode.products[LM_HEAD])]

    def prefill(self, prefill: Prefill) -> list[Dispatch]:
        """From token ids to the last layer's `x`."""
        return self._separate(lambda role: prefill.product, prefill.attention)

    def prefill_last(self, prefill: Prefill) -> list[Dispatch]:
        """The same, and the token behind the last."""
        return [*self.prefill(prefill), *self._head(self._recipe.decode.products[LM_HEAD])]

    def of_role(self, role: str, product: Rows) -> list[Dispatch]:
        """The dispatches of a decode step that multiply with the matrices of a role, with `product`; of all layers."""
        if role == LM_HEAD:
            return self._head(product)
        state = self._state
        x, source = (state.h, PLAIN) if self._recipe.decode.attention is None else (state.x, NORMED)
        dispatches: list[Dispatch] = []
        for layer, kv in zip(self._weights.layers, state.kv, strict=True):
            dispatches += {
                QKV: self._qkv(layer, kv, product, x, source),
                ATTENTION_OUTPUT: self._matmul_add(layer.attention_output, product, state.attended, PLAIN),
                GATE_UP: self._gate_up(layer, product, x, source),
                DOWN: self._matmul_add(layer.down, product, state.mlp, PLAIN),
            }[role]
        return dispatches

    def _fused(self, products: Mapping[str, Product], attention: SplitAttention) -> list[Dispatch]:
        state = self._state
        dispatches = self._embed()
        for layer, kv in zip(self._weights.layers, state.kv, strict=True):
            dispatches += [
                *self._qkv(layer, kv, products[QKV], state.x, NORMED),
                self._attention_split(kv, attention),
                self._attention_merge(attention.merging),
                *self._matmul_add(layer.attention_output, products[ATTENTION_OUTPUT], state.attended, PLAIN),
                *self._gate_up(layer, products[GATE_UP], state.x, NORMED),
                *self._matmul_add(layer.down, products[DOWN], state.mlp, PLAIN),
            ]
        return dispatches

    def _separate(self, product_of: Callable[[str], Product], attention: TileAttention | None) -> list[Dispatch]:
        state = self._state
        dispatches = self._embed()
        for layer, kv in zip(self._weights.layers, state.kv, strict=True):
            dispatches += [
                self._rms_norm(layer.attention_vectors),
                *self._qkv(layer, kv, product_of(QKV), state.h, PLAIN),
                *(self._attention_partial(kv) if attention is None else self._attention_tile(kv, attention)),
                *self._matmul_add(layer.attention_output, product_of(ATTENTION_OUTPUT), state.attended, PLAIN),
                self._rms_norm(layer.mlp_norm),
                *self._gate_up(layer, product_of(GATE_UP), state.h, PLAIN),
                *self._matmul_add(layer.down, product_of(DOWN), state.mlp, PLAIN),
            ]
        return dispatches

    def _head(self, product: Rows) -> list[Dispatch]:
        """From `x` to the logits of each sequence's last token, and the tokens sampled from them."""
        state, spec, norm, output = self._state, self._spec, self._weights.output_norm, self._weights.output
        is_fused = self._recipe.decode.attention is not None
        counts = [product.workgroups(slab.rows) for slab in output.slabs]
        n_candidates = sum(counts)
        dispatches = [] if is_fused else [self._rms_norm(norm)]
        source, x = (NORMED, state.x) if is_fused else (PLAIN, state.h)
        for i, slab in enumerate(output.slabs):
            shape = {"VOCAB": spec.vocab_size, "CANDIDATES": n_candidates, "FIRST_CANDIDATE": sum(counts[:i])}
            lm_head = self._product("lm_head", slab, output, product, source, **shape)
            buffers = (slab.quants, slab.scales, x, norm, state.logits, state.candidates)
            dispatches.append(Dispatch(lm_head, buffers, product.threads(slab.rows)))
        sample = kernel("sample", VOCAB=spec.vocab_size, CONTEXT=self._context_length, CANDIDATES=n_candidates)
        sampled = (state.logits, state.candidates, state.tokens, state.result)
        return [*dispatches, Dispatch(sample, sampled, sample.workgroup_size)]

    def _embed(self) -> list[Dispatch]:
        state, matrix = self._state, self._weights.embedding
        dispatches = []
        for slab in matrix.slabs:
            shape = {"ROWS": slab.rows, "FIRST_ROW": slab.first_row, "HIDDEN": matrix.columns}
            embed = kernel("embed", f"format_{slab.format}", **shape)
            buffers = (slab.quants, slab.scales, state.tokens, state.x)
            dispatches.append(Dispatch(embed, buffers, matrix.columns // BLOCK, 1))
        return dispatches

    def _rms_norm(self, gain: Buffer) -> Dispatch:
        norm = kernel("rms_norm", HIDDEN=self._spec.hidden_size, EPS=self._eps)
        return Dispatch(norm, (self._state.x, gain, self._state.h), norm.workgroup_size, 1)

    def _qkv(self, layer: Layer, kv: Buffer, product: Product, x: Buffer, source: str) -> Iterable[Dispatch]:
        spec, state = self._spec, self._state
        heads = {"N_HEADS": spec.n_heads, "N_KV_HEADS": spec.n_kv_heads, "HEAD_DIM": spec.head_dim}
        # A format that scales whole heads cannot be written by threads that hold a pair of values each.
        is_two_steps = self._kv_format == Q8
        keep, target = ("keep_f32", state.fresh) if is_two_steps else (f"keep_{self._kv_format}", kv)
        others = (layer.attention_vectors, state.rope, state.block_table, state.q, target)
        yield from self._multiply("qkv", layer.qkv, product, x, source, others, keep, **heads)
        if is_two_steps:
            store = kernel(f"kv_store_{self._kv_format}", N_KV_HEADS=spec.n_kv_heads, HEAD_DIM=spec.head_dim)
            yield Dispatch(store, (state.fresh, state.block_table, kv), 2 * spec.n_kv_heads, 1)

    def _matmul_add(self, matrix: Matrix, product: Product, x: Buffer, source: str) -> Iterable[Dispatch]:
        return self._multiply("matmul_add", matrix, product, x, source, (self._state.x,), WIDTH=matrix.rows)

    def _gate_up(self, layer: Layer, product: Product, x: Buffer, source: str) -> Iterable[Dispatch]:
        matrix, others = layer.gate_up, (layer.mlp_norm, self._state.mlp)
        return self._multiply("gate_up", matrix, product, x, source, others, WIDTH=matrix.rows // 2)

    def _multiply(
        self,
        name: str,
        matrix: Matrix,
        product: Product,
        x: Buffer,
        source: str,
        others: tuple[Buffer, ...],
        *files: str,
        **shape: int,
    ) -> Iterable[Dispatch]:
        """An operation on every slab of a matrix; `others` are its buffers behind the activations."""
        state = self._state
        if any(product.takes_bytes(slab.format) for slab in matrix.slabs):
            yield Dispatch(kernel("quantise", COLUMNS=matrix.columns), (x, state.bytes), matrix.columns // BLOCK, 1)
        for slab in matrix.slabs:
            made = self._product(name, slab, matrix, product, source, *files, **shape)
            taken = state.bytes if product.takes_bytes(slab.format) else x
            buffers = (slab.quants, slab.scales, taken, *others)
            yield Dispatch(made, buffers, product.threads(slab.rows), product.tokens)

    def _attention_split(self, kv: Buffer, attention: SplitAttention) -> Dispatch:
        spec = self._spec
        split = kernel(
            "attention_split",
            f"kv_{self._kv_format}",
            N_HEADS=spec.n_heads,
            N_KV_HEADS=spec.n_kv_heads,
            HEAD_DIM=spec.head_dim,
            SPLITS=self._splits,
            LANES=attention.lanes,
            WORKGROUP=attention.workgroup,
        )
        threads = spec.n_heads * self._splits * attention.workgroup
        state = self._state
        return Dispatch(split, (state.q, kv, state.block_table, state.pieces), threads, 1)

    def _attention_tile(self, kv: Buffer, attention: TileAttention) -> Iterable[Dispatch]:
        spec, state = self._spec, self._state
        tile = kernel(
            "attention_tile",
            f"kv_{self._kv_format}",
            N_HEADS=spec.n_heads,
            N_KV_HEADS=spec.n_kv_heads,
            HEAD_DIM=spec.head_dim,
            TOKENS=attention.tokens,
            KEYS=attention.keys,
            THREAD_ROWS=attention.thread_rows,
            WORKGROUP=attention.workgroup,
        )
        buffers = (state.q, kv, state.block_table, state.attended)
        yield Dispatch(tile, buffers, spec.n_kv_heads * attention.workgroup, attention.tokens)

    def _attention_partial(self, kv: Buffer) -> Iterable[Dispatch]:
        spec, state = self._spec, self._state
        shape = {"N_HEADS": spec.n_heads, "N_KV_HEADS": spec.n_kv_heads, "HEAD_DIM": spec.head_dim}
        partial = kernel("attention_partial", f"kv_{self._kv_format}", **shape, SPLITS=self._splits)
        buffers = (state.q, kv, state.block_table, state.pieces)
        yield Dispatch(partial, buffers, spec.n_heads * self._splits, 1)
        yield self._attention_merge(1)

    def _attention_merge(self, shares: int) -> Dispatch:
        spec, state = self._spec, self._state
        shape = {"N_HEADS": spec.n_heads, "HEAD_DIM": spec.head_dim, "SPLITS": self._splits}
        merge = kernel("attention_merge", **shape, WORKGROUP=shares * spec.head_dim // 4)
        return Dispatch(merge, (state.pieces, state.attended), spec.n_heads * merge.workgroup_size, 1)

    def _product(
        self, name: str, slab: Slab, matrix: Matrix, product: Product, source: str, *files: str, **shape: int
    ) -> Kernel:
        """Return an operation on a slab of a matrix."""
        shape |= {"ROWS": slab.rows, "COLUMNS": matrix.columns, "FIRST_ROW": slab.first_row}
        eps = {"EPS": self._eps} if source == NORMED else {}
        return kernel(name, *product.files(slab.format, source), *files, **{**shape, **product.constants, **eps})
