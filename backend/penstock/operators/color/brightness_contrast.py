"""`brightness_contrast`, `brightness`, `contrast`."""

from __future__ import annotations

import numpy as np

from penstock.kernels.colour import full_range, half_range
from penstock.operators.color._linear import BRIGHTNESS, DTYPE, LinearColourOperator
from penstock.schema import Argument, Equivalent, Input, Samples, Schema, register_operator
from penstock.schema.example_data import on_photo

_IMAGES = Input("input", ("FHWC", "DHWC", "HWC"), doc="Images of uint8, int16, int32 or float.")
_SHIFT = Argument(
    "brightness_shift", "float", 0.0, "Added, as a fraction of the output type's range.", tensor=True, per_frame=True
)
_CONTRAST = Argument(
    "contrast",
    "float",
    1.0,
    "Factor of the distance from `contrast_center`; 1 changes nothing.",
    tensor=True,
    per_frame=True,
)
_CENTER = Argument(
    "contrast_center",
    "float",
    0.5,
    "The value that contrast does not change; by default the middle of the input type's range (128 for uint8, 0.5 for float).",
    tensor=True,
    per_frame=True,
)


class _BrightnessContrast(LinearColourOperator):
    """Base class of operators that compute ``shift * range + brightness * (center + contrast * (x - center))``.

    ``range`` is the full range of the output's type.
    """

    def linear_maps(self, samples: Samples) -> tuple[np.ndarray, np.ndarray]:
        dtype_in = samples.workspace.inputs[0].dtype
        dtype_out = dtype_in if self.args["dtype"] is None else self.args["dtype"]
        # Compute in single precision, like DALI.
        brightness = self._values(samples, "brightness", 1.0)
        contrast = self._values(samples, "contrast", 1.0)
        centre = np.float32(half_range(dtype_in))
        if samples.given("contrast_center"):
            centre = np.float32(samples.scalars("contrast_center"))
        shift = self._values(samples, "brightness_shift", 0.0) * np.float32(full_range(dtype_out))
        offsets = shift + brightness * (centre - contrast * centre)
        return (brightness * contrast)[:, None, None], offsets[:, None]

    def _values(self, samples: Samples, name: str, default: float) -> np.ndarray:
        return np.asarray(samples.scalars(name) if name in self.args else [default], np.float32)


@register_operator
class BrightnessContrast(_BrightnessContrast):
    """Changes brightness and contrast: ``shift * range + brightness * (center + contrast * (x - center))``."""

    keeps_frame_shape = True
    schema = Schema(
        name="BrightnessContrast",
        inputs=(_IMAGES,),
        arguments=(BRIGHTNESS, _SHIFT, _CONTRAST, _CENTER, DTYPE),
        sequences=True,
        volumetric=True,
        shown=(on_photo(brightness=1.2, contrast=1.6),),
        equivalents=(
            Equivalent(
                "cv2.convertScaleAbs",
                "With `contrast_center=0`; it takes the absolute value of what is negative, which becomes 0 here.",
            ),
        ),
    )


@register_operator
class Brightness(_BrightnessContrast):
    """Changes brightness: ``shift * range + brightness * x``."""

    keeps_frame_shape = True
    schema = Schema(
        name="Brightness",
        inputs=(_IMAGES,),
        arguments=(BRIGHTNESS, _SHIFT, DTYPE),
        sequences=True,
        volumetric=True,
        shown=(on_photo(brightness=1.6),),
        equivalents=(
            Equivalent(
                "torchvision.transforms.v2.functional.adjust_brightness", "It drops fractions, which are rounded here."
            ),
            Equivalent("PIL.ImageEnhance.Brightness", "It drops fractions, which are rounded here."),
        ),
    )


@register_operator
class Contrast(_BrightnessContrast):
    """Changes contrast: ``center + contrast * (x - center)``."""

    keeps_frame_shape = True
    schema = Schema(
        name="Contrast",
        inputs=(_IMAGES,),
        arguments=(_CONTRAST, _CENTER, DTYPE),
        sequences=True,
        volumetric=True,
        shown=(on_photo(contrast=2.0),),
        equivalents=(
            Equivalent(
                "torchvision.transforms.v2.functional.adjust_contrast",
                "The centre is the image's mean grey; here it is `contrast_center`, by default 128.",
            ),
            Equivalent(
                "PIL.ImageEnhance.Contrast",
                "The centre is the image's mean grey; here it is `contrast_center`, by default 128.",
            ),
        ),
    )
