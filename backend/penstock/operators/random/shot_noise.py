"""`noise.shot`: Poisson noise, as from counting photons."""

from __future__ import annotations

import numpy as np

from penstock.operators.random._noise import NOISY, Noise
from penstock.schema import Argument, Sample, Schema, Workspace, register_operator
from penstock.schema.example_data import on_photo

# The default of `factor` with which DALI computes, although it declares 20.
_FACTOR_IN_USE = 12.0


@register_operator
class ShotNoise(Noise):
    """Replaces x by a scaled Poisson-distributed number with the same mean: ``poisson(x / factor) * factor``.

    >>> noisy = fn.noise.shot(images, factor=10.0)
    """

    schema = Schema(
        name="noise__Shot",
        inputs=(NOISY,),
        arguments=(
            Argument(
                "factor",
                "float",
                20.0,
                "Strength of the noise: the number of units per photon. The default is 12.",
                tensor=True,
                zero_dimensional=True,
            ),
        ),
        random=True,
        stateful=True,
        shown=(on_photo(factor=30.0),),
    )

    def compute(self, sample: Sample) -> None:
        from penstock.kernels.cpu import shots

        source, out = np.ascontiguousarray(sample.inputs[0]).reshape(-1), sample.outputs[0].reshape(-1)
        shots.replace_by_shots(out, source, *self.stream(sample), np.float32(_factor(sample)))

    def compute_batch(self, workspace: Workspace) -> None:
        from penstock.kernels.cuda.launch import locate_all
        from penstock.kernels.cuda.philox import Drawing, replace_by_shots

        samples = workspace.live
        sources, targets = locate_all(workspace.inputs[0], samples), locate_all(workspace.outputs[0], samples)
        drawings = [
            Drawing(target, self.stream_index(workspace, s.index), float(_factor(s)), source=source)
            for s, source, target in zip(samples, sources, targets)
        ]
        replace_by_shots(drawings, self.first_stream(workspace))


def _factor(sample: Sample) -> float:
    """Return a sample's `factor`. For a factor of 0, return the largest float32, which replaces all values with 0."""
    if not sample.given("factor"):
        return _FACTOR_IN_USE
    return sample["factor"] or float(np.finfo(np.float32).max)
