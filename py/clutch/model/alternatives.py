"""Products of a decode step beside the one that a recipe names: the same arithmetic, divided otherwise."""

from dataclasses import replace
from itertools import product as combinations

from clutch.gpu.products import Rows

_LANES, _PAIRS, _WORKGROUPS = (8, 16, 32), (1, 2), (128, 256)


def alternatives(default: Rows, subgroup_size: int) -> list[Rows]:
    """Return what may be faster than `default` on some GPU, those first that differ least.

    Args:
        default: of the recipe.
        subgroup_size: of the adapter; lanes that have no subgroups meet in workgroup memory.
    """
    meeting = "workgroup" if default.lanes == 1 else default.meeting
    most_lanes = subgroup_size if meeting == "subgroup" else max(_LANES)
    lanes = [count for count in _LANES if count <= most_lanes] or [default.lanes]
    found = [
        replace(default, lanes=count, pairs=pairs, workgroup=workgroup, meeting=meeting)
        for count, pairs, workgroup in combinations(lanes, _PAIRS, _WORKGROUPS)
    ]
    return sorted((other for other in found if other != default), key=lambda other: _difference(other, default))


def _difference(left: Rows, right: Rows) -> int:
    doublings = abs(left.lanes.bit_length() - right.lanes.bit_length())
    return doublings + (left.pairs != right.pairs) + (left.workgroup != right.workgroup)
