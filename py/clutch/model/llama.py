"""The forward pass of the llama architecture (Touvron et al. 2023) as a list of dispatches; reads like the paper.

T tokens of one step go through together: `x` (T, hidden_size) is the residual stream, `h` its normalised copy. The
same list with TOKENS = 1 is a decode step of one token or of several sequences, with TOKENS = 8 a prefill step: a
token's arithmetic is the same in all.
"""

from clutch.gpu.device import Buffer, Dispatch
from clutch.gpu.kernels import kernel
from clutch.model.memory import MemoryPlan
from clutch.model.spec import ModelSpec
from clutch.model.state import State
from clutch.model.weights import BLOCK, Matrix, Weights


class Llama:
    """Writes the dispatches of a step.

    Args:
        spec: the model's shape.
        weights: its matrices on the GPU.
        state: activations and KV pages.
        memory: sizes of the state.
        splits: pieces the context is cut into for one head.
    """

    def __init__(self, spec: ModelSpec, weights: Weights, state: State, memory: MemoryPlan, *, splits: int) -> None:
        self._spec = spec
        self._weights = weights
        self._state = state
        self._splits = splits
        self._context_length = memory.context_length
        self._kv_format = memory.kv.format

    def layers(self, tokens: int) -> list[Dispatch]:
        """From token ids to the last layer's `x`; a matrix kernel's thread does `tokens` (<= 8) tokens."""
        state, weights = self._state, self._weights
        dispatches = [self._embed(weights.embedding)]
        for layer, kv in zip(weights.layers, state.kv, strict=True):
            dispatches += [
                self._rms_norm(layer.attention_norm),
                self._qkv(layer.qkv, kv, tokens),
                *self._attention(kv),
                self._matmul_add(layer.attention_output, state.attended, tokens),
                self._rms_norm(layer.mlp_norm),
                self._gate_up(layer.gate_up, tokens),
                self._matmul_add(layer.down, state.mlp, tokens),
            ]
        return dispatches

    def head(self) -> list[Dispatch]:
        """From `x` to the logits of each sequence's last token, and the tokens sampled from them."""
        state, spec, output = self._state, self._spec, self._weights.output
        lm_head = kernel("lm_head", output.format, ROWS=output.rows, HIDDEN=output.columns)
        sample = kernel("sample", VOCAB=spec.vocab_size, CONTEXT=self._context_length)
        return [
            self._rms_norm(self._weights.output_norm),
            Dispatch(lm_head, (output.quants, output.scales, state.h, state.logits), output.rows),
            Dispatch(sample, (state.logits, state.tokens, state.result), sample.spec.workgroup_size),
        ]

    def _embed(self, matrix: Matrix) -> Dispatch:
        state = self._state
        embed = kernel("embed", matrix.format, HIDDEN=matrix.columns)
        return Dispatch(embed, (matrix.quants, matrix.scales, state.tokens, state.x), matrix.columns // BLOCK, 1)

    def _rms_norm(self, gain: Buffer) -> Dispatch:
        norm = kernel("rms_norm", HIDDEN=self._spec.hidden_size, EPS=self._spec.rms_eps)
        return Dispatch(norm, (self._state.x, gain, self._state.h), norm.spec.workgroup_size, 1)

    def _qkv(self, matrix: Matrix, kv: Buffer, tokens: int) -> Dispatch:
        spec, state = self._spec, self._state
        qkv = kernel(
            "qkv",
            matrix.format,
            self._kv_format,
            HIDDEN=spec.hidden_size,
            N_HEADS=spec.n_heads,
            N_KV_HEADS=spec.n_kv_heads,
            HEAD_DIM=spec.head_dim,
            TOKENS=tokens,
        )
        buffers = (matrix.quants, matrix.scales, state.h, state.rope, state.block_table, state.q, kv)
        return Dispatch(qkv, buffers, matrix.rows // 2, tokens)

    def _attention(self, kv: Buffer) -> tuple[Dispatch, Dispatch]:
        spec, state = self._spec, self._state
        partial = kernel(
            "attention_partial",
            kv=self._kv_format,
            N_HEADS=spec.n_heads,
            N_KV_HEADS=spec.n_kv_heads,
            HEAD_DIM=spec.head_dim,
            SPLITS=self._splits,
        )
        merge = kernel("attention_merge", N_HEADS=spec.n_heads, HEAD_DIM=spec.head_dim, SPLITS=self._splits)
        pieces = (state.attention_sums, state.attention_norms)
        return (
            Dispatch(partial, (state.q, kv, state.block_table, *pieces), spec.n_heads * self._splits, 1),
            Dispatch(merge, (*pieces, state.attended), spec.n_heads * spec.head_dim // 4, 1),
        )

    def _matmul_add(self, matrix: Matrix, source: Buffer, tokens: int) -> Dispatch:
        matmul = kernel("matmul_add", matrix.format, ROWS=matrix.rows, COLUMNS=matrix.columns, TOKENS=tokens)
        return Dispatch(matmul, (matrix.quants, matrix.scales, source, self._state.x), matrix.rows, tokens)

    def _gate_up(self, matrix: Matrix, tokens: int) -> Dispatch:
        state, rows = self._state, matrix.rows // 2
        gate_up = kernel("gate_up", matrix.format, ROWS=rows, HIDDEN=matrix.columns, TOKENS=tokens)
        return Dispatch(gate_up, (matrix.quants, matrix.scales, state.h, state.mlp), rows, tokens)
