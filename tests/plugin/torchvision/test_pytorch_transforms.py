"""With the same seed, transforms give the same values for the same samples as torchvision's transforms."""

from __future__ import annotations

import zlib

import numpy as np
import pytest
import torch
from beside import CASES, MAKE, comparable, detection, difference, image, outcome, tensor
from torchvision import tv_tensors
from torchvision.transforms import v2 as theirs
from transform_cases import picture

from penstock.kernels import pillow
from penstock.plugin import torchvision as plugin
from penstock.plugin.torchvision import _random
from penstock.plugin.torchvision import tv_tensors as own_tensors
from penstock.plugin.torchvision._on_tensors.degradations import blur_kernel
from penstock.plugin.torchvision.transforms import v2 as ours

pytestmark = [
    pytest.mark.filterwarnings("ignore:Anti-alias option is always applied"),
    pytest.mark.filterwarnings("ignore:PIL's images are resized with antialiasing"),
    pytest.mark.filterwarnings("ignore:.*is currently passing through"),
    pytest.mark.filterwarnings("ignore:The transform `ToTensor"),
    pytest.mark.filterwarnings("ignore:Scale and ratio should be"),
]
SAMPLES = 3


@pytest.mark.cases(3, by=lambda name: name.rpartition("[")[2].split("]")[0].rpartition("-on-")[2])
@pytest.mark.parametrize(
    ("name", "kind"),
    [pytest.param(name, kind, id=f"{name}-on-{kind}") for kind in MAKE for name in CASES if comparable(name, kind)],
)
def test_values_are_torchvisions(name: str, kind: str) -> None:
    for sample in range(SAMPLES):
        seed = zlib.crc32(f"{name} {sample}".encode())
        expected, got = (outcome(module, CASES[name], MAKE[kind](seed % 40), seed) for module in (theirs, ours))
        assert not difference(expected, got), f"sample {sample}"


ENDS = {
    "to-tensor": lambda v: [v.ToTensor(), v.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])],
    "to-image": lambda v: [v.ToImage(), v.ToDtype(torch.float32, scale=True), v.Normalize([0.5] * 3, [0.25] * 3)],
    "pil-to-tensor": lambda v: [v.PILToTensor(), v.ConvertImageDtype(torch.float32)],
    "unscaled": lambda v: [v.ToImage(), v.ToDtype(torch.float32), v.Normalize([99.0] * 3, [0.3] * 3)],
    "pure": lambda v: [v.ToImage(), v.ToDtype(torch.float64, scale=True), v.ToPureTensor()],
    "back": lambda v: [v.ToImage(), v.RandomInvert(1.0), v.ToPILImage()],
    "there-and-back": lambda v: [v.ToTensor(), v.ToPILImage(), v.Resize(11)],
}


@pytest.mark.every_case
@pytest.mark.parametrize("name", ENDS)
def test_ends_of_pipelines(name: str) -> None:
    for number in range(6):
        for sample in (image(number), (image(number), 3), {"image": image(number), "other": tensor(number)}):
            first, second = (
                v.Compose([v.Resize(31), v.CenterCrop(28), *ENDS[name](v)])(sample) for v in (theirs, ours)
            )
            assert not difference(first, second)


def test_images_in_tensors_of_more_dimensions() -> None:
    clips = torch.stack([tensor(number)[:, :20, :24] for number in range(6)]).reshape(2, 3, 3, 20, 24)
    for batch in (clips[0], clips):
        assert not difference(*(v.functional.resize(batch, [13, 31]) for v in (theirs, ours)))


def test_other_default_types() -> None:
    torch.set_default_dtype(torch.float64)
    try:
        first, second = (v.Compose(ENDS["to-tensor"](v))(image(1)) for v in (theirs, ours))
    finally:
        torch.set_default_dtype(torch.float32)
    assert first.dtype == torch.float64
    assert not difference(first, second)


@pytest.mark.every_case
@pytest.mark.parametrize(
    "dtype", [torch.uint8, torch.int32, torch.uint16, torch.float16, torch.float64, torch.int64, torch.bool]
)
def test_conversions_of_types(dtype: torch.dtype) -> None:
    sources = [
        tensor(1),
        tensor(1).float() / 255,
        tensor(1).double() / 255,
        tensor(1).int() << 22,
        tensor(1).to(torch.uint16),
        tensor(1) > 99,
    ]
    for source in sources:
        for scale in (False, True):
            results = [
                outcome(v, lambda v, scale=scale: v.ToDtype(dtype, scale=scale), source, 0) for v in (theirs, ours)
            ]
            assert not difference(*results)


def test_boxes() -> None:
    kinds = ("XYXY", "XYWH", "CXCYWH")
    for number in range(12):
        sample = detection(number)
        for kind in kinds:
            pair = [v.ConvertBoundingBoxFormat(kind)(sample) for v in (theirs, ours)]
            assert not difference(*pair)
        for make in (
            lambda v: v.SanitizeBoundingBoxes(min_size=20.0),
            lambda v: v.SanitizeKeyPoints(),
            lambda v: v.ClampBoundingBoxes(),
            lambda v: v.ClampKeyPoints(),
            lambda v: v.Compose([v.SetClampingMode(None), v.RandomCrop(15), v.SetClampingMode("hard"), v.Pad(3)]),
            lambda v: v.RandomIoUCrop(),
            lambda v: v.ToDtype({tv_tensors.Mask: torch.int64, "others": None}),
            lambda v: v.ToPureTensor(),
        ):
            results = [outcome(v, make, detection(number), number) for v in (theirs, ours)]
            assert not difference(*results)


@pytest.mark.every_case
@pytest.mark.parametrize("name", ["MixUp", "CutMix"])
def test_batches_are_mixed(name: str) -> None:
    for seed in range(4):
        images, labels = torch.rand(4, 3, 20, 30), torch.arange(4)
        for sample in ((images, labels), {"images": tv_tensors.Image(images), "labels": labels}):
            results = [
                outcome(v, lambda v: getattr(v, name)(num_classes=7, alpha=0.7), sample, seed) for v in (theirs, ours)
            ]
            assert not isinstance(results[0], str)
            assert not difference(*results)


def test_functions_of_boxes_refuse_the_same() -> None:
    boxes = torch.tensor([[0.0, 1.0, 5.0, 6.0]])
    for call in (
        lambda f: f.convert_bounding_box_format(boxes, new_format="XYWH"),
        lambda f: f.clamp_bounding_boxes(boxes),
        lambda f: f.clamp_keypoints(boxes),
        lambda f: f.sanitize_bounding_boxes(boxes),
    ):
        for functional in (theirs.functional, ours.functional):
            with pytest.raises(ValueError, match=r"format|canvas_size|passed|told"):
                call(functional)
    rotated = tv_tensors.BoundingBoxes(torch.rand(2, 5), format="XYWHR", canvas_size=(9, 9))
    with pytest.raises(ValueError, match="rotated and unrotated"):
        ours.ConvertBoundingBoxFormat("XYXY")(rotated)


def test_numbers_are_pytorchs() -> None:
    twister, pytorch = _random._Twister(), _random._Torch()
    rng = np.random.default_rng(0)
    for seed in range(30):
        for source in (twister, pytorch):
            source.seed(seed)
        for _ in range(20):
            low = float(rng.uniform(-9, 9))
            high, count = low + float(rng.uniform(0, 9)), int(rng.integers(1, 9))
            draws = [
                (s.fractions(count).tolist(), s.between(low, high), s.below(2, 2 + count), s.shuffled(count))
                for s in (twister, pytorch)
            ]
            assert draws[0] == draws[1]


def test_tensors_that_say_what_they_are_without_torchvision() -> None:
    defined = own_tensors._defined()
    boxes = defined.BoundingBoxes([0.0, 1.0, 2.0, 3.0], format="xywh", canvas_size=(8, 9))
    assert (boxes.format.value, boxes.canvas_size, tuple(boxes.shape)) == ("XYWH", (8, 9), (1, 4))
    assert type(boxes + 1) is torch.Tensor
    assert boxes.clone().canvas_size == (8, 9)
    moved = defined.wrap(torch.zeros(1, 4), like=boxes, canvas_size=(3, 3))
    assert (type(moved), moved.canvas_size, moved.format) == (defined.BoundingBoxes, (3, 3), boxes.format)
    assert isinstance(defined.Image(torch.zeros(3, 4, 5)), defined.TVTensor)


def test_exported_filters_are_pytorchs() -> None:
    transform = ours.Compose([ours.Resize(40), ours.GaussianBlur((7, 3), sigma=0.8), ours.RandomRotation((33.3, 33.3))])
    pipeline = plugin.pipeline(transform, batch_size=8, encoded=False)
    (results,) = pipeline.run(images=[picture(number) for number in range(8)])
    for number, result in enumerate(results):
        np.testing.assert_array_equal(np.array(result), np.asarray(transform(image(number))))
    pipeline.close()
    with pytest.raises(plugin.ExportError, match="with a fixed `sigma`"):
        plugin.pipeline(ours.GaussianBlur(3))


def test_filters_are_pytorchs() -> None:
    rng = np.random.default_rng(2)
    for case in range(60):
        channels, sizes = (2, 3, 4)[case % 3], [int(size) * 2 + 1 for size in rng.integers(0, 7, 2)]
        pixels = rng.integers(0, 256, (*rng.integers(10, 80, 2), channels), np.uint8)
        sigma = [float(width) for width in rng.uniform(0.1, 4, 2)]
        expected = theirs.functional.gaussian_blur(torch.from_numpy(pixels).permute(2, 0, 1), sizes, sigma)
        got = pillow.convolve(pixels, blur_kernel(sizes, sigma))
        np.testing.assert_array_equal(got, expected.permute(1, 2, 0).numpy())


def test_all_names_are_there() -> None:
    missing = {name for name in vars(theirs) if not name.startswith("_")} - set(dir(ours))
    assert not missing - {"AutoAugmentPolicy"}
    functions = {
        name
        for name, value in vars(theirs.functional).items()
        if callable(value) and not name.startswith(("_", "register")) and not name.endswith(_KERNELS)
    }
    assert not functions - set(dir(ours.functional))


# Suffixes of torchvision's functions for a single kind of values.
_KERNELS = ("_image", "_video", "_mask", "_boxes", "_keypoints")


def test_queries() -> None:
    sample = list(detection(1).values())
    assert ours.query_size(sample[:4]) == theirs.query_size(sample[:4])
    assert ours.query_chw(sample[:4]) == theirs.query_chw(sample[:4])
    assert ours.get_bounding_boxes(sample) is sample[1]
    assert ours.get_keypoints(sample) is sample[3]
    assert ours.has_any(sample, tv_tensors.Mask, int)
    assert not ours.has_all(sample, tv_tensors.Mask, int)
    assert ours.has_all(sample, tv_tensors.Mask, lambda value: value is sample[0])
    with pytest.raises(ValueError, match="no boxes"):
        ours.get_bounding_boxes([])
