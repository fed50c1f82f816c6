// activations_staged.wgsl: f32 arithmetic, activations brought into workgroup memory once for all rows of a workgroup
// layout     staged: vec4 i of block b at (8 t + i) BLOCKS + b, so that neighbouring lanes read neighbouring words
// provides   prepare(thread, first_item); weights_at(block); product(weights, first_item, t, block) -> the dot product
//            of a block of weights with the same columns of item first_item + t
// needs      workgroup memory TOKENS * COLUMNS * 4 B

alias Weights = array<vec4f, 8>;

var<workgroup> staged: array<vec4f, TOKENS * COLUMNS / 4u>;

fn prepare(thread: u32, first_item: u32) {
  for (var t = 0u; t < TOKENS; t++) {
    var sum = 0.0;
    for (var i = thread; i < COLUMNS / 4u; i += WORKGROUP) {
      let value = value_at(first_item + t, i);
      sum += dot(value, value);
      staged[(8u * t + i % 8u) * BLOCKS + i / 8u] = gained(i, value);
    }
    keep_squares(thread, t, sum);
  }
  workgroupBarrier();
}

fn weights_at(block: u32) -> Weights {
  return dequantise(block);
}

fn product(weights: Weights, first_item: u32, t: u32, block: u32) -> f32 {
  let at = 8u * t * BLOCKS + block;
  var sum = weights[0] * staged[at];
  sum += weights[1] * staged[at + BLOCKS];
  sum += weights[2] * staged[at + 2u * BLOCKS];
  sum += weights[3] * staged[at + 3u * BLOCKS];
  sum += weights[4] * staged[at + 4u * BLOCKS];
  sum += weights[5] * staged[at + 5u * BLOCKS];
  sum += weights[6] * staged[at + 6u * BLOCKS];
  sum += weights[7] * staged[at + 7u * BLOCKS];
  return sum.x + sum.y + sum.z + sum.w;
}
