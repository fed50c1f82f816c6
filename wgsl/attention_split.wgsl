// attention_split.wgsl: as attention_partial.wgsl, by subgroups: a workgroup takes a head through one split
//            (Dao et al. 2023, Flash-Decoding). The heads of a group share keys and values in the cache; a workgroup
//            for all of them took 1.5 to 2.6 times as long (measured, H200; docs/performance.md)
// shapes     q (T, N_HEADS, HEAD_DIM) f32; kv, table as in qkv.wgsl; pieces as in attention_partial.wgsl
// bindings   0 q read | 1 kv read | 2 table read | 3 pieces read_write
// constants  N_HEADS, N_KV_HEADS, HEAD_DIM, SPLITS, LANES, WORKGROUP
// dispatch   (N_HEADS * SPLITS * WORKGROUP, T); HEAD_DIM / 8 lanes share a key, so HEAD_DIM / 8 <= LANES <= the
//            adapter's smallest subgroup
// needs      a KV format; subgroups; workgroup memory WORKGROUP / LANES * (4 HEAD_DIM + 8) B
// reference  tests/support/kernel_reference.py: attention_split; nmse 1e-6

const PAGE = 16u;
const VECTORS = HEAD_DIM / 4u;
const LANES_OF_KEY = HEAD_DIM / 8u;
const KEYS = WORKGROUP / LANES_OF_KEY;  // keys a round
const SUBGROUPS = WORKGROUP / LANES;

@group(0) @binding(0) var<storage, read> q: array<vec4f>;
@group(0) @binding(1) var<storage, read> kv: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> table: array<u32>;
@group(0) @binding(3) var<storage, read_write> pieces: array<vec4f>;

var<workgroup> sums: array<vec4f, SUBGROUPS * VECTORS>;
var<workgroup> norms: array<vec2f, SUBGROUPS>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(local_invocation_index) thread: u32, @builtin(workgroup_id) group: vec3u) {
  let token = group.y;
  let split = group.x % SPLITS;
  let head = group.x / SPLITS;
  let length = position_of(token) + 1u;
  let pages = (length + PAGE - 1u) / PAGE;
  let pages_per_split = (pages + SPLITS - 1u) / SPLITS;
  let start = split * pages_per_split * PAGE;
  if (start >= length) {
    return;
  }
  let end = min(start + pages_per_split * PAGE, length);
  let lane = thread % LANES_OF_KEY;
  let row = N_KV_HEADS * head_words();
  let of_kv_head = head / (N_HEADS / N_KV_HEADS) * head_words();
  let table_offset = step.sequences[sequence_of(token)].table_offset;
  let scale = inverseSqrt(f32(HEAD_DIM));
  let q_at = (token * N_HEADS + head) * VECTORS + 2u * lane;
  let q_a = q[q_at] * scale;
  let q_b = q[q_at + 1u] * scale;

  // Of the keys that this thread has a lane of: the largest score, the sum of exp(score - largest), eight values.
  var largest = -3.0e38;
  var norm = 0.0;
  var a = vec4f();
  var b = vec4f();
  for (var first = start; first < end; first += KEYS) {
    // Lanes behind the end repeat the last key, with no weight: all exchange scores.
    let key = first + thread / LANES_OF_KEY;
    let at = min(key, end - 1u);
    let keys = (table[table_offset + at / PAGE] * 2u * PAGE + at % PAGE) * row + of_kv_head;
    let values = keys + PAGE * row;
    let k = eight_at(keys, lane);
    let v = eight_at(values, lane);
    var score = dot(q_a, k[0]) + dot(q_b, k[1]);
    for (var mask = LANES_OF_KEY / 2u; mask > 0u; mask /= 2u) {
      score += subgroupShuffleXor(score, mask);
    }
    score *= scale_at(keys);
    let new_largest = max(largest, select(-3.0e38, score, key < end));
    let keep = exp(max(largest - new_largest, -80.0));
    let weight = select(0.0, exp(max(score - new_largest, -80.0)), key < end);
    largest = new_largest;
    norm = norm * keep + weight;
    a = a * keep + weight * scale_at(values) * v[0];
    b = b * keep + weight * scale_at(values) * v[1];
  }
  // The keys of a subgroup, then those of all subgroups, come together.
  for (var mask = LANES_OF_KEY; mask < LANES; mask *= 2u) {
    let new_largest = max(largest, subgroupShuffleXor(largest, mask));
    let keep = exp(max(largest - new_largest, -80.0));
    largest = new_largest;
    norm *= keep;
    a *= keep;
    b *= keep;
    norm += subgroupShuffleXor(norm, mask);
    a += subgroupShuffleXor(a, mask);
    b += subgroupShuffleXor(b, mask);
  }
  if (thread % LANES < LANES_OF_KEY) {
    let at = thread / LANES;
    sums[at * VECTORS + 2u * lane] = a;
    sums[at * VECTORS + 2u * lane + 1u] = b;
    norms[at] = vec2f(largest, norm);
  }
  workgroupBarrier();
  if (thread > VECTORS) {
    return;
  }
  largest = -3.0e38;
  for (var s = 0u; s < SUBGROUPS; s++) {
    largest = max(largest, norms[s].x);
  }
  norm = 0.0;
  var sum = vec4f();
  for (var s = 0u; s < SUBGROUPS; s++) {
    let weight = exp(max(norms[s].x - largest, -80.0));
    norm += weight * norms[s].y;
    sum += weight * sums[s * VECTORS + min(thread, VECTORS - 1u)];
  }
  let out = ((token * N_HEADS + head) * SPLITS + split) * (VECTORS + 1u);
  pieces[out + thread] = select(sum, vec4f(largest, norm, 0.0, 0.0), thread == VECTORS);
}
