// attention_partial.wgsl: softmax(q k / sqrt(d)) v of one head over one split of the context, not yet normalised
//            (Milakov & Gimelshein 2018, online softmax; Dao et al. 2023, Flash-Decoding)
//            for GPUs without subgroups: a thread a split, no barrier
// shapes     q (T, N_HEADS, HEAD_DIM) f32; kv, table as in qkv.wgsl; pieces (T, N_HEADS, SPLITS) of HEAD_DIM sums f32,
//            then (largest score, sum of exp(score - largest), two unused)
// bindings   0 q read | 1 kv read | 2 table read | 3 pieces read_write
// constants  N_HEADS, N_KV_HEADS, HEAD_DIM, SPLITS
// dispatch   (N_HEADS SPLITS, T): one thread a split; splits are whole pages, unused splits return at once
// needs      a KV format
// reference  tests/support/kernel_reference.py: attention_partial; nmse 1e-6

const PAGE = 16u;

@group(0) @binding(0) var<storage, read> q: array<vec4f>;
@group(0) @binding(1) var<storage, read> kv: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> table: array<u32>;
@group(0) @binding(3) var<storage, read_write> pieces: array<vec4f>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  let head = id.x / SPLITS;
  let split = id.x % SPLITS;
  let token = id.y;
  if (head >= N_HEADS || token >= step.n_tokens) {
    return;
  }
  let length = position_of(token) + 1u;
  let pages = (length + PAGE - 1u) / PAGE;
  let pages_per_split = (pages + SPLITS - 1u) / SPLITS;
  let first_page = split * pages_per_split;
  if (first_page >= pages) {
    return;
  }
  let vectors = HEAD_DIM / 4u;
  let row = N_KV_HEADS * head_words();
  let table_offset = step.sequences[sequence_of(token)].table_offset;
  let kv_head = head / (N_HEADS / N_KV_HEADS);
  let q_at = (token * N_HEADS + head) * vectors;
  let out = ((token * N_HEADS + head) * SPLITS + split) * (vectors + 1u);
  let scale = inverseSqrt(f32(HEAD_DIM));

  var largest = -3.0e38;
  var norm = 0.0;
  for (var p = first_page; p < min(first_page + pages_per_split, pages); p++) {
    let keys = table[table_offset + p] * 2u * PAGE * row + kv_head * head_words();
    let values = keys + PAGE * row;
    let filled = min(PAGE, length - p * PAGE);
    var weights: array<f32, 16>;
    var page_largest = -3.0e38;
    for (var j = 0u; j < filled; j++) {
      var score = 0.0;
      for (var i = 0u; i < vectors / 2u; i++) {
        let eight = eight_at(keys + j * row, i);
        score += dot(q[q_at + 2u * i], eight[0]) + dot(q[q_at + 2u * i + 1u], eight[1]);
      }
      score *= scale * scale_at(keys + j * row);
      weights[j] = score;
      page_largest = max(page_largest, score);
    }
    let new_largest = max(largest, page_largest);
    let keep = exp(max(largest - new_largest, -80.0)) * f32(p > first_page);
    norm *= keep;
    for (var j = 0u; j < filled; j++) {
      let weight = exp(max(weights[j] - new_largest, -80.0));
      norm += weight;
      weights[j] = weight * scale_at(values + j * row);
    }
    // The running sum lives in the output itself: no private array of HEAD_DIM values is needed.
    for (var i = 0u; i < vectors; i += 2u) {
      var a = vec4f();
      var b = vec4f();
      if (p > first_page) {
        a = pieces[out + i] * keep;
        b = pieces[out + i + 1u] * keep;
      }
      for (var j = 0u; j < filled; j++) {
        let eight = eight_at(values + j * row, i / 2u);
        a += weights[j] * eight[0];
        b += weights[j] * eight[1];
      }
      pieces[out + i] = a;
      pieces[out + i + 1u] = b;
    }
    largest = new_largest;
  }
  pieces[out + vectors] = vec4f(largest, norm, 0.0, 0.0);
}
