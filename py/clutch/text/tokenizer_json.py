"""The vocabulary as a Hugging Face ``tokenizer.json``, which every BPE library reads.

It holds no special tokens: `Tokenizer` splits those off before the library sees the text, so no text, however
it is written, can turn into a control token. Merges are written "a b", the form that all versions of the
format accept.

Source: the pre-tokenizers of the published SmolLM2, Qwen2.5 and DeepSeek-R1-Distill-Qwen tokenizer.json
files; the result is compared with recorded ids in tests/unit/test_tokenizer.py.
"""

import json

from clutch.errors import ModelFormatError
from clutch.text.vocabulary import TokenType, Vocabulary

_QWEN_PIECES = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
    r"|[^\r\n\p{L}\p{N}]?\p{L}+"
    r"|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+"
    r"|\s+(?!\S)"
    r"|\s+"
)


def tokenizer_json(vocabulary: Vocabulary) -> bytes:
    """Return the tokenizer.json of a vocabulary, as UTF-8, without its special tokens.

    Raises:
        ModelFormatError: two tokens are equal, or a merge needs a token that does not exist.
    """
    ids: dict[str, int] = {}
    for token_id, (token, kind) in enumerate(zip(vocabulary.tokens, vocabulary.types, strict=True)):
        if kind != TokenType.NORMAL:
            continue
        if ids.setdefault(token, token_id) != token_id:
            raise ModelFormatError(f"tokens {ids[token]} and {token_id} are both {token[:64]!r}")
    for rank, merge in enumerate(vocabulary.merges):
        left, space, right = merge.partition(" ")
        if not (space and left in ids and right in ids and left + right in ids):
            raise ModelFormatError(f"merge {rank} ({merge[:64]!r}) does not join two tokens to a third", merge=rank)
    document: dict[str, object] = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": None if vocabulary.pre == "smollm" else {"type": "NFC"},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": _pre_tokenizers(vocabulary.pre)},
        "post_processor": None,
        "decoder": _byte_level(use_regex=True),
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": ids,
            "merges": vocabulary.merges,
        },
    }
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def _pre_tokenizers(pre: str) -> list[dict[str, object]]:
    if pre == "smollm":
        return [{"type": "Digits", "individual_digits": True}, _byte_level(use_regex=True)]
    pieces = {"type": "Split", "pattern": {"Regex": _QWEN_PIECES}, "behavior": "Isolated", "invert": False}
    return [pieces, _byte_level(use_regex=False)]


def _byte_level(*, use_regex: bool) -> dict[str, object]:
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": use_regex}
