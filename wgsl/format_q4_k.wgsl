// format_q4_k.wgsl: weight = d * sc * q - dmin * m, q a nibble  (ggml block_q4_K, 256 weights; sc, m for each 32)
// layout     quants: as format_q4_1.wgsl
//            scales: five u32 for 256 weights, f16 d and f16 dmin, then for each 32 two bytes, sc and m
// provides   block_at(block), HAS_MIN

const HAS_MIN = true;

fn block_at(block: u32) -> Block {
  let q = quants[block];
  let first = block / 8u * 5u;
  let whole = unpack2x16float(scales[first]);
  let part = scales[first + 1u + block % 8u / 2u] >> (block % 2u * 16u);
  let scale = whole * vec2f(f32(part & 0xFFu), f32((part >> 8u) & 0xFFu));
  let nibbles = vec4<u32>(0x0F0F0F0Fu);
  return Block(q & nibbles, (q >> vec4<u32>(4u)) & nibbles, scale.xx, -scale.yy);
}
