// format_q5_0.wgsl: weight = d * (q - 16), q of five bits       (ggml block_q5_0, 32 weights)
// layout     quants: as format_q4_1.wgsl, the low four bits
//            scales: two u32 a block, f32 d / 8, then the fifth bits inverted: of weight 4 w + k bit 8 k + w,
//            of weight 16 + 4 w + k bit 8 k + 4 + w
// provides   block_at(block), HAS_MIN

const HAS_MIN = false;

// With its fifth bit inverted q is the two's complement of q - 16; as the high bits of a byte that is 8 (q - 16).
fn block_at(block: u32) -> Block {
  let q = quants[block];
  let d = bitcast<f32>(scales[2u * block]);
  let fifth = vec4<u32>(scales[2u * block + 1u]);
  let nibbles = vec4<u32>(0x78787878u);
  let sign = vec4<u32>(0x80808080u);
  return Block(
    ((q << vec4<u32>(3u)) & nibbles) | ((fifth << vec4<u32>(7u, 6u, 5u, 4u)) & sign),
    ((q >> vec4<u32>(1u)) & nibbles) | ((fifth << vec4<u32>(3u, 2u, 1u, 0u)) & sign),
    vec2f(d), vec2f(),
  );
}
