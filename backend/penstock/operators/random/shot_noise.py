"""`noise.shot`: the noise of counting photons."""

from __future__ import annotations

import numpy as np

from penstock.operators.random._noise import NOISY, Noise
from penstock.schema import Argument, Sample, Schema, Workspace, register_operator
from penstock.schema.samples import on_photo

# DALI declares 20 as the default of `factor`, but this is what it computes with when none is given.
_FACTOR_IN_USE = 12.0


@register_operator
class ShotNoise(Noise):
    """Replaces each element by a scaled number of the Poisson distribution around it: ``poisson(x / factor) * factor``.

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
                "How strong the noise is: as if so many units of the input were one photon. Where it is not given, "
                "12 is used.",
                tensor=True,
                zero_dimensional=True,
            ),
        ),
        random=True,
        stateful=True,
        shown=(on_photo(factor=30.0),),
    )

    def compute(self, sample: Sample) -> None:
        from penstock.kernels.cpu import philox

        source, out = np.ascontiguousarray(sample.inputs[0]).reshape(-1), sample.outputs[0].reshape(-1)
        philox.replace_by_shots(out, source, *self.stream(sample), np.float32(_factor(sample)))

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
    """How strong the noise of a sample is; 0 makes everything 0, as does a factor far above all values."""
    if not sample.given("factor"):
        return _FACTOR_IN_USE
    return sample["factor"] or float(np.finfo(np.float32).max)
