"""The definition of sampling, in plain Python: what the sampling kernel must agree with.

Every filter is a threshold on the logit, so ties are kept or dropped together and the order of the vocabulary
never matters. What is left is drawn with the Gumbel-max trick: the argmax of logit / temperature + Gumbel
noise is a sample of the softmax, and needs neither a sum nor a sort.

V is the vocabulary size; logits: (V,) finite floats.

Source: top-p from Holtzman et al. 2020 (arXiv 1904.09751), min-p from Nguyen et al. 2024 (arXiv 2407.01082),
Gumbel-max from Maddison, Tarlow, Minka 2014 (arXiv 1411.0030), section 2.
"""

import math
from collections.abc import Sequence

from clutch.sampling.params import SamplingParams
from clutch.sampling.rng import uniform


def sample(logits: Sequence[float], params: SamplingParams, position: int) -> int:
    """Return the token id drawn at a position; equal scores go to the lowest id."""
    if params.temperature == 0:
        return max(range(len(logits)), key=logits.__getitem__)
    lowest = threshold(logits, params)
    best_id, best_score = -1, -math.inf
    for token_id, logit in enumerate(logits):
        if logit < lowest:
            continue
        # 1 - u is as uniform as u, and the large values then come from small u, which f32 resolves best.
        noise = -math.log(-math.log1p(-uniform(params.seed, position, token_id)))
        score = logit / params.temperature + noise
        if score > best_score:
            best_id, best_score = token_id, score
    return best_id


def threshold(logits: Sequence[float], params: SamplingParams) -> float:
    """Return the lowest logit that may be drawn at a temperature above 0; -inf when nothing is filtered.

    top_k comes first; top_p measures its share within the top_k tokens at the temperature; min_p compares
    with the maximum.
    """
    lowest = -math.inf
    if 0 < params.top_k < len(logits):
        lowest = sorted(logits, reverse=True)[params.top_k - 1]
    if params.top_p < 1:
        lowest = _top_p_threshold([logit for logit in logits if logit >= lowest], params)
    if params.min_p > 0:
        lowest = max(lowest, max(logits) + params.temperature * math.log(params.min_p))
    return lowest


def _top_p_threshold(logits: Sequence[float], params: SamplingParams) -> float:
    """Return the highest logit t such that the tokens of logit >= t hold at least top_p of the mass."""
    ordered = sorted(logits, reverse=True)
    weights = [math.exp((logit - ordered[0]) / params.temperature) for logit in ordered]
    wanted = params.top_p * math.fsum(weights)
    mass = 0.0
    for logit, weight in zip(ordered, weights, strict=True):
        mass += weight
        if mass >= wanted:
            return logit
    return ordered[-1]


def log_probability(logits: Sequence[float], token_id: int) -> float:
    """Return ln p of a token at temperature 1, without any filter."""
    return logits[token_id] - _log_sum_exp(logits)


def entropy(logits: Sequence[float]) -> float:
    """Return the entropy in nats of the distribution at temperature 1, without any filter."""
    log_total = _log_sum_exp(logits)
    return -math.fsum(math.exp(logit - log_total) * (logit - log_total) for logit in logits)


def _log_sum_exp(logits: Sequence[float]) -> float:
    highest = max(logits)
    return highest + math.log(math.fsum(math.exp(logit - highest) for logit in logits))
