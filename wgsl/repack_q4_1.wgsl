// repack_q4_1.wgsl: block_q4_1 (f16 d, f16 m, 16 bytes of nibbles)
//            from the file -> quants and scales as format_q4_1.wgsl reads them
// shapes     raw: n_blocks blocks of 20 bytes; quants, scales: the whole matrix
// bindings   0 raw read | 1 quants read_write | 2 scales read_write | 3 rows uniform
// rows       n_blocks, blocks_per_row, first_row, row_stride, row_offset: row r of the file becomes row
//            r * row_stride + row_offset of the matrix (tensors are joined below each other, or interleaved)
// dispatch   (n_blocks): one thread a block
// needs      no features
// reference  tests/support/kernel_reference.py: repack_q4_1; exact

struct Rows {
  n_blocks: u32,
  blocks_per_row: u32,
  first_row: u32,
  row_stride: u32,
  row_offset: u32,
}
@group(0) @binding(0) var<storage, read> raw: array<u32>;
@group(0) @binding(1) var<storage, read_write> quants: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read_write> scales: array<u32>;
@group(0) @binding(3) var<uniform> rows: Rows;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  let block = id.x;
  if (block >= rows.n_blocks) {
    return;
  }
  let row = (rows.first_row + block / rows.blocks_per_row) * rows.row_stride + rows.row_offset;
  let out = row * rows.blocks_per_row + block % rows.blocks_per_row;
  let word = block * 5u;
  scales[out] = raw[word];
  quants[out] = vec4<u32>(raw[word + 1u], raw[word + 2u], raw[word + 3u], raw[word + 4u]);
}
