// repack_q4_1.wgsl: block_q4_1 (f16 d, f16 m, 16 bytes of nibbles)
//            from the file -> quants and scales as format_q4_1.wgsl reads them
// shapes     raw: n_blocks blocks of 20 bytes; quants, scales: a slab
// bindings   0 raw read | 1 quants read_write | 2 scales read_write | 3 rows uniform
// dispatch   (n_blocks): one thread a block
// needs      rows.wgsl
// reference  tests/support/format_reference.py: repack_q4_1; exact

@group(0) @binding(0) var<storage, read> raw: array<u32>;
@group(0) @binding(1) var<storage, read_write> quants: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read_write> scales: array<u32>;
@group(0) @binding(3) var<uniform> rows: Rows;

fn repack(block: u32, out: u32) {
  let word = block * 5u;
  scales[out] = raw[word];
  quants[out] = vec4<u32>(raw[word + 1u], raw[word + 2u], raw[word + 3u], raw[word + 4u]);
}
