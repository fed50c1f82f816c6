// attention_partial.wgsl: softmax(q k / sqrt(d)) v of one head over one split of the context, not yet normalised
//            (Milakov & Gimelshein 2018, online softmax; Dao et al. 2023, Flash-Decoding)
// shapes     q (T, N_HEADS, HEAD_DIM) f32; kv, table as in qkv.wgsl; sums (T, N_HEADS, SPLITS, HEAD_DIM) f32;
//            norms (T, N_HEADS, SPLITS) of (largest score, sum of exp(score - largest))
// bindings   0 q read | 1 kv read | 2 table read | 3 sums read_write | 4 norms read_write
// overrides  N_HEADS, N_KV_HEADS, HEAD_DIM, SPLITS
// dispatch   (N_HEADS SPLITS, T): one thread a split; splits are whole pages, unused splits return at once
// needs      a KV format
// reference  tests/support/kernel_reference.py: attention_partial; nmse 1e-6

override N_HEADS: u32;
override N_KV_HEADS: u32;
override HEAD_DIM: u32;
override SPLITS: u32;

const PAGE = 16u;

@group(0) @binding(0) var<storage, read> q: array<vec4f>;
@group(0) @binding(1) var<storage, read> kv: array<u32>;
@group(0) @binding(2) var<storage, read> table: array<u32>;
@group(0) @binding(3) var<storage, read_write> sums: array<vec4f>;
@group(0) @binding(4) var<storage, read_write> norms: array<vec2f>;

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
  let out = (token * N_HEADS + head) * SPLITS + split;
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
      for (var i = 0u; i < vectors; i++) {
        score += dot(q[q_at + i], four_at(keys + j * row, i));
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
    for (var i = 0u; i < vectors; i++) {
      var sum = vec4f();
      if (p > first_page) {
        sum = sums[out * vectors + i] * keep;
      }
      for (var j = 0u; j < filled; j++) {
        sum += weights[j] * four_at(values + j * row, i);
      }
      sums[out * vectors + i] = sum;
    }
    largest = new_largest;
  }
  norms[out] = vec2f(largest, norm);
}
