// step.wgsl: which sequences go through a step, where they stand, how they sample
// layout     as clutch/gpu/step.py packs it: two words, two of padding, then 48 bytes a sequence
// provides   step; sequence_of(token), position_of(token) of the step's tokens 0..n_tokens - 1

struct Sequence {
  position: u32,
  table_offset: u32,
  token_offset: u32,
  top_k: u32,
  seed_low: u32,
  seed_high: u32,
  temperature: f32,
  top_p: f32,
  @size(16) min_p: f32,
}
struct Step {
  n_tokens: u32,
  tokens_per_sequence: u32,
  @align(16) sequences: array<Sequence, 16>,
}
@group(1) @binding(0) var<uniform> step: Step;

fn sequence_of(token: u32) -> u32 {
  return token / step.tokens_per_sequence;
}

fn position_of(token: u32) -> u32 {
  return step.sequences[sequence_of(token)].position + token % step.tokens_per_sequence;
}
