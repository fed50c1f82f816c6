// repack_q5_0.wgsl: block_q5_0 (f16 d, 4 bytes of fifth bits, 16 bytes of nibbles)
//            from the file -> quants and scales as format_q5_0.wgsl reads them
// shapes     raw: n_blocks blocks of 22 bytes; quants, scales: a slab
// bindings   0 raw read | 1 quants read_write | 2 scales read_write | 3 rows uniform
// dispatch   (n_blocks): one thread a block
// needs      rows.wgsl
// reference  tests/support/format_reference.py: repack_q5_0; exact

@group(0) @binding(0) var<storage, read> raw: array<u32>;
@group(0) @binding(1) var<storage, read_write> quants: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read_write> scales: array<u32>;
@group(0) @binding(3) var<uniform> rows: Rows;

fn repack(block: u32, out: u32) {
  let at = block * 11u;
  let bits = ~word_at(at + 1u);
  var fifth = 0u;
  for (var i = 0u; i < 16u; i++) {
    let to = i % 4u * 8u + i / 4u;
    fifth |= ((bits >> i) & 1u) << to;
    fifth |= ((bits >> (16u + i)) & 1u) << (to + 4u);
  }
  scales[2u * out] = bitcast<u32>(unpack2x16float(word_at(at)).x * 0.125);
  scales[2u * out + 1u] = fifth;
  quants[out] = vec4<u32>(word_at(at + 3u), word_at(at + 5u), word_at(at + 7u), word_at(at + 9u));
}
