// source_splits.wgsl: the splits of an attention put together on the way into the output projection
//            (Dao et al. 2023, Flash-Decoding): a dispatch and its wait are saved
// layout     x: the pieces of attention_split.wgsl
// constants  HEAD_DIM, SPLITS
// provides   value_at(item, i) -> columns 4 i .. 4 i + 3 of an item; gained(i, value) -> as the weights see it;
//            keep_squares(thread, t, sum); scale_of(t) -> a factor of the sums of item t of a workgroup

const PAGE = 16u;

@group(0) @binding(2) var<storage, read> x: array<vec4f>;

fn value_at(item: u32, i: u32) -> vec4f {
  const VECTORS = HEAD_DIM / 4u;
  let pages = (position_of(item) + PAGE) / PAGE;
  let pages_per_split = (pages + SPLITS - 1u) / SPLITS;
  let splits = (pages + pages_per_split - 1u) / pages_per_split;
  let first = (item * (COLUMNS / HEAD_DIM) + i / VECTORS) * SPLITS;
  var largest = -3.0e38;
  for (var s = 0u; s < splits; s++) {
    largest = max(largest, x[(first + s) * (VECTORS + 1u) + VECTORS].x);
  }
  var sum = vec4f();
  var norm = 0.0;
  for (var s = 0u; s < splits; s++) {
    let piece = (first + s) * (VECTORS + 1u);
    let of_split = x[piece + VECTORS];
    let weight = exp(max(of_split.x - largest, -80.0));
    norm += weight * of_split.y;
    sum += weight * x[piece + i % VECTORS];
  }
  return sum / norm;
}

fn gained(i: u32, value: vec4f) -> vec4f {
  return value;
}

fn keep_squares(thread: u32, t: u32, sum: f32) {}

fn scale_of(t: u32) -> f32 {
  return 1.0;
}
