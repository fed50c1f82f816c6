// format_q4_1.wgsl: weight = d * q + m, q a nibble              (ggml block_q4_1, 32 weights)
// layout     quants: one vec4<u32> a block, low nibbles are weights 0..15, high nibbles 16..31, byte order kept
//            scales: one u32 a block, f16 d in the low half, f16 m in the high half
// provides   dequantise(block) -> the 32 weights in order

fn nibbles(word: u32, scale: vec2f) -> vec4f {
  return scale.x * vec4f(unpack4xU8(word & 0x0F0F0F0Fu)) + scale.y;
}

fn dequantise(block: u32) -> array<vec4f, 8> {
  let q = quants[block];
  let scale = unpack2x16float(scales[block]);
  let high = q >> vec4<u32>(4u);
  return array<vec4f, 8>(
    nibbles(q.x, scale), nibbles(q.y, scale), nibbles(q.z, scale), nibbles(q.w, scale),
    nibbles(high.x, scale), nibbles(high.y, scale), nibbles(high.z, scale), nibbles(high.w, scale),
  );
}
