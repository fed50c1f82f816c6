// repack_q6_k.wgsl: block_q6_K (128 bytes of nibbles, 64 of bits 4 and 5, 16 signed bytes sc, f16 d)
//            from the file -> quants and scales as format_q6_k.wgsl reads them
// shapes     raw: n_blocks blocks of 32 weights, eight in 210 bytes; quants, scales: a slab
// bindings   0 raw read | 1 quants read_write | 2 scales read_write | 3 rows uniform
// dispatch   (n_blocks): one thread a block
// needs      rows.wgsl
// reference  tests/support/format_reference.py: repack_q6_k; exact

@group(0) @binding(0) var<storage, read> raw: array<u32>;
@group(0) @binding(1) var<storage, read_write> quants: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read_write> scales: array<u32>;
@group(0) @binding(3) var<uniform> rows: Rows;

fn repack(block: u32, out: u32) {
  let at = block / 8u * 105u;  // in half words
  let i = block % 8u;
  let j = i % 4u;  // the file has four times 32 weights in 64 bytes of nibbles and 32 of high bits
  let nibbles = at + i / 4u * 32u + j % 2u * 16u;
  let high = at + 64u + i / 4u * 16u;
  var q: vec4<u32>;
  var bits: vec2<u32>;
  for (var w = 0u; w < 4u; w++) {
    let low_nibbles = (word_at(nibbles + 2u * w) >> (j / 2u * 4u)) & 0x0F0F0F0Fu;
    let high_nibbles = (word_at(nibbles + 2u * w + 8u) >> (j / 2u * 4u)) & 0x0F0F0F0Fu;
    q[w] = low_nibbles | (high_nibbles << 4u);
    let pairs = vec2<u32>(word_at(high + 2u * w), word_at(high + 2u * w + 8u)) >> vec2<u32>(2u * j);
    bits |= ((pairs & vec2<u32>(0x03030303u)) ^ vec2<u32>(0x02020202u)) << vec2<u32>(2u * w);
  }
  quants[out] = q;
  let first = out / 8u * 21u;
  scales[first + 5u + 2u * i] = bits.x;
  scales[first + 6u + 2u * i] = bits.y;
  // Two blocks share a word of scales: the even one writes it.
  if (i % 2u == 0u) {
    scales[first + 1u + i / 2u] = word_at(at + 96u + i);
  }
  if (i == 0u) {
    scales[first] = bitcast<u32>(unpack2x16float(word_at(at + 104u)).x * 0.25);
  }
}
