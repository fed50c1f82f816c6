"""The lane's own proof that kernels run here and write what they are told, before any other test is believed."""

import numpy as np

PATTERN = """
@group(0) @binding(0) var<storage, read_write> out: array<u32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < arrayLength(&out)) { out[id.x] = 0xC0FFEE00u ^ id.x; }
}
"""


def test_a_kernel_writes_a_known_pattern(bench):
    (written,) = bench.run_code(PATTERN, [np.zeros(128, np.uint32)], ["read_write"], grid=(2,))
    assert (written.view(np.uint32) == (0xC0FFEE00 ^ np.arange(128, dtype=np.uint32))).all()
