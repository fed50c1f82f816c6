"""What a forward pass reads and writes besides the weights: activations, KV pages, tokens, tables."""

import math
from array import array
from dataclasses import dataclass

from clutch.gpu.device import Buffer, Device, Usage
from clutch.gpu.ledger import Scope
from clutch.model.memory import MemoryPlan
from clutch.model.spec import ModelSpec


@dataclass(frozen=True)
class State:
    """The buffers of one model; shapes as the kernels' headers say."""

    x: Buffer
    h: Buffer
    q: Buffer
    attended: Buffer
    mlp: Buffer
    fresh: Buffer
    pieces: Buffer
    bytes: Buffer
    logits: Buffer
    candidates: Buffer
    rope: Buffer
    tokens: Buffer
    block_table: Buffer
    page: Buffer
    result: Buffer
    step_uniforms: Buffer
    readbacks: tuple[Buffer, ...]
    row_readback: Buffer
    kv: tuple[Buffer, ...]


async def allocate_state(plan: MemoryPlan, scope: Scope) -> State:
    """Make the buffers that `plan` counts.

    Raises:
        OutOfMemory: one does not fit.
    """
    made = {
        name: await scope.buffer(name, size)
        for name, size in plan.scratch.items()
        if name not in ("step uniforms", "readbacks", "row readback")
    }
    readback_bytes = plan.scratch["readbacks"] // plan.n_readbacks
    return State(
        **{name.replace(" ", "_"): buffer for name, buffer in made.items()},
        step_uniforms=await scope.buffer("step uniforms", plan.scratch["step uniforms"], Usage.UNIFORM),
        readbacks=tuple(
            [await scope.buffer(f"readback {i}", readback_bytes, Usage.READBACK) for i in range(plan.n_readbacks)]
        ),
        row_readback=await scope.buffer("row readback", plan.scratch["row readback"], Usage.READBACK),
        kv=tuple([await scope.buffer(f"KV pages of layer {i}", plan.kv_layer_bytes) for i in range(plan.n_layers)]),
    )


def write_rope(device: Device, state: State, spec: ModelSpec, context_length: int) -> None:
    """Fill the table of cosines and sines: (context, head_dim / 2) of (cos, sin), f32 (Su et al. 2021, eq. 15).

    Computed here in double precision: WGSL promises nothing for the large angles of late positions.
    """
    frequencies = [spec.rope_theta ** (-2 * i / spec.rope_dim) for i in range(spec.rope_dim // 2)]
    angles = [position * frequency for position in range(context_length) for frequency in frequencies]
    table = array("f", bytes(8 * len(angles)))
    # By map and by slice: a loop in Python takes five times as long, half a second of a load in the browser.
    table[0::2] = array("f", map(math.cos, angles))
    table[1::2] = array("f", map(math.sin, angles))
    device.write(state.rope, table.tobytes())
