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

struct Step {
  position: u32,
  n_tokens: u32,
  table_offset: u32,
  top_k: u32,
  seed_low: u32,
  seed_high: u32,
  temperature: f32,
  top_p: f32,
  min_p: f32,
}
@group(1) @binding(0) var<uniform> step: Step;
@group(0) @binding(0) var<storage, read> quants: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> scales: array<u32>;
@group(0) @binding(2) var<storage, read> x: array<vec4f>;
@group(0) @binding(3) var<storage, read_write> y: array<f32>;

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
      var sum = sums[t];
      for (var i = 0u; i < 8u; i++) {
        sum += dot(weights[i], x[at + i]);
      }
      sums[t] = sum;
    }
  }
  for (var t = 0u; t < TOKENS && first_token + t < step.n_tokens; t++) {
    y[(first_token + t) * ROWS + id.x] += sums[t];
  }
}
