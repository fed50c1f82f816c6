// format_q8_0.wgsl: weight = d * q, q a signed byte             (ggml block_q8_0, 32 weights)
// layout     quants: two vec4<u32> a block, byte order kept
//            scales: one u32 a block, f16 d in the low half (the high half is unused: one index for all formats)
// provides   block_at(block), HAS_MIN

const HAS_MIN = false;

fn block_at(block: u32) -> Block {
  let d = unpack2x16float(scales[block]).x;
  return Block(quants[2u * block], quants[2u * block + 1u], vec2f(d), vec2f());
}
