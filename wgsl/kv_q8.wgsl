// kv_q8.wgsl: keys and values as signed bytes; value = scale * byte, scale = the head's largest / 127
// layout     a head of a position: HEAD_DIM / 4 words of four bytes, then its scale, f32
// provides   head_words() of a head; scale_at(head); eight_at(head, i): values 8 i .. 8 i + 7 of the head
//            that begins at word `head`, before the scale

fn head_words() -> u32 {
  return HEAD_DIM / 4u + 1u;
}

fn word_at(i: u32) -> u32 {
  return kv[i / 4u][i % 4u];
}

fn scale_at(head: u32) -> f32 {
  return bitcast<f32>(word_at(head + HEAD_DIM / 4u));
}

fn eight_at(head: u32, i: u32) -> array<vec4f, 2> {
  let at = head + 2u * i;
  return array<vec4f, 2>(vec4f(unpack4xI8(word_at(at))), vec4f(unpack4xI8(word_at(at + 1u))));
}
