// put_bytes.wgsl: values as signed bytes, so that the next product's workgroups need not all make the same bytes
// layout     y (T, WIDTH / 32) of 12 words as quantise.wgsl leaves them; a workgroup of product_rows.wgsl makes whole
//            blocks of one item: WORKGROUP / LANES * PAIRS values, a multiple of 32, the first at a multiple of as many
// provides   put(item, index, value); flush(thread, group), by all invocations of a workgroup at their end
// needs      TOKENS = 1; workgroup memory WORKGROUP / LANES * PAIRS * 4 B

const MADE = WORKGROUP / LANES * PAIRS;
const_assert(TOKENS == 1u && MADE % 32u == 0u && FIRST_ROW / 2u % MADE == 0u && MADE / 4u <= WORKGROUP);

@group(0) @binding(4) var<storage, read_write> y: array<u32>;

var<workgroup> made: array<f32, MADE>;

fn put(item: u32, index: u32, value: f32) {
  made[index % MADE] = value;
}

fn flush(thread: u32, group: vec3u) {
  workgroupBarrier();
  let first = FIRST_ROW / 2u + group.x * MADE;
  let block = thread / 8u;
  if (thread >= MADE / 4u || first + 32u * block >= WIDTH) {
    return;
  }
  // Eight threads a block, four values each; each looks at all of them for the largest.
  var largest = 0.0;
  for (var i = 0u; i < 32u; i++) {
    largest = max(largest, abs(made[32u * block + i]));
  }
  // The lower bound keeps the quotient finite, for a block of zeros too.
  let inverse = 127.0 / max(largest, 1e-30);
  let j = thread % 8u;
  let at = (group.y * WIDTH / 32u + first / 32u + block) * 12u;
  let four = 32u * block + 4u * j;
  let values = vec4f(made[four], made[four + 1u], made[four + 2u], made[four + 3u]);
  y[at + j] = pack4xI8(vec4<i32>(round(values * inverse)));
  if (j < 2u) {
    var total = 0.0;
    for (var i = 0u; i < 16u; i++) {
      total += round(made[32u * block + 16u * j + i] * inverse);
    }
    y[at + 9u + j] = bitcast<u32>(total / inverse);
  }
  if (j == 2u) {
    y[at + 8u] = bitcast<u32>(1.0 / inverse);
    y[at + 11u] = 0u;
  }
}
