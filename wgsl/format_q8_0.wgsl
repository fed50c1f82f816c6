// format_q8_0.wgsl: weight = d * q, q a signed byte             (ggml block_q8_0, 32 weights)
// layout     quants: two vec4<u32> a block, byte order kept
//            scales: one u32 a block, f16 d in the low half (the high half is unused: one index for all formats)
// provides   dequantise(block) -> the 32 weights in order

fn signed_bytes(word: u32, d: f32) -> vec4f {
  return d * vec4f(unpack4xI8(word));
}

fn dequantise(block: u32) -> array<vec4f, 8> {
  let a = quants[2u * block];
  let b = quants[2u * block + 1u];
  let d = unpack2x16float(scales[block]).x;
  return array<vec4f, 8>(
    signed_bytes(a.x, d), signed_bytes(a.y, d), signed_bytes(a.z, d), signed_bytes(a.w, d),
    signed_bytes(b.x, d), signed_bytes(b.y, d), signed_bytes(b.z, d), signed_bytes(b.w, d),
  );
}
