// rows.wgsl: brings the rows of a tensor to where they belong: completes repack_*.wgsl
// layout     rows: row r of the tensor becomes row r * row_stride + row_offset of the slab (tensors are joined below
//            each other, or interleaved); modulo 2^32, so that the slab may begin in the middle of the tensor.
//            half_head > 0: of each 2 half_head rows, row i and row i + half_head become neighbours first (RoPE turns
//            pairs of neighbours; some files pair the halves of a head)
// provides   main, for repack(block, out): block of the file -> block `out` of the slab;
//            word_at(half_word) -> the 32 bits of `raw` from there

struct Rows {
  n_blocks: u32,
  blocks_per_row: u32,
  first_row: u32,
  row_stride: u32,
  row_offset: u32,
  half_head: u32,
}

fn word_at(half_word: u32) -> u32 {
  let word = raw[half_word / 2u];
  return select(word, (word >> 16u) | (raw[half_word / 2u + 1u] << 16u), half_word % 2u == 1u);
}

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x >= rows.n_blocks) {
    return;
  }
  var row = rows.first_row + id.x / rows.blocks_per_row;
  if (rows.half_head > 0u) {
    let i = row % (2u * rows.half_head);
    row += 2u * (i % rows.half_head) + i / rows.half_head - i;
  }
  repack(id.x, (row * rows.row_stride + rows.row_offset) * rows.blocks_per_row + id.x % rows.blocks_per_row);
}
