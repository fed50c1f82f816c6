"""A tiny llama with random weights that reasons: DeepSeek-R1's vocabulary and chat template, answers with `</think>`.

All tokens of the vocabulary but `WORDS` and `</think>` have small embeddings, so that an answer is a chain of those. A
word is a token with its space and a pre-token of its own: the text of an answer has the same tokens again when it comes
back as part of a prompt. The seed is one with which the answer to `QUESTION` has one `</think>`, in its middle.
"""

import numpy as np

from tests.support.gguf_writer import Encoded, Typed, ValueType
from tests.support.tiny_model import encode_tiny_model
from tests.support.vocabularies import TOKENS, TYPES, metadata_of, tokenizer_of

QUESTION = "How many legs has a spider?"
NEXT_QUESTION = "And a beetle?"
MAX_TOKENS = 24
THINK_END = "</think>"
# fmt: off
WORDS = (
    "the", "of", "and", "to", "in", "is", "you", "that", "it", "he", "was", "for", "on", "are", "as", "with", "his",
    "they", "at", "be", "this", "have", "from", "or", "one", "had", "by", "word", "but", "not", "what", "all",
)
# fmt: on
_SEED = 87


def think_end_id() -> int:
    """Return the id of `</think>`."""
    return tokenizer_of("dsr1qwen").vocabulary.user_defined[THINK_END]


def encode_r1_model(*, seed: int = _SEED, context_length: int = 256) -> Encoded:
    """Return the file (11 MB); the same arguments give the same bytes."""
    metadata = metadata_of("dsr1qwen")
    tokens = metadata[TOKENS]
    n_tokens = len(tokens)  # type: ignore[arg-type]
    loud_ids = [think_end_id(), *(tokenizer_of("dsr1qwen").encode(f" {word}")[0] for word in WORDS)]
    return encode_tiny_model(
        n_layers=1,
        hidden=32,
        intermediate=64,
        n_heads=2,
        n_kv_heads=1,
        context_length=context_length,
        seed=seed,
        metadata={
            **metadata,
            TYPES: Typed(ValueType.I32, metadata[TYPES]),
            "llama.vocab_size": n_tokens,
        },
        quiet_ids=np.setdiff1d(np.arange(n_tokens), loud_ids),  # type: ignore[arg-type]
    )
