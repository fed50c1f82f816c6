// matmul_add.wgsl: y[t] += W x[t]
// shapes     W (ROWS, COLUMNS) in a weight format; x (T, COLUMNS) f32; y (T, ROWS) f32
// bindings   0 quants read | 1 scales read | 2 x read | 3 y read_write
// overrides  ROWS, COLUMNS, TOKENS
// dispatch   (ROWS, T / TOKENS): one thread a row, TOKENS <= 8 tokens
// needs      a weight format
// reference  tests/support/kernel_reference.py: matmul_add; nmse 1e-10

override ROWS: u32;
override COLUMNS: u32;
override TOKENS: u32;

@group(0) @binding(0) var<storage, read> quants: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> scales: array<u32>;
@group(0) @binding(2) var<storage, read> x: array<vec4f>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;

// The dot product of a block with the 32 activations from vec4 `at` on; unrolled, because an indexed private array
// costs a software adapter twice the time (measured, SwiftShader).
fn block_dot(weights: array<vec4f, 8>, at: u32) -> f32 {
  var sum = weights[0] * x[at];
  sum += weights[1] * x[at + 1u];
  sum += weights[2] * x[at + 2u];
  sum += weights[3] * x[at + 3u];
  sum += weights[4] * x[at + 4u];
  sum += weights[5] * x[at + 5u];
  sum += weights[6] * x[at + 6u];
  sum += weights[7] * x[at + 7u];
  return sum.x + sum.y + sum.z + sum.w;
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  let first_token = id.y * TOKENS;
  if (id.x >= ROWS || first_token >= step.n_tokens) {
    return;
  }
  let blocks_per_row = COLUMNS / 32u;
  var sums: array<f32, 8>;
  for (var block = 0u; block < blocks_per_row; block++) {
    let weights = dequantise(id.x * blocks_per_row + block);
    for (var t = 0u; t < TOKENS; t++) {
      let at = ((first_token + t) * blocks_per_row + block) * 8u;
      sums[t] += block_dot(weights, at);
    }
  }
  for (var t = 0u; t < TOKENS && first_token + t < step.n_tokens; t++) {
    y[(first_token + t) * ROWS + id.x] += sums[t];
  }
}
