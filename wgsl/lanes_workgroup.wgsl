// lanes_workgroup.wgsl: the lanes of a group meet in workgroup memory, for GPUs without subgroups
// layout     LANES a power of two, at most WORKGROUP
// provides   lanes_sum(thread, mine) -> the sum over the lanes of a group, in every lane
// needs      workgroup memory WORKGROUP * 8 B; uniform control flow

var<workgroup> lanes: array<vec2f, WORKGROUP>;

fn lanes_sum(thread: u32, mine: vec2f) -> vec2f {
  workgroupBarrier();
  lanes[thread] = mine;
  for (var width = LANES / 2u; width > 0u; width /= 2u) {
    workgroupBarrier();
    if (thread % LANES < width) {
      lanes[thread] += lanes[thread + width];
    }
  }
  workgroupBarrier();
  return lanes[thread - thread % LANES];
}
