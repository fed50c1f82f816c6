// blocks.wgsl: a block of 32 quantised weights in the one form that all arithmetic understands
// layout     weight i = d.x * byte i + m.x for i < 16, d.y * byte i + m.y from 16 on; bytes are signed, four a word
// provides   Block; four_of(b, i): weights 4 i .. 4 i + 3 of it; dequantise(block) -> the 32 weights in order, on
//            top of the format's block_at(block) and HAS_MIN

struct Block {
  low: vec4<u32>,
  high: vec4<u32>,
  d: vec2f,
  m: vec2f,
}

fn scaled(word: u32, d: f32, m: f32) -> vec4f {
  if (HAS_MIN) {
    return d * vec4f(unpack4xI8(word)) + m;
  }
  return d * vec4f(unpack4xI8(word));
}

fn four_of(b: Block, i: u32) -> vec4f {
  let is_high = i >= 4u;
  let word = select(b.low, b.high, is_high)[i % 4u];
  return scaled(word, select(b.d.x, b.d.y, is_high), select(b.m.x, b.m.y, is_high));
}

fn dequantise(block: u32) -> array<vec4f, 8> {
  let b = block_at(block);
  return array<vec4f, 8>(
    scaled(b.low.x, b.d.x, b.m.x), scaled(b.low.y, b.d.x, b.m.x),
    scaled(b.low.z, b.d.x, b.m.x), scaled(b.low.w, b.d.x, b.m.x),
    scaled(b.high.x, b.d.y, b.m.y), scaled(b.high.y, b.d.y, b.m.y),
    scaled(b.high.z, b.d.y, b.m.y), scaled(b.high.w, b.d.y, b.m.y),
  );
}
