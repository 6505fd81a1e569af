"""torchvision's API besides transforms: kernels, users' tensor classes, rotated boxes, and other PIL modes."""

from __future__ import annotations

import copy
import inspect
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from beside import difference, tensor
from PIL import Image
from torchvision import transforms, tv_tensors
from torchvision.transforms import v2 as theirs
from transform_cases import picture

from penstock.plugin.torchvision import tv_tensors as own_tensors
from penstock.plugin.torchvision.transforms import v2 as ours

F = ours.functional
CANVAS = (37, 53)
KERNELS = [
    name
    for name in dir(theirs.functional)
    if name.endswith(("_image", "_video", "_mask", "_bounding_boxes", "_keypoints"))
    and not name.startswith(("_", "clamp", "convert", "sanitize", "to_image", "to_pil", "get_"))
]


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_take_what_torchvisions_take(name: str) -> None:
    expected, got = (inspect.signature(getattr(module.functional, name)).parameters for module in (theirs, ours))
    # For masks, `interpolation` only chooses between both nearest filters, and releases of torchvision differ in whether they have it.
    skipped = {"interpolation"} if name == "resize_mask" else set()
    assert [each for each in got if each not in skipped][1:] == [each for each in expected if each not in skipped][1:]
    for parameter in [each for each in expected if each in got]:
        first, second = expected[parameter].default, got[parameter].default
        known = {"value", "name"} if hasattr(first, "value") else set()
        assert (first.value if known else first) == second or (first, second) == (torch.float32, None)


def _boxes(kind: str) -> tv_tensors.BoundingBoxes:
    rng = np.random.default_rng(5)
    middles, sides, angles = rng.uniform(0, 50, (6, 2)), rng.uniform(3, 30, (6, 2)), rng.uniform(-180, 180, (6, 1))
    rows = torch.tensor(np.concatenate([middles, sides, angles], axis=1), dtype=torch.float32)
    rows = theirs.functional.convert_bounding_box_format(rows, tv_tensors.BoundingBoxFormat.CXCYWHR, kind)
    return tv_tensors.BoundingBoxes(rows, format=kind, canvas_size=CANVAS)


ROTATED = ("XYWHR", "CXCYWHR", "XYXYXYXY")
ON_BOXES: dict[str, Callable[[Any], Any]] = {
    "flip": lambda v: v.RandomHorizontalFlip(1.0),
    "upside-down": lambda v: v.RandomVerticalFlip(1.0),
    "resize": lambda v: v.Resize((80, 31)),
    "resized-crop": lambda v: v.RandomResizedCrop(24),
    "crop": lambda v: v.RandomCrop(20),
    "center-crop": lambda v: v.CenterCrop(30),
    "pad": lambda v: v.Pad([3, 5, 7, 9]),
    "affine": lambda v: v.RandomAffine(40, (0.2, 0.2), (0.7, 1.4), 20),
    "rotate": lambda v: v.RandomRotation(50, expand=True),
    "perspective": lambda v: v.RandomPerspective(0.4, p=1.0),
    "elastic": lambda v: v.ElasticTransform(),
    "hard": lambda v: v.Compose([v.SetClampingMode("hard"), v.ClampBoundingBoxes()]),
    "soft": lambda v: v.ClampBoundingBoxes("soft"),
    "not-clamped": lambda v: v.ClampBoundingBoxes(None),
    "sanitized": lambda v: v.SanitizeBoundingBoxes(labels_getter=None),
    "to-XYWHR": lambda v: v.ConvertBoundingBoxFormat("XYWHR"),
    "to-CXCYWHR": lambda v: v.ConvertBoundingBoxFormat("CXCYWHR"),
    "to-XYXYXYXY": lambda v: v.ConvertBoundingBoxFormat("XYXYXYXY"),
}


@pytest.mark.parametrize("kind", ROTATED)
@pytest.mark.parametrize("name", ON_BOXES)
def test_rotated_boxes_move_as_torchvisions(name: str, kind: str) -> None:
    sample = {"image": tv_tensors.Image(tensor(1)[:, :37, :53]), "boxes": _boxes(kind)}
    sample["image"] = tv_tensors.Image(torch.zeros(3, *CANVAS, dtype=torch.uint8))
    results = []
    for module in (theirs, ours):
        torch.manual_seed(3)
        results.append(ON_BOXES[name](module)(sample)["boxes"])
    nan = [result.isnan() for result in results]
    assert torch.equal(*nan)
    assert not difference(*(tv_tensors.wrap(result.nan_to_num(), like=result) for result in results))


def test_rotated_boxes_do_not_become_others() -> None:
    with pytest.raises(ValueError, match="rotated and unrotated"):
        F.convert_bounding_box_format(_boxes("XYWHR"), new_format="XYXY")


def _picture(mode: str) -> Image.Image:
    image, rng = Image.fromarray(picture(4)), np.random.default_rng(4)
    if mode in ("P", "PA"):
        return image.quantize(17).convert(mode)
    if mode in ("I", "I;16"):
        return Image.fromarray(rng.integers(0, 65536, (37, 53)).astype(np.int32 if mode == "I" else np.uint16))
    if mode == "F":
        return Image.fromarray(rng.random((37, 53)).astype(np.float32))
    return image.convert(mode)


ON_PICTURES: dict[str, Callable[[Any], Any]] = {
    "rgb": lambda v: v.RGB(),
    "grey": lambda v: v.Grayscale(3),
    "resize": lambda v: v.Resize(20, interpolation=0),
    "bilinear": lambda v: v.Resize((30, 40)),
    "crop": lambda v: v.RandomCrop(20, padding=4),
    "large-crop": lambda v: v.CenterCrop(90),
    "resized-crop": lambda v: v.RandomResizedCrop(16),
    "flip": lambda v: v.RandomHorizontalFlip(1.0),
    "upside-down": lambda v: v.RandomVerticalFlip(1.0),
    "pad": lambda v: v.Pad([3, 2, 1, 0], fill=1),
    "reflect": lambda v: v.Pad([-3, 2, 4, -1], padding_mode="reflect"),
    "rotate": lambda v: v.RandomRotation(30, expand=True, fill=1),
    "affine": lambda v: v.RandomAffine(20, (0.1, 0.1), (0.8, 1.2), 10),
    "perspective": lambda v: v.RandomPerspective(p=1.0),
    "elastic": lambda v: v.ElasticTransform(),
    "blur": lambda v: v.GaussianBlur(3),
    "ten": lambda v: v.TenCrop(10, vertical_flip=True),
    "colours": lambda v: v.ColorJitter(0.5, 0.5, 0.5, 0.3),
    "distort": lambda v: v.RandomPhotometricDistort(p=1.0),
    "augment": lambda v: v.RandAugment(num_ops=4),
    "mix": lambda v: v.AugMix(),
    "sharper": lambda v: v.RandomAdjustSharpness(2.0, p=1.0),
    "equal": lambda v: v.RandomEqualize(1.0),
    "inverted": lambda v: v.RandomInvert(1.0),
    "solar": lambda v: v.RandomSolarize(99, 1.0),
    "jpeg": lambda v: v.JPEG(50),
    "image": lambda v: v.ToImage(),
    "tensor": lambda v: v.ToTensor(),
    "composed": lambda v: v.Compose([v.RandomCrop(30), v.RandomHorizontalFlip(1.0), v.PILToTensor()]),
    "normalized": lambda v: v.Compose([v.RGB(), v.Resize(30), v.ToTensor(), v.Normalize([0.5] * 3, [0.25] * 3)]),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mode", ["P", "PA", "1", "I", "I;16", "F", "CMYK", "YCbCr", "HSV", "LAB"])
def test_images_of_other_modes_become_what_torchvision_makes_of_them(mode: str) -> None:
    for name, make in ON_PICTURES.items():
        results: list[Any] = []
        for module in (theirs, ours):
            torch.manual_seed(7)
            try:
                results.append(make(module)(_picture(mode)))
            except Exception as error:
                # The test compares only whether both raise an error.
                results.append(
                    f"refused: {isinstance(error, (TypeError, ValueError, OSError, KeyError, RuntimeError))}"
                )
        assert not difference(*results), name
        if mode == "P" and isinstance(results[0], Image.Image) and results[0].mode == "P":
            assert results[0].getpalette() == results[1].getpalette(), name


class Heights(tv_tensors.TVTensor):
    """A tensor class such as users define."""


def test_functions_call_kernels_of_the_users_own_classes() -> None:
    heights = Heights(torch.ones(4, 6))
    with pytest.raises(TypeError, match=r"Got: <class .*Heights"):
        F.get_kernel(F.solarize, Heights)
    assert F.get_kernel(F.solarize, Heights, allow_passthrough=True)(heights) is heights

    @F.register_kernel("solarize", Heights)
    def solarize_heights(inpt: Heights, threshold: float) -> Any:
        return tv_tensors.wrap(inpt * threshold, like=inpt)

    assert F.get_kernel(F.solarize, Heights) is solarize_heights
    result = ours.RandomSolarize(3.0, p=1.0)({"image": tensor(1), "heights": heights})["heights"]
    assert type(result) is Heights
    assert bool((result == 3).all())
    with pytest.raises(ValueError, match="already has a kernel registered"):
        F.register_kernel(F.solarize, Heights)


@pytest.mark.parametrize(
    ("functional", "cls", "said"),
    [
        ("bad_name", Heights, "Could not find"),
        (tv_tensors.Image, Heights, "only be registered on functionals"),
        (F.resize, object, "subclasses"),
        (F.resize, tv_tensors.Image, "builtin"),
    ],
)
def test_kernels_are_refused_for_what_has_none(functional: Any, cls: type, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        F.register_kernel(functional, cls)


def test_transforms_are_modules() -> None:
    composed = ours.Compose([ours.Resize(8), ours.Compose([ours.RandomInvert(1.0), ours.ToImage()])])
    assert isinstance(composed, torch.nn.Module)
    assert composed.training
    assert not composed.eval().training
    calls: list[Any] = []
    composed.register_forward_hook(lambda module, given, result: calls.append(result.shape))
    sample = Image.fromarray(picture(2))
    for same in (composed, pickle.loads(pickle.dumps(ours.Compose([composed.transforms[0]]))), copy.deepcopy(composed)):
        assert same(sample) is not None
    assert calls
    listed = torch.nn.ModuleList([ours.Resize(8), ours.RandomInvert(0.0)])
    assert ours.RandomApply(listed, p=1.0)(sample).size == composed.transforms[0](sample).size

    class Own(ours.Transform):
        def __init__(self) -> None:
            self.layer = torch.nn.Identity()

        def transform(self, inpt: Any, params: Any) -> Any:
            return self.layer(inpt)

    assert Own()(tensor(1)).shape == tensor(1).shape


GET_PARAMS: dict[str, tuple[Any, ...]] = {
    "RandomResizedCrop": (tensor(1), [0.1, 1.0], [0.7, 1.4]),
    "RandomCrop": (tensor(1), (9, 8)),
    "RandomRotation": ([-20.0, 30.0],),
    "RandomAffine": ([-20.0, 30.0], (0.2, 0.3), (0.5, 1.5), [-5.0, 5.0], [53, 37]),
    "RandomPerspective": (53, 37, 0.5),
    "GaussianBlur": (0.1, 2.0),
    "ColorJitter": ([0.5, 1.5], None, [0.8, 1.2], [-0.1, 0.1]),
    "RandomErasing": (tensor(1), (0.02, 0.33), (0.3, 3.3), [0.0]),
    "AutoAugment": (25,),
}


@pytest.mark.parametrize("name", GET_PARAMS)
def test_get_params_draws_what_torchvisions_draws(name: str) -> None:
    results = []
    for module in (theirs, ours):
        torch.manual_seed(11)
        results.append(getattr(module, name).get_params(*GET_PARAMS[name]))
    assert not difference(*results)


def test_classes_that_stand_for_torchvisions_keep_their_kind_when_asked() -> None:
    defined = own_tensors._defined()
    boxes = defined.BoundingBoxes([[1.0, 2, 3, 4]], format="XYXY", canvas_size=(9, 9), requires_grad=True)
    assert boxes.requires_grad
    assert type(boxes + 1) is torch.Tensor
    with defined.set_return_type("TVTensor"):
        assert type(boxes + 1) is defined.BoundingBoxes
    assert type(boxes + 1) is torch.Tensor
    assert [defined.is_rotated_bounding_format(kind) for kind in ("XYXY", "XYWHR")] == [False, True]
    with pytest.raises(ValueError, match="must have a floating-point type"):
        defined.BoundingBoxes([[1, 2, 3, 4, 5]], format="XYWHR", canvas_size=(9, 9))
    with pytest.raises(ValueError, match="return_type"):
        defined.set_return_type("other")


def test_to_dtype_says_what_it_will_not_do() -> None:
    with pytest.warns(UserWarning, match="will \\*not\\* be transformed"):
        ours.ToDtype({torch.Tensor: torch.float32, tv_tensors.Image: torch.float32})
    with pytest.warns(UserWarning, match="no scaling"):
        ours.ToDtype({tv_tensors.Mask: torch.int64, "others": None}, scale=True)(tv_tensors.Image(tensor(1)))


def test_tensors_are_not_resized_with_pils_own_filters() -> None:
    with pytest.raises(NotImplementedError, match="hamming'` is supported for PIL images"):
        F.resize(tensor(1), 9, interpolation=transforms.InterpolationMode.HAMMING)


def test_erasing_says_what_it_hands_on() -> None:
    mask = tv_tensors.Mask(torch.zeros(tensor(1).shape[-2:]))
    with pytest.warns(UserWarning, match="passing through"):
        assert ours.RandomErasing(1.0)(tensor(1), mask)[1] is mask
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ours.RandomErasing(1.0)(tensor(1))


def test_kernels_that_change_an_image_in_place_return_that_image() -> None:
    image = tv_tensors.Image(torch.zeros(3, 8, 9))
    place = {"i": 1, "j": 2, "h": 3, "w": 4, "v": torch.ones(3, 3, 4)}
    assert F.erase_image(image, **place) is not image
    assert image.sum() == 0
    assert F.erase_image(image, **place, inplace=True) is image
    assert image.sum() == 36


def test_images_beside_a_video_are_left_as_they_are() -> None:
    video, image = tv_tensors.Video(torch.zeros(5, 3, 8, 9)), tv_tensors.Image(torch.zeros(3, 8, 9))
    frames, same = ours.UniformTemporalSubsample(2)(video, image)
    assert frames.shape == (2, 3, 8, 9)
    assert same is image


def test_classes_of_errors_are_torchvisions() -> None:
    for module in (theirs, ours):
        for fails in (
            lambda v=module: v.RandomCrop([10, 12], padding="abc"),
            lambda v=module: v.RandomCrop([10, 12], padding=0.5),
            lambda v=module: v.functional.sanitize_bounding_boxes([[0, 0, 10, 10]]),
            lambda v=module: v.functional.sanitize_keypoints([[0, 0]]),
        ):
            with pytest.raises(ValueError, match=r"adding|tensor"):
                fails()
