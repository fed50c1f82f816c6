// matmul_add.wgsl: y[t] += W x[t]
// shapes     W (rows, COLUMNS) in a weight format, of which this is ROWS rows; x (T, COLUMNS) f32; y (T, WIDTH) f32
// bindings   0 quants read | 1 scales read | 2 x read | 3 y read_write
// constants  ROWS, COLUMNS, FIRST_ROW, WIDTH
// dispatch   of the product
// needs      a product, a weight format
// reference  tests/support/kernel_reference.py: matmul_add; nmse 1e-10

@group(0) @binding(0) var<storage, read> quants: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> scales: array<u32>;
@group(0) @binding(3) var<storage, read_write> y: array<vec2f>;

fn n_items() -> u32 {
  return step.n_tokens;
}

fn source_of(item: u32) -> u32 {
  return item;
}

fn finish(pair: u32, item: u32, product: vec2f) {
  y[item * (WIDTH / 2u) + pair] += product;
}

fn conclude(thread: u32, group: vec3u) {}
