"""`fitted_size`: the size that a model needs for each image."""

from __future__ import annotations

import numpy as np

from penstock.data_types import FLOAT, INT32
from penstock.kernels.fitted_sizes import RULES, SizeArguments, fitted, pairs
from penstock.schema import Argument, Input, Operator, OutputSpec, Sample, Schema, Workspace, register_operator
from penstock.schema.example_data import Example


@register_operator
class FittedSize(Operator):
    """Finds the size to which a model's image processor resizes each image, from the image's shape alone.

    Returns the height and width to resize to, FLOAT as `resize` accepts them, and the height and width of the canvas on
    which the resized image is placed, INT32; without padding, the canvas has the size of the image.

    >>> size, canvas = fn.fitted_size(images, rule="qwen2-vl", factor=28, least=56 * 56, most=28 * 28 * 1280)
    >>> images = fn.resize(images, size=size)
    """

    schema = Schema(
        name="FittedSize",
        devices=("cpu",),
        inputs=(
            Input(
                "images",
                ("HWC", "FHWC"),
                device="any",
                doc="Images or videos of any type, on CPU or GPU; only their shapes are used.",
            ),
        ),
        arguments=(
            Argument(
                "canvases",
                "int32[]",
                [],
                "Heights and widths to choose from, or to fit: `letterbox`, `llava-next`, `within` and others.",
            ),
            Argument("factor", "int32", 1, "Extents are multiples of it: `qwen2-vl`, `siglip2` and others."),
            Argument(
                "least", "int32", 0, "Lower bound: of pixels, of the shorter side (`detr`), of tiles (`internvl`)."
            ),
            Argument("most", "int32", 0, "Upper bound: of pixels, patches, of the longer side, or of tiles."),
            Argument(
                "rule",
                "string",
                None,
                "Whose sizes: " + ", ".join(f"`{name}`" for name in RULES) + ".",
                required=True,
                choices=tuple(RULES),
                example="pixtral",
                exempt="Each rule needs arguments of its own.",
            ),
            Argument("tile", "int32[]", [1, 1], "Height and width of a tile: `internvl`, `llama4`."),
        ),
        outputs=2,
        exempt={"sequences": "a video has one size, which is that of its frames"},
        examples=(
            Example({"rule": "pixtral", "factor": 4, "most": 20}),
            Example({"rule": "qwen2-vl", "factor": 4, "least": 100, "most": 400}),
            Example({"rule": "letterbox", "canvases": [32, 48]}),
        ),
    )

    plans_by_shape = True

    def setup(self) -> None:
        arguments, rule = self.args, self.args["rule"]
        if rule not in RULES:
            raise ValueError(f"`rule` must be one of {', '.join(RULES)}. Got: {rule!r}")
        if len(arguments["tile"]) != 2 or len(arguments["canvases"]) % 2:
            raise ValueError("`tile` must be (height, width), and `canvases` must have one width for each height")
        if min([arguments["factor"], *arguments["tile"], *arguments["canvases"]]) < 1 or arguments["most"] < 0:
            raise ValueError("`factor`, `tile`, `canvases` and `most` must be positive")
        self._arguments = SizeArguments(
            arguments["factor"],
            arguments["least"],
            arguments["most"],
            pairs(arguments["canvases"]),
            (arguments["tile"][0], arguments["tile"][1]),
        )
        needed = RULES[rule].needs
        if not arguments[needed]:
            raise ValueError(f"`rule='{rule}'` needs `{needed}`")

    def describe(self, workspace: Workspace) -> list[OutputSpec]:
        return [OutputSpec(FLOAT, "", 1), OutputSpec(INT32, "", 1)]

    def infer(self, sample: Sample) -> list[tuple[int, ...]]:
        *frames, height, width, _ = sample.shapes[0]
        arguments = self._arguments._replace(frames=frames[0]) if frames else self._arguments
        sample.plan = fitted(self.args["rule"], height, width, arguments)
        return [(2,), (2,)]

    def compute(self, sample: Sample) -> None:
        fit = sample.plan
        sample.outputs[0][...] = np.array(fit[:2], np.float32)
        sample.outputs[1][...] = np.array(fit[2:], np.int32)
