// keep_f32.wgsl: where a new key or value goes: beside the cache in full precision, for a kernel that needs whole heads
// layout     kv (items, 2, N_KV_HEADS, HEAD_DIM) f32
// provides   keep(item, half, head, i, y): values 2 i and 2 i + 1 of a KV head; half 0 = keys, 1 = values

fn keep(item: u32, half: u32, head: u32, i: u32, y: vec2f) {
  let at = ((item * 2u + half) * N_KV_HEADS + head) * HEAD_DIM + 2u * i;
  kv[at] = bitcast<u32>(y.x);
  kv[at + 1u] = bitcast<u32>(y.y);
}
