// keep_f16.wgsl: where a new key or value goes: into its page, in half precision
// layout     kv as kv_f16.wgsl says
// provides   keep(item, half, head, i, y): values 2 i and 2 i + 1 of a KV head; half 0 = keys, 1 = values

fn keep(item: u32, half: u32, head: u32, i: u32, y: vec2f) {
  const PAGE = 16u;
  let position = position_of(item);
  let page = table[step.sequences[sequence_of(item)].table_offset + position / PAGE];
  let row = (page * 2u + half) * PAGE + position % PAGE;
  kv[(row * N_KV_HEADS + head) * (HEAD_DIM / 2u) + i] = pack2x16float(y);
}
