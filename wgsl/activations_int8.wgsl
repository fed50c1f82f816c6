// activations_int8.wgsl: integer arithmetic; activations become signed bytes in workgroup memory, one step a block
//            (the idea of ggml's q8_1 and of DP4A kernels); four neighbouring lanes quantise a block together
// layout     bytes: word w of block b at (8 t + w) BLOCKS + b; measures: (step, its product with the sum of
//            the bytes 0..15, of 16..31)
// provides   prepare(thread, first_item); weights_at(block); product(weights, first_item, t, block) -> the dot product
//            of a block of weights with the same columns of item first_item + t
// needs      subgroups; a format with block_at; workgroup memory TOKENS * COLUMNS * 3 / 2 B

alias Weights = Block;

var<workgroup> bytes: array<u32, TOKENS * COLUMNS / 4u>;
var<workgroup> measures: array<vec3f, TOKENS * COLUMNS / 32u>;

fn prepare(thread: u32, first_item: u32) {
  for (var t = 0u; t < TOKENS; t++) {
    var sum = 0.0;
    // All lanes go through all rounds: they exchange values.
    for (var first = 0u; first < 4u * BLOCKS; first += WORKGROUP) {
      let is_inside = first + thread < 4u * BLOCKS;
      let at = min(first + thread, 4u * BLOCKS - 1u);
      let block = at / 4u;
      let j = at % 4u;
      var low = value_at(first_item + t, 8u * block + j);
      var high = value_at(first_item + t, 8u * block + 4u + j);
      sum += select(0.0, dot(low, low) + dot(high, high), is_inside);
      low = gained(8u * block + j, low);
      high = gained(8u * block + 4u + j, high);
      let sizes = max(abs(low), abs(high));
      var largest = max(max(sizes.x, sizes.y), max(sizes.z, sizes.w));
      largest = max(largest, subgroupShuffleXor(largest, 1u));
      largest = max(largest, subgroupShuffleXor(largest, 2u));
      // The lower bound keeps the quotient finite, for a block of zeros too.
      let inverse = 127.0 / max(largest, 1e-30);
      let low_bytes = vec4<i32>(round(low * inverse));
      let high_bytes = vec4<i32>(round(high * inverse));
      var totals = vec2<i32>(dot(low_bytes, vec4<i32>(1)), dot(high_bytes, vec4<i32>(1)));
      totals += subgroupShuffleXor(totals, 1u);
      totals += subgroupShuffleXor(totals, 2u);
      if (is_inside) {
        bytes[(8u * t + j) * BLOCKS + block] = pack4xI8(low_bytes);
        bytes[(8u * t + 4u + j) * BLOCKS + block] = pack4xI8(high_bytes);
        if (j == 0u) {
          let step_size = 1.0 / inverse;
          measures[t * BLOCKS + block] = vec3f(step_size, step_size * vec2f(totals));
        }
      }
    }
    keep_squares(thread, t, sum);
  }
  workgroupBarrier();
}

fn weights_at(block: u32) -> Weights {
  return block_at(block);
}

fn product(weights: Weights, first_item: u32, t: u32, block: u32) -> f32 {
  let at = 8u * t * BLOCKS + block;
  var low = dot4I8Packed(weights.low.x, bytes[at]);
  low += dot4I8Packed(weights.low.y, bytes[at + BLOCKS]);
  low += dot4I8Packed(weights.low.z, bytes[at + 2u * BLOCKS]);
  low += dot4I8Packed(weights.low.w, bytes[at + 3u * BLOCKS]);
  var high = dot4I8Packed(weights.high.x, bytes[at + 4u * BLOCKS]);
  high += dot4I8Packed(weights.high.y, bytes[at + 5u * BLOCKS]);
  high += dot4I8Packed(weights.high.z, bytes[at + 6u * BLOCKS]);
  high += dot4I8Packed(weights.high.w, bytes[at + 7u * BLOCKS]);
  let measure = measures[t * BLOCKS + block];
  var sum = measure.x * dot(weights.d, vec2f(f32(low), f32(high)));
  if (HAS_MIN) {
    sum += dot(weights.m, measure.yz);
  }
  return sum;
}
