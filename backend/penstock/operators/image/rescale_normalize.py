"""`rescale_normalize`: the last step of many models' preprocessors, with the arithmetic of the library that they use."""

from __future__ import annotations

from penstock.data_types import FLOAT, UINT8, dtype_name
from penstock.operators.image._lookup_store import PLANES, LookupStore, look_up
from penstock.operators.image._normalizing import NORMALIZING_ARGUMENTS, checked_table, factors_of
from penstock.schema import (
    Argument,
    Equivalent,
    Input,
    OutputSpec,
    Sample,
    Schema,
    Workspace,
    register_operator,
)
from penstock.schema.example_data import Example, on_photo
from penstock.schema.image_chain import ChainOperator
from penstock.schema.operator import Shape

_LAYOUTS = {"CHW": PLANES, "HWC": (0, 1, 2)}


@register_operator
class RescaleNormalize(ChainOperator):
    """Computes ``(x / divisor - mean) / std`` of uint8 images, bit for bit as torchvision or numpy does, and transposes them.

    This is the last step of the image processors of `transformers`. `crop_mirror_normalize` rounds in other ways.

    >>> tensors = fn.rescale_normalize(images, mean=[0.5] * 3, std=[0.5] * 3)  # doctest: +SKIP
    """

    schema = Schema(
        name="RescaleNormalize",
        inputs=(Input("input", ("HWC", "FHWC"), doc="Images of uint8."),),
        arguments=(
            *NORMALIZING_ARGUMENTS,
            Argument("output_layout", "layout", "CHW", "Layout of the output: CHW or HWC.", example="HWC"),
        ),
        sequences=True,
        examples=(Example({"mean": [0.5, 0.4, 0.3], "std": [0.2, 0.25, 0.3]}),),
        shown=(on_photo(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225], output_layout="HWC"),),
        equivalents=(
            Equivalent(
                "torchvision.transforms.v2.Normalize",
                "On values from 0 to 255, with mean and deviation 255 times as large.",
            ),
        ),
    )

    plans_by_shape = True

    def setup(self) -> None:
        arguments = self.args
        if arguments["output_layout"] not in _LAYOUTS:
            raise ValueError(f"`output_layout` must be CHW or HWC. Got: {arguments['output_layout']}")
        settings = [self.args[argument.name] for argument in NORMALIZING_ARGUMENTS]
        self._table = checked_table(*settings)
        self._factors = factors_of(self._table, *settings)

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        if batch.dtype != UINT8:
            raise RuntimeError(f"Images must be uint8. Got: {dtype_name(batch.dtype)}")
        return [OutputSpec(FLOAT, self.args["output_layout"], batch.ndim())]

    def infer(self, sample: Sample) -> Shape:
        shape, channels = sample.shapes[0], len(self._table)
        if channels not in (1, shape[2]):
            raise RuntimeError(f"`mean` and `std` have {channels} values, but the image has {shape[2]} channels")
        return tuple(shape[axis] for axis in self._permutation)

    @property
    def _permutation(self) -> tuple[int, ...]:
        return _LAYOUTS[self.args["output_layout"]]

    def compute(self, sample: Sample) -> None:
        look_up(sample.inputs[0], self._table, sample.outputs[0], self._permutation, self._factors)

    def compute_batch(self, workspace: Workspace) -> None:
        from penstock.kernels.cuda.launch import locate_all
        from penstock.operators.image._rescale_normalize_cuda import look_up as look_up_on_gpu

        samples = workspace.live
        sources, targets = locate_all(workspace.inputs[0], samples), locate_all(workspace.outputs[0], samples)
        look_up_on_gpu(list(zip(sources, targets)), self._table, self.args["output_layout"] == "CHW")

    def stage(self, sample: Sample) -> LookupStore:
        shape = sample.shapes[0]
        shape = tuple(shape[axis] for axis in self._permutation)
        return LookupStore(self._table, self._factors, self._permutation, shape)
