// sample.wgsl: the next token from the logits, its log-probability and the entropy of the distribution
//            Gumbel-max over what top-k, top-p and min-p keep; each of the three is a threshold on the logit, found bit
//            by bit over the ordered bits of a float, so nothing is sorted. Random numbers are Threefry-2x32-20 (Salmon
//            et al. 2011) of (seed; position, index): the same position draws the same numbers, however it was reached.
//            Largest logit, log-probability and entropy come from the candidates: a greedy step never reads the logits.
// shapes     logits (S, VOCAB) f32; candidates (S, CANDIDATES), each of a run of logits;
//            tokens u32 from token_offset on: the one behind the step's is written;
//            result (S, 4) words: token, log-probability f32, entropy f32 (nats, at temperature 1), its position
// bindings   0 logits read | 1 candidates read | 2 tokens read_write | 3 result read_write
// constants  VOCAB, CONTEXT, CANDIDATES
// dispatch   (1, S): one workgroup a sequence
// needs      candidates; workgroup memory 6 KiB
// reference  tests/support/kernel_reference.py: sample; equal tokens, statistics within 1e-4

const LANES = 256u;
const LOWEST = -3.0e38;

@group(0) @binding(0) var<storage, read> logits: array<f32>;
@group(0) @binding(1) var<storage, read> candidates: array<Candidate>;
@group(0) @binding(2) var<storage, read_write> tokens: array<u32>;
@group(0) @binding(3) var<storage, read_write> result: array<u32>;

var<workgroup> of_lanes: array<Candidate, LANES>;
var<workgroup> values: array<f32, LANES>;
var<workgroup> indices: array<u32, LANES>;

struct Best {
  value: f32,
  index: u32,
}

// The largest value of all lanes; the lowest index wins a tie.
fn best_of(lane: u32, mine: Best) -> Best {
  workgroupBarrier();
  values[lane] = mine.value;
  indices[lane] = mine.index;
  for (var width = LANES / 2u; width > 0u; width /= 2u) {
    workgroupBarrier();
    if (lane < width) {
      let other = lane + width;
      if (values[other] > values[lane] || (values[other] == values[lane] && indices[other] < indices[lane])) {
        values[lane] = values[other];
        indices[lane] = indices[other];
      }
    }
  }
  return Best(workgroupUniformLoad(&values[0]), workgroupUniformLoad(&indices[0]));
}

// All candidates of a sequence in one.
fn everything(lane: u32, sequence: u32) -> Candidate {
  var mine = NOTHING;
  for (var i = lane; i < CANDIDATES; i += LANES) {
    mine = joined(mine, candidates[sequence * CANDIDATES + i]);
  }
  of_lanes[lane] = mine;
  for (var width = LANES / 2u; width > 0u; width /= 2u) {
    workgroupBarrier();
    if (lane < width) {
      of_lanes[lane] = joined(of_lanes[lane], of_lanes[lane + width]);
    }
  }
  return workgroupUniformLoad(&of_lanes[0]);
}

fn sum_of(lane: u32, mine: f32) -> f32 {
  workgroupBarrier();
  values[lane] = mine;
  for (var width = LANES / 2u; width > 0u; width /= 2u) {
    workgroupBarrier();
    if (lane < width) {
      values[lane] += values[lane + width];
    }
  }
  return workgroupUniformLoad(&values[0]);
}

// Unsigned integers in the order of the floats.
fn ordered(value: f32) -> u32 {
  let bits = bitcast<u32>(value);
  return select(bits ^ 0x80000000u, ~bits, bits >= 0x80000000u);
}

// How much of the logits from `first` on lies at or above `key`: a count when temperature is 0, else the mass
// exp((logit - largest) / temperature).
fn mass_above(lane: u32, first: u32, key: u32, largest: f32, temperature: f32) -> f32 {
  var sum = 0.0;
  for (var i = lane; i < VOCAB; i += LANES) {
    let logit = logits[first + i];
    if (ordered(logit) >= key) {
      if (temperature == 0.0) {
        sum += 1.0;
      } else {
        sum += exp(max((logit - largest) / temperature, -80.0));
      }
    }
  }
  return sum_of(lane, sum);
}

// The highest key with at least `wanted` at or above it.
fn threshold(lane: u32, first: u32, wanted: f32, largest: f32, temperature: f32) -> u32 {
  var key = 0u;
  for (var bit = 0x80000000u; bit > 0u; bit >>= 1u) {
    if (mass_above(lane, first, key | bit, largest, temperature) >= wanted) {
      key |= bit;
    }
  }
  return key;
}

fn rotate(value: u32, distance: u32) -> u32 {
  return (value << distance) | (value >> (32u - distance));
}

fn threefry(key: vec2<u32>, counter: vec2<u32>) -> vec2<u32> {
  const DISTANCES = array<vec4<u32>, 2>(vec4<u32>(13u, 15u, 26u, 6u), vec4<u32>(17u, 29u, 16u, 24u));
  var keys = array<u32, 3>(key.x, key.y, 0x1BD11BDAu ^ key.x ^ key.y);
  var x = counter + key;
  for (var group = 0u; group < 5u; group++) {
    let distances = DISTANCES[group % 2u];
    for (var i = 0u; i < 4u; i++) {
      x.x += x.y;
      x.y = rotate(x.y, distances[i]) ^ x.x;
    }
    x += vec2<u32>(keys[(group + 1u) % 3u], keys[(group + 2u) % 3u] + group + 1u);
  }
  return x;
}

// -log(-log(1 - u)), u uniform in (0, 1). Large values come from small u, where log(1 - u) would be all rounding error.
fn gumbel(seed: vec2<u32>, position: u32, index: u32) -> f32 {
  let bits = threefry(seed, vec2<u32>(position, index)).x;
  let u = (f32(bits >> 9u) + 0.5) * 0x1p-23f;
  let series = u * (1.0 + u * (0.5 + u * (1.0 / 3.0)));
  return -log(select(-log(1.0 - u), series, u < 0.015625));
}

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) lane: u32, @builtin(workgroup_id) group: vec3u) {
  let sequence = step.sequences[group.y];
  let first = group.y * VOCAB;
  let top = everything(lane, group.y);
  var token = top.index;
  let position = sequence.position + step.tokens_per_sequence;

  if (sequence.temperature > 0.0) {
    var key = 0u;
    if (sequence.top_k > 0u && sequence.top_k < VOCAB) {
      key = threshold(lane, first, f32(sequence.top_k), top.largest, 0.0);
    }
    if (sequence.top_p < 1.0) {
      let kept = mass_above(lane, first, key, top.largest, sequence.temperature);
      key = max(key, threshold(lane, first, sequence.top_p * kept, top.largest, sequence.temperature));
    }
    var floor = LOWEST;
    if (sequence.min_p > 0.0) {
      floor = top.largest + sequence.temperature * log(sequence.min_p);
    }
    let seed = vec2<u32>(sequence.seed_low, sequence.seed_high);
    var mine = Best(LOWEST, 0xFFFFFFFFu);
    for (var i = lane; i < VOCAB; i += LANES) {
      let logit = logits[first + i];
      if (ordered(logit) >= key && logit >= floor) {
        let score = logit / sequence.temperature + gumbel(seed, position, i);
        if (score > mine.value) {
          mine = Best(score, i);
        }
      }
    }
    token = best_of(lane, mine).index;
  }

  if (lane == 0u) {
    if (position < CONTEXT) {
      tokens[sequence.token_offset + position] = token;
    }
    let out = 4u * group.y;
    result[out] = token;
    result[out + 1u] = bitcast<u32>(logits[first + token] - top.largest - log(top.mass));
    result[out + 2u] = bitcast<u32>(log(top.mass) - top.weighted / top.mass);
    result[out + 3u] = position;
  }
}
