// candidate.wgsl: what a run of logits comes down to, so that the sampler need not read them all again
// layout     the largest logit and its index; the sums of exp(logit - largest) and of (logit - largest) exp(...)
// provides   Candidate; NOTHING; candidate_of(pair, index) of two logits, the first at `index`; joined(a, b).
//            The lower index wins a tie

struct Candidate {
  largest: f32,
  index: u32,
  mass: f32,
  weighted: f32,
}

const NOTHING = Candidate(-3.0e38, 0xFFFFFFFFu, 0.0, 0.0);

fn candidate_of(pair: vec2f, index: u32) -> Candidate {
  let below = max(-abs(pair.x - pair.y), -80.0);
  let share = exp(below);
  return Candidate(max(pair.x, pair.y), select(index, index + 1u, pair.y > pair.x), 1.0 + share, below * share);
}

fn joined(a: Candidate, b: Candidate) -> Candidate {
  var top = a;
  var other = b;
  if (b.largest > a.largest || (b.largest == a.largest && b.index < a.index)) {
    top = b;
    other = a;
  }
  let below = max(other.largest - top.largest, -80.0);
  let share = exp(below);
  top.mass += share * other.mass;
  top.weighted += share * (other.weighted + below * other.mass);
  return top;
}
