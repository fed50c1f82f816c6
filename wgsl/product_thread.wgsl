// product_thread.wgsl: y = W x, a thread to a pair of rows, TOKENS items a workgroup along y: no subgroups, no barriers
//            as product_rows.wgsl with one lane and one pair, but without the loops over them: they take a software
//            adapter twice the time (measured, SwiftShader)
// constants  TOKENS, WORKGROUP
// provides   main, for an operation's n_items, finish and conclude; with activations_direct.wgsl
// dispatch   (ROWS / 2, items / TOKENS)

const BLOCKS = COLUMNS / 32u;
const N_PAIRS = (ROWS + 1u) / 2u;  // the last row of an odd number is its own neighbour
const LANES = 1u;
const PAIRS = 1u;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(local_invocation_index) thread: u32, @builtin(workgroup_id) group: vec3u) {
  let pair = group.x * WORKGROUP + thread;
  let first_item = group.y * TOKENS;
  if (pair < N_PAIRS) {
    let even_row = 2u * pair * BLOCKS;
    let odd_row = min(2u * pair + 1u, ROWS - 1u) * BLOCKS;
    if (TOKENS == 1u) {
      var sum = vec2f();
      for (var block = 0u; block < BLOCKS; block++) {
        let even = product(weights_at(even_row + block), first_item, 0u, block);
        sum += vec2f(even, product(weights_at(odd_row + block), first_item, 0u, block));
      }
      finish(FIRST_ROW / 2u + pair, first_item, sum);
    } else {
      var sums: array<vec2f, TOKENS>;
      for (var block = 0u; block < BLOCKS; block++) {
        let even = weights_at(even_row + block);
        let odd = weights_at(odd_row + block);
        for (var t = 0u; t < TOKENS; t++) {
          sums[t] += vec2f(product(even, first_item, t, block), product(odd, first_item, t, block));
        }
      }
      for (var t = 0u; t < TOKENS && first_item + t < n_items(); t++) {
        finish(FIRST_ROW / 2u + pair, first_item + t, sums[t]);
      }
    }
  }
  conclude(thread, group);
}
