"""The load self-test: a model whose numbers are wrong is refused, instead of answering wrongly.

Checked on the GPU that will be used, with the weights as they arrived there: logits against dot products with rows of
the file, dequantised and normed in Python; every way to prefill against decode, which are different pipelines; the
sampled token against the argmax. It also is the warm-up: what the first use of a pipeline costs does not land in the
first answer.
"""

import math
from collections.abc import Iterator, Sequence
from operator import sub

from clutch.errors import SelfTestError
from clutch.formats.gguf_tensors import TensorInfo
from clutch.formats.quants import dequantise_block, row_size_bytes
from clutch.model.runner import Runner
from clutch.model.upload import Source
from clutch.sampling.params import SamplingParams

# Relative to the largest logit. f32 sums in another order stay below 1e-5; keys and values are f16 in both pipelines.
_TOLERANCE = 2e-3
# Activations as bytes: what the last product loses, and what every layer adds to a byte that was rounded otherwise
# (0.03 to 0.06 in NumPy, from a random model of four layers to one of twelve; kernels that are wrong differ by 1).
_TOLERANCE_INT8, _DRIFT_INT8 = 3e-2, 0.2
_N_ROWS = 4


async def self_test(
    runner: Runner, source: Source, output: TensorInfo, norm: TensorInfo, rms_eps: float, *, is_int8: bool
) -> dict[str, object]:
    """Run a few tokens and return the verdict.

    Args:
        runner: of the model, fresh; slot 0 and page 0 of its pool are written.
        source: the model's file.
        output: the tensor of the output matrix, (hidden_size, vocab_size) in GGUF order.
        norm: the tensor of the gains before it, f32.
        rms_eps: of the norm.
        is_int8: whether activations are bytes in any product.

    Raises:
        SelfTestError: what differs, with both numbers.
    """
    vocab_size = output.shape[1]
    first, second = 1 % vocab_size, 2 % vocab_size
    runner.begin(0, SamplingParams())
    runner.write_table(0, 0, [0])

    prefilled = []
    for way in range(runner.ways):
        await runner.prefill(0, [first, second], 0, is_last=True, way=way)
        prefilled.append(await runner.logits())

    runner.write_token(0, first, 0)
    await runner.decode([(0, 0)])
    runner.write_token(0, second, 1)
    [result] = await runner.decode([(0, 1)])
    logits = await runner.logits()

    scale = max(map(abs, logits))
    tolerance = scale * (_TOLERANCE_INT8 if is_int8 else _TOLERANCE)
    drift = scale * (_DRIFT_INT8 if is_int8 else _TOLERANCE)
    # Zero would agree with everything: it is what a GPU that computes nothing leaves in its zeroed buffers.
    _compare("the largest logit", scale, scale if 0 < scale < math.inf else math.nan, 0.0)
    values = logits.tolist()
    likeliest = values.index(max(values))
    _compare("the likeliest token", result.token_id, likeliest, 0.0)
    for other in prefilled:
        for token_id in _far_apart(other, logits, drift):
            _compare(f"logit {token_id} in prefill and decode", other[token_id], logits[token_id], drift)
    gains = memoryview(await source.read(norm.offset, norm.size_bytes)).cast("f")
    hidden = _normed(await runner.hidden(), gains, rms_eps)
    row_bytes = row_size_bytes(output.type, output.shape[0])
    for i in range(_N_ROWS):
        token_id = i * (vocab_size - 1) // (_N_ROWS - 1)
        row = await source.read(output.offset + token_id * row_bytes, row_bytes)
        _compare(f"logit {token_id}", logits[token_id], _dot(row, output, hidden), tolerance)
    return {"verdict": "passed", "checks": runner.ways * vocab_size + _N_ROWS + 2}


def _normed(x: Sequence[float], gains: Sequence[float], eps: float) -> list[float]:
    scale = 1 / math.sqrt(math.fsum(value * value for value in x) / len(x) + eps)
    return [value * gain * scale for value, gain in zip(x, gains, strict=True)]


def _dot(row: bytes, tensor: TensorInfo, hidden: Sequence[float]) -> float:
    step = tensor.type.block_bytes
    weights = (w for at in range(0, len(row), step) for w in dequantise_block(tensor.type, row[at : at + step]))
    return math.fsum(weight * value for weight, value in zip(weights, hidden, strict=True))


def _far_apart(left: Sequence[float], right: Sequence[float], tolerance: float) -> Iterator[int]:
    """Yield where they differ by more than `tolerance`; ten times faster than `_compare` for a whole vocabulary."""
    # Written so that a NaN fails.
    return (i for i, difference in enumerate(map(sub, left, right)) if not -tolerance <= difference <= tolerance)


def _compare(what: str, found: float, expected: float, tolerance: float) -> None:
    # Written so that a NaN fails.
    if not abs(found - expected) <= tolerance:
        raise SelfTestError(
            f"This GPU computes wrong numbers: {what} is {found:.6g}, expected {expected:.6g}.",
            hint="Update the graphics driver and the browser; if it stays, report it with your GPU's name.",
            what=what,
            found=str(found),
            expected=str(expected),
        )
