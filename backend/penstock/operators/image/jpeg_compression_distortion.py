"""`jpeg_compression_distortion`: JPEG artefacts."""

from __future__ import annotations

import numpy as np

from penstock.data_types import UINT8, dtype_name
from penstock.schema import (
    Argument,
    Equivalent,
    Input,
    Operator,
    OutputSpec,
    Sample,
    Schema,
    Workspace,
    register_operator,
)
from penstock.schema.example_data import on_photo
from penstock.schema.libraries import OPENCV


@register_operator
class JpegCompressionDistortion(Operator[None, int]):
    """Encodes images as JPEG and decodes them again, to add compression artefacts."""

    keeps_frame_shape = True
    schema = Schema(
        name="JpegCompressionDistortion",
        needs=(OPENCV,),
        inputs=(Input("input", ("HWC", "FHWC"), doc="RGB images of uint8."),),
        arguments=(
            Argument(
                "quality",
                "int32",
                50,
                "From 1 (worst) to 100 (best); others are clamped.",
                tensor=True,
                zero_dimensional=True,
            ),
        ),
        sequences=True,
        shown=(on_photo(quality=5),),
        equivalents=(
            Equivalent("torchvision.transforms.v2.JPEG", "It draws the quality from a range."),
            Equivalent("cv2.imencode", "With `cv2.imdecode` after it, on BGR images."),
            Equivalent("PIL.Image.Image.save", "With `PIL.Image.open` after it."),
        ),
    )

    def describe(self, workspace: Workspace[None, int]) -> list[OutputSpec]:
        batch = workspace.inputs[0]
        layout = self.input_layout(workspace)
        if batch.dtype != UINT8:
            raise RuntimeError(f"Images must be uint8, got {dtype_name(batch.dtype)}")
        return [OutputSpec(UINT8, layout, 3)]

    def infer(self, sample: Sample[None, int]) -> tuple[int, ...]:
        shape = sample.shapes[0]
        if shape[2] != 3:
            raise RuntimeError(f"Images must have 3 channels (RGB), got shape {list(shape)}")
        sample.plan = min(max(sample["quality"], 1), 100)
        return shape

    def compute(self, sample: Sample[None, int]) -> None:
        from penstock.kernels.codecs.libraries import simplejpeg
        from penstock.kernels.cpu.opencv import keep, opencv

        cv2, target = opencv(), sample.outputs[0]
        if not target.size:
            raise RuntimeError(f"Cannot encode an empty image of shape {list(target.shape)}")
        image = cv2.cvtColor(np.ascontiguousarray(sample.inputs[0]), cv2.COLOR_RGB2BGR)
        _, encoded = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, sample.plan])
        if simplejpeg() is not None:
            # Decodes to the same pixels as OpenCV, but is faster.
            simplejpeg().decode_jpeg(encoded, "RGB", fastdct=False, buffer=target)
            return
        decoded = cv2.imdecode(encoded, cv2.IMREAD_COLOR)
        keep(cv2.cvtColor(decoded, cv2.COLOR_BGR2RGB, dst=target), target)

    def compute_batch(self, workspace: Workspace[None, int]) -> None:
        from penstock.kernels.cuda.launch import locate_all
        from penstock.operators.image._jpeg_cuda import distort_images

        samples = workspace.live
        sources, targets = locate_all(workspace.inputs[0], samples), locate_all(workspace.outputs[0], samples)
        distort_images([(source, s.plan, target) for s, source, target in zip(samples, sources, targets)])
