// kv_f16.wgsl: keys and values in half precision
// layout     a head of a position: HEAD_DIM / 2 words, each a pair of f16
// provides   head_words() of a head; encoded(lane, pair) -> word lane % (HEAD_DIM / 2) of the lane's head;
//            scale_at(head), four_at(head, i): values 4 i .. 4 i + 3 of the head at that word, times its scale
// needs      no features

fn head_words() -> u32 {
  return HEAD_DIM / 2u;
}

fn encoded(lane: u32, pair: vec2f) -> u32 {
  return pack2x16float(pair);
}

fn scale_at(head: u32) -> f32 {
  return 1.0;
}

fn four_at(head: u32, i: u32) -> vec4f {
  return vec4f(unpack2x16float(kv[head + 2u * i]), unpack2x16float(kv[head + 2u * i + 1u]));
}
