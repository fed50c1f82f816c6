// product_tiles.wgsl: y = W x for many items (GEMM): a workgroup takes a tile of TILE_ROWS rows by TILE_TOKENS items,
//            32 columns at a time in workgroup memory, a thread THREAD_ROWS rows by four items in registers. What the
//            next 32 columns need is loaded before the present ones are multiplied. Where there are few tiles, SPLITS
//            sets of threads share the columns of one.
// constants  TILE_ROWS, TILE_TOKENS, THREAD_ROWS, SPLITS, WORKGROUP
// tiles      THREAD_ROWS is 4 or 8, TILE_ROWS a multiple of 8 THREAD_ROWS, TILE_TOKENS of 16;
//            WORKGROUP = SPLITS TILE_ROWS TILE_TOKENS / THREAD_ROWS / 4
// provides   main, for an operation's n_items, source_of, finish and conclude; binding 2: x (items, COLUMNS) f32
// dispatch   (ROWS / TILE_ROWS, items / TILE_TOKENS) workgroups
// needs      workgroup memory 128 SPLITS (TILE_ROWS + TILE_TOKENS) B: 16 KiB for 64 by 64 without splits

const BLOCKS = COLUMNS / 32u;
const ACROSS = TILE_ROWS / THREAD_ROWS;       // threads beside each other along the rows
const BESIDE = TILE_TOKENS / 4u;              // and along the tokens
const THREADS = ACROSS * BESIDE;              // of a split
const ROUNDS = (BLOCKS + SPLITS - 1u) / SPLITS;
const SHARES = THREADS / TILE_ROWS;           // threads that bring a block of weights together
const QUADS = 8u / SHARES;                    // four columns each
const LOADS = TILE_TOKENS * 8u / THREADS;     // four columns of a token each
const_assert(SPLITS == 1u || TILE_TOKENS <= 32u * SPLITS);
const_assert(WORKGROUP == SPLITS * THREADS && ACROSS % 8u == 0u && BESIDE % 4u == 0u);
const_assert(SHARES * QUADS == 8u && SHARES * TILE_ROWS == THREADS && LOADS * THREADS == TILE_TOKENS * 8u);

@group(0) @binding(2) var<storage, read> x: array<vec4f>;

// Four columns, then the row (token) of the thread, then the thread: neighbours read neighbours. An `x` is moved by its
// columns, so that the eight threads that store a token's 32 columns do not meet in one bank.
var<workgroup> row_tile: array<array<array<array<vec4f, ACROSS>, THREAD_ROWS>, 8>, SPLITS>;
var<workgroup> token_tile: array<array<array<array<vec4f, BESIDE>, 4>, 8>, SPLITS>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) index: u32) {
  let split = index / THREADS;
  let thread = index % THREADS;
  // Eight by four neighbours share a subgroup: they read 8 rows and 4 tokens between them.
  let across = thread / 32u % (ACROSS / 8u) * 8u + thread % 8u;
  let beside = thread / 32u / (ACROSS / 8u) * 4u + thread / 8u % 4u;
  let first_row = group.x * TILE_ROWS;
  let first_item = group.y * TILE_TOKENS;

  let loaded = thread % TILE_ROWS;
  let loaded_row = first_row + row_of(loaded / ACROSS, loaded % ACROSS);
  let share = thread / TILE_ROWS * QUADS;
  let first_block = min(loaded_row, ROWS - 1u) * BLOCKS;
  let quad = thread % 8u;
  var sources: array<u32, LOADS>;
  for (var i = 0u; i < LOADS; i++) {
    let item = min(first_item + (thread + i * THREADS) / 8u, n_items() - 1u);
    sources[i] = source_of(item) * BLOCKS * 8u + quad;
  }

  var weights = block_at(first_block + min(split, BLOCKS - 1u));
  var values: array<vec4f, LOADS>;
  for (var i = 0u; i < LOADS; i++) {
    values[i] = columns_at(sources[i], split);
  }
  // Not indexed by a variable where columns are multiplied: a driver that left such a loop as it is (NVIDIA's, with
  // more than 16 sums) would keep them in memory.
  var sums: array<vec4f, 8>;
  for (var turn = 0u; turn < ROUNDS; turn++) {
    for (var i = 0u; i < QUADS; i++) {
      row_tile[split][share + i][loaded / ACROSS][loaded % ACROSS] = four_of(weights, share + i);
    }
    for (var i = 0u; i < LOADS; i++) {
      let token = (thread + i * THREADS) / 8u;
      token_tile[split][quad][token / BESIDE][(token % BESIDE) ^ (quad % BESIDE)] = values[i];
    }
    workgroupBarrier();
    let next = (turn + 1u) * SPLITS + split;
    weights = block_at(first_block + min(next, BLOCKS - 1u));
    for (var i = 0u; i < LOADS; i++) {
      values[i] = columns_at(sources[i], next);
    }
    for (var k = 0u; k < 8u; k++) {
      let at = beside ^ (k % BESIDE);
      let v = transpose(mat4x4f(
        token_tile[split][k][0][at], token_tile[split][k][1][at],
        token_tile[split][k][2][at], token_tile[split][k][3][at],
      ));
      sums[0] = with_products(sums[0], split, k, 0u, across, v);
      sums[1] = with_products(sums[1], split, k, 1u, across, v);
      sums[2] = with_products(sums[2], split, k, 2u, across, v);
      sums[3] = with_products(sums[3], split, k, 3u, across, v);
      if (THREAD_ROWS == 8u) {
        sums[4] = with_products(sums[4], split, k, 4u, across, v);
        sums[5] = with_products(sums[5], split, k, 5u, across, v);
        sums[6] = with_products(sums[6], split, k, 6u, across, v);
        sums[7] = with_products(sums[7], split, k, 7u, across, v);
      }
    }
    workgroupBarrier();
  }

  if (SPLITS > 1u) {
    for (var other = 1u; other < SPLITS; other++) {
      // The tile of the rows is free now: it takes the sums on their way.
      for (var i = 0u; i < THREAD_ROWS && split == other; i++) {
        let to = i * THREADS + thread;
        row_tile[to / (8u * TILE_ROWS)][to / TILE_ROWS % 8u][to / ACROSS % THREAD_ROWS][to % ACROSS] = sums[i];
      }
      workgroupBarrier();
      for (var i = 0u; i < THREAD_ROWS && split == 0u; i++) {
        let to = i * THREADS + thread;
        sums[i] += row_tile[to / (8u * TILE_ROWS)][to / TILE_ROWS % 8u][to / ACROSS % THREAD_ROWS][to % ACROSS];
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

// The sums of the thread's i-th row with four tokens after four more columns; a vector of v is a column of the tokens.
// Written out as fma: a driver need not contract a product and a sum.
fn with_products(sums: vec4f, split: u32, k: u32, i: u32, across: u32, v: mat4x4f) -> vec4f {
  let w = row_tile[split][k][i][across];
  return fma(vec4f(w.x), v[0], fma(vec4f(w.y), v[1], fma(vec4f(w.z), v[2], fma(vec4f(w.w), v[3], sums))));
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

// Four columns of a block of x; zeros behind the last block.
fn columns_at(source: u32, block: u32) -> vec4f {
  if (SPLITS == 1u) {
    return x[source + min(block, BLOCKS - 1u) * 8u];
  }
  return select(vec4f(), x[source + min(block, BLOCKS - 1u) * 8u], block < BLOCKS);
}

// The row of the tile that is the i-th of a thread: two neighbours belong to one thread, for `finish`.
fn row_of(i: u32, across: u32) -> u32 {
  return 2u * (i / 2u * ACROSS + across) + i % 2u;
}
