// repack_q8_0.wgsl: block_q8_0 (f16 d, 32 signed bytes)
//            from the file -> quants and scales as format_q8_0.wgsl reads them
// shapes     raw: n_blocks blocks of 34 bytes; quants, scales: the whole matrix
// bindings   0 raw read | 1 quants read_write | 2 scales read_write | 3 rows uniform
// rows       n_blocks, blocks_per_row, first_row, row_stride, row_offset: row r of the file becomes row
//            r * row_stride + row_offset of the matrix (tensors are joined below each other, or interleaved)
// dispatch   (n_blocks): one thread a block
// needs      no features
// reference  tests/support/kernel_reference.py: repack_q8_0; exact

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
  // 34 bytes: every odd block starts in the middle of a word, and the bytes of every even one do.
  let word = block * 34u / 4u;
  var bytes: array<u32, 8>;
  if (block % 2u == 0u) {
    scales[out] = raw[word] & 0xFFFFu;
    for (var i = 0u; i < 8u; i++) {
      bytes[i] = (raw[word + i] >> 16u) | (raw[word + i + 1u] << 16u);
    }
  } else {
    scales[out] = raw[word] >> 16u;
    for (var i = 0u; i < 8u; i++) {
      bytes[i] = raw[word + i + 1u];
    }
  }
  quants[2u * out] = vec4<u32>(bytes[0], bytes[1], bytes[2], bytes[3]);
  quants[2u * out + 1u] = vec4<u32>(bytes[4], bytes[5], bytes[6], bytes[7]);
}
