"""What a step costs, kernel by kernel: its dispatches, the bytes they must read, and the GPU's own time for them.

Dispatches of a step that are alike, one a layer, are one row: the same kernel on the same matrix of each layer. They
run as one pass, over and over until that takes long enough to be measured, so a row knows nothing of the waits between
kernels; and a matrix that fits the GPU's cache in all layers together looks faster than it is in a step, which is why
the whole step is measured too, in the same way. The bytes are those that any program must read: the weights that a
dispatch binds, and for attention the keys and values of the context once. Gains, biases and activations are left out,
and the row of an embedding that a token looks up.
"""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from clutch.engine.control import Interrupted
from clutch.engine.loading import Placement
from clutch.errors import ContextLengthError, RequestError
from clutch.gpu.device import Dispatch
from clutch.gpu.kernels import READ
from clutch.kv.sequence import Sequence as KVSequence
from clutch.sampling.params import SamplingParams

# A row lasts at least so long: timestamps have steps of 65.5 us. The whole step, which comes first, also has to bring
# the GPU's clock up.
ROW_US, WHOLE_US = 5_000, 100_000
# The best of so many: what disturbs a row only makes it slower.
TRIES = 3
_MOST_REPEATS = 1 << 12

_WEIGHTS = ("quants", "scales")
_LOOKUP = ("tokens", READ)


@dataclass(frozen=True)
class Row:
    """Dispatches that are alike; `weight_bytes` and `kv_bytes` are of all of them."""

    name: str
    dispatches: list[Dispatch]
    weight_bytes: int
    kv_bytes: int

    def to_wire(self, us: float | None) -> dict[str, object]:
        """Return the JSON-able form; `us` is the GPU's time for all of them, None where it cannot be had."""
        return {
            "name": self.name,
            "dispatches": len(self.dispatches),
            "weight_bytes": self.weight_bytes,
            "kv_bytes": self.kv_bytes,
            "us": us,
        }


def rows_of(dispatches: Sequence[Dispatch], kv_bytes: int) -> list[Row]:
    """Return the rows of a step in the order in which they first come.

    Args:
        dispatches: of the step.
        kv_bytes: of the context, in one layer.
    """
    alike: dict[tuple[object, str], list[Dispatch]] = {}
    for dispatch in dispatches:
        alike.setdefault((dispatch.kernel, _name_of(dispatch)), []).append(dispatch)
    return [
        Row(name, group, sum(map(_weight_bytes, group)), kv_bytes * sum(map(_reads_kv, group)))
        for (_, name), group in alike.items()
    ]


async def measure_step(
    placement: Placement,
    sequence: KVSequence,
    n_tokens: int,
    is_stopped: Callable[[], bool],
    on_progress: Callable[[int, int], None],
) -> dict[str, object]:
    """Measure a step behind what `sequence` holds, which is all it holds afterwards; return the JSON-able result.

    Args:
        placement: where the model is; nothing else runs there.
        sequence: whose step it is.
        n_tokens: 1 for a decode step; more for a prefill step of so many, or as many as one takes.
        is_stopped: whether Stop was pressed; asked before every measurement.
        on_progress: called with (rows measured, rows to measure).

    Raises:
        Interrupted: it was stopped.
        RequestError, ContextLengthError, PoolExhausted: there is no such step.
        DeviceLost, DeviceTimeout: the GPU failed.
    """
    if n_tokens < 1:
        raise RequestError(f"tokens is {n_tokens}; a step has at least 1.", field="tokens")
    scheduler, position = placement.scheduler, sequence.length
    runner = scheduler.runner
    n_tokens = min(n_tokens, placement.chunks.most_tokens)
    if position + n_tokens > placement.context_length:
        raise ContextLengthError(
            f"There is no room for {n_tokens} tokens behind {position}.",
            hint="Load the model with a longer context.",
            position=position,
            context_length=placement.context_length,
        )
    dispatches = runner.decode_dispatches if n_tokens == 1 else runner.prefill_dispatches
    rows = rows_of(dispatches, placement.model.memory.kv.position_bytes * (position + n_tokens))
    whole_us: float | None = None
    row_us: list[float | None] = [None] * len(rows)
    if placement.device.has_timestamps:
        with sequence.pool.busy(sequence):
            try:
                async with scheduler.turn:
                    runner.begin(sequence.slot, SamplingParams())
                    scheduler.make_room(sequence, position + n_tokens)
                stopwatch = _Stopwatch(placement, (sequence.slot, position), n_tokens, is_stopped)
                whole_us = await stopwatch.time(dispatches, WHOLE_US, 1)
                for i, row in enumerate(rows):
                    on_progress(i, len(rows))
                    row_us[i] = await stopwatch.time(row.dispatches, ROW_US, TRIES)
            finally:
                sequence.rewind(min(sequence.length, position))
    return {
        "kind": "decode" if n_tokens == 1 else "prefill",
        "position": position,
        "tokens": n_tokens,
        "dispatches": len(dispatches),
        "us": whole_us,
        "rows": [row.to_wire(us) for row, us in zip(rows, row_us, strict=True)],
    }


class _Stopwatch:
    """Measures dispatches as parts of one step.

    Args:
        placement: where they run.
        at: slot and position of the step's sequence.
        n_tokens: of the step.
        is_stopped: see `measure_step`.
    """

    def __init__(
        self, placement: Placement, at: tuple[int, int], n_tokens: int, is_stopped: Callable[[], bool]
    ) -> None:
        self._placement = placement
        self._at = at
        self._n_tokens = n_tokens
        self._is_stopped = is_stopped

    async def time(self, dispatches: Sequence[Dispatch], least_us: float, tries: int) -> float:
        """Return the us that the dispatches take once, from the best of `tries` that last at least `least_us`.

        A software adapter is as slow as it is steady: there one run is enough.
        """
        device = self._placement.device
        plan = device.record(dispatches)
        if device.adapter.is_fallback:
            least_us, tries = 0, 1
        repeats, found = 1, list[float]()
        while len(found) < tries:
            # A turn each: what else the GPU has to do is done in between.
            async with self._placement.scheduler.turn:
                if self._is_stopped():
                    raise Interrupted
                us = await device.measure(plan, [self._at], self._n_tokens, repeats)
            if us >= least_us or repeats == _MOST_REPEATS:
                found.append(us / repeats)
            else:
                # A tenth more than should suffice; a time that was rounded to nothing says only that it is short.
                wanted = repeats * 1.1 * least_us / us if us else repeats * 8
                repeats = min(_MOST_REPEATS, max(repeats + 1, math.ceil(wanted)))
        return min(found)


def _weight_bytes(dispatch: Dispatch) -> int:
    bindings = dispatch.kernel.spec.bindings
    if _LOOKUP in bindings:
        return 0
    return sum(
        buffer.size_bytes for (name, _), buffer in zip(bindings, dispatch.buffers, strict=True) if name in _WEIGHTS
    )


def _reads_kv(dispatch: Dispatch) -> bool:
    return ("kv", READ) in dispatch.kernel.spec.bindings


def _name_of(dispatch: Dispatch) -> str:
    """Return the kernel's name, and that of its matrix without the layer: "matmul_add ffn_down"."""
    spec = dispatch.kernel.spec
    names = [name for name, _ in spec.bindings]
    if "quants" not in names:
        return spec.name
    matrix = re.sub(r"^blk\.\d+\.|\.weight| .*$", "", dispatch.buffers[names.index("quants")].label)
    return spec.name if matrix == spec.name else f"{spec.name} {matrix}"
