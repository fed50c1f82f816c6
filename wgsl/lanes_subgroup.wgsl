// lanes_subgroup.wgsl: the lanes of a group are neighbours in a subgroup
// layout     LANES a power of two, at most the adapter's smallest subgroup size
// provides   lanes_sum(thread, mine) -> the sum over the lanes of a group, in every lane
// needs      subgroups; uniform control flow

fn lanes_sum(thread: u32, mine: vec2f) -> vec2f {
  var sum = mine;
  for (var mask = LANES / 2u; mask > 0u; mask /= 2u) {
    sum += subgroupShuffleXor(sum, mask);
  }
  return sum;
}
