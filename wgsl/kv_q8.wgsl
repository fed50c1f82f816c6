// kv_q8.wgsl: keys and values as signed bytes; value = scale * byte, scale = the head's largest / 127
// layout     a head of a position: HEAD_DIM / 4 words of four bytes, then its scale, f32
// provides   head_words() of a head; encoded(lane, pair) -> word lane % (HEAD_DIM / 2) of the lane's head, for the
//            lanes that have one; scale_at(head), four_at(head, i): values 4 i .. 4 i + 3 of the head at that word,
//            before the scale
// needs      workgroup memory 512 B; `encoded` is called by all 64 lanes, which hold whole heads, two values a lane

var<workgroup> pairs: array<vec2f, 64>;

fn head_words() -> u32 {
  return HEAD_DIM / 4u + 1u;
}

fn encoded(lane: u32, pair: vec2f) -> u32 {
  workgroupBarrier();
  pairs[lane] = pair;
  workgroupBarrier();
  let lanes_of_head = HEAD_DIM / 2u;
  let i = lane % lanes_of_head;
  let first = lane - i;
  var largest = 0.0;
  for (var other = first; other < first + lanes_of_head; other++) {
    let sizes = abs(pairs[other]);
    largest = max(largest, max(sizes.x, sizes.y));
  }
  if (i >= HEAD_DIM / 4u) {
    return bitcast<u32>(largest / 127.0);
  }
  // The lower bound keeps the quotient finite, for a head of zeros too.
  let four = vec4f(pairs[first + 2u * i], pairs[first + 2u * i + 1u]) * (127.0 / max(largest, 1e-30));
  return pack4xI8(vec4<i32>(round(four)));
}

fn scale_at(head: u32) -> f32 {
  return bitcast<f32>(kv[head + HEAD_DIM / 4u]);
}

fn four_at(head: u32, i: u32) -> vec4f {
  return vec4f(unpack4xI8(kv[head + i]));
}
