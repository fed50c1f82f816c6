// attention_merge.wgsl: attended = the splits of attention_{partial,split}.wgsl put together and normalised
//            (Dao et al. 2023, Flash-Decoding)
// shapes     pieces as in attention_partial.wgsl; attended (T, N_HEADS, HEAD_DIM) f32
// bindings   0 pieces read | 1 attended read_write
// constants  N_HEADS, HEAD_DIM, SPLITS, WORKGROUP
// dispatch   (N_HEADS WORKGROUP, T): one workgroup a head; WORKGROUP / (HEAD_DIM / 4) threads share its splits
// needs      workgroup memory WORKGROUP * 24 B
// reference  tests/support/kernel_reference.py: attention_merge; nmse 1e-10

const PAGE = 16u;
const VECTORS = HEAD_DIM / 4u;
const SHARES = WORKGROUP / VECTORS;
const ROUNDS = (SPLITS + SHARES - 1u) / SHARES;

@group(0) @binding(0) var<storage, read> pieces: array<vec4f>;
@group(0) @binding(1) var<storage, read_write> attended: array<vec4f>;

var<workgroup> sums: array<vec4f, WORKGROUP>;
var<workgroup> norms: array<vec2f, SHARES>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(local_invocation_index) thread: u32, @builtin(workgroup_id) group: vec3u) {
  let share = thread / VECTORS;
  let vector = thread % VECTORS;
  let pages = (position_of(group.y) + PAGE) / PAGE;
  let pages_per_split = (pages + SPLITS - 1u) / SPLITS;
  let splits = (pages + pages_per_split - 1u) / pages_per_split;
  let first = (group.y * N_HEADS + group.x) * SPLITS;

  // All is asked for before anything is waited for; a split that is not in use counts nothing.
  var norm_of: array<vec2f, ROUNDS>;
  var sum_of: array<vec4f, ROUNDS>;
  for (var i = 0u; i < ROUNDS; i++) {
    let piece = (first + min(share + i * SHARES, splits - 1u)) * (VECTORS + 1u);
    norm_of[i] = pieces[piece + VECTORS].xy;
    sum_of[i] = pieces[piece + vector];
  }
  var largest = -3.0e38;
  for (var i = 0u; i < ROUNDS; i++) {
    largest = max(largest, norm_of[i].x);
  }
  var norm = 0.0;
  var sum = vec4f();
  for (var i = 0u; i < ROUNDS; i++) {
    let weight = select(0.0, exp(max(norm_of[i].x - largest, -80.0)), share + i * SHARES < splits);
    norm += weight * norm_of[i].y;
    sum += weight * sum_of[i];
  }
  sums[thread] = sum;
  if (vector == 0u) {
    norms[share] = vec2f(largest, norm);
  }
  workgroupBarrier();
  if (thread >= VECTORS) {
    return;
  }
  largest = -3.0e38;
  for (var s = 0u; s < SHARES; s++) {
    largest = max(largest, norms[s].x);
  }
  norm = 0.0;
  sum = vec4f();
  for (var s = 0u; s < SHARES; s++) {
    let weight = exp(max(norms[s].x - largest, -80.0));
    norm += weight * norms[s].y;
    sum += weight * sums[s * VECTORS + thread];
  }
  attended[(group.y * N_HEADS + group.x) * VECTORS + thread] = sum / norm;
}
