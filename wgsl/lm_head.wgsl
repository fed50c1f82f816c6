// lm_head.wgsl: logits = W h of each sequence's last token
// shapes     W (ROWS, HIDDEN) in a weight format; h (T, HIDDEN) f32; logits (S, ROWS) f32
// bindings   0 quants read | 1 scales read | 2 h read | 3 logits read_write
// overrides  ROWS, HIDDEN
// dispatch   (ROWS, S): one thread a row, for each sequence
// needs      a weight format
// reference  tests/support/kernel_reference.py: lm_head; nmse 1e-10

override ROWS: u32;
override HIDDEN: u32;

@group(0) @binding(0) var<storage, read> quants: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> scales: array<u32>;
@group(0) @binding(2) var<storage, read> h: array<vec4f>;
@group(0) @binding(3) var<storage, read_write> logits: array<f32>;

// The dot product of a block with the 32 activations from vec4 `at` on; unrolled, because an indexed private array
// costs a software adapter twice the time (measured, SwiftShader).
fn block_dot(weights: array<vec4f, 8>, at: u32) -> f32 {
  var sum = weights[0] * h[at];
  sum += weights[1] * h[at + 1u];
  sum += weights[2] * h[at + 2u];
  sum += weights[3] * h[at + 3u];
  sum += weights[4] * h[at + 4u];
  sum += weights[5] * h[at + 5u];
  sum += weights[6] * h[at + 6u];
  sum += weights[7] * h[at + 7u];
  return sum.x + sum.y + sum.z + sum.w;
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x >= ROWS) {
    return;
  }
  let blocks_per_row = HIDDEN / 32u;
  let last = ((id.y + 1u) * step.tokens_per_sequence - 1u) * blocks_per_row * 8u;
  var sum = 0.0;
  for (var block = 0u; block < blocks_per_row; block++) {
    let weights = dequantise(id.x * blocks_per_row + block);
    sum += block_dot(weights, last + block * 8u);
  }
  logits[id.y * ROWS + id.x] = sum;
}
