"""Transforms return what torchvision returned (`record_transforms.py`), even if neither it nor PyTorch is installed."""

from __future__ import annotations

import io
import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from record_transforms import RECORDED, cases, digests
from transform_cases import picture

from penstock.plugin import torchvision as plugin
from penstock.plugin.torchvision import _random, manual_seed
from penstock.plugin.torchvision._kinds import leaves_of
from penstock.plugin.torchvision.transforms import v2
from penstock.plugin.torchvision.transforms.v2 import functional

_KNOWN = json.loads(RECORDED.read_text())


@pytest.fixture
def without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw random numbers from Penstock's generator, as if PyTorch were not installed."""
    generator = _random._Twister()
    monkeypatch.setattr(_random, "numbers", lambda: generator)


@pytest.mark.filterwarnings("ignore:PIL's images are resized with antialiasing")
def test_equal_what_torchvision_gave() -> None:
    different = []
    for key, name, seed, make in cases():
        manual_seed(seed)
        got = digests(make(v2)(Image.fromarray(picture(seed))))
        different += [] if got == _KNOWN[key] else [f"{name}, seed {seed}: {got}, and not {_KNOWN[key]}"]
    assert not different


def test_arrays_are_images_of_pil() -> None:
    array = picture(4)
    compose = v2.Compose([v2.Resize(30), v2.RandomHorizontalFlip(1.0), v2.Grayscale(3), v2.RandomInvert(1.0)])
    result = compose(array)
    assert isinstance(result, np.ndarray)
    np.testing.assert_array_equal(result, np.asarray(compose(Image.fromarray(array))))
    assert v2.Resize(9)(array[:, :, 0]).ndim == 2
    # Beside an image, an array counts as a label, so it is not resized.
    sample = v2.Resize(9)({"image": Image.fromarray(array), "label": array})
    assert sample["label"] is array
    assert min(sample["image"].size) == 9


def test_what_is_not_transformed_stays() -> None:
    image = Image.fromarray(picture(1))
    assert v2.RandomHorizontalFlip(0.0)(image) is image
    assert v2.Compose([v2.RandomApply([v2.Resize(9)], p=0.0), v2.Identity()])(image) is image
    assert v2.Resize(9)(["text", 3, None]) == ["text", 3, None]


def test_steps_of_others_are_given_images() -> None:
    seen = []

    def look(image: Any) -> Any:
        seen.append(image)
        return image.rotate(90)

    class Mine(v2.Transform):
        def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
            seen.append(inpt)
            return inpt

    image = Image.fromarray(picture(2))
    result = v2.Compose([v2.Resize((20, 30)), look, v2.Lambda(look, Image.Image), Mine(), v2.CenterCrop(10)])(image)
    assert [type(each) for each in seen] == [Image.Image] * 3
    expected = image.resize((30, 20), Image.Resampling.BILINEAR).rotate(180).crop((10, 5, 20, 15))
    np.testing.assert_array_equal(np.asarray(result), np.asarray(expected))


def test_samples_are_any_containers() -> None:
    sample = {"a": [1, (2, {"b": 3})], "c": 4}
    leaves, rebuilt = leaves_of(sample)
    assert leaves == [1, 2, 3, 4]
    assert rebuilt([5, 6, 7, 8]) == {"a": [5, (6, {"b": 7})], "c": 8}
    image = Image.fromarray(picture(1))
    nested = v2.RandomApply([v2.RandomOrder([lambda image, label: (image, label + 1)])], p=1.0)
    resized, label = v2.Compose([v2.Resize(8), nested, lambda image, label: (image, label * 2)])(image, 3)
    assert (min(resized.size), label) == (8, 8)


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("make", "error", "told"),
    [
        (lambda: v2.Resize((1, 2, 3)), ValueError, "`size` must be a number"),
        (lambda: v2.Resize(None), ValueError, "`max_size` must be a number where"),
        (lambda: v2.CenterCrop((1, 2, 3)), ValueError, "height and width"),
        (lambda: v2.RandomHorizontalFlip(1.2), ValueError, "`p` must be between 0 and 1"),
        (lambda: v2.Pad((1, 2, 3)), ValueError, "a list of 1, 2 or 4"),
        (lambda: v2.Pad(1, padding_mode="wrap"), ValueError, "`padding_mode` must be constant"),
        (lambda: v2.Pad(1, fill="red"), TypeError, "`fill` must be a number"),
        (lambda: v2.ColorJitter(hue=0.7), ValueError, "`hue` must be a range within -0.5"),
        (lambda: v2.ColorJitter(brightness="x"), TypeError, "`brightness` must be a number, or two"),
        (lambda: v2.RandomRotation(-3), ValueError, "must not be negative"),
        (lambda: v2.RandomAffine(3, translate=(2, 0)), ValueError, "shares from 0 to 1"),
        (lambda: v2.RandomAffine(3, scale=(0, 1)), ValueError, "positive factors"),
        (lambda: v2.GaussianBlur(4), ValueError, "odd and positive"),
        (lambda: v2.Compose([]), ValueError, "is empty"),
        (lambda: v2.RandomChoice([v2.Identity()], p=[0.5, 0.5]), ValueError, "2 values for 1"),
        (lambda: v2.AutoAugment("coco"), ValueError, "`policy` must be one of imagenet"),
        (lambda: v2.ToDtype(3), ValueError, "`dtype` must be a type"),
        (lambda: v2.JPEG((90, 10)), ValueError, "from 1 to 100"),
        (lambda: v2.SanitizeBoundingBoxes(min_size=0), ValueError, "`min_size` must be at least 1"),
        (lambda: v2.RandomErasing(scale=(0.5, 1.5)), ValueError, "within 0 and 1"),
    ],
)
def test_bad_settings(make: Any, error: type[Exception], told: str) -> None:
    with pytest.raises(error, match=told):
        make()


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("call", "error", "told"),
    [
        (lambda image: functional.resize("image", [3, 3]), TypeError, "Got: <class 'str'>"),
        (lambda image: functional.resize(image, [3, 3], "cubic"), ValueError, "`interpolation` must be one of nearest"),
        (lambda image: functional.posterize(image, 0), ValueError, "1 to 8 bits"),
        (lambda image: functional.solarize(image.convert("RGBA"), 3), ValueError, "mode L or RGB. Got: RGBA"),
        (lambda image: functional.adjust_hue(image, 0.6), ValueError, r"in \[-0.5, 0.5\]"),
        (
            lambda image: functional.rotate(image, 3, "lanczos"),
            ValueError,
            "The interpolation of a warped PIL image must be",
        ),
        (
            lambda image: functional.pad(image, 3, fill=(1, 2)),
            ValueError,
            r"one for each of 3 channels\. Got: 2 values",
        ),
        (lambda image: functional.five_crop(image, 500), ValueError, "do not fit"),
        (lambda image: functional.gaussian_noise(image), ValueError, "takes tensors"),
        (lambda image: functional.perspective(image, None, None), ValueError, "Either `coefficients`"),
        (lambda image: v2.RandomCrop(500)(image), ValueError, "does not fit into an image"),
        (lambda image: v2.RandomCrop((500, 5))(image), ValueError, "does not fit into an image"),
        (lambda image: v2.RandomCrop((5, 500))(image), ValueError, "does not fit into an image"),
        (lambda image: v2.RandAugment()([image, image]), TypeError, "needs one image or video. The sample holds 2"),
        (lambda image: v2.RandomIoUCrop()(image), TypeError, "needs an image and its bounding boxes"),
        (lambda image: v2.Normalize([0.5], [0.5])(image), TypeError, "takes tensors, and not PIL's images"),
        (lambda image: v2.RandomCrop(5)("text"), TypeError, "holds no image"),
        (
            lambda image: v2.RandomCrop(5)([image, image.resize((3, 3))]),
            ValueError,
            "of a sample must have the same size",
        ),
        (lambda image: v2.Transform()(image), NotImplementedError, "does not implement `transform`"),
    ],
)
def test_bad_samples(call: Any, error: type[Exception], told: str) -> None:
    with pytest.raises(error, match=told):
        call(Image.fromarray(picture(3)))


def test_images_of_one_pixel() -> None:
    image = Image.new("RGB", (1, 1), (10, 20, 30))
    for transform in (
        v2.Resize((3, 3)),
        v2.Compose([v2.ColorJitter(0.5, 0.5, 0.5, 0.5), v2.RandomEqualize(1.0), v2.RandomAdjustSharpness(3, 1.0)]),
        v2.RandomAffine(90, (0.5, 0.5), interpolation="bicubic"),
    ):
        assert transform(image).mode == "RGB"


def _file(image: Image.Image, kind: str) -> np.ndarray:
    held = io.BytesIO()
    image.save(held, kind)
    return np.frombuffer(held.getvalue(), np.uint8)


DETERMINISTIC = {
    "imagenet": lambda: v2.Compose([v2.Resize(40), v2.CenterCrop(33)]),
    "padded": lambda: v2.Compose([v2.CenterCrop((90, 31)), v2.Pad((1, 2), padding_mode="reflect")]),
    "longest": lambda: v2.Compose([v2.Resize(None, "lanczos", max_size=50), v2.RandomVerticalFlip(1.0)]),
    "odd": lambda: v2.Compose([v2.Compose([v2.CenterCrop(size) for size in (61, 50, 33, 20)]), v2.Identity()]),
    "looks": lambda: v2.Compose(
        [v2.RandomAutocontrast(1.0), v2.RandomAdjustSharpness(2.0, 1.0), v2.RandomEqualize(1.0), v2.RandomInvert(0.0)]
    ),
    "levels": lambda: v2.Compose([v2.RandomPosterize(3, 1.0), v2.RandomSolarize(99, 1.0), v2.Grayscale(3)]),
    "turned": lambda: v2.RandomRotation((30, 30), interpolation="bicubic", expand=True, fill=7),
}


@pytest.mark.every_case
@pytest.mark.parametrize("name", DETERMINISTIC)
def test_pipelines_give_what_transforms_give(name: str) -> None:
    transform = DETERMINISTIC[name]()
    images = [Image.fromarray(picture(number)) for number in range(6)]
    files = [_file(image, "PNG" if number % 2 else "JPEG") for number, image in enumerate(images)]
    pipeline = plugin.pipeline(transform, batch_size=6)
    (results,) = pipeline.run(images=files)
    for file, result in zip(files, results):
        expected = transform(Image.open(io.BytesIO(file.tobytes())).convert("RGB"))
        np.testing.assert_array_equal(np.array(result), np.asarray(expected))
    pipeline.close()


def test_on_a_gpu_values_are_the_same(with_gpu: None) -> None:
    normalized = [v2.ToImage(), v2.ToDtype("float32", scale=True), v2.Normalize([0.5] * 3, [0.25] * 3)]
    transform = v2.Compose([v2.Resize(40), v2.CenterCrop((33, 70)), v2.RandomEqualize(1.0), *normalized])
    images = [picture(number) for number in range(4)]
    results = []
    for device_id in (None, 0):
        pipeline = plugin.pipeline(transform, batch_size=4, encoded=False, device_id=device_id)
        results.append([np.array(result) for result in pipeline.run(images=images)[0].as_cpu()])
        pipeline.close()
    for host, device in zip(*results):
        np.testing.assert_array_equal(host, device)


def test_tensors_of_pipelines() -> None:
    mean, std = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
    array = picture(5)
    levels = array.astype(np.float32)
    endings: list[tuple[list[Any], np.ndarray]] = [
        ([v2.ToTensor()], levels / np.float32(255)),
        ([v2.ToImage(), v2.ToDtype("float32", scale=True)], levels * np.float32(1 / 255)),
    ]
    for to_floats, scaled in endings:
        pipeline = plugin.pipeline(v2.Compose([*to_floats, v2.Normalize(mean, std)]), batch_size=1, encoded=False)
        (results,) = pipeline.run(images=[array])
        expected = (scaled - np.array(mean, np.float32)) / np.array(std, np.float32)
        np.testing.assert_array_equal(np.array(results[0]), expected.transpose(2, 0, 1))
        pipeline.close()


def test_files_become_rgb_as_pillow_converts_them() -> None:
    """Alpha is dropped, and 16-bit grey values are clipped to 255, as by `Image.open(file).convert("RGB")`."""
    colours = Image.fromarray(picture(5))
    transparent = colours.copy()
    transparent.putalpha(colours.convert("L"))
    deep = Image.fromarray(np.arange(40 * 30, dtype=np.uint16).reshape(40, 30))
    images = [deep, transparent, transparent.convert("LA"), colours.quantize(9), colours.convert("L")]
    files = []
    for image in images:
        held = io.BytesIO()
        image.save(held, "PNG")
        files.append(held.getvalue())
    held = io.BytesIO()
    colours.convert("CMYK").save(held, "JPEG")
    files.append(held.getvalue())
    pipeline = plugin.pipeline(v2.Identity(), batch_size=len(files))
    (results,) = pipeline.run(images=[np.frombuffer(file, np.uint8) for file in files])
    for result, file in zip(results, files, strict=True):
        np.testing.assert_array_equal(np.array(result), np.asarray(Image.open(io.BytesIO(file)).convert("RGB")))
    pipeline.close()


def test_files_are_not_turned_upright_unless_asked_for() -> None:
    image = Image.fromarray(picture(5))
    exif = Image.Exif()
    exif[0x0112] = 6
    held = io.BytesIO()
    image.save(held, "PNG", exif=exif)
    for orientation, shape in ((False, (image.height, image.width)), (True, (image.width, image.height))):
        pipeline = plugin.pipeline(v2.Identity(), batch_size=1, orientation=orientation)
        (results,) = pipeline.run(images=[np.frombuffer(held.getvalue(), np.uint8)])
        assert tuple(results[0].shape()[:2]) == shape
        pipeline.close()


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("transform", "told"),
    [
        (v2.RandomCrop(3), "`RandomCrop` is not exported"),
        (v2.RandomHorizontalFlip(), "is random, with a probability of 0.5"),
        (v2.RandomRotation(30), "with a fixed angle"),
        (v2.Compose([v2.ToTensor(), v2.Resize(3)]), "comes after the conversion to floats"),
        (v2.Compose([v2.ToImage(), v2.Grayscale()]), "put it before the conversion to tensors"),
        (v2.Compose([v2.Lambda(abs)]), "`Lambda` is not exported"),
        (v2.Compose([v2.ToImage(), v2.ToDtype("float16", scale=True)]), "for uint8 or, with `scale=True`, float32"),
        (v2.Compose([v2.ToImage(), v2.ToPILImage("HSV")]), "only be exported without a `mode`"),
    ],
)
def test_what_is_not_exported(transform: Any, told: str, tmp_path: Path) -> None:
    with pytest.raises(plugin.ExportError, match=told):
        plugin.export(transform, tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_numbers_without_torch(without_torch: None) -> None:
    numbers = _random.numbers()
    numbers.seed(3)
    # The values that PyTorch draws after `torch.manual_seed(3)`.
    np.testing.assert_array_equal(
        numbers.fractions(3), np.array([0.00426352024, 0.10556936264, 0.28584247827], np.float32)
    )
    assert [numbers.below(0, 1000) for _ in range(4)] == [667, 360, 280, 840]
    assert numbers.shuffled(6) == [5, 2, 0, 4, 1, 3]
    assert {numbers.choice([0.5, 0.0, 0.5]) for _ in range(50)} == {0, 2}
    drawn = [numbers.exponential(0.75, 4 / 3) for _ in range(200)]
    assert min(drawn) >= 0.75 - 1e-6
    assert max(drawn) <= 4 / 3 + 1e-6


@pytest.mark.filterwarnings("ignore:PIL's images are resized with antialiasing")
def test_transforms_travel_to_other_processes() -> None:
    image = Image.fromarray(picture(3))
    for _, name, seed, make in cases():
        transform = make(v2)
        copied = pickle.loads(pickle.dumps(transform))
        assert repr(copied) == repr(transform), name
        results = []
        for each in (transform, copied):
            manual_seed(seed)
            results.append(digests(each(image)))
        assert results[0] == results[1], name


def test_transforms_need_neither_torch_nor_torchvision() -> None:
    program = """
import pickle
import sys
import numpy as np
from PIL import Image
sys.modules["torch"] = sys.modules["torchvision"] = None
from penstock.plugin.torchvision.transforms import v2
composed = v2.Compose([v2.Resize(8), v2.CenterCrop(7), v2.Grayscale()]).eval()
assert not composed.training and "Resize(size=[8]" in repr(composed)
array = np.zeros((9, 9, 3), np.uint8)
assert pickle.loads(pickle.dumps(composed))(array).shape[:2] == (7, 7)
assert composed(Image.fromarray(array).convert("P")).mode == "L"
"""
    subprocess.run([sys.executable, "-c", program], check=True)
