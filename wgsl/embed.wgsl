// embed.wgsl: x[t] = W[tokens[position + t]]
// shapes     W (vocab, HIDDEN) in a weight format, tokens (context) u32, x (T, HIDDEN) f32; row-major
// bindings   0 quants read | 1 scales read | 2 tokens read | 3 x read_write
// overrides  HIDDEN
// dispatch   (HIDDEN / 32, T): one thread a block of a row
// needs      a weight format
// reference  tests/support/kernel_reference.py: embed; nmse 1e-12

override HIDDEN: u32;

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
@group(0) @binding(2) var<storage, read> tokens: array<u32>;
@group(0) @binding(3) var<storage, read_write> x: array<vec4f>;

@compute @workgroup_size(32)
fn main(@builtin(global_invocation_id) id: vec3u) {
  let blocks_per_row = HIDDEN / 32u;
  if (id.x >= blocks_per_row || id.y >= step.n_tokens) {
    return;
  }
  let token = tokens[step.position + id.y];
  let weights = dequantise(token * blocks_per_row + id.x);
  let out = (id.y * blocks_per_row + id.x) * 8u;
  for (var i = 0u; i < 8u; i++) {
    x[out + i] = weights[i];
  }
}
