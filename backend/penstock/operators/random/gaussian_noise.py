"""`noise.gaussian`: additive Gaussian noise."""

from __future__ import annotations

import numpy as np

from penstock.data_types import numpy_dtype
from penstock.operators.random._draw import is_wide
from penstock.operators.random._noise import NOISY, Noise
from penstock.schema import Argument, Equivalent, Sample, Schema, Workspace, register_operator
from penstock.schema.example_data import on_photo


@register_operator
class GaussianNoise(Noise):
    """Adds a normally distributed number to each element. Integers are rounded and saturate.

    >>> noisy = fn.noise.gaussian(images, stddev=fn.random.uniform(range=[0, 20]))
    """

    schema = Schema(
        name="noise__Gaussian",
        inputs=(NOISY,),
        arguments=(
            Argument("mean", "float", 0.0, "Mean of the noise.", tensor=True, zero_dimensional=True),
            Argument("stddev", "float", 1.0, "Standard deviation of the noise.", tensor=True, zero_dimensional=True),
        ),
        random=True,
        stateful=True,
        shown=(on_photo(stddev=30.0),),
        equivalents=(
            Equivalent("torchvision.transforms.v2.GaussianNoise", "For floats from 0 to 1; it draws other numbers."),
        ),
    )

    def compute(self, sample: Sample) -> None:
        from penstock.kernels.cpu import noise

        source, out = np.ascontiguousarray(sample.inputs[0]).reshape(-1), sample.outputs[0].reshape(-1)
        mean, stddev = np.float32(sample["mean"]), np.float32(sample["stddev"])
        if is_wide(out.dtype):
            noise.add_normal_double(out, source, *self.stream(sample), float(mean), float(stddev))
        else:
            noise.add_normal(out, source, *self.stream(sample), mean, stddev)

    def compute_batch(self, workspace: Workspace) -> None:
        from penstock.kernels.cuda.launch import locate_all
        from penstock.kernels.cuda.philox import Drawing, add_noise

        samples = workspace.live
        sources, targets = locate_all(workspace.inputs[0], samples), locate_all(workspace.outputs[0], samples)
        drawings = [
            Drawing(target, self.stream_index(workspace, s.index), float(s["mean"]), float(s["stddev"]), source=source)
            for s, source, target in zip(samples, sources, targets)
        ]
        wide = is_wide(numpy_dtype(workspace.outputs[0].dtype))
        add_noise("NormalDouble" if wide else "Normal", drawings, self.first_stream(workspace))
