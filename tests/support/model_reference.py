"""The forward pass of llama and qwen2 in NumPy float32, straight from a GGUF file: the oracle of every engine test.

Letters: T tokens, P positions before them, H query heads, K KV heads, G = H / K, D head size, V vocabulary.
RoPE turns the pairs (2i, 2i + 1) by position * theta^(-2i / D); GGUF's llama weights are permuted for that. Those of
qwen2 are not: there the pairs are (i, i + D / 2).
Source: Touvron et al. 2023 (llama), Su et al. 2021 (RoPE, eq. 34), Zhang & Sennrich 2019 (RMSNorm, eq. 4).
"""

from pathlib import Path

import numpy as np

from clutch.formats.gguf import parse_header
from clutch.model.spec_reader import read_spec
from tests.support.numpy_quants import dequantise


class ReferenceModel:
    """A model with its weights in float32. It keeps no state between calls."""

    def __init__(self, path: Path | str) -> None:
        data = np.memmap(path, np.uint8, "r")
        self.header = parse_header(memoryview(data), len(data))
        self.spec = read_spec(self.header)
        self.weights = {
            info.name.removesuffix(".weight"): dequantise(
                data[info.offset : info.offset + info.size_bytes], info.type, info.shape[::-1]
            )
            for info in self.header.tensors.values()
        }

    def logits(self, token_ids: list[int]) -> np.ndarray:
        """Return (T, V) f32: after each token, the score of each possible next one."""
        return self._forward(token_ids, self._empty_cache())

    def greedy(self, prompt_ids: list[int], n: int) -> tuple[list[int], list[float]]:
        """Return `n` tokens, each the likeliest, and by how much each beat the second. Eos is no end."""
        cache = self._empty_cache()
        ids: list[int] = []
        margins: list[float] = []
        scores = self._forward(prompt_ids, cache)[-1]
        for _ in range(n):
            second, first = np.sort(scores)[-2:]
            ids.append(int(scores.argmax()))
            margins.append(float(first - second))
            if len(ids) < n:
                scores = self._forward(ids[-1:], cache)[-1]
        return ids, margins

    def _forward(self, token_ids: list[int], cache: "Cache") -> np.ndarray:
        """Return (T, V) f32 and append the tokens' keys and values to `cache`."""
        w, spec = self.weights, self.spec
        x = w["token_embd"][token_ids]
        turn = _rotations(cache[0][0].shape[0], len(token_ids), spec.head_dim, spec.rope_theta)
        for layer in range(spec.n_layers):
            block = f"blk.{layer}"
            y = self._norm(x, f"{block}.attn_norm")
            q, k, v = (y @ w[f"{block}.attn_{part}"].T + w.get(f"{block}.attn_{part}.bias", 0) for part in "qkv")
            rotate = _rotate_halves if spec.architecture == "qwen2" else _rotate
            q, k = rotate(_heads(q, spec.n_heads), turn), rotate(_heads(k, spec.n_kv_heads), turn)
            v = _heads(v, spec.n_kv_heads)
            keys, values = cache[layer]
            cache[layer] = np.concatenate([keys, k]), np.concatenate([values, v])
            x = x + _attention(q, *cache[layer]) @ w[f"{block}.attn_output"].T
            y = self._norm(x, f"{block}.ffn_norm")
            gate = y @ w[f"{block}.ffn_gate"].T
            x = x + (gate / (1 + np.exp(-gate)) * (y @ w[f"{block}.ffn_up"].T)) @ w[f"{block}.ffn_down"].T
        output = w["token_embd" if spec.tied_output else "output"]
        return self._norm(x, "output_norm") @ output.T

    def _norm(self, x: np.ndarray, name: str) -> np.ndarray:
        mean_square = np.mean(x * x, axis=-1, keepdims=True)
        return x / np.sqrt(mean_square + np.float32(self.spec.rms_eps)) * self.weights[name]

    def _empty_cache(self) -> "Cache":
        empty = np.zeros((0, self.spec.n_kv_heads, self.spec.head_dim), np.float32)
        return [(empty, empty)] * self.spec.n_layers


Cache = list[tuple[np.ndarray, np.ndarray]]
"""Keys and values (P, K, D) of each layer."""


def _heads(x: np.ndarray, n_heads: int) -> np.ndarray:
    return x.reshape(len(x), n_heads, -1)


def _rotations(start: int, count: int, head_dim: int, theta: float) -> np.ndarray:
    """Return (T, 1, D / 2) complex64 of length one: the turn of each pair at each position."""
    frequencies = theta ** (-np.arange(0, head_dim, 2) / head_dim)
    angles = np.arange(start, start + count)[:, None] * frequencies
    return np.exp(1j * angles).astype(np.complex64)[:, None]


def _rotate(x: np.ndarray, turn: np.ndarray) -> np.ndarray:
    """Turn the pairs of `x` (T, heads, D) f32."""
    return (np.ascontiguousarray(x).view(np.complex64) * turn).view(np.float32)


def _rotate_halves(x: np.ndarray, turn: np.ndarray) -> np.ndarray:
    """Turn the pairs (i, i + D / 2) of `x` (T, heads, D) f32."""
    first, second = np.split(x, 2, axis=-1)
    turned = (first + 1j * second) * turn
    return np.concatenate([turned.real, turned.imag], axis=-1).astype(np.float32)


def _attention(q: np.ndarray, keys: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return (T, H * D): each query of (T, H, D) sees the keys (P + T, K, D) up to its own position."""
    (n_tokens, n_heads, head_dim), (n_positions, n_kv_heads, _) = q.shape, keys.shape
    grouped = q.reshape(n_tokens, n_kv_heads, n_heads // n_kv_heads, head_dim)
    scores = np.einsum("tkgd,pkd->kgtp", grouped, keys) / np.float32(head_dim**0.5)
    is_future = np.arange(n_positions) > np.arange(n_positions - n_tokens, n_positions)[:, None]
    scores = np.where(is_future, np.float32(-np.inf), scores)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return np.einsum("kgtp,pkd->tkgd", weights, values).reshape(n_tokens, -1)
