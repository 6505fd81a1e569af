"""`mfcc`: mel-frequency cepstral coefficients."""

from __future__ import annotations

import numpy as np

from penstock.kernels import c_math
from penstock.operators.audio._axes import (
    KnownSums,
    SumPlans,
    WeightedSums,
    combine_along,
    combine_batch,
    spectral_spec,
)
from penstock.schema import Argument, Input, Operator, OutputSpec, Sample, Samples, Schema, Workspace, register_operator
from penstock.schema.example_data import Example, decibels, random_arrays


@register_operator
class MFCC(Operator[None, WeightedSums, SumPlans]):
    """The first coefficients of the discrete cosine transform along one axis, optionally liftered.

    The transform is unscaled (for type 2, the first coefficient of N ones is N) unless `normalize` makes it orthonormal.

    >>> coefficients = fn.mfcc(fn.to_decibels(mel), n_mfcc=13)
    """

    schema = Schema(
        name="MFCC",
        inputs=(
            Input(
                "input",
                doc="Mel spectrograms in decibels: float32, of at least 2 dimensions.",
                example=random_arrays((40, 10), (40, 7), (40, 12), low=-80, high=0, layout="ft"),
            ),
        ),
        arguments=(
            Argument("axis", "int32", 0, "The axis of the bands."),
            Argument("dct_type", "int32", 2, "Type of the cosine transform: 1, 2, 3 or 4.", example=3),
            Argument(
                "lifter", "float", 0.0, "L: coefficient k is multiplied by 1 + L/2 sin(pi (k+1) / L); 0: disabled."
            ),
            Argument("n_mfcc", "int32", 20, "Number of coefficients."),
            Argument("normalize", "bool", False, "Make the transform orthonormal; not for type 1."),
        ),
        shown=(Example({}, (decibels,)),),
    )

    def setup(self) -> None:
        if self.args["axis"] < 0:
            raise RuntimeError(f"Provided axis cannot be negative, got {self.args['axis']}")
        if self.args["n_mfcc"] <= 0:
            raise RuntimeError(f"The number of MFCCs should be > 0, got {self.args['n_mfcc']}")
        if self.args["dct_type"] not in (1, 2, 3, 4):
            raise RuntimeError(f"Unsupported DCT type: {self.args['dct_type']}. Supported types are: 1, 2, 3, 4")
        if self.args["dct_type"] == 1 and self.args["normalize"]:
            raise RuntimeError("Ortho-normalization is not supported for DCT type I (`dct_type=1`)")
        self._matrices = KnownSums(self._make_matrix)

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        spec = spectral_spec(workspace)
        if spec.ndim is not None and spec.ndim < 2:
            raise RuntimeError(f"Unsupported number of dimensions {spec.ndim}: at least 2 are expected")
        if spec.ndim is not None and self.args["axis"] >= spec.ndim:
            raise RuntimeError(f"Axis {self.args['axis']} is out of bounds [0,{spec.ndim}) of the input's dimensions")
        return [spec]

    def infer_batch(self, samples: Samples[None, WeightedSums, SumPlans]) -> tuple[np.ndarray, SumPlans]:
        shapes, axis = samples.shapes(), self.args["axis"]
        plans = self._matrices.plans(shapes[:, axis : axis + 1])
        shapes[:, axis] = np.minimum(shapes[:, axis], self.args["n_mfcc"])
        return shapes, plans

    def compute(self, sample: Sample[None, WeightedSums, SumPlans]) -> None:
        combine_along(self.args["axis"], sample.inputs[0], sample.plan, sample.outputs[0])

    def compute_batch(self, workspace: Workspace[None, WeightedSums, SumPlans]) -> None:
        combine_batch(self.args["axis"], workspace)

    def _make_matrix(self, count: int) -> WeightedSums:
        rows = min(self.args["n_mfcc"], count)
        matrix = _cosines(self.args["dct_type"], count, self.args["normalize"])[:rows].astype(np.float32)
        return WeightedSums(np.zeros(rows, np.int64), matrix, self._lifters(rows))

    def _lifters(self, rows: int) -> np.ndarray | None:
        lifter = np.float32(self.args["lifter"])
        if not lifter:
            return None
        with np.errstate(all="ignore"):
            phases = np.float32(np.pi) / lifter * np.arange(1, rows + 1, dtype=np.float32)
        return np.float32(1) + lifter / np.float32(2) * c_math.sin(phases)


def _cosines(kind: int, count: int, orthonormal: bool) -> np.ndarray:
    """Return the matrix of the discrete cosine transform of type ``kind`` for inputs of ``count`` elements."""
    if count == 0:
        return np.empty((0, 0))
    k, n = np.arange(count)[:, None], np.arange(count)[None, :]
    if kind == 1:
        if count < 2:
            raise RuntimeError("DCT type I requires an input length of more than 1")
        matrix = np.cos(np.pi / (count - 1) * k * n)
        matrix[:, [0, -1]] *= 0.5
    elif kind == 2:
        matrix = np.cos(np.pi / count * (n + 0.5) * k)
    elif kind == 3:
        matrix = np.cos(np.pi / count * n * (k + 0.5))
        matrix[:, 0] *= 0.5
    else:
        matrix = np.cos(np.pi / count * (n + 0.5) * (k + 0.5))
    if not orthonormal:
        return matrix
    matrix *= np.sqrt(2 / count)
    if kind == 2:
        matrix[0] *= np.sqrt(0.5)
    elif kind == 3:
        matrix[:, 0] *= np.sqrt(2)
    return matrix
