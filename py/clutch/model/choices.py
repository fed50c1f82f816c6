"""Which products were fastest: kept from load to load, so that a second load compiles just those and tries nothing."""

import hashlib
import json
from dataclasses import replace
from typing import Protocol

from clutch.gpu.device import Device
from clutch.model.alternatives import alternatives
from clutch.model.autotune import KEPT, Choice
from clutch.model.recipe import Recipe
from clutch.model.spec import ModelSpec
from clutch.model.weights import WeightPlan

# Of other models, and of kernels as they were.
_MOST_KEPT = 32


class ChoiceStore(Protocol):
    """One file that outlives the page. Neither method fails: what is not kept is only found again."""

    async def read(self) -> bytes:
        """Return what was written last, as far as anybody knows; empty without it."""

    async def write(self, data: bytes) -> None:
        """Keep `data` in place of what was there, if the browser lets us."""


class Choices:
    """What was chosen, by `choice_key`; while it lives it needs no storage, so a GPU that comes back computes the same.

    Args:
        store: for the visits to come.
    """

    def __init__(self, store: ChoiceStore) -> None:
        self._store = store
        self._made: dict[str, object] = {}

    async def find(self, key: str, default: Recipe, subgroup_size: int) -> Choice | None:
        """Return what was kept under `key`; None for nothing, and for anything that `tune` cannot have found.

        Args:
            key: of the choice.
            default: what the tuning began with.
            subgroup_size: of the adapter.
        """
        found = self._made.get(key) or (await self._stored()).get(key)
        if not isinstance(found, dict):
            return None
        products = {}
        for role, product in default.decode.products.items():
            known = [product, *alternatives(product, subgroup_size)]
            same = [other for other in known if repr(other) == found.get(role)]
            if not same:
                return None
            products[role] = same[0]
        return Choice(replace(default, decode=replace(default.decode, products=products)), KEPT)

    async def keep(self, key: str, recipe: Recipe) -> None:
        """Keep the products of `recipe` under `key`."""
        self._made[key] = {role: repr(product) for role, product in recipe.decode.products.items()}
        stored = await self._stored()
        stored.pop(key, None)
        newest = [*stored.items(), (key, self._made[key])][-_MOST_KEPT:]
        await self._store.write(json.dumps(dict(newest)).encode())

    async def _stored(self) -> dict[str, object]:
        try:
            stored = json.loads(await self._store.read())
        except (ValueError, RecursionError):
            return {}
        return stored if isinstance(stored, dict) else {}


def choice_key(device: Device, spec: ModelSpec, weights: WeightPlan, kv_format: str, recipe: Recipe) -> str:
    """Return a name for all that decides which products are fastest: the GPU, the kernels, the model and the recipe."""
    shapes = [
        (name, matrix.columns, [(slab.rows, slab.type.name) for slab in matrix.slabs])
        for name, matrix in sorted(weights.matrices.items())
    ]
    heads = (spec.n_heads, spec.n_kv_heads, spec.head_dim, kv_format)
    facts = (device.adapter, device.limits, device.kernels_id, shapes, heads, recipe.decode)
    return hashlib.sha256(repr(facts).encode()).hexdigest()
