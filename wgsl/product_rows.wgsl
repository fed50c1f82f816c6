// product_rows.wgsl: y = W x, LANES lanes to PAIRS pairs of rows, TOKENS items a workgroup along y (GEMV)
//            a lane takes every LANES-th block of 32 columns; the lanes' sums meet at the end
// constants  LANES, PAIRS, TOKENS, WORKGROUP
// provides   main, for an operation's n_items, finish and conclude; with activations_*.wgsl and lanes_*.wgsl
// dispatch   (ROWS / 2 / PAIRS * LANES, items / TOKENS)

const BLOCKS = COLUMNS / 32u;
const N_PAIRS = (ROWS + 1u) / 2u;  // the last row of an odd number is its own neighbour

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(local_invocation_index) thread: u32, @builtin(workgroup_id) group: vec3u) {
  let lane = thread % LANES;
  let first_pair = (group.x * (WORKGROUP / LANES) + thread / LANES) * PAIRS;
  let first_item = group.y * TOKENS;
  prepare(thread, first_item);
  var sums: array<vec2f, PAIRS * TOKENS>;
  for (var block = lane; block < BLOCKS; block += LANES) {
    for (var p = 0u; p < PAIRS; p++) {
      let row = 2u * min(first_pair + p, N_PAIRS - 1u);
      let even = weights_at(row * BLOCKS + block);
      let odd = weights_at(min(row + 1u, ROWS - 1u) * BLOCKS + block);
      for (var t = 0u; t < TOKENS; t++) {
        sums[p * TOKENS + t] += vec2f(product(even, first_item, t, block), product(odd, first_item, t, block));
      }
    }
  }
  for (var i = 0u; i < PAIRS * TOKENS; i++) {
    let pair = first_pair + i / TOKENS;
    let item = first_item + i % TOKENS;
    let y = lanes_sum(thread, sums[i]) * scale_of(i % TOKENS);
    if (lane == i % LANES && pair < N_PAIRS && item < n_items()) {
      finish(FIRST_ROW / 2u + pair, item, y);
    }
  }
  conclude(thread, group);
}
