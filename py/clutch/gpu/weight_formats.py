"""The weight formats: how each quantisation lies on the GPU, in a buffer `quants` and a buffer `scales`.

A new one is an entry here, `wgsl/format_X.wgsl` (reads it) and `wgsl/repack_X.wgsl` (makes it from the file's blocks);
and a dequantiser in `clutch.formats.quants`, which is what the load's self-test trusts.
"""

from dataclasses import dataclass

from clutch.errors import UnsupportedModelError
from clutch.formats.quants import QuantType


@dataclass(frozen=True)
class WeightFormat:
    """One format.

    Args:
        name: as in the names of its WGSL files.
        quants_bytes, scales_bytes: what a block of its quantisation takes in the two buffers.
    """

    name: str
    quants_bytes: int
    scales_bytes: int


FORMATS: dict[QuantType, WeightFormat] = {
    QuantType.F32: WeightFormat("f32", 4, 0),
    QuantType.Q4_1: WeightFormat("q4_1", 16, 4),
    QuantType.Q4_K: WeightFormat("q4_k", 128, 20),
    QuantType.Q5_0: WeightFormat("q5_0", 16, 8),
    QuantType.Q6_K: WeightFormat("q6_k", 128, 84),
    QuantType.Q8_0: WeightFormat("q8_0", 32, 4),
}


def format_of(quant: QuantType) -> WeightFormat:
    """Return the weight format of a quantisation.

    Raises:
        UnsupportedModelError: there is no kernel for it.
    """
    if quant not in FORMATS:
        known = ", ".join(sorted(t.name for t in FORMATS))
        raise UnsupportedModelError(
            f"There are no kernels for weights of type {quant.name}.",
            hint=f"Choose a file quantised as one of {known}.",
            quantisation=quant.name,
        )
    return FORMATS[quant]
