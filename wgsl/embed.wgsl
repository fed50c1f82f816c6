// embed.wgsl: x[t] = W[the token at t's position of its sequence]
// shapes     W (vocab, HIDDEN) in a weight format, of which this is ROWS rows from FIRST_ROW on: a token of another row
//            is left alone; tokens u32 from token_offset on; x (T, HIDDEN) f32; row-major
// bindings   0 quants read | 1 scales read | 2 tokens read | 3 x read_write
// constants  ROWS, FIRST_ROW, HIDDEN
// dispatch   (HIDDEN / 32, T): one thread a block of a row
// needs      a weight format
// reference  tests/support/kernel_reference.py: embed; nmse 1e-12

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
  // Wraps below FIRST_ROW.
  let row = tokens[step.sequences[sequence_of(id.y)].token_offset + position_of(id.y)] - FIRST_ROW;
  if (row >= ROWS) {
    return;
  }
  let weights = dequantise(row * blocks_per_row + id.x);
  let out = (id.y * blocks_per_row + id.x) * 8u;
  for (var i = 0u; i < 8u; i++) {
    x[out + i] = weights[i];
  }
}
