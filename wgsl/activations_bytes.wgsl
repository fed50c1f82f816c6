// activations_bytes.wgsl: integer arithmetic with activations that are signed bytes already
// layout     x (items, COLUMNS / 32) of three vec4<u32> as quantise.wgsl leaves them
// provides   prepare(thread, first_item); weights_at(block); product(weights, first_item, t, block) -> the dot product
//            of a block of weights with the same columns of item first_item + t; scale_of(t) -> a factor of its sums
// needs      a format with block_at

alias Weights = Block;

@group(0) @binding(2) var<storage, read> x: array<vec4<u32>>;

fn prepare(thread: u32, first_item: u32) {}

fn weights_at(block: u32) -> Weights {
  return block_at(block);
}

fn product(weights: Weights, first_item: u32, t: u32, block: u32) -> f32 {
  let at = 3u * (source_of(first_item + t) * BLOCKS + block);
  let low_bytes = x[at];
  let high_bytes = x[at + 1u];
  let measure = bitcast<vec4f>(x[at + 2u]);
  var low = dot4I8Packed(weights.low.x, low_bytes.x);
  low += dot4I8Packed(weights.low.y, low_bytes.y);
  low += dot4I8Packed(weights.low.z, low_bytes.z);
  low += dot4I8Packed(weights.low.w, low_bytes.w);
  var high = dot4I8Packed(weights.high.x, high_bytes.x);
  high += dot4I8Packed(weights.high.y, high_bytes.y);
  high += dot4I8Packed(weights.high.z, high_bytes.z);
  high += dot4I8Packed(weights.high.w, high_bytes.w);
  var sum = measure.x * dot(weights.d, vec2f(f32(low), f32(high)));
  if (HAS_MIN) {
    sum += dot(weights.m, measure.yz);
  }
  return sum;
}

fn scale_of(t: u32) -> f32 {
  return 1.0;
}
