// format_q6_k.wgsl: weight = d * sc * (q - 32), q of six bits   (ggml block_q6_K, 256 weights; sc for each 16)
// layout     quants: as format_q4_1.wgsl, the low four bits
//            scales: 21 u32 for 256 weights, f32 d / 4, then for each 32 two signed bytes, sc of weights 0..15 and of
//            16..31, then for each 32 two u32, bits 4 and 5 (inverted): of weight 4 w + k bits 8 k + 2 w of the first,
//            of weight 16 + 4 w + k those of the second
// provides   block_at(block), HAS_MIN

const HAS_MIN = false;

// With its sixth bit inverted q is the two's complement of q - 32; as the high bits of a byte that is 4 (q - 32).
fn block_at(block: u32) -> Block {
  let q = quants[block];
  let first = block / 8u * 21u;
  let i = block % 8u;
  let d = bitcast<f32>(scales[first]);
  let part = bitcast<i32>(scales[first + 1u + i / 2u]);
  let at = i % 2u * 16u;
  let scale = vec2f(f32(extractBits(part, at, 8u)), f32(extractBits(part, at + 8u, 8u)));
  let nibbles = vec4<u32>(0x3C3C3C3Cu);
  let high = vec4<u32>(0xC0C0C0C0u);
  let to_top = vec4<u32>(6u, 4u, 2u, 0u);
  return Block(
    ((q << vec4<u32>(2u)) & nibbles) | ((vec4<u32>(scales[first + 5u + 2u * i]) << to_top) & high),
    ((q >> vec4<u32>(2u)) & nibbles) | ((vec4<u32>(scales[first + 6u + 2u * i]) << to_top) & high),
    d * scale, vec2f(),
  );
}
