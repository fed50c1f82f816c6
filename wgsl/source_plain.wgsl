// source_plain.wgsl: activations as they are
// layout     x (items, COLUMNS) f32
// provides   value_at(item, i) -> columns 4 i .. 4 i + 3 of an item; gained(i, value) -> as the weights see it;
//            keep_squares(thread, t, sum); scale_of(t) -> a factor of the sums of item t of a workgroup

@group(0) @binding(2) var<storage, read> x: array<vec4f>;

fn value_at(item: u32, i: u32) -> vec4f {
  return x[source_of(item) * (COLUMNS / 4u) + i];
}

fn gained(i: u32, value: vec4f) -> vec4f {
  return value;
}

fn keep_squares(thread: u32, t: u32, sum: f32) {}

fn scale_of(t: u32) -> f32 {
  return 1.0;
}
