// source_normed.wgsl: RMSNorm of the activations, its scale deferred    (Zhang & Sennrich 2019, eq. 4)
//            W (x g s) = s (W (x g)): the scale s = 1 / sqrt(mean(x^2) + EPS) is applied to the sums
// layout     x (items, COLUMNS) f32; gain (COLUMNS) f32, a binding of the operation
// constants  EPS
// provides   value_at(item, i) -> columns 4 i .. 4 i + 3 of an item; gained(i, value) -> as the weights see it;
//            keep_squares(thread, t, sum); scale_of(t) -> a factor of the sums of item t of a workgroup
// needs      workgroup memory TOKENS * WORKGROUP / LANES * 4 B

@group(0) @binding(2) var<storage, read> x: array<vec4f>;

var<workgroup> squares: array<f32, TOKENS * WORKGROUP / LANES>;

fn value_at(item: u32, i: u32) -> vec4f {
  return x[source_of(item) * (COLUMNS / 4u) + i];
}

fn gained(i: u32, value: vec4f) -> vec4f {
  return value * gain[i];
}

// In uniform control flow, before the barrier that ends `prepare`.
fn keep_squares(thread: u32, t: u32, sum: f32) {
  let of_group = lanes_sum(thread, vec2f(sum, 0.0)).x;
  if (thread % LANES == 0u) {
    squares[t * (WORKGROUP / LANES) + thread / LANES] = of_group;
  }
}

fn scale_of(t: u32) -> f32 {
  var sum = 0.0;
  for (var i = 0u; i < WORKGROUP / LANES; i++) {
    sum += squares[t * (WORKGROUP / LANES) + i];
  }
  return inverseSqrt(sum / f32(COLUMNS) + EPS);
}
