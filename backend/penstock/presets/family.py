"""The base classes of all families of processors: reading their settings, and the steps that most of them share."""

from __future__ import annotations

import functools
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeVar

import numpy as np

from penstock import fn, types
from penstock.errors import PenstockError, did_you_mean
from penstock.graph import DataNode
from penstock.kernels.fitted_sizes import SizeArguments

_log = logging.getLogger(__name__)
PIXELS = "pixel_values"
CHANNELS = 3
ARITHMETIC = {"torchvision": "torchvision", "pil": "numpy"}
"""The library whose arithmetic is used for normalizing, by the library that is used for resizing."""
# The names of PIL's and of torchvision's filters, by PIL's numbers.
_PIL_FILTERS = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic", 4: "box", 5: "hamming"}
_TORCHVISION_FILTERS = {0: "nearest-exact", 1: "lanczos", 2: "bilinear", 3: "bicubic"}
# Settings in many configurations that change no value of an RGB image, unless a family has them as an attribute.
# `make parity` tries every setting of every class.
_WITHOUT_EFFECT = frozenset(
    {
        "_valid_processor_keys",
        "aspect_ratio_setting",
        "auto_map",
        "data_format",
        "device",
        "disable_grouping",
        "do_convert_annotations",
        "do_convert_rgb",
        "do_reduce_labels",
        "feature_extractor_type",
        "format",
        "ignore_index",
        "image_processor_type",
        "image_seq_length",
        "input_data_format",
        "mask_pad_size",
        "mask_size",
        "num_labels",
        "processor_class",
        "reduce_labels",
        "return_metadata",
        "return_tensors",
        "video_processor_type",
        "video_sampling",
    }
)
# Settings that change values, and that some classes of transformers read although no family here has them: noise, and CLIP's older
# name for a square size.
_READ_BY_SOME = frozenset({"dither", "use_square_size"})
# Sizes that are only read if a flag is set, with the flag.
_FLAGS = {"crop_size": "do_center_crop", "pad_size": "do_pad"}


class PresetError(PenstockError, ValueError):
    """The error for a configuration that presets do not support."""


Values = dict[str, Any]
"""Values by name: the settings of a configuration, or the outputs of a processor."""
Features = Mapping[str, np.ndarray]
"""A pipeline's results for one image, by the names of its outputs."""


@dataclass(frozen=True, kw_only=True)
class Family:
    """Base class of families: processors that do the same with different settings. An instance contains the settings."""

    names: ClassVar[tuple[str, ...]] = (PIXELS,)
    """The names of the outputs."""
    tells_by: ClassVar[tuple[str, ...]] = ()
    """The names of the model's properties that are needed, in addition to the settings, to count an image's tokens."""
    hidden: ClassVar[frozenset[str]] = frozenset()
    """Attributes that are not settings: they distinguish the classes of a family, and configurations cannot set them."""
    unchanged: ClassVar[frozenset[str]] = frozenset()
    """Settings that transformers' processor reads only when it is created, so that a call cannot change them."""
    none_means_default: ClassVar[bool] = False
    """Whether transformers' processor is of the older kind, for which None in a call means the default, and whose results may have
    interleaved channels.
    """
    unstacked: ClassVar[tuple[str, ...]] = ()
    """The outputs that a call always returns as lists with one item for each image."""
    separate_prompts: ClassVar[bool] = False
    """Whether each image of a list belongs to a separate prompt."""
    older_settings: ClassVar[Mapping[str, str]] = {}
    """The current names of settings, by the older names that transformers' processor accepts."""
    ignores_unknown: ClassVar[bool] = True
    """Whether transformers' processor stores unknown settings and ignores them, as most processors do."""
    bfloat16: ClassVar[bool] = False
    """Whether transformers' processor returns bfloat16; presets return the same values as float32."""
    kind: ClassVar[str] = "images"
    """The kind of input, which is also the name of the input: `images`, `videos` or `audio`."""

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the outputs that these settings give."""
        return self.names

    @property
    def concatenated(self) -> tuple[str, ...]:
        """The outputs that the processor concatenates along the first axis for several images; another output says which rows
        belong to which image."""
        return ()

    @property
    def on_host(self) -> bool:
        """Whether values are computed on the host even if outputs are on a GPU, because no GPU kernel gives the same values."""
        return False

    def converted(self, values: Values) -> Values:
        """Convert settings to the form in which this family stores them. ``values``: the configuration's settings, and the defaults of all
        others.

        Raises:
            PresetError: a setting has a value that is not supported.
        """
        return values

    def check(self, backend: str) -> None:
        """Raise PresetError if presets do not support these settings with the arithmetic of `backend`, `torchvision` or `pil`."""

    def process(self, data: DataNode, backend: str) -> tuple[DataNode, ...]:
        """Add operators to the graph; return the outputs, on the device of the input.

        Args:
            data: images (uint8, HWC), videos (uint8, FHWC) or sounds (float32).
            backend: the library whose arithmetic to use: `torchvision` or `pil`.
        """
        raise NotImplementedError

    def tokens(self, height: int, width: int, model: Mapping[str, int]) -> int:
        """Return the number of vision tokens of an image; ``model``: the model's properties that :attr:`tells_by` names."""
        raise PresetError(f"{type(self).__name__} does not tell how many tokens an image becomes")

    def tokens_of(self, size: Sequence[int], model: Mapping[str, int]) -> int:
        """Return the number of vision tokens of an image or video of a size, one of the ``sizes`` of :func:`count_tokens`.

        Raises:
            ValueError: ``size`` has another number of extents, or one is not positive.
        """
        height, width = checked_extents(size, ("height", "width"))
        return self.tokens(height, width, model)

    def shared_settings(self, sizes: Sequence[tuple[int, int]]) -> Values:
        """Return the settings that depend on all images of a call; ``sizes``: the images' heights and widths."""
        return {}

    def joined(self, images: Sequence[Features]) -> Values:
        """Return the processor's result for several images: for each output an array, or a list if the images' arrays differ in shape."""
        return {
            name: (np.concatenate if name in self.concatenated else stacked)([image[name] for image in images])
            for name in self.outputs
        }

    def joined_prompts(self, groups: Sequence[Sequence[Features]]) -> Values:
        """Return the processor's result for lists of images, one list for each prompt."""
        return self.joined([image for group in groups for image in group])


@dataclass(frozen=True, kw_only=True)
class ImageFamily(Family):
    """Image processors that resize, rescale and normalize.

    Attributes:
        do_resize, do_rescale, do_normalize: the steps to apply.
        resample: PIL's number of the filter for resizing.
        rescale_factor: the factor by which values are multiplied.
        image_mean, image_std: the mean and standard deviation of each channel.
        torchvision_only: whether transformers has no variant of the class for PIL.
        ignored: settings that transformers' processor accepts without effect.
    """

    image_mean: tuple[float, ...] = (0.5, 0.5, 0.5)
    image_std: tuple[float, ...] = (0.5, 0.5, 0.5)
    resample: int = 2
    do_resize: bool = True
    do_rescale: bool = True
    do_normalize: bool = True
    rescale_factor: float = 1 / 255
    torchvision_only: bool = False
    ignored: frozenset[str] = frozenset()

    hidden = frozenset({"torchvision_only", "ignored"})

    def converted(self, values: Values) -> Values:
        settings = dict(values)
        for key in ("image_mean", "image_std"):
            try:
                settings[key] = tuple(np.broadcast_to(np.asarray(settings[key], np.float64), CHANNELS).tolist())
            except (TypeError, ValueError):
                raise PresetError(
                    f"`{key}` must be a number, or one for each of {CHANNELS} channels. Got: {settings[key]!r}"
                ) from None
        return settings

    def check(self, backend: str) -> None:
        if self.torchvision_only and backend != "torchvision":
            raise PresetError("The class has no variant of `pil`")
        self.filter_of(backend)
        self._check_factor(backend)

    def _check_factor(self, backend: str) -> None:
        """Raise PresetError if values are multiplied by a `rescale_factor` that is not exactly the reciprocal of a float32 number."""
        if self.do_rescale and not self.rescale_factor:
            raise PresetError("`rescale_factor` must not be 0")
        if self.fuses_factor(backend):
            return
        divisor = self.divisor()
        if self.do_rescale and (1 / divisor != self.rescale_factor or float(np.float32(divisor)) != divisor):
            raise PresetError(
                f"`rescale_factor` must be the reciprocal of a float32 number, unless torchvision's arithmetic normalizes. "
                f"Got: {self.rescale_factor!r}"
            )

    def filter_of(self, backend: str) -> str:
        """Return the name of the filter in the library that resizes.

        Raises:
            PresetError: there is no such filter.
        """
        names = _PIL_FILTERS if backend == "pil" else _TORCHVISION_FILTERS
        if self.resample not in names:
            raise PresetError(
                f"`resample`: the filter {_PIL_FILTERS.get(self.resample, self.resample)} is not supported with the backend {backend}. "
                f"Supported are {', '.join(names.values())}"
            )
        return names[self.resample]

    def fuses_factor(self, backend: str) -> bool:
        """Return whether `image_mean` and `image_std` are divided by `rescale_factor`, instead of values being multiplied by it."""
        return self.do_normalize and backend == "torchvision"

    def divisor(self) -> float:
        """Return the reciprocal of `rescale_factor`, by which values are divided; 1 without rescaling."""
        if not self.do_rescale:
            return 1.0
        rounded = round(1 / self.rescale_factor, 6)
        return rounded if 1 / rounded == self.rescale_factor else 1 / self.rescale_factor

    @property
    def leaves_bytes(self) -> bool:
        """Whether results are uint8, because values are neither rescaled nor normalized."""
        return not (self.do_rescale or self.do_normalize)

    def check_floats(self) -> None:
        """Raise PresetError if results would be uint8."""
        if self.leaves_bytes:
            raise PresetError(
                "`do_rescale`, `do_normalize`: set at least one, because this class's presets always return floats"
            )

    def resized(self, images: DataNode, backend: str, size: DataNode | list[int]) -> DataNode:
        """Return images resized to ``size``: a constant height and width, or a node that computes them."""
        return fn.resize(images, size=size, reference=backend, interpolation=self.filter_of(backend))

    def normalized(self, images: DataNode, backend: str, name: str | None = PIXELS) -> DataNode:
        """Return images rescaled and normalized, in the layout CHW; ``name``: the output's name."""
        if self.leaves_bytes:
            return fn.transpose(images, perm=[2, 0, 1], name=name)
        return fn.rescale_normalize(images, **self.normalizing(backend), name=name)

    def normalizing(self, backend: str) -> Values:
        """Return the arguments for rescaling and normalizing, which several operators have."""
        mean, std = (self.image_mean, self.image_std) if self.do_normalize else ((), ())
        return {"divisor": self.divisor(), "mean": list(mean), "std": list(std), "reference": ARITHMETIC[backend]}


@dataclass(frozen=True, kw_only=True)
class FloatFamily(ImageFamily):
    """Image processors whose presets always return floats."""

    def check(self, backend: str) -> None:
        super().check(backend)
        self.check_floats()


AnyFamily = TypeVar("AnyFamily", bound=Family)


def settings_from(
    defaults: AnyFamily, configuration: Mapping[str, object], name: str, vocabulary: frozenset[str] = frozenset()
) -> AnyFamily:
    """Return the settings of a configuration, completed by the defaults of transformers' processor.

    Args:
        defaults: the default settings of transformers' processor.
        configuration: the configuration's settings by name.
        name: the name of the processor's class in transformers.
        vocabulary: the names of the settings of all classes; these do not count as misspelled.

    Raises:
        PresetError: a setting is unknown, or has a value that is not supported.
    """
    defaults_by_name = {each.name: getattr(defaults, each.name) for each in fields(defaults)}
    ignored = defaults_by_name.get("ignored", frozenset())
    known = defaults_by_name.keys() - defaults.hidden - ignored
    for given_key, value in configuration.items():
        key = defaults.older_settings.get(given_key, given_key)
        if value is None or key in ignored or (key != given_key and key in configuration):
            continue
        if key not in known:
            if not _has_no_effect(key, value, configuration):
                _ignore(defaults, key, value, name, vocabulary)
            continue
        defaults_by_name[key] = _of_type(value, defaults_by_name[key], f"{name}: `{key}`")
    if configuration.get("do_center_crop") and "crop_size" in ignored and not configuration.get("crop_size"):
        raise PresetError(f"{name}: `do_center_crop` needs a `crop_size`, though the class does not crop")
    try:
        return type(defaults)(**defaults.converted(defaults_by_name))
    except PresetError as error:
        raise PresetError(f"{name}: {error}") from None


def check_known(defaults: Family, settings: Mapping[str, object], name: str) -> None:
    """Raise PresetError if one of the settings is unknown to transformers' processor and may have an effect."""
    for key, value in settings.items():
        if not (value is None or key in known_settings(defaults) or _has_no_effect(key, value, settings)):
            raise _unknown_setting(defaults, key, value, name)


def known_settings(defaults: Family) -> frozenset[str]:
    """Return the names of a family's settings: those that it uses, those that it ignores, and older names."""
    ignored: frozenset[str] = getattr(defaults, "ignored", frozenset())
    known = frozenset(each.name for each in fields(defaults)) - defaults.hidden
    return known | ignored | defaults.older_settings.keys()


def _has_no_effect(key: str, value: object, configuration: Mapping[str, object]) -> bool:
    """Return whether a setting that a family does not have is known to change nothing."""
    # `default_to_square` only matters if `size` is a single number.
    if key == "default_to_square":
        return not isinstance(configuration.get("size"), int)
    if key in _FLAGS and not configuration.get(_FLAGS[key]):
        return True
    return key in _WITHOUT_EFFECT or (key.startswith("do_") and not value)


def _ignore(defaults: Family, key: str, value: object, name: str, vocabulary: frozenset[str]) -> None:
    """Log that a setting of a configuration is ignored, because the family does not have it.

    Raises:
        PresetError: the setting may not be ignored: it seems to be misspelled, requests a step that the processor does not have, or may
            change values.
    """
    if not value:
        return
    is_step = key.startswith("do_") or key in _FLAGS or key == "default_to_square"
    is_misspelled = key not in vocabulary and _nearest_setting(defaults, key)
    if is_step or is_misspelled or key in _READ_BY_SOME or not defaults.ignores_unknown:
        raise _unknown_setting(defaults, key, value, name)
    _log_ignored(name, key)


@functools.cache
def _log_ignored(name: str, key: str) -> None:
    _log.warning("%s: ignoring the setting `%s`, which the class does not have", name, key)


def _unknown_setting(defaults: Family, key: str, value: object, name: str) -> PresetError:
    near = _nearest_setting(defaults, key)
    return PresetError(f"{name}: no preset follows the setting `{key}` ({value!r}){near}")


def _nearest_setting(defaults: Family, key: str) -> str:
    return did_you_mean(key, sorted(known_settings(defaults)))


def _of_type(value: object, default: object, what: str) -> object:
    """Return the value, converted to the type of the default if that is a flag or a number; raise PresetError if it has another type."""
    if isinstance(default, bool):
        fits, wanted = isinstance(value, (bool, int)) and value in (0, 1), "true or false"
        return bool(value) if fits else _refuse(value, what, wanted)
    if isinstance(default, int):
        fits = isinstance(value, (int, float)) and not isinstance(value, bool) and value == int(value)
        return int(value) if fits else _refuse(value, what, "a whole number")  # type: ignore[call-overload]
    if isinstance(default, float):
        fits = isinstance(value, (int, float)) and not isinstance(value, bool)
        return value if fits else _refuse(value, what, "a number")
    return value


def _refuse(value: object, what: str, wanted: str) -> object:
    raise PresetError(f"{what} must be {wanted}. Got: {value!r}")


def size_of(value: object, square: bool, what: str, *forms: frozenset[str]) -> dict[str, int]:
    """Return a size as a mapping of names to lengths.

    Args:
        value: a number, a list of a height and a width, or a mapping.
        square: whether a single number is both height and width; otherwise, it is the shortest edge.
        what: what the size is, for messages.
        forms: the allowed sets of keys; by default height and width, or shortest edge, or none.

    Raises:
        PresetError: the size has another form, or a length is not positive.
    """
    allowed = forms or (frozenset({"height", "width"}), frozenset({"shortest_edge"}), frozenset())
    size: dict[str, int] | None = None
    if isinstance(value, int) and not isinstance(value, bool):
        size = {"height": value, "width": value} if square else {"shortest_edge": value}
    elif isinstance(value, (list, tuple)) and len(value) == 2:
        size = {"height": int(value[0]), "width": int(value[1])}
    elif isinstance(value, Mapping):
        size = {key: int(number) for key, number in value.items() if number is not None}
    if size is None or set(size) not in allowed:
        choices = ", or ".join(" and ".join(f"`{key}`" for key in sorted(form)) for form in allowed if form)
        raise PresetError(f"{what} must be a number, or have {choices}. Got: {value!r}")
    if min(size.values(), default=1) < 1:
        raise PresetError(f"{what} must be positive. Got: {value!r}")
    return size


def checked_extents(size: Sequence[int], names: Sequence[str]) -> Sequence[int]:
    """Return a size unchanged after checking it.

    Args:
        size: the extents.
        names: what each extent is, such as ``height``.

    Raises:
        ValueError: the number of extents is not that of the names, or one is not positive.
    """
    if len(size) != len(names) or min(size) < 1:
        raise ValueError(f"A size must have {', '.join(names)}, which must be positive. Got: {tuple(size)}")
    return size


def fitted_sizes(images: DataNode, rule: str, bounds: SizeArguments) -> tuple[DataNode, DataNode]:
    """Return the sizes to which a rule of :mod:`penstock.kernels.fitted_sizes` resizes images or videos, and the sizes of their
    canvases.
    """
    size, canvas = fn.fitted_size(
        images,
        rule=rule,
        factor=bounds.factor,
        least=bounds.least,
        most=bounds.most,
        canvases=[extent for canvas in bounds.canvases for extent in canvas],
        tile=list(bounds.tile),
    )
    return size, canvas


def in_corner(images: DataNode, canvas: DataNode) -> DataNode:
    """Return images in the upper left corner of a black canvas."""
    extents = fn.cast(canvas, dtype=types.FLOAT)
    return fn.crop(
        images,
        crop_h=extents[0],
        crop_w=extents[1],
        crop_pos_x=0.0,
        crop_pos_y=0.0,
        out_of_bounds_policy="pad",
        fill_values=[0],
    )


def as_floats(images: DataNode) -> DataNode:
    """Convert images from uint8 in the layout HWC to floats with the same values in the layout CHW."""
    return fn.rescale_normalize(images, divisor=1.0, output_layout="CHW")


def fused_floats(images: DataNode, family: ImageFamily, blue_first: bool, name: str | None) -> DataNode:
    """Rescale and normalize images in one step, as torchvision's processors do.

    Args:
        images: floats from 0 to 255, in the layout CHW.
        family: the settings.
        blue_first: whether channels are in BGR order, while the settings are in RGB order.
        name: the output's name.
    """
    if not family.do_normalize:
        values = images * family.rescale_factor
        return named(values, name, 3) if name else values
    factor = np.float32(1.0 / family.rescale_factor if family.do_rescale else 1.0)
    order = slice(None, None, -1 if blue_first else 1)
    mean, std = (
        types.Constant((np.array(each[order], np.float32) * factor).tolist(), dtype=types.FLOAT, shape=[3, 1, 1])
        for each in (family.image_mean, family.image_std)
    )
    values = (images - mean) / std
    return named(values, name, 3) if name else values


def named(node: DataNode, name: str, ndim: int) -> DataNode:
    """Return a node with the same data, ``ndim`` dimensions, and the name ``name``."""
    return fn.reshape(node, src_dims=list(range(ndim)), name=name)


def stacked(arrays: Sequence[np.ndarray]) -> object:
    """Return the arrays stacked or, if their shapes differ, as a list."""
    return np.stack(arrays) if len({array.shape for array in arrays}) == 1 else list(arrays)


def extended(arrays: Sequence[np.ndarray], axes: Sequence[int]) -> np.ndarray:
    """Return the arrays stacked; along ``axes``, each is padded with zeros up to the largest extent of all."""
    extents = [max(array.shape[axis] for array in arrays) for axis in axes]

    def padded(array: np.ndarray) -> np.ndarray:
        beyond = [(0, 0)] * array.ndim
        for axis, extent in zip(axes, extents):
            beyond[axis] = 0, extent - array.shape[axis]
        return np.pad(array, beyond)

    return np.stack([padded(array) for array in arrays])


def image_sizes(images: DataNode, name: str) -> DataNode:
    """Return a node with the heights and widths of images (HWC), INT64, and the name ``name``."""
    return named(images.shape()[:2], name, 1)
