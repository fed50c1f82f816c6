// attention_merge.wgsl: attended = the splits of attention_partial.wgsl put together and normalised
// shapes     pieces as there; attended (T, N_HEADS, HEAD_DIM) f32
// bindings   0 pieces read | 1 attended read_write
// constants  N_HEADS, HEAD_DIM, SPLITS
// dispatch   (N_HEADS HEAD_DIM / 4, T): one thread four values of a head
// needs      no features
// reference  tests/support/kernel_reference.py: attention_merge; nmse 1e-10

const PAGE = 16u;

@group(0) @binding(0) var<storage, read> pieces: array<vec4f>;
@group(0) @binding(1) var<storage, read_write> attended: array<vec4f>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  let vectors = HEAD_DIM / 4u;
  let head = id.x / vectors;
  let token = id.y;
  if (head >= N_HEADS || token >= step.n_tokens) {
    return;
  }
  let pages = (position_of(token) + PAGE) / PAGE;
  let pages_per_split = (pages + SPLITS - 1u) / SPLITS;
  let splits = (pages + pages_per_split - 1u) / pages_per_split;
  let first = (token * N_HEADS + head) * SPLITS;

  var largest = -3.0e38;
  for (var s = 0u; s < splits; s++) {
    largest = max(largest, pieces[(first + s) * (vectors + 1u) + vectors].x);
  }
  var sum = vec4f();
  var norm = 0.0;
  for (var s = 0u; s < splits; s++) {
    let piece = (first + s) * (vectors + 1u);
    let of_split = pieces[piece + vectors];
    let weight = exp(max(of_split.x - largest, -80.0));
    norm += weight * of_split.y;
    sum += weight * pieces[piece + id.x % vectors];
  }
  attended[token * N_HEADS * vectors + id.x] = sum / norm;
}
