// repack_q8_0.wgsl: block_q8_0 (f16 d, 32 signed bytes)
//            from the file -> quants and scales as format_q8_0.wgsl reads them
// shapes     raw: n_blocks blocks of 34 bytes; quants, scales: a slab
// bindings   0 raw read | 1 quants read_write | 2 scales read_write | 3 rows uniform
// dispatch   (n_blocks): one thread a block
// needs      rows.wgsl
// reference  tests/support/format_reference.py: repack_q8_0; exact

@group(0) @binding(0) var<storage, read> raw: array<u32>;
@group(0) @binding(1) var<storage, read_write> quants: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read_write> scales: array<u32>;
@group(0) @binding(3) var<uniform> rows: Rows;

fn repack(block: u32, out: u32) {
  let at = block * 17u;
  scales[out] = word_at(at) & 0xFFFFu;
  for (var i = 0u; i < 2u; i++) {
    let first = at + 1u + 8u * i;
    quants[2u * out + i] = vec4<u32>(word_at(first), word_at(first + 2u), word_at(first + 4u), word_at(first + 6u));
  }
}
