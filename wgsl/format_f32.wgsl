// format_f32.wgsl: weights as they are                           (32 weights are called a block here too)
// layout     quants: eight vec4<u32> a block, the bits of four f32 each
//            scales: not read
// provides   dequantise(block) -> the 32 weights in order

fn dequantise(block: u32) -> array<vec4f, 8> {
  let v = 8u * block;
  return array<vec4f, 8>(
    bitcast<vec4f>(quants[v]), bitcast<vec4f>(quants[v + 1u]), bitcast<vec4f>(quants[v + 2u]),
    bitcast<vec4f>(quants[v + 3u]), bitcast<vec4f>(quants[v + 4u]), bitcast<vec4f>(quants[v + 5u]),
    bitcast<vec4f>(quants[v + 6u]), bitcast<vec4f>(quants[v + 7u]),
  );
}
