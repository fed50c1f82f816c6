// product_tiles_int8.wgsl: y = W x for many items as product_tiles.wgsl, in integer arithmetic: x as quantise.wgsl
//            leaves it
// constants  TILE_ROWS, TILE_TOKENS, THREAD_ROWS, SPLITS, WORKGROUP
// tiles      THREAD_ROWS is 4 or 8, TILE_ROWS a multiple of 8 THREAD_ROWS, TILE_TOKENS of 16;
//            WORKGROUP = SPLITS TILE_ROWS TILE_TOKENS / THREAD_ROWS / 4
// provides   main, for an operation's n_items, source_of, finish and conclude; binding 2: x (items, COLUMNS / 32) of
//            three vec4<u32>
// dispatch   (ROWS / TILE_ROWS, items / TILE_TOKENS) workgroups
// needs      a format with block_at; workgroup memory 48 SPLITS (TILE_ROWS + TILE_TOKENS) B, and with splits
//            4 TILE_ROWS TILE_TOKENS B

const BLOCKS = COLUMNS / 32u;
const ACROSS = TILE_ROWS / THREAD_ROWS;       // threads beside each other along the rows
const BESIDE = TILE_TOKENS / 4u;              // and along the tokens
const LINES = TILE_ROWS + TILE_TOKENS;        // of the tile: a block of a row or of a token
const THREADS = ACROSS * BESIDE;              // of a split
const ROUNDS = (BLOCKS + SPLITS - 1u) / SPLITS;
const LOADS = (LINES + THREADS - 1u) / THREADS;
const_assert(WORKGROUP == SPLITS * THREADS && ACROSS % 8u == 0u && BESIDE % 4u == 0u);

@group(0) @binding(2) var<storage, read> x: array<vec4<u32>>;

// Sixteen bytes, sixteen bytes, then what they are multiplied by (rows: d, m; tokens: step, sums).
var<workgroup> row_tile: array<array<array<array<vec4<u32>, ACROSS>, THREAD_ROWS>, 3>, SPLITS>;
var<workgroup> token_tile: array<array<array<array<vec4<u32>, BESIDE>, 4>, 3>, SPLITS>;
var<workgroup> part: array<array<vec4f, select(1u, THREADS, SPLITS > 1u)>, select(1u, THREAD_ROWS, SPLITS > 1u)>;

// A block of the thread's four tokens: bytes of each, then of all the steps, and the steps times both sums of bytes.
struct Tokens {
  low: array<vec4<u32>, 4>,
  high: array<vec4<u32>, 4>,
  measures: mat4x4f,
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) index: u32) {
  let split = index / THREADS;
  let thread = index % THREADS;
  // Eight by four neighbours share a subgroup: they read 8 rows and 4 tokens between them.
  let across = thread / 32u % (ACROSS / 8u) * 8u + thread % 8u;
  let beside = thread / 32u / (ACROSS / 8u) * 4u + thread / 8u % 4u;
  let first_row = group.x * TILE_ROWS;
  let first_item = group.y * TILE_TOKENS;

  var sources: array<u32, LOADS>;  // blocks
  var lines: array<array<vec4<u32>, 3>, LOADS>;
  for (var i = 0u; i < LOADS; i++) {
    let line = thread + i * THREADS;
    if (line < TILE_ROWS) {
      sources[i] = min(first_row + row_of(line / ACROSS, line % ACROSS), ROWS - 1u) * BLOCKS;
    } else {
      sources[i] = source_of(min(first_item + line - TILE_ROWS, n_items() - 1u)) * BLOCKS;
    }
    lines[i] = line_at(line, sources[i], split);
  }
  // Not indexed by a variable where columns are multiplied: product_tiles.wgsl says why.
  var sums: array<vec4f, 8>;
  for (var turn = 0u; turn < ROUNDS; turn++) {
    for (var i = 0u; i < LOADS; i++) {
      let line = thread + i * THREADS;
      let of_token = line - TILE_ROWS;
      for (var p = 0u; p < 3u; p++) {
        if (line < TILE_ROWS) {
          row_tile[split][p][line / ACROSS][line % ACROSS] = lines[i][p];
        } else if (line < LINES) {
          token_tile[split][p][of_token / BESIDE][of_token % BESIDE] = lines[i][p];
        }
      }
    }
    workgroupBarrier();
    for (var i = 0u; i < LOADS; i++) {
      lines[i] = line_at(thread + i * THREADS, sources[i], (turn + 1u) * SPLITS + split);
    }
    let tokens = Tokens(
      array<vec4<u32>, 4>(
        token_tile[split][0][0][beside], token_tile[split][0][1][beside],
        token_tile[split][0][2][beside], token_tile[split][0][3][beside],
      ),
      array<vec4<u32>, 4>(
        token_tile[split][1][0][beside], token_tile[split][1][1][beside],
        token_tile[split][1][2][beside], token_tile[split][1][3][beside],
      ),
      transpose(mat4x4f(
        bitcast<vec4f>(token_tile[split][2][0][beside]), bitcast<vec4f>(token_tile[split][2][1][beside]),
        bitcast<vec4f>(token_tile[split][2][2][beside]), bitcast<vec4f>(token_tile[split][2][3][beside]),
      )),
    );
    sums[0] = with_products(sums[0], split, 0u, across, tokens);
    sums[1] = with_products(sums[1], split, 1u, across, tokens);
    sums[2] = with_products(sums[2], split, 2u, across, tokens);
    sums[3] = with_products(sums[3], split, 3u, across, tokens);
    if (THREAD_ROWS == 8u) {
      sums[4] = with_products(sums[4], split, 4u, across, tokens);
      sums[5] = with_products(sums[5], split, 5u, across, tokens);
      sums[6] = with_products(sums[6], split, 6u, across, tokens);
      sums[7] = with_products(sums[7], split, 7u, across, tokens);
    }
    workgroupBarrier();
  }

  if (SPLITS > 1u) {
    for (var other = 1u; other < SPLITS; other++) {
      for (var i = 0u; i < THREAD_ROWS && split == other; i++) {
        part[i][thread] = sums[i];
      }
      workgroupBarrier();
      for (var i = 0u; i < THREAD_ROWS && split == 0u; i++) {
        sums[i] += part[i][thread];
      }
      workgroupBarrier();
    }
  }
  if (split == 0u) {
    finish_rows(group, across, beside, 0u, sums[0], sums[1]);
    finish_rows(group, across, beside, 2u, sums[2], sums[3]);
    if (THREAD_ROWS == 8u) {
      finish_rows(group, across, beside, 4u, sums[4], sums[5]);
      finish_rows(group, across, beside, 6u, sums[6], sums[7]);
    }
  }
  conclude(index, group);
}

// The row of the tile that is the i-th of a thread: two neighbours belong to one thread, for `finish`.
fn row_of(i: u32, across: u32) -> u32 {
  return 2u * (i / 2u * ACROSS + across) + i % 2u;
}

// What a line of the tile keeps of a block of its row or token; zeros for tokens behind the last block.
fn line_at(line: u32, first_block: u32, i: u32) -> array<vec4<u32>, 3> {
  let block = first_block + min(i, BLOCKS - 1u);
  if (line < TILE_ROWS) {
    let b = block_at(block);
    return array<vec4<u32>, 3>(b.low, b.high, bitcast<vec4<u32>>(vec4f(b.d, b.m)));
  }
  let scales_of_block = select(vec4<u32>(), x[3u * block + 2u], i < BLOCKS);
  return array<vec4<u32>, 3>(x[3u * block], x[3u * block + 1u], scales_of_block);
}

// The sums of the thread's i-th row with four tokens after 32 more columns.
fn with_products(sums: vec4f, split: u32, i: u32, across: u32, tokens: Tokens) -> vec4f {
  let low = row_tile[split][0][i][across];
  let high = row_tile[split][1][i][across];
  let scale = bitcast<vec4f>(row_tile[split][2][i][across]);
  let of_low = vec4f(vec4<i32>(
    product(low, tokens.low[0]), product(low, tokens.low[1]), product(low, tokens.low[2]), product(low, tokens.low[3]),
  ));
  let of_high = vec4f(vec4<i32>(
    product(high, tokens.high[0]), product(high, tokens.high[1]),
    product(high, tokens.high[2]), product(high, tokens.high[3]),
  ));
  let more = fma(tokens.measures[0], fma(vec4f(scale.x), of_low, scale.y * of_high), sums);
  if (HAS_MIN) {
    return fma(vec4f(scale.z), tokens.measures[1], fma(vec4f(scale.w), tokens.measures[2], more));
  }
  return more;
}

// The sum of sixteen products.
fn product(a: vec4<u32>, b: vec4<u32>) -> i32 {
  var sum = dot4I8Packed(a.x, b.x);
  sum += dot4I8Packed(a.y, b.y);
  sum += dot4I8Packed(a.z, b.z);
  sum += dot4I8Packed(a.w, b.w);
  return sum;
}

// The sums of rows i and i + 1 of the thread with its four tokens go where the operation wants them.
fn finish_rows(group: vec3u, across: u32, beside: u32, i: u32, even: vec4f, odd: vec4f) {
  let row = group.x * TILE_ROWS + row_of(i, across);
  for (var j = 0u; j < 4u; j++) {
    let item = group.y * TILE_TOKENS + j * BESIDE + beside;
    if (item < n_items() && row < ROWS) {
      finish((FIRST_ROW + row) / 2u, item, vec2f(even[j], odd[j]));
    }
  }
}
