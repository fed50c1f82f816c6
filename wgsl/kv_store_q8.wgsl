// kv_store_q8.wgsl: new keys and values -> their pages, as kv_q8.wgsl lays them out
// shapes     fresh (T, 2, N_KV_HEADS, HEAD_DIM) f32, as keep_f32.wgsl leaves it; table and kv as in qkv.wgsl
// bindings   0 fresh read | 1 table read | 2 kv read_write
// constants  N_KV_HEADS, HEAD_DIM
// dispatch   (2 N_KV_HEADS, T): one thread a head
// needs      no features
// reference  tests/support/kernel_reference.py: kv_store_q8; bytes within one, scales within 1e-6

@group(0) @binding(0) var<storage, read> fresh: array<vec4f>;
@group(0) @binding(1) var<storage, read> table: array<u32>;
@group(0) @binding(2) var<storage, read_write> kv: array<u32>;

const PAGE = 16u;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x >= 2u * N_KV_HEADS || id.y >= step.n_tokens) {
    return;
  }
  let source = (id.y * 2u * N_KV_HEADS + id.x) * (HEAD_DIM / 4u);
  var sizes = vec4f();
  for (var i = 0u; i < HEAD_DIM / 4u; i++) {
    sizes = max(sizes, abs(fresh[source + i]));
  }
  let largest = max(max(sizes.x, sizes.y), max(sizes.z, sizes.w));
  let position = position_of(id.y);
  let page = table[step.sequences[sequence_of(id.y)].table_offset + position / PAGE];
  let row = (page * 2u + id.x / N_KV_HEADS) * PAGE + position % PAGE;
  let to = (row * N_KV_HEADS + id.x % N_KV_HEADS) * (HEAD_DIM / 4u + 1u);
  for (var i = 0u; i < HEAD_DIM / 4u; i++) {
    // The lower bound keeps the quotient finite, for a head of zeros too.
    kv[to + i] = pack4xI8(vec4<i32>(round(fresh[source + i] * (127.0 / max(largest, 1e-30)))));
  }
  kv[to + HEAD_DIM / 4u] = bitcast<u32>(largest / 127.0);
}
