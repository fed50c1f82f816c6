// format_q4_1.wgsl: weight = d * q + m, q a nibble              (ggml block_q4_1, 32 weights)
// layout     quants: one vec4<u32> a block, low nibbles are weights 0..15, high nibbles 16..31, byte order kept
//            scales: one u32 a block, f16 d in the low half, f16 m in the high half
// provides   block_at(block), HAS_MIN

const HAS_MIN = true;

fn block_at(block: u32) -> Block {
  let q = quants[block];
  let scale = unpack2x16float(scales[block]);
  let nibbles = vec4<u32>(0x0F0F0F0Fu);
  return Block(q & nibbles, (q >> vec4<u32>(4u)) & nibbles, scale.xx, scale.yy);
}
