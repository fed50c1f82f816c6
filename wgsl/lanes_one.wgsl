// lanes_one.wgsl: a lane works alone
// layout     LANES = 1
// provides   lanes_sum(thread, mine) -> the sum over the lanes of a group, in every lane

fn lanes_sum(thread: u32, mine: vec2f) -> vec2f {
  return mine;
}
