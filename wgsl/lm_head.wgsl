// lm_head.wgsl: logits = W x of each sequence's last token, and a candidate of each workgroup
// shapes     W (VOCAB, COLUMNS) in a weight format, of which this is ROWS rows; x (T, COLUMNS) f32; gain (COLUMNS) f32;
//            logits (S, VOCAB) f32; candidates (S, CANDIDATES), of which this writes those from FIRST_CANDIDATE on
// bindings   0 quants read | 1 scales read | 2 x read | 3 gain read | 4 logits read_write | 5 candidates read_write
// constants  ROWS, COLUMNS, FIRST_ROW, VOCAB, CANDIDATES, FIRST_CANDIDATE
// dispatch   of the product, TOKENS = 1; sequences along y
// needs      a product of rows, a weight format, candidates; workgroup memory WORKGROUP * 16 B
// reference  tests/support/kernel_reference.py: lm_head; nmse 1e-10

@group(0) @binding(0) var<storage, read> quants: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> scales: array<u32>;
@group(0) @binding(3) var<storage, read> gain: array<vec4f>;
@group(0) @binding(4) var<storage, read_write> logits: array<f32>;
@group(0) @binding(5) var<storage, read_write> candidates: array<Candidate>;

var<workgroup> of_threads: array<Candidate, WORKGROUP>;
var<private> mine: Candidate = NOTHING;

fn n_items() -> u32 {
  return step.n_tokens / step.tokens_per_sequence;
}

fn source_of(item: u32) -> u32 {
  return (item + 1u) * step.tokens_per_sequence - 1u;
}

fn finish(pair: u32, item: u32, product: vec2f) {
  let first = item * VOCAB + 2u * pair;
  logits[first] = product.x;
  var best = Candidate(product.x, 2u * pair, 1.0, 0.0);
  if (2u * pair + 1u < VOCAB) {
    logits[first + 1u] = product.y;
    best = candidate_of(product, 2u * pair);
  }
  if (PAIRS == 1u) {
    mine = best;
  } else {
    mine = joined(mine, best);
  }
}

fn conclude(thread: u32, group: vec3u) {
  const FINISHING = min(PAIRS, LANES);  // lanes of a group that may have finished pairs
  of_threads[thread] = mine;
  workgroupBarrier();
  if (thread == 0u) {
    var best = NOTHING;
    for (var i = 0u; i < WORKGROUP / LANES * FINISHING; i++) {
      best = joined(best, of_threads[i / FINISHING * LANES + i % FINISHING]);
    }
    candidates[group.y * CANDIDATES + FIRST_CANDIDATE + group.x] = best;
  }
}
