// qkv.wgsl: q, k, v = W h; RoPE turns q and k; k and v go to the KV pages
//            RoPE: Su et al. 2021, eq. 34, pairs (2i, 2i + 1) as GGUF stores them; cosines and sines come from a table
//            (WGSL promises no accuracy for the large angles of late positions).
// shapes     W ((N_HEADS + 2 N_KV_HEADS) HEAD_DIM, HIDDEN) rows q, k, v in a weight format; h (T, HIDDEN) f32;
//            rope (context, HEAD_DIM / 2) of (cos, sin); q (T, N_HEADS HEAD_DIM) f32;
//            kv pages of [k | v] (16, N_KV_HEADS) heads in a KV format;
//            table u32 from table_offset on: the page of each 16 positions of a sequence
// bindings   0 quants read | 1 scales read | 2 h read | 3 rope read | 4 table read | 5 q read_write | 6 kv read_write
// overrides  HIDDEN, N_HEADS, N_KV_HEADS, HEAD_DIM, TOKENS
// dispatch   ((N_HEADS + 2 N_KV_HEADS) HEAD_DIM / 2, T / TOKENS): one thread two rows, TOKENS <= 8 tokens
// needs      a weight format; a KV format
// reference  tests/support/kernel_reference.py: qkv; nmse 1e-6 (k and v are rounded)

override HIDDEN: u32;
override N_HEADS: u32;
override N_KV_HEADS: u32;
override HEAD_DIM: u32;
override TOKENS: u32;

const PAGE = 16u;

@group(0) @binding(0) var<storage, read> quants: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> scales: array<u32>;
@group(0) @binding(2) var<storage, read> h: array<vec4f>;
@group(0) @binding(3) var<storage, read> rope: array<vec2f>;
@group(0) @binding(4) var<storage, read> table: array<u32>;
@group(0) @binding(5) var<storage, read_write> q: array<vec2f>;
@group(0) @binding(6) var<storage, read_write> kv: array<u32>;

// The dot product of a block with the 32 activations from vec4 `at` on; unrolled, because an indexed private array
// costs a software adapter twice the time (measured, SwiftShader).
fn block_dot(weights: array<vec4f, 8>, at: u32) -> f32 {
  var sum = weights[0] * h[at];
  sum += weights[1] * h[at + 1u];
  sum += weights[2] * h[at + 2u];
  sum += weights[3] * h[at + 3u];
  sum += weights[4] * h[at + 4u];
  sum += weights[5] * h[at + 5u];
  sum += weights[6] * h[at + 6u];
  sum += weights[7] * h[at + 7u];
  return sum.x + sum.y + sum.z + sum.w;
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
  let pairs_of_head = HEAD_DIM / 2u;
  let pair = group.x * 64u + lane;
  let head = pair / pairs_of_head;  // of q, then of k, then of v
  let n_heads = N_HEADS + 2u * N_KV_HEADS;
  let first_token = group.y * TOKENS;
  let blocks_per_row = HIDDEN / 32u;
  var sums: array<vec2f, 8>;
  if (head < n_heads) {
    for (var block = 0u; block < blocks_per_row; block++) {
      let even = dequantise(2u * pair * blocks_per_row + block);
      let odd = dequantise((2u * pair + 1u) * blocks_per_row + block);
      for (var t = 0u; t < TOKENS; t++) {
        let at = ((first_token + t) * blocks_per_row + block) * 8u;
        sums[t] += vec2f(block_dot(even, at), block_dot(odd, at));
      }
    }
  }
  // All lanes stay together until the end: a KV format may exchange values between them.
  for (var t = 0u; t < TOKENS && first_token + t < step.n_tokens; t++) {
    let token = first_token + t;
    let position = position_of(token);
    let y = sums[t];
    let turn = rope[position * pairs_of_head + pair % pairs_of_head];
    let turned = vec2f(y.x * turn.x - y.y * turn.y, y.x * turn.y + y.y * turn.x);
    let word = encoded(lane, select(turned, y, head >= N_HEADS + N_KV_HEADS));
    if (head < N_HEADS) {
      q[token * N_HEADS * pairs_of_head + pair] = turned;
    } else if (head < n_heads && pair % pairs_of_head < head_words()) {
      let page = table[step.sequences[sequence_of(token)].table_offset + position / PAGE];
      let half = (head - N_HEADS) / N_KV_HEADS;
      let row = (page * 2u + half) * PAGE + position % PAGE;
      kv[(row * N_KV_HEADS + (head - N_HEADS) % N_KV_HEADS) * head_words() + pair % pairs_of_head] = word;
    }
  }
}
