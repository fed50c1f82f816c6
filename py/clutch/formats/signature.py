"""Name the thing that was given instead of a GGUF file, from its first bytes."""

_SIGNATURES = {
    b"\x1f\x8b": "a gzip archive",
    b"PK\x03\x04": "a zip archive (a PyTorch checkpoint is one too)",
    b"FUGG": "a GGUF file with swapped bytes",
    b"version https://git-lfs": "a Git LFS pointer, not the file itself",
    b"tjgg": "a GGJT file, the format before GGUF",
    b"lmgg": "a GGML file, the format before GGUF",
}
_SAFETENSORS_BRACE = 8
"""A safetensors file is a u64 length and then a JSON object."""


def describe_foreign(head: bytes) -> str:
    """Return what a file that does not start with GGUF's magic seems to be.

    Args:
        head: its first bytes, at least 24 when the file has as many.
    """
    for signature, description in _SIGNATURES.items():
        if head.startswith(signature):
            return description
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if text.startswith((b"<!doctype", b"<html", b"<?xml", b"<head")):
        return "a web page"
    if head[_SAFETENSORS_BRACE : _SAFETENSORS_BRACE + 1] == b"{":
        return "a safetensors file"
    if not head:
        return "an empty file"
    return f"bytes {head[:4].hex(' ')}"
