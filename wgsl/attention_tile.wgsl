// attention_tile.wgsl: attended = softmax(q k / sqrt(d)) v of many tokens of a sequence (Dao 2023, FlashAttention-2)
//            A workgroup takes TOKENS tokens and all query heads of one KV head, KEYS positions at a time: their keys,
//            then in the same place their values. Keys behind the tile's last token are never read.
// shapes     q, attended (T, N_HEADS, HEAD_DIM) f32; kv, table as in qkv.wgsl
// bindings   0 q read | 1 kv read | 2 table read | 3 attended read_write
// constants  N_HEADS, N_KV_HEADS, HEAD_DIM, TOKENS, KEYS, THREAD_ROWS, WORKGROUP
// tiles      a row is a token and a query head; a thread holds THREAD_ROWS of them, a multiple of 4, together with
//            LANES - 1 others, so WORKGROUP = LANES TOKENS N_HEADS / N_KV_HEADS / THREAD_ROWS; LANES divides KEYS and
//            HEAD_DIM / 4
// dispatch   (N_KV_HEADS WORKGROUP, T / TOKENS); no tile has tokens of two sequences
// needs      a KV format; workgroup memory 4 (ROWS (HEAD_DIM + KEYS + LANES) + KEYS HEAD_DIM) B with
//            ROWS = TOKENS N_HEADS / N_KV_HEADS
// reference  tests/support/kernel_reference.py: attention_tile; nmse 1e-6

const PAGE = 16u;
const GROUP = N_HEADS / N_KV_HEADS;
const SLOTS = TOKENS * GROUP / THREAD_ROWS;  // threads beside each other along the rows
const LANES = WORKGROUP / SLOTS;             // and along the keys of a score, then along the values
const FOURS = THREAD_ROWS / 4u;
const VECTORS = HEAD_DIM / 4u;
const THREAD_KEYS = KEYS / LANES;
const THREAD_VECTORS = VECTORS / LANES;
const UNITS = KEYS * HEAD_DIM / 8u;          // eight values of a key each
const LOADS = (UNITS + WORKGROUP - 1u) / WORKGROUP;
const TURN = min(LANES, 8u);
const_assert(SLOTS * FOURS * 4u == TOKENS * GROUP && LANES * SLOTS == WORKGROUP);
const_assert(THREAD_KEYS * LANES == KEYS && THREAD_VECTORS * LANES == VECTORS);

@group(0) @binding(0) var<storage, read> q: array<vec4f>;
@group(0) @binding(1) var<storage, read> kv: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> table: array<u32>;
@group(0) @binding(3) var<storage, read_write> attended: array<vec4f>;

var<workgroup> queries: array<array<array<vec4f, SLOTS>, THREAD_ROWS>, VECTORS>;
// Keys: (four values, key of the thread), lane, the lanes turned by the four so that stores do not meet in one bank.
// Values: (key, four of the thread), lane.
var<workgroup> tile: array<array<vec4f, LANES>, KEYS * THREAD_VECTORS>;
var<workgroup> weights: array<array<array<vec4f, SLOTS>, FOURS>, KEYS>;  // four rows in a vector
var<workgroup> tops: array<array<array<vec4f, SLOTS>, FOURS>, LANES>;

@compute @workgroup_size(WORKGROUP)
fn main(
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) n_groups: vec3u,
  @builtin(local_invocation_index) thread: u32,
) {
  let tiles_of_sequence = (step.tokens_per_sequence + TOKENS - 1u) / TOKENS;
  let n_tiles = step.n_tokens / step.tokens_per_sequence * tiles_of_sequence;
  for (var i = group.y; i < n_tiles; i += n_groups.y) {
    // The tiles with most keys begin first.
    let at = n_tiles - 1u - i;
    attend(at / tiles_of_sequence, at % tiles_of_sequence * TOKENS, group.x, thread);
  }
}

fn attend(sequence: u32, first: u32, kv_head: u32, thread: u32) {
  let lane = thread % LANES;
  let slot = thread / LANES;
  let last = min(first + TOKENS, step.tokens_per_sequence) - 1u;
  let token_base = sequence * step.tokens_per_sequence;
  let position = step.sequences[sequence].position;
  let n_keys = position + last + 1u;

  // Scores count in powers of two: exp2 is what the hardware has.
  let scale = inverseSqrt(f32(HEAD_DIM)) * 1.4426950408889634;
  for (var i = thread; i < SLOTS * THREAD_ROWS * VECTORS; i += WORKGROUP) {
    let row = i / VECTORS;
    let head = (token_base + min(first + row / GROUP, last)) * N_HEADS + kv_head * GROUP + row % GROUP;
    queries[i % VECTORS][row / SLOTS][row % SLOTS] = scale * q[head * VECTORS + i % VECTORS];
  }
  var sums: array<vec4f, THREAD_ROWS * THREAD_VECTORS>;
  var largest: array<vec4f, FOURS>;
  var norms: array<vec4f, FOURS>;  // of this thread's keys alone, until the end
  var ends: array<u32, THREAD_ROWS>;
  for (var i = 0u; i < THREAD_ROWS; i++) {
    ends[i] = position + min(first + (i * SLOTS + slot) / GROUP, last);
  }
  for (var f = 0u; f < FOURS; f++) {
    largest[f] = vec4f(-3.0e38);
    norms[f] = vec4f();
  }
  for (var i = 0u; i < THREAD_ROWS * THREAD_VECTORS; i++) {
    sums[i] = vec4f();
  }

  var loaded = array<array<vec4f, 2>, LOADS>();
  for (var i = 0u; i < LOADS; i++) {
    loaded[i] = unit_at(sequence, kv_head, 0u, 0u, n_keys, thread + i * WORKGROUP);
  }
  for (var from_key = 0u; from_key < n_keys; from_key += KEYS) {
    for (var i = 0u; i < LOADS; i++) {
      let unit = thread + i * WORKGROUP;
      let key = unit / (HEAD_DIM / 8u);
      let eight = unit % (HEAD_DIM / 8u);
      if (unit < UNITS) {
        let turned = (key % LANES) ^ (eight % TURN);
        tile[2u * eight * THREAD_KEYS + key / LANES][turned] = loaded[i][0];
        tile[(2u * eight + 1u) * THREAD_KEYS + key / LANES][turned] = loaded[i][1];
      }
    }
    workgroupBarrier();
    for (var i = 0u; i < LOADS; i++) {
      loaded[i] = unit_at(sequence, kv_head, 1u, from_key, n_keys, thread + i * WORKGROUP);
    }

    // Scores of the thread's rows with the keys from_key + c LANES + lane.
    var scores = array<array<f32, THREAD_ROWS>, THREAD_KEYS>();
    for (var d = 0u; d < VECTORS; d++) {
      var keys = array<vec4f, THREAD_KEYS>();
      for (var c = 0u; c < THREAD_KEYS; c++) {
        keys[c] = tile[d * THREAD_KEYS + c][lane ^ (d / 2u % TURN)];
      }
      for (var i = 0u; i < THREAD_ROWS; i++) {
        let row = queries[d][i][slot];
        for (var c = 0u; c < THREAD_KEYS; c++) {
          let k = keys[c];
          scores[c][i] = fma(row.x, k.x, fma(row.y, k.y, fma(row.z, k.z, fma(row.w, k.w, scores[c][i]))));
        }
      }
    }
    for (var f = 0u; f < FOURS; f++) {
      var top = vec4f(-3.0e38);
      for (var c = 0u; c < THREAD_KEYS; c++) {
        for (var r = 0u; r < 4u; r++) {
          let is_seen = from_key + c * LANES + lane <= ends[4u * f + r];
          scores[c][4u * f + r] = select(-3.0e38, scores[c][4u * f + r], is_seen);
          top[r] = max(top[r], scores[c][4u * f + r]);
        }
      }
      tops[lane][f][slot] = top;
    }
    workgroupBarrier();

    for (var f = 0u; f < FOURS; f++) {
      var top = largest[f];
      for (var other = 0u; other < LANES; other++) {
        top = max(top, tops[other][f][slot]);
      }
      // Position 0 is in the first tile, so `top` is a score; the clamps keep exp2 of what is far below it finite.
      let keep = exp2(max(largest[f] - top, vec4f(-120.0)));
      largest[f] = top;
      norms[f] *= keep;
      for (var c = 0u; c < THREAD_KEYS; c++) {
        let four = vec4f(scores[c][4u * f], scores[c][4u * f + 1u], scores[c][4u * f + 2u], scores[c][4u * f + 3u]);
        let weight = select(vec4f(), exp2(max(four - top, vec4f(-120.0))), four > vec4f(-2.0e38));
        norms[f] += weight;
        weights[c * LANES + lane][f][slot] = weight;
      }
      for (var r = 0u; r < 4u; r++) {
        for (var n = 0u; n < THREAD_VECTORS; n++) {
          sums[(4u * f + r) * THREAD_VECTORS + n] *= keep[r];
        }
      }
    }
    for (var i = 0u; i < LOADS; i++) {
      let unit = thread + i * WORKGROUP;
      let key = unit / (HEAD_DIM / 8u);
      let vector = unit % (HEAD_DIM / 8u) * 2u;
      if (unit < UNITS) {
        tile[key * THREAD_VECTORS + vector / LANES][vector % LANES] = loaded[i][0];
        tile[key * THREAD_VECTORS + (vector + 1u) / LANES][(vector + 1u) % LANES] = loaded[i][1];
      }
    }
    workgroupBarrier();
    for (var i = 0u; i < LOADS; i++) {
      loaded[i] = unit_at(sequence, kv_head, 0u, from_key + KEYS, n_keys, thread + i * WORKGROUP);
    }

    for (var key = 0u; key < KEYS; key++) {
      var values = array<vec4f, THREAD_VECTORS>();
      for (var n = 0u; n < THREAD_VECTORS; n++) {
        values[n] = tile[key * THREAD_VECTORS + n][lane];
      }
      for (var f = 0u; f < FOURS; f++) {
        let weight = weights[key][f][slot];
        for (var r = 0u; r < 4u; r++) {
          for (var n = 0u; n < THREAD_VECTORS; n++) {
            let at = (4u * f + r) * THREAD_VECTORS + n;
            sums[at] = fma(vec4f(weight[r]), values[n], sums[at]);
          }
        }
      }
    }
    workgroupBarrier();
  }

  for (var f = 0u; f < FOURS; f++) {
    tops[lane][f][slot] = norms[f];
  }
  workgroupBarrier();
  for (var f = 0u; f < FOURS; f++) {
    var norm = vec4f();
    for (var other = 0u; other < LANES; other++) {
      norm += tops[other][f][slot];
    }
    for (var r = 0u; r < 4u; r++) {
      let row = (4u * f + r) * SLOTS + slot;
      if (first + row / GROUP <= last) {
        let head = (token_base + first + row / GROUP) * N_HEADS + kv_head * GROUP + row % GROUP;
        for (var n = 0u; n < THREAD_VECTORS; n++) {
          attended[head * VECTORS + n * LANES + lane] = sums[(4u * f + r) * THREAD_VECTORS + n] / norm[r];
        }
      }
    }
  }
  workgroupBarrier();
}

// Eight values of a key (half 0) or of its values (1): number `unit` of those from position `from_key` on.
fn unit_at(sequence: u32, kv_head: u32, half: u32, from_key: u32, n_keys: u32, unit: u32) -> array<vec4f, 2> {
  // Behind the last key nothing may have been written yet: what is read instead gets no weight.
  let key = min(from_key + unit / (HEAD_DIM / 8u), n_keys - 1u);
  let page = table[step.sequences[sequence].table_offset + key / PAGE];
  let head = (((page * 2u + half) * PAGE + key % PAGE) * N_KV_HEADS + kv_head) * head_words();
  let eight = eight_at(head, unit % (HEAD_DIM / 8u));
  let scale = scale_at(head);
  return array<vec4f, 2>(scale * eight[0], scale * eight[1]);
}
