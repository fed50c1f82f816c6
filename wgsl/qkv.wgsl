// qkv.wgsl: q, k, v = W h; RoPE turns q and k; k and v go to the KV pages
//            RoPE: Su et al. 2021, eq. 34, pairs (2i, 2i + 1) as GGUF stores them; cosines and sines come from a table
//            (WGSL promises no accuracy for the large angles of late positions).
// shapes     W ((N_HEADS + 2 N_KV_HEADS) HEAD_DIM, HIDDEN) rows q, k, v in a weight format; h (T, HIDDEN) f32;
//            rope (context, HEAD_DIM / 2) of (cos, sin); q (T, N_HEADS HEAD_DIM) f32;
//            kv pages of [k | v] (16, N_KV_HEADS HEAD_DIM) f16 pairs; table u32 page of each 16 positions
// bindings   0 quants read | 1 scales read | 2 h read | 3 rope read | 4 table read | 5 q read_write | 6 kv read_write
// overrides  HIDDEN, N_HEADS, N_KV_HEADS, HEAD_DIM, TOKENS
// dispatch   ((N_HEADS + 2 N_KV_HEADS) HEAD_DIM / 2, T / TOKENS): one thread two rows, TOKENS <= 8 tokens
// needs      a weight format
// reference  tests/support/kernel_reference.py: qkv; nmse 1e-6 (k and v are rounded to f16)

override HIDDEN: u32;
override N_HEADS: u32;
override N_KV_HEADS: u32;
override HEAD_DIM: u32;
override TOKENS: u32;

const PAGE = 16u;

struct Step {
  position: u32,
  n_tokens: u32,
  table_offset: u32,
  top_k: u32,
  seed_low: u32,
  seed_high: u32,
  temperature: f32,
  top_p: f32,
  min_p: f32,
}
@group(1) @binding(0) var<uniform> step: Step;
@group(0) @binding(0) var<storage, read> quants: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> scales: array<u32>;
@group(0) @binding(2) var<storage, read> h: array<vec4f>;
@group(0) @binding(3) var<storage, read> rope: array<vec2f>;
@group(0) @binding(4) var<storage, read> table: array<u32>;
@group(0) @binding(5) var<storage, read_write> q: array<vec2f>;
@group(0) @binding(6) var<storage, read_write> kv: array<u32>;

fn kv_index(position: u32, half: u32, pair: u32) -> u32 {
  let page = table[step.table_offset + position / PAGE];
  return ((page * 2u + half) * PAGE + position % PAGE) * (N_KV_HEADS * HEAD_DIM / 2u) + pair;
}

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
fn main(@builtin(global_invocation_id) id: vec3u) {
  let q_pairs = N_HEADS * HEAD_DIM / 2u;
  let kv_pairs = N_KV_HEADS * HEAD_DIM / 2u;
  let pair = id.x;
  let first_token = id.y * TOKENS;
  if (pair >= q_pairs + 2u * kv_pairs || first_token >= step.n_tokens) {
    return;
  }
  let blocks_per_row = HIDDEN / 32u;
  var sums: array<vec2f, 8>;
  for (var block = 0u; block < blocks_per_row; block++) {
    let even = dequantise(2u * pair * blocks_per_row + block);
    let odd = dequantise((2u * pair + 1u) * blocks_per_row + block);
    for (var t = 0u; t < TOKENS; t++) {
      let at = ((first_token + t) * blocks_per_row + block) * 8u;
      sums[t] += vec2f(block_dot(even, at), block_dot(odd, at));
    }
  }
  for (var t = 0u; t < TOKENS; t++) {
    let token = first_token + t;
    if (token >= step.n_tokens) {
      return;
    }
    let position = step.position + token;
    let y = sums[t];
    let turn = rope[position * (HEAD_DIM / 2u) + pair % (HEAD_DIM / 2u)];
    let turned = vec2f(y.x * turn.x - y.y * turn.y, y.x * turn.y + y.y * turn.x);
    if (pair < q_pairs) {
      q[token * q_pairs + pair] = turned;
    } else if (pair < q_pairs + kv_pairs) {
      kv[kv_index(position, 0u, pair - q_pairs)] = pack2x16float(turned);
    } else {
      kv[kv_index(position, 1u, pair - q_pairs - kv_pairs)] = pack2x16float(y);
    }
  }
}
