// put_f32.wgsl: values as they are
// layout     y (T, WIDTH) f32
// provides   put(item, index, value); flush(thread, group), by all invocations of a workgroup at their end

@group(0) @binding(4) var<storage, read_write> y: array<f32>;

fn put(item: u32, index: u32, value: f32) {
  y[item * WIDTH + index] = value;
}

fn flush(thread: u32, group: vec3u) {}
