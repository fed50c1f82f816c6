// gate_up.wgsl: y = SiLU(W_gate x) * (W_up x)                       (Shazeer 2020, eq. 6)
// shapes     W (2 WIDTH, COLUMNS) rows gate 0, up 0, gate 1, ... in a weight format, of which this is ROWS rows;
//            x (T, COLUMNS) f32; gain (COLUMNS) f32; y (T, WIDTH) f32
// bindings   0 quants read | 1 scales read | 2 x read | 3 gain read | 4 y read_write
// constants  ROWS, COLUMNS, FIRST_ROW, WIDTH
// dispatch   of the product
// needs      a product, a weight format
// reference  tests/support/kernel_reference.py: gate_up; nmse 1e-10

@group(0) @binding(0) var<storage, read> quants: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> scales: array<u32>;
@group(0) @binding(3) var<storage, read> gain: array<vec4f>;
@group(0) @binding(4) var<storage, read_write> y: array<f32>;

fn n_items() -> u32 {
  return step.n_tokens;
}

fn source_of(item: u32) -> u32 {
  return item;
}

fn finish(pair: u32, item: u32, product: vec2f) {
  // The clamp keeps exp() finite: WGSL promises nothing for infinities.
  let silu = product.x / (1.0 + exp(min(-product.x, 80.0)));
  y[item * WIDTH + pair] = silu * product.y;
}

fn conclude(thread: u32, group: vec3u) {}
