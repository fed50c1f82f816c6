"""Which model a saved session belongs to."""

import asyncio
import hashlib
import struct

from clutch.model.upload import Source

_N_SAMPLES = 16
_SAMPLE_BYTES = 4 << 10


async def model_identity(source: Source, header_bytes: int) -> str:
    """Return a fingerprint of a model file: hex SHA-256 of its size, its header and 16 samples of its weights.

    The samples have 4 KiB each and are spread evenly from the first byte of the weights to the last. Told apart are
    files of different size, architecture, tokenizer, chat template, metadata or quantisation, and a fine-tune and its
    base, since training moves nearly all weights. Not told apart are files that differ only between the samples: a few
    tensors edited by hand, a bit that flipped. It is no proof against somebody who wants two files to look alike. The
    name of the file plays no part; a copy whose metadata was rewritten is another model.

    Args:
        source: the file.
        header_bytes: where its weights begin, `GGUFHeader.data_offset`.

    Raises:
        SourceError: it cannot be read.
    """
    size_bytes = source.size_bytes
    digest = hashlib.sha256(struct.pack("<QQ", size_bytes, header_bytes))
    digest.update(await source.read(0, min(header_bytes, size_bytes)))
    length = min(_SAMPLE_BYTES, size_bytes - header_bytes)
    last = size_bytes - length
    if length > 0:
        # In a small file they overlap, or are all the same.
        offsets = sorted({header_bytes + (last - header_bytes) * i // (_N_SAMPLES - 1) for i in range(_N_SAMPLES)})
        # At once: each may be a round trip to a server.
        for sample in await asyncio.gather(*(source.read(offset, length) for offset in offsets)):
            digest.update(sample)
    return digest.hexdigest()
