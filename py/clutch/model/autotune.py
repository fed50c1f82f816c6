"""Tries other products of a decode step on the GPU that will run them, with its weights, and takes what is faster.

A round tries one more product for every role: the new kernels are compiled together, and the dispatches of all layers
run as one pass, against the best so far. What they compute is worth nothing: activations are as they lie. How exact a
kernel is, the self-test says afterwards.
"""

from dataclasses import dataclass, replace
from time import perf_counter

from clutch.gpu.device import Device, Dispatch
from clutch.gpu.kernels import Kernel
from clutch.gpu.products import Rows
from clutch.gpu.step import settings
from clutch.model.alternatives import alternatives
from clutch.model.llama import Llama
from clutch.model.recipe import LM_HEAD, Recipe
from clutch.sampling.params import SamplingParams

# A pass lasts so long: Chromium rounds timestamps to 65.5 us, and the wall's clock knows when somebody notices.
_SPAN_US, _SPAN_WITHOUT_TIMESTAMPS_US = 3_000, 10_000
_MOST_REPEATS = 256
# A choice should be the same at the next load: as fast is not faster, and once is not enough.
_MUCH_FASTER = 0.95
_TRIES = 2
# The first token of the sequence in slot 0, as for the self-test, which writes over all of it.
_SEQUENCES = [(0, 0)]

DEFAULT, TUNED, KEPT = "default", "tuned", "kept"


@dataclass(frozen=True)
class Choice:
    """A recipe and how it was chosen.

    Args:
        recipe: the choice.
        origin: `DEFAULT`: as the recipe says; `TUNED`: tried at this load; `KEPT`: tried at an earlier one.
        tuning_ms: what the trying took.
    """

    recipe: Recipe
    origin: str = DEFAULT
    tuning_ms: int = 0

    def to_wire(self) -> dict[str, object]:
        """Return the JSON-able form, for the page's details."""
        return {"recipe": self.recipe.name, "origin": self.origin, "tuning_ms": self.tuning_ms}


async def tune(device: Device, model: Llama, recipe: Recipe, budget_ms: int) -> Choice:
    """Return `recipe` with the fastest products that were found within `budget_ms`.

    Args:
        device: with the weights on it; no step is in flight, and it knows where steps keep their uniforms.
        model: that `recipe` was made for; the kernels of its decode step are compiled.
        recipe: to start from.
        budget_ms: after which no more is tried; what is under way is finished.

    Raises:
        DeviceLost, DeviceTimeout: as for every wait.
    """
    start = perf_counter()
    end = start + budget_ms / 1000
    device.configure(0, settings(SamplingParams(), 0, 0))
    races = [_Race(device, model, role, product) for role, product in recipe.decode.products.items()]
    round_s = 0.0
    while perf_counter() + round_s < end and (running := [race for race in races if race.enter()]):
        began = perf_counter()
        await device.compile([kernel for race in running for kernel in race.kernels], lambda *_: None)
        for race in running:
            if perf_counter() < end:
                await race.run()
        round_s = perf_counter() - began
    products = {race.role: race.best for race in races}
    found = replace(recipe, decode=replace(recipe.decode, products=products))
    return Choice(found, TUNED, round((perf_counter() - start) * 1000))


class _Race:
    """The products of one role: the best so far, and the next one that challenges it."""

    def __init__(self, device: Device, model: Llama, role: str, product: Rows) -> None:
        self.role = role
        self.best = product
        self._device = device
        self._model = model
        self._others = iter(alternatives(product, device.adapter.subgroup_size))
        self._of_best = model.of_role(role, product)
        self._n_workgroups = _n_workgroups(self._of_best)
        self._repeats = 0

    def enter(self) -> bool:
        """Prepare the next product; False when there is none."""
        for other in self._others:
            self._other, self._of_other = other, self._model.of_role(self.role, other)
            # Each workgroup of the head leaves a candidate, for which there must be room.
            if self.role != LM_HEAD or _n_workgroups(self._of_other) <= self._n_workgroups:
                return True
        return False

    @property
    def kernels(self) -> list[Kernel]:
        """What must be compiled for the next product."""
        return [dispatch.kernel for dispatch in self._of_other]

    async def run(self) -> None:
        """Let the next product take the place of the best, if it is faster every time."""
        if not self._repeats:
            await self._find_repeats()
        for _ in range(_TRIES):
            # The best runs last: a clock of the GPU that still rises helps it.
            other_us = await self._measure(self._of_other)
            if not other_us < await self._measure(self._of_best) * _MUCH_FASTER:
                return
        self.best, self._of_best = self._other, self._of_other

    async def _find_repeats(self) -> None:
        self._repeats = 1
        span_us = _SPAN_US if self._device.has_timestamps else _SPAN_WITHOUT_TIMESTAMPS_US
        once_us = await self._measure(self._of_best)
        self._repeats = max(1, min(_MOST_REPEATS, round(span_us / max(once_us, 1))))

    async def _measure(self, dispatches: list[Dispatch]) -> float:
        return await self._device.measure(self._device.record(dispatches), _SEQUENCES, 1, self._repeats)


def _n_workgroups(dispatches: list[Dispatch]) -> int:
    return sum(dispatch.workgroups for dispatch in dispatches)
