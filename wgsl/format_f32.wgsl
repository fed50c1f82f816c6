// format_f32.wgsl: weights as they are                           (32 weights are called a block here too)
// layout     quants: eight vec4<u32> a block, the bits of four f32 each
//            scales: not read
// provides   Block, block_at(block), four_of(b, i): weights 4 i .. 4 i + 3; dequantise(block) -> the 32 in order

struct Block {
  first: u32,
}

fn block_at(block: u32) -> Block {
  return Block(8u * block);
}

fn four_of(b: Block, i: u32) -> vec4f {
  return bitcast<vec4f>(quants[b.first + i]);
}

fn dequantise(block: u32) -> array<vec4f, 8> {
  let b = block_at(block);
  return array<vec4f, 8>(
    four_of(b, 0u), four_of(b, 1u), four_of(b, 2u), four_of(b, 3u),
    four_of(b, 4u), four_of(b, 5u), four_of(b, 6u), four_of(b, 7u),
  );
}
