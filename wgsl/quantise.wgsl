// quantise.wgsl: x as signed bytes: value = step * byte, step = the largest of 32 / 127      (ggml block_q8_1)
// shapes     x (T, COLUMNS) f32; quantised (T, COLUMNS / 32) of three vec4<u32>: 16 + 16 bytes, then the bits of
//            (step, step * sum of the first 16 bytes, step * sum of the others, 0)
// bindings   0 x read | 1 quantised read_write
// constants  COLUMNS
// dispatch   (COLUMNS / 32, T): one thread a block
// needs      no features
// reference  tests/support/kernel_reference.py: quantise; bytes may differ by one

@group(0) @binding(0) var<storage, read> x: array<vec4f>;
@group(0) @binding(1) var<storage, read_write> quantised: array<vec4<u32>>;

@compute @workgroup_size(32)
fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x >= COLUMNS / 32u || id.y >= step.n_tokens) {
    return;
  }
  let block = id.y * (COLUMNS / 32u) + id.x;
  var largest = vec4f();
  for (var i = 0u; i < 8u; i++) {
    largest = max(largest, abs(x[block * 8u + i]));
  }
  let size = max(max(largest.x, largest.y), max(largest.z, largest.w));
  // The lower bound keeps the quotient finite, for a block of zeros too.
  let inverse = 127.0 / max(size, 1e-30);
  var sums = vec2f();
  for (var part = 0u; part < 2u; part++) {
    var words = vec4<u32>();
    var sum = vec4<i32>();
    for (var i = 0u; i < 4u; i++) {
      let bytes = vec4<i32>(round(x[block * 8u + part * 4u + i] * inverse));
      words[i] = pack4xI8(bytes);
      sum += bytes;
    }
    quantised[block * 3u + part] = words;
    sums[part] = f32(sum.x + sum.y + sum.z + sum.w);
  }
  let scale = size / 127.0;
  quantised[block * 3u + 2u] = vec4<u32>(bitcast<u32>(scale), bitcast<vec2<u32>>(scale * sums), 0u);
}
