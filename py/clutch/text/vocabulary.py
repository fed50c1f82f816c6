"""The tokenizer of a model file: a validated view of its ``tokenizer.ggml.*`` keys.

Only byte-level BPE ("gpt2") is run here. The tokens stay the strings that the file holds and are turned into
bytes one at a time: a table of 152,064 byte strings would cost more of the browser's heap than the rest of
the engine.

Source: the GGUF specification (ggml-org/ggml, docs/gguf.md); the byte alphabet is that of GPT-2's encoder.py.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from clutch.errors import ModelFormatError, UnsupportedModelError

PRE_TOKENIZERS = ("smollm", "qwen2", "deepseek-r1-qwen")

# Control tokens with which chat templates end a turn. A file names one eos; several fine-tunes end on another
# of these.
END_OF_TURN = frozenset(
    {
        "<|im_end|>",
        "<|eot_id|>",
        "<|end|>",
        "<|endoftext|>",
        "<|EOT|>",
        "<end_of_turn>",
        "<｜end▁of▁sentence｜>",
    }
)

_PRINTABLE = (*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100))
_OTHERS = tuple(byte for byte in range(256) if byte not in _PRINTABLE)
BYTE_OF = {chr(byte): byte for byte in _PRINTABLE} | {chr(256 + i): byte for i, byte in enumerate(_OTHERS)}


class TokenType(IntEnum):
    """What a token is for; the numbers are the file's."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Tokens, merges and special tokens of one model.

    `types` holds one TokenType a byte. `control` and `user_defined` map a token's text to its id; control
    tokens steer the model and are never shown, user-defined ones (such as ``<think>``) are text that is
    always one token.
    """

    tokens: Sequence[str]
    types: bytes
    merges: Sequence[str]
    pre: str
    control: Mapping[str, int]
    user_defined: Mapping[str, int]
    bos_id: int | None
    eos_id: int | None
    end_ids: frozenset[int]
    adds_bos: bool

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, object]) -> "Vocabulary":
        """Return the vocabulary described by a model file's metadata.

        Raises:
            UnsupportedModelError: not byte-level BPE, or an unknown pre-tokenizer.
            ModelFormatError: a key is missing, of the wrong kind or contradicts another.
        """
        _require_known(metadata, "tokenizer.ggml.model", ("gpt2",))
        pre = _require_known(metadata, "tokenizer.ggml.pre", PRE_TOKENIZERS)
        tokens = _strings(metadata, "tokenizer.ggml.tokens")
        types = _types(metadata, len(tokens))
        bos_id = _token_id(metadata, "tokenizer.ggml.bos_token_id", len(tokens))
        eos_id = _token_id(metadata, "tokenizer.ggml.eos_token_id", len(tokens))
        eot_id = _token_id(metadata, "tokenizer.ggml.eot_token_id", len(tokens))
        adds_bos = metadata.get("tokenizer.ggml.add_bos_token", False)
        if adds_bos is not False and (adds_bos is not True or bos_id is None):
            raise ModelFormatError(f"tokenizer.ggml.add_bos_token is {adds_bos!r} with bos_token_id {bos_id}")
        control = {tokens[i]: i for i, kind in enumerate(types) if kind == TokenType.CONTROL}
        end_ids = {token_id for text, token_id in control.items() if text in END_OF_TURN}
        end_ids.update(token_id for token_id in (eos_id, eot_id) if token_id is not None)
        return cls(
            tokens=tokens,
            types=types,
            merges=_strings(metadata, "tokenizer.ggml.merges"),
            pre=pre,
            control=control,
            user_defined={tokens[i]: i for i, kind in enumerate(types) if kind == TokenType.USER_DEFINED},
            bos_id=bos_id,
            eos_id=eos_id,
            end_ids=frozenset(end_ids),
            adds_bos=adds_bos,
        )

    def token_bytes(self, token_id: int) -> bytes:
        """Return the bytes that a token stands for: its text for special tokens, nothing for unused ones."""
        token = self.tokens[token_id]
        kind = self.types[token_id]
        if kind == TokenType.UNUSED:
            return b""
        if kind != TokenType.NORMAL:
            return token.encode()
        try:
            return bytes(map(BYTE_OF.__getitem__, token))
        except KeyError:
            # A token outside the byte alphabet was added as text; Hugging Face's decoder takes it literally
            # too.
            return token.encode()


def _require_known(metadata: Mapping[str, object], key: str, known: tuple[str, ...]) -> str:
    value = metadata.get(key)
    if not isinstance(value, str):
        raise ModelFormatError(f"{key}: expected a string, found {type(value).__name__}", key=key)
    if value not in known:
        raise UnsupportedModelError(
            f"{key} is {value[:64]!r}; Clutch runs {', '.join(known)}",
            hint="Choose a model of the SmolLM2, Qwen2.5 or DeepSeek-R1-Distill-Qwen family.",
            key=key,
        )
    return value


def _strings(metadata: Mapping[str, object], key: str) -> Sequence[str]:
    value = metadata.get(key)
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise ModelFormatError(f"{key}: expected a list of strings, found {type(value).__name__}", key=key)
    return value


def _types(metadata: Mapping[str, object], n_tokens: int) -> bytes:
    key = "tokenizer.ggml.token_type"
    value = metadata.get(key)
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != n_tokens:
        found = f"{len(value)} items" if isinstance(value, Sequence) else type(value).__name__
        raise ModelFormatError(f"{key}: expected one type for each of {n_tokens} tokens, found {found}", key=key)
    known = set(TokenType)
    for token_id, kind in enumerate(value):
        if kind not in known:
            raise ModelFormatError(
                f"{key}: token {token_id} has type {kind!r}, expected 1 to 5", key=key, token_id=token_id
            )
    return bytes(list(value))  # a reader may hand over an array, whose buffer is wider than a byte an item


def _token_id(metadata: Mapping[str, object], key: str, n_tokens: int) -> int | None:
    value = metadata.get(key)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < n_tokens:
        raise ModelFormatError(f"{key}: expected an id below {n_tokens}, found {value!r}", key=key)
    return value
