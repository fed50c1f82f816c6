// candidate.wgsl: what a run of logits comes down to, so that the sampler need not read them all again
// layout     the largest logit and its index; the sums of exp(logit - largest) and of (logit - largest) exp(...)
// provides   Candidate; NOTHING; candidate_of(logit, index); joined(a, b), in which the lower index wins a tie

struct Candidate {
  largest: f32,
  index: u32,
  mass: f32,
  weighted: f32,
}

const NOTHING = Candidate(-3.0e38, 0xFFFFFFFFu, 0.0, 0.0);

fn candidate_of(logit: f32, index: u32) -> Candidate {
  return Candidate(logit, index, 1.0, 0.0);
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
