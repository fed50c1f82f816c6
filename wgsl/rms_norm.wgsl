// rms_norm.wgsl: h[t] = x[t] / sqrt(mean(x[t]^2) + EPS) * gain        (Zhang & Sennrich 2019, eq. 4)
// shapes     x, h (T, HIDDEN) f32; gain (HIDDEN) f32
// bindings   0 x read | 1 gain read | 2 h read_write
// constants  HIDDEN, EPS
// dispatch   (1, T): one workgroup a token
// needs      workgroup memory 256 B
// reference  tests/support/kernel_reference.py: rms_norm; nmse 1e-10

const LANES = 64u;

@group(0) @binding(0) var<storage, read> x: array<vec4f>;
@group(0) @binding(1) var<storage, read> gain: array<vec4f>;
@group(0) @binding(2) var<storage, read_write> h: array<vec4f>;

var<workgroup> sums: array<f32, LANES>;

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) lane: u32, @builtin(workgroup_id) group: vec3u) {
  let vectors = HIDDEN / 4u;
  let row = group.y * vectors;
  var sum = 0.0;
  for (var i = lane; i < vectors; i += LANES) {
    sum += dot(x[row + i], x[row + i]);
  }
  sums[lane] = sum;
  workgroupBarrier();
  // Every lane adds all sums itself: one barrier instead of a tree of six.
  var total = 0.0;
  for (var i = 0u; i < LANES; i++) {
    total += sums[i];
  }
  let scale = inverseSqrt(total / f32(HIDDEN) + EPS);
  if (group.y >= step.n_tokens) {
    return;
  }
  for (var i = lane; i < vectors; i += LANES) {
    h[row + i] = x[row + i] * scale * gain[i];
  }
}
