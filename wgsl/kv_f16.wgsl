// kv_f16.wgsl: keys and values in half precision
// layout     a head of a position: HEAD_DIM / 2 words, each a pair of f16
// provides   head_words() of a head; scale_at(head); eight_at(head, i): values 8 i .. 8 i + 7 of the head
//            that begins at word `head`, before the scale

fn head_words() -> u32 {
  return HEAD_DIM / 2u;
}

fn scale_at(head: u32) -> f32 {
  return 1.0;
}

fn eight_at(head: u32, i: u32) -> array<vec4f, 2> {
  let words = kv[head / 4u + i];
  return array<vec4f, 2>(
    vec4f(unpack2x16float(words.x), unpack2x16float(words.y)),
    vec4f(unpack2x16float(words.z), unpack2x16float(words.w)),
  );
}
