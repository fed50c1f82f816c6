"""Every kernel in NumPy: the oracle of tests/kernels, and what the fake device computes with.

A reference gets its bindings as byte arrays by name, its constants, the weight format and the step, and writes into
the arrays that the kernel may write. f32 everywhere the kernel says f32; sums are NumPy's.
"""

import struct
from dataclasses import dataclass, field

import numpy as np

from clutch.gpu.step import HEADER_BYTES, HEADER_FIELDS, SEQUENCE_BYTES, SEQUENCE_FIELDS, SLOT_BYTES
from clutch.sampling import reference as sampling
from clutch.sampling.params import SamplingParams
from tests.support.format_reference import REPACKS, dequantised

PAGE = 16
_SEQUENCE = struct.Struct("<" + "".join("f" if kind == "f32" else "I" for _, kind in SEQUENCE_FIELDS))
_HEADER = struct.Struct("<" + "I" * len(HEADER_FIELDS))


@dataclass(frozen=True)
class Sequence:
    """What the step uniform says of one sequence, by field."""

    position: int = 0
    table_offset: int = 0
    token_offset: int = 0
    top_k: int = 0
    seed_low: int = 0
    seed_high: int = 0
    temperature: float = 0.0
    top_p: float = 1.0
    min_p: float = 0.0

    def pack(self) -> bytes:
        """Return its words."""
        return _SEQUENCE.pack(*(getattr(self, name) for name, _ in SEQUENCE_FIELDS))

    @classmethod
    def unpack(cls, data: bytes) -> "Sequence":
        """Read its words."""
        return cls(*_SEQUENCE.unpack_from(data))

    def params(self) -> SamplingParams:
        """Return the sampling parameters it carries."""
        seed = self.seed_high << 32 | self.seed_low
        return SamplingParams(float(self.temperature), self.top_k, float(self.top_p), float(self.min_p), seed)


@dataclass(frozen=True)
class Step:
    """The step uniform: sequences with so many tokens each."""

    sequences: tuple[Sequence, ...] = field(default_factory=lambda: (Sequence(),))
    tokens_per_sequence: int = 1

    @property
    def n_tokens(self) -> int:
        """Of all sequences."""
        return len(self.sequences) * self.tokens_per_sequence

    def tokens(self) -> list[tuple[Sequence, int]]:
        """Return (sequence, position) of every token."""
        return [(s, s.position + i) for s in self.sequences for i in range(self.tokens_per_sequence)]

    def pack(self) -> bytes:
        """Return the words of a slot of the uniform."""
        header = _HEADER.pack(self.n_tokens, self.tokens_per_sequence).ljust(HEADER_BYTES, b"\0")
        rows = b"".join(sequence.pack().ljust(SEQUENCE_BYTES, b"\0") for sequence in self.sequences)
        return (header + rows).ljust(SLOT_BYTES, b"\0")


def one(position=0, n_tokens=1, **fields) -> Step:
    """Return a step of one sequence."""
    return Step((Sequence(position, **fields),), n_tokens)


def f32(data, *shape):
    """Return the f32 view of the beginning of a byte array."""
    count = int(np.prod(shape))
    return data[: count * 4].view(np.float32).reshape(shape)


def embed(b, c, step, files):
    hidden, rows, first = c["HIDDEN"], c["ROWS"], c["FIRST_ROW"]
    weights, x = dequantised(b, files["format"], rows, hidden), f32(b["x"], step.n_tokens, hidden)
    for t, (sequence, position) in enumerate(step.tokens()):
        row = int(b["tokens"].view(np.uint32)[sequence.token_offset + position]) - first
        if 0 <= row < rows:
            x[t] = weights[row]


def _normed(x, gain, eps):
    return x / np.sqrt((x * x).mean(axis=1, keepdims=True) + np.float32(eps)) * gain


def rms_norm(b, c, step, files):
    shape = step.n_tokens, c["HIDDEN"]
    f32(b["h"], *shape)[:] = _normed(f32(b["x"], *shape), f32(b["gain"], c["HIDDEN"]), c["EPS"])


def _products(b, c, step, files):
    """Return (tokens, ROWS): the activations, as their source gives them, times a slab of weights."""
    shape = step.n_tokens, c["COLUMNS"]
    if files.get("product") == "tiles_int8":
        lines = b["x"][: step.n_tokens * c["COLUMNS"] // 32 * 48].reshape(-1, 48)
        steps = np.ascontiguousarray(lines[:, 32:36]).view(np.float32)
        x = (np.ascontiguousarray(lines[:, :32]).view(np.int8) * steps).reshape(shape)
    else:
        x = f32(b["x"], *shape)
    if files.get("source") == "normed":
        x = _normed(x, f32(b["gain"], c["COLUMNS"]), c["EPS"])
    return x @ dequantised(b, files["format"], c["ROWS"], c["COLUMNS"]).T


def quantise(b, c, step, files):
    blocks = f32(b["x"], step.n_tokens, c["COLUMNS"]).reshape(-1, 2, 16)
    sizes = np.abs(blocks).max(axis=(1, 2))
    levels = np.rint(blocks * (np.float32(127) / np.maximum(sizes, np.float32(1e-30)))[:, None, None])
    scales = sizes[:, None] / np.float32(127)
    out = b["quantised"][: len(blocks) * 48].reshape(-1, 48)
    out[:, :32] = levels.astype(np.int8).reshape(-1, 32).view(np.uint8)
    out[:, 32:] = np.hstack([scales, scales * levels.sum(axis=2), 0 * scales]).astype(np.float32).view(np.uint8)


def _page_of(b, sequence, position):
    return int(b["table"].view(np.uint32)[sequence.table_offset + position // PAGE])


class F16Cache:
    """Keys and values as wgsl/kv_f16.wgsl lays them out."""

    def __init__(self, b, c):
        width = c["N_KV_HEADS"] * c["HEAD_DIM"]
        n_pages = len(b["kv"]) // (2 * PAGE * width * 2)
        self._kv = b["kv"][: n_pages * 2 * PAGE * width * 2].view(np.float16).reshape(n_pages, 2, PAGE, width)

    def store(self, page, half, offset, row, columns=slice(None)):
        """Keep the keys (half 0) or values (1) of a position, or some columns of them."""
        self._kv[page, half, offset, columns] = row

    def load(self, page, half):
        """Return the 16 rows of a page."""
        return self._kv[page, half].astype(np.float32)


class Q8Cache:
    """Keys and values as wgsl/kv_q8.wgsl lays them out: per head its bytes, then an f32 scale."""

    def __init__(self, b, c):
        self._shape = c["N_KV_HEADS"], c["HEAD_DIM"]
        row = self._shape[0] * (self._shape[1] + 4)
        n_pages = len(b["kv"]) // (2 * PAGE * row)
        self._kv = b["kv"][: n_pages * 2 * PAGE * row].reshape(n_pages, 2, PAGE, self._shape[0], self._shape[1] + 4)

    def store(self, page, half, offset, row):
        heads = row.reshape(self._shape).astype(np.float32)
        scales = np.abs(heads).max(axis=1, keepdims=True) / np.float32(127)
        inverse = np.divide(np.float32(1), scales, out=np.zeros_like(scales), where=scales > 0)
        cells = self._kv[page, half, offset]
        cells[:, :-4] = np.rint(heads * inverse).astype(np.int8).view(np.uint8)
        cells[:, -4:] = scales.astype(np.float32).view(np.uint8)

    def load(self, page, half):
        cells = self._kv[page, half]
        scales = np.ascontiguousarray(cells[..., -4:]).view(np.float32)
        values = np.ascontiguousarray(cells[..., :-4]).view(np.int8).astype(np.float32) * scales
        return values.reshape(PAGE, -1)


CACHES = {"f16": F16Cache, "q8": Q8Cache}


def qkv(b, c, step, files):
    n, head_dim = step.n_tokens, c["HEAD_DIM"]
    q_size, kv_size = c["N_HEADS"] * head_dim, c["N_KV_HEADS"] * head_dim
    first, rows = c["FIRST_ROW"], c["ROWS"]
    biases = f32(b["gain"], c["COLUMNS"] + q_size + 2 * kv_size)[c["COLUMNS"] :]
    y = np.full((n, q_size + 2 * kv_size), np.nan, np.float32)
    y[:, first : first + rows] = _products(b, c, step, files) + biases[first : first + rows]
    positions = [position for _, position in step.tokens()]
    context = len(b["rope"]) // (head_dim * 4)
    turns = f32(b["rope"], context, head_dim // 2, 2)[positions][:, None]
    pairs = y[:, : q_size + kv_size].reshape(n, -1, head_dim // 2, 2)
    even, odd, cos, sin = pairs[..., 0], pairs[..., 1], turns[..., 0], turns[..., 1]
    turned = np.stack([even * cos - odd * sin, even * sin + odd * cos], axis=-1).reshape(n, -1)
    every = np.hstack([turned, y[:, q_size + kv_size :]])
    q, q_end = f32(b["q"], n, q_size), min(first + rows, q_size)
    q[:, first:q_end] = every[:, first:q_end]
    cache = None if files["keep"] == "f32" else F16Cache(b, c)
    for t, (sequence, position) in enumerate(step.tokens()):
        for half in (0, 1):
            start = q_size + half * kv_size
            # A slab holds whole heads or none.
            low, high = max(first, start), min(first + rows, start + kv_size)
            if low >= high:
                continue
            row, here = every[t, low:high], slice(low - start, high - start)
            if cache is None:
                f32(b["kv"], n, 2, kv_size)[t, half, here] = row
            else:
                cache.store(_page_of(b, sequence, position), half, position % PAGE, row, here)


def kv_store_q8(b, c, step, files):
    fresh = f32(b["fresh"], step.n_tokens, 2, c["N_KV_HEADS"] * c["HEAD_DIM"])
    cache = Q8Cache(b, c)
    for t, (sequence, position) in enumerate(step.tokens()):
        for half in (0, 1):
            cache.store(_page_of(b, sequence, position), half, position % PAGE, fresh[t, half])


def _splits(c, length):
    """Yield (split, first position, end position) of the splits in use."""
    pages = -(-length // PAGE)
    pages_per_split = -(-pages // c["SPLITS"])
    for split in range(-(-pages // pages_per_split)):
        yield split, split * pages_per_split * PAGE, min(length, (split + 1) * pages_per_split * PAGE)


def _pieces_shape(c, step):
    return step.n_tokens, c["N_HEADS"], c["SPLITS"], c["HEAD_DIM"] + 4


def attention_partial(b, c, step, files):
    heads, head_dim = c["N_HEADS"], c["HEAD_DIM"]
    q = f32(b["q"], step.n_tokens, heads, head_dim)
    pieces = f32(b["pieces"], *_pieces_shape(c, step))
    cache = CACHES[files["kv"]](b, c)
    for t, (sequence, position) in enumerate(step.tokens()):
        pages = [_page_of(b, sequence, first) for first in range(0, position + 1, PAGE)]
        keys, values = (
            np.concatenate([cache.load(page, half) for page in pages]).reshape(-1, c["N_KV_HEADS"], head_dim)
            for half in (0, 1)
        )
        for head in range(heads):
            kv_head = head // (heads // c["N_KV_HEADS"])
            for split, start, end in _splits(c, position + 1):
                scores = keys[start:end, kv_head] @ q[t, head] / np.sqrt(np.float32(head_dim))
                weights = np.exp(scores - scores.max())
                pieces[t, head, split, :head_dim] = weights @ values[start:end, kv_head]
                pieces[t, head, split, head_dim:] = scores.max(), weights.sum(), 0, 0


attention_split = attention_partial


def _merged(pieces, c, step):
    head_dim = c["HEAD_DIM"]
    attended = np.empty((*pieces.shape[:2], head_dim), np.float32)
    for t, (_, position) in enumerate(step.tokens()):
        used = len(list(_splits(c, position + 1)))
        largest = pieces[t, :, :used, head_dim].max(axis=1, keepdims=True)
        weights = np.exp(pieces[t, :, :used, head_dim] - largest)
        total = (weights * pieces[t, :, :used, head_dim + 1]).sum(axis=1, keepdims=True)
        attended[t] = np.einsum("hs,hsd->hd", weights, pieces[t, :, :used, :head_dim]) / total
    return attended


def attention_merge(b, c, step, files):
    pieces = f32(b["pieces"], *_pieces_shape(c, step))
    f32(b["attended"], step.n_tokens, c["N_HEADS"], c["HEAD_DIM"])[:] = _merged(pieces, c, step)


def attention_tile(b, c, step, files):
    one_split = c | {"SPLITS": 1}
    pieces = np.zeros(_pieces_shape(one_split, step), np.float32)
    attention_partial({**b, "pieces": pieces.view(np.uint8).reshape(-1)}, one_split, step, files)
    attended = _merged(pieces, one_split, step)
    f32(b["attended"], *attended.shape)[:] = attended


def matmul_add(b, c, step, files):
    y = f32(b["y"], step.n_tokens, c["WIDTH"])
    y[:, c["FIRST_ROW"] : c["FIRST_ROW"] + c["ROWS"]] += _products(b, c, step, files)


def gate_up(b, c, step, files):
    y = _products(b, c, step, files)
    gate, up = y[:, 0::2], y[:, 1::2]
    first = c["FIRST_ROW"] // 2
    out = f32(b["y"], step.n_tokens, c["WIDTH"])[:, first : first + c["ROWS"] // 2]
    out[:] = gate / (1 + np.exp(np.minimum(-gate, 80))) * up


CANDIDATE = np.dtype([("largest", "f4"), ("index", "u4"), ("mass", "f4"), ("weighted", "f4")])


def candidate_of(logits, first):
    """Return what a run of logits, which begins at index `first`, comes down to."""
    below = logits - logits.max()
    mass = np.exp(below)
    return logits.max(), first + logits.argmax(), mass.sum(), (below * mass).sum()


def lm_head(b, c, step, files):
    count, first, rows = step.tokens_per_sequence, c["FIRST_ROW"], c["ROWS"]
    logits = _products(b, c, step, files)[count - 1 :: count]
    f32(b["logits"], len(logits), c["VOCAB"])[:, first : first + rows] = logits
    candidates = b["candidates"].view(CANDIDATE)[: len(logits) * c["CANDIDATES"]].reshape(len(logits), -1)
    rows_each = 2 * c.get("PAIRS", 1) * c["WORKGROUP"] // c.get("LANES", 1)
    for i, start in enumerate(range(0, rows, rows_each), c["FIRST_CANDIDATE"]):
        for row, run in zip(candidates, logits[:, start : start + rows_each], strict=True):
            row[i] = candidate_of(run, first + start)


def sample(b, c, step, files):
    for i, sequence in enumerate(step.sequences):
        logits = f32(b["logits"], len(step.sequences), c["VOCAB"])[i].tolist()
        position = sequence.position + step.tokens_per_sequence
        token_id = sampling.sample(logits, sequence.params(), position)
        if position < c["CONTEXT"]:
            b["tokens"].view(np.uint32)[sequence.token_offset + position] = token_id
        statistics = sampling.log_probability(logits, token_id), sampling.entropy(logits)
        words = struct.pack("<IffI", token_id, *statistics, position)
        b["result"][16 * i : 16 * i + 16] = np.frombuffer(words, np.uint8)


REFERENCES = {
    function.__name__: function
    for function in (
        embed,
        rms_norm,
        quantise,
        qkv,
        kv_store_q8,
        attention_partial,
        attention_merge,
        attention_tile,
        matmul_add,
        gate_up,
        lm_head,
        sample,
    )
} | {"attention_split": attention_split, **REPACKS}


def compute(kernel, buffers, step):
    """Run the reference of a `clutch.gpu.kernels.Kernel` on byte arrays in binding order."""
    named = {name: data for (name, _), data in zip(kernel.spec.bindings, buffers, strict=True)}
    # By kind: format_q4_1 -> {"format": "q4_1"}
    files = dict(file.split("_", 1) for file in kernel.files if "_" in file)
    REFERENCES[kernel.spec.name](named, dict(kernel.constants), step, files)
