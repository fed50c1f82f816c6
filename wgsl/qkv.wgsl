// qkv.wgsl: q, k, v = W x + bias, q and k rotated by RoPE (Su et al. 2021, eq. 34), k and v kept in pages
// shapes     W (rows of all heads' q, then k, then v; COLUMNS) in a weight format; x (T, COLUMNS) f32;
//            gain f32: COLUMNS gains, then a bias a row of W; rope (context, HEAD_DIM / 2) of (cos, sin);
//            table u32: pages, from table_offset on; q (T, N_HEADS, HEAD_DIM) f32;
//            kv: (pages, 2, 16, N_KV_HEADS) heads in a KV format, half 0 of a page keys, half 1 values
// bindings   0 quants read | 1 scales read | 2 x read | 3 gain read | 4 rope read | 5 table read | 6 q read_write |
//            7 kv read_write
// constants  ROWS, COLUMNS, FIRST_ROW, N_HEADS, N_KV_HEADS, HEAD_DIM
// dispatch   of the product; neighbouring rows of a head are a pair of RoPE
// needs      a product, a weight format, where to keep
// reference  tests/support/kernel_reference.py: qkv; nmse 1e-10, pages as the KV format rounds

@group(0) @binding(0) var<storage, read> quants: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read> scales: array<u32>;
@group(0) @binding(3) var<storage, read> gain: array<vec4f>;
@group(0) @binding(4) var<storage, read> rope: array<vec2f>;
@group(0) @binding(5) var<storage, read> table: array<u32>;
@group(0) @binding(6) var<storage, read_write> q: array<vec2f>;
@group(0) @binding(7) var<storage, read_write> kv: array<u32>;

fn n_items() -> u32 {
  return step.n_tokens;
}

fn source_of(item: u32) -> u32 {
  return item;
}

fn finish(pair: u32, item: u32, product: vec2f) {
  const PAIRS_OF_HEAD = HEAD_DIM / 2u;
  let biases = gain[(COLUMNS + 2u * pair) / 4u];
  let y = product + select(biases.xy, biases.zw, pair % 2u == 1u);
  let head = pair / PAIRS_OF_HEAD;
  let i = pair % PAIRS_OF_HEAD;
  if (head >= N_HEADS + N_KV_HEADS) {
    keep(item, 1u, head - N_HEADS - N_KV_HEADS, i, y);
    return;
  }
  let turn = rope[position_of(item) * PAIRS_OF_HEAD + i];
  let turned = vec2f(y.x * turn.x - y.y * turn.y, y.x * turn.y + y.y * turn.x);
  if (head < N_HEADS) {
    q[item * N_HEADS * PAIRS_OF_HEAD + pair] = turned;
  } else {
    keep(item, 0u, head - N_HEADS, i, turned);
  }
}

fn conclude(thread: u32, group: vec3u) {}
