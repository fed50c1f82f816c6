// activations_direct.wgsl: f32 arithmetic, activations read where they lie
// layout     of the source, which must not be normed
// provides   prepare(thread, first_item); weights_at(block); product(weights, first_item, t, block) -> the dot product
//            of a block of weights with the same columns of item first_item + t

alias Weights = array<vec4f, 8>;

fn prepare(thread: u32, first_item: u32) {}

fn weights_at(block: u32) -> Weights {
  return dequantise(block);
}

// Unrolled, because an indexed private array costs a software adapter twice the time (measured, SwiftShader).
fn product(weights: Weights, first_item: u32, t: u32, block: u32) -> f32 {
  let at = 8u * block;
  let item = first_item + t;
  var sum = weights[0] * value_at(item, at);
  sum += weights[1] * value_at(item, at + 1u);
  sum += weights[2] * value_at(item, at + 2u);
  sum += weights[3] * value_at(item, at + 3u);
  sum += weights[4] * value_at(item, at + 4u);
  sum += weights[5] * value_at(item, at + 5u);
  sum += weights[6] * value_at(item, at + 6u);
  sum += weights[7] * value_at(item, at + 7u);
  return sum.x + sum.y + sum.z + sum.w;
}
