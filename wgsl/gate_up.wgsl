// gate_up.wgsl: y = SiLU(W_gate h) * (W_up h)                       (Shazeer 2020, eq. 6)
// shapes     W (2 ROWS, HIDDEN) rows gate 0, up 0, gate 1, ... in a weight format; h (T, HIDDEN) f32; y (T, ROWS) f32
// bindings   0 quants read | 1 scales read | 2 h read | 3 y read_write
// overrides  ROWS, HIDDEN, TOKENS
// dispatch   (ROWS, T / TOKENS): one thread a gate and its up row, TOKENS <= 8 tokens
// needs      a weight format
// reference  tests/support/kernel_reference.py: gate_up; nmse 1e-10

override ROWS: u32;
override HIDDEN: u32;
override TOKENS: u32;

@group(0) @binding(0) var<storage, read> quants: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> scales: array<u32>;
@group(0) @binding(2) var<storage, read> h: array<vec4f>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;

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
  let first_token = id.y * TOKENS;
  if (id.x >= ROWS || first_token >= step.n_tokens) {
    return;
  }
  let blocks_per_row = HIDDEN / 32u;
  var sums: array<vec2f, 8>;  // of the gate and of the up row
  for (var block = 0u; block < blocks_per_row; block++) {
    let gate = dequantise(2u * id.x * blocks_per_row + block);
    let up = dequantise((2u * id.x + 1u) * blocks_per_row + block);
    for (var t = 0u; t < TOKENS; t++) {
      let at = ((first_token + t) * blocks_per_row + block) * 8u;
      sums[t] += vec2f(block_dot(gate, at), block_dot(up, at));
    }
  }
  for (var t = 0u; t < TOKENS && first_token + t < step.n_tokens; t++) {
    // The clamp keeps exp() finite: WGSL promises nothing for infinities.
    let silu = sums[t].x / (1.0 + exp(min(-sums[t].x, 80.0)));
    y[(first_token + t) * ROWS + id.x] = silu * sums[t].y;
  }
}
