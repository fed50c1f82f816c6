"""A llama or qwen2 of a hundred kilobytes with random weights, a byte-level BPE and SmolLM2's way of writing metadata.

Its logits are spread (standard deviation about 3) and its greedy answers wander instead of repeating one
token, so that a wrong kernel, a stale cache or a lost position changes the answer. The control tokens have
small embeddings: none is ever the likeliest, and an answer runs to its `max_tokens`. The likeliest leads by
0.7 in the median, but by less than 0.02 at one step in fifty: compare with the reference's margins at hand.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from clutch.formats.quants import QuantType
from tests.support.gguf_writer import Encoded, Tensor, Typed, ValueType, encode_gguf, tensor

# fmt: off
CONTROL_TOKENS = [  # SmolLM2's, in its order
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<repo_name>", "<reponame>", "<file_sep>",
    "<filename>", "<gh_stars>", "<issue_start>", "<issue_comment>", "<issue_closed>", "<jupyter_start>",
    "<jupyter_text>", "<jupyter_code>", "<jupyter_output>", "<jupyter_script>", "<empty_output>",
]
MERGES = [  # mostly SmolLM2's first
    "Ġ t", "Ġ a", "i n", "h e", "Ġ Ġ", "r e", "o n", "e r", "Ġt he", "a t", "Ġ s", "Ġ o", "e n", "Ġ c",
    "e s", "Ġ w", "n d", "i t", "o r", "i s", "a l", "Ġ p", "in g", "Ġ f", "a n", "e d", "Ġ b", "o u",
    "a r", "Ġ in", "Ġo f", "Ġ m", "Ġa nd", "i on", "i c", "Ġ d", "Ġt o", "ĠĠ ĠĠ", "l l", "ll o",
]
# fmt: on
CHAT_TEMPLATE = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\nBe brief.<|im_end|>\n' }}{% endif %}"
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
IM_START, IM_END = 1, 2
_NORMAL, _CONTROL = 1, 3

_ABSENT_IN_QWEN2 = ("attention.key_length", "attention.value_length", "rope.dimension_count", "vocab_size")

LOGIT_STD = 3.0
_GAIN = 1.6
"""Standard deviation of a projection's output for a normalised input: layers outweigh the token they start
from, or the tied output would repeat that token."""


def vocabulary() -> list[str]:
    """Return the tokens by id: 17 control tokens, 256 bytes, 40 merges."""
    return [*CONTROL_TOKENS, *_byte_alphabet(), *(merge.replace(" ", "") for merge in MERGES)]


def encode_tiny_model(
    *,
    architecture: str = "llama",
    n_layers: int = 2,
    hidden: int = 64,
    intermediate: int = 96,
    n_heads: int = 4,
    n_kv_heads: int = 2,
    head_dim: int = 16,
    context_length: int = 512,
    seed: int = 0,
    matrix_type: QuantType = QuantType.Q4_1,
    embedding_type: QuantType = QuantType.Q8_0,
    part_types: Mapping[str, QuantType] | None = None,
    tied: bool = True,
    metadata: Mapping[str, object] | None = None,
    quiet_ids: Sequence[int] = range(len(CONTROL_TOKENS)),
) -> Encoded:
    """Return the file; the same arguments give the same bytes.

    Args:
        architecture: "llama", or "qwen2": with biases on q, k and v, and without the keys that its files leave out.
        part_types: the quantisation of some matrices by their name in every layer ("attn_v"), instead of matrix_type.
        metadata: replaces values of the file's own, its vocabulary for instance.
        quiet_ids: tokens that are never the likeliest.
    """
    is_qwen2 = architecture == "qwen2"
    values = {
        "general.architecture": architecture,
        "general.type": "model",
        "general.name": f"Tiny random {architecture}",
        "general.languages": ["en"],
        **{
            f"{architecture}.{key}": value
            for key, value in {
                "block_count": n_layers,
                "context_length": context_length,
                "embedding_length": hidden,
                "feed_forward_length": intermediate,
                "attention.head_count": n_heads,
                "attention.head_count_kv": n_kv_heads,
                "attention.key_length": head_dim,
                "attention.value_length": head_dim,
                "rope.freq_base": 10000.0,
                "rope.dimension_count": head_dim,
                "attention.layer_norm_rms_epsilon": 1e-5,
                "vocab_size": len(vocabulary()),
            }.items()
            if not (is_qwen2 and key in _ABSENT_IN_QWEN2)
        },
        **_tokenizer_metadata(),
        **(metadata or {}),
    }
    n_tokens = values.get(f"{architecture}.vocab_size", len(vocabulary()))
    random = np.random.default_rng(seed)

    def matrix(name: str, n_in: int, n_out: int) -> Tensor:
        drawn = random.standard_normal((n_out, n_in), np.float32) * (_GAIN / n_in**0.5)
        part = name.removesuffix(".weight").rpartition(".")[2]
        return tensor(name, drawn, (part_types or {}).get(part, matrix_type))

    def norm(name: str) -> Tensor:
        return tensor(name, 1 + 0.1 * random.standard_normal(hidden, np.float32), QuantType.F32)

    def bias(name: str, n_out: int) -> Tensor:
        return tensor(name, 0.5 * random.standard_normal(n_out, np.float32), QuantType.F32)

    def embedding(name: str) -> Tensor:
        drawn = random.standard_normal((n_tokens, hidden), np.float32) * (LOGIT_STD / hidden**0.5)
        drawn[list(quiet_ids)] *= 0.2
        return tensor(name, drawn, embedding_type)

    tensors = [embedding("token_embd.weight")]
    for layer in (f"blk.{index}" for index in range(n_layers)):
        tensors += [
            norm(f"{layer}.attn_norm.weight"),
            matrix(f"{layer}.attn_q.weight", hidden, n_heads * head_dim),
            matrix(f"{layer}.attn_k.weight", hidden, n_kv_heads * head_dim),
            matrix(f"{layer}.attn_v.weight", hidden, n_kv_heads * head_dim),
            matrix(f"{layer}.attn_output.weight", n_heads * head_dim, hidden),
            norm(f"{layer}.ffn_norm.weight"),
            matrix(f"{layer}.ffn_gate.weight", hidden, intermediate),
            matrix(f"{layer}.ffn_up.weight", hidden, intermediate),
            matrix(f"{layer}.ffn_down.weight", intermediate, hidden),
        ]
        if is_qwen2:
            tensors += [bias(f"{layer}.attn_q.bias", n_heads * head_dim)]
            tensors += [bias(f"{layer}.attn_{part}.bias", n_kv_heads * head_dim) for part in "kv"]
    tensors.append(norm("output_norm.weight"))
    if not tied:
        tensors.append(embedding("output.weight"))
    return encode_gguf(values, tensors)


def write_tiny_model(path: Path, **options: object) -> Path:
    """Write the model to `path`; options as `encode_tiny_model`."""
    path.write_bytes(encode_tiny_model(**options).data)  # type: ignore[arg-type]
    return path


def _tokenizer_metadata() -> dict[str, object]:
    tokens = vocabulary()
    n_normal = len(tokens) - len(CONTROL_TOKENS)
    token_types = [_CONTROL] * len(CONTROL_TOKENS) + [_NORMAL] * n_normal
    return {
        "tokenizer.ggml.add_space_prefix": False,
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": Typed(ValueType.I32, token_types),
        "tokenizer.ggml.merges": list(MERGES),
        "tokenizer.ggml.bos_token_id": IM_START,
        "tokenizer.ggml.eos_token_id": IM_END,
        "tokenizer.ggml.unknown_token_id": 0,
        "tokenizer.ggml.padding_token_id": IM_END,
        "tokenizer.chat_template": CHAT_TEMPLATE,
    }


def _byte_alphabet() -> list[str]:
    """Return GPT-2's character for each byte: printable Latin-1 stands for itself, the rest moves up."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    moved = [byte for byte in range(256) if byte not in printable]
    return [chr(byte) for byte in printable] + [chr(0x100 + index) for index, _ in enumerate(moved)]
