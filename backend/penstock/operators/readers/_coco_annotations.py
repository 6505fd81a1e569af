"""Annotations of the COCO data set: boxes, categories and masks of the objects in images.

Source: the data format of cocodataset.org. Preprocessed annotations have DALI's format: for each table, a 32-bit count, then
the values.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from penstock.storage import Files, join


@dataclass
class CocoImage:
    """One image's annotations.

    Attributes:
        file_name: the image's file name.
        id: the image's number in the annotations.
        height, width: the height and width of the image.
        boxes: the objects' boxes, float32 of shape (objects, 4).
        labels: the objects' labels, int32 of shape (objects,).
        polygons: int32 of shape (polygons, 3): for each polygon the index of its object, and the range (end exclusive) of its vertices.
        vertices: float32 of shape (vertices, 2): x, y.
        segmentations: each object's masks, parsed from the annotations file but otherwise unchanged.
    """

    file_name: str
    id: int
    height: int = 0
    width: int = 0
    boxes: np.ndarray = field(default_factory=lambda: np.empty((0, 4), np.float32))
    labels: np.ndarray = field(default_factory=lambda: np.empty(0, np.int32))
    polygons: np.ndarray = field(default_factory=lambda: np.empty((0, 3), np.int32))
    vertices: np.ndarray = field(default_factory=lambda: np.empty((0, 2), np.float32))
    segmentations: list[object] = field(default_factory=list)

    def mask(self) -> np.ndarray:
        """Return each pixel's label, int32 of shape (H, W, 1): the greatest label of the objects that cover the pixel, or 0.

        Raises:
            ValueError: a mask, or the size of the image, is invalid.
        """
        try:
            from pycocotools import mask as coding
        except ImportError as error:
            raise ImportError("pycocotools is needed for pixelwise masks: pip install pycocotools") from error

        if self.width < 0 or self.height < 0:
            raise ValueError(f"The annotations declare an image of {self.width}x{self.height} pixels")
        mask = np.zeros((self.width, self.height), np.int32)
        for index in np.argsort(self.labels, kind="stable"):
            segmentation = self.segmentations[index]
            try:
                if isinstance(segmentation, list):
                    # Drop outlines of two vertices, which enclose nothing: pycocotools would interpret their four numbers as a box.
                    segmentation = [outline for outline in segmentation if len(outline) >= _MIN_OUTLINE_NUMBERS]
                if not segmentation:
                    continue
                if isinstance(segmentation, dict) and isinstance(segmentation["counts"], str):
                    counts = segmentation["counts"].encode()
                else:
                    _check_outlines(segmentation, mask.size)
                    encoded = coding.frPyObjects(segmentation, self.height, self.width)
                    counts = (coding.merge(encoded) if isinstance(encoded, list) else encoded)["counts"]
                inside = _inside(counts, mask.size)
            except Exception as error:
                # pycocotools raises exceptions of the class Exception.
                raise ValueError(f"The mask of an object of '{self.file_name}' cannot be read: {error}") from error
            mask.reshape(-1)[inside] = self.labels[index]
        return np.ascontiguousarray(mask.T)[..., np.newaxis]


# An outline that encloses an area has at least three vertices, which are six numbers.
_MIN_OUTLINE_NUMBERS = 6
# A limit on coordinates, because pycocotools traces and stores all pixels of a line, however long it is.
_MAX_COORDINATE = 1 << 20


def _check_outlines(segmentation: Any, size: int) -> None:
    """Raise ValueError for run lengths or polygon vertices that cannot belong to an image of ``size`` pixels."""
    if isinstance(segmentation, dict):
        runs = segmentation["counts"]
        if not all(isinstance(run, int) and run >= 0 for run in runs) or sum(runs) > size:
            raise ValueError("its run lengths are invalid, or exceed the number of the image's pixels")
    elif not all(np.abs(np.array(outline, np.float64)).max() < _MAX_COORDINATE for outline in segmentation):
        raise ValueError("its polygons are far outside of the image")


def _inside(counts: bytes, size: int) -> np.ndarray:
    """Decode a compressed run-length encoding; return the mask's pixels, column by column: bool of shape (size,).

    Runs alternate between outside and inside. From the fourth run on, the stored number is the difference from the length two
    runs before. A character stores 5 bits of a number, lowest bits first; its sixth bit says whether more characters follow.
    Source: cocoapi's ``rleFrString``. (pycocotools can decode this, too, but warns with NumPy 2.)
    """
    lengths: list[int] = []
    position = 0
    while position < len(counts):
        value, shift, more = 0, 0, True
        while more:
            code = counts[position] - 48
            value |= (code & 0x1F) << shift
            position, shift, more = position + 1, shift + 5, bool(code & 0x20)
        if code & 0x10:
            value -= 1 << shift
        lengths.append(value + (lengths[-2] if len(lengths) > 2 else 0))
    if min(lengths, default=0) < 0 or sum(lengths) > size:
        raise ValueError("its run lengths are invalid, or exceed the number of the image's pixels")
    inside = np.repeat(np.arange(len(lengths)) % 2 == 1, lengths)
    return np.pad(inside, (0, max(size - inside.size, 0)))[:size]


@dataclass(frozen=True)
class CocoSettings:
    """Which annotations to return, and in which form.

    Attributes:
        corners: return boxes as left, top, right, bottom instead of left, top, width, height.
        relative: return coordinates as fractions of the image's width and height.
        min_size: skip objects whose box is narrower or lower than this, in pixels.
        crowds: include objects that stand for crowds.
        category_ids: return the file's category numbers as labels; otherwise, categories are numbered 1, 2, 3 ... in the file's order.
        skip_empty: skip images without objects.
    """

    corners: bool = False
    relative: bool = False
    min_size: float = 0.0
    crowds: bool = True
    category_ids: bool = False
    skip_empty: bool = False


def read_annotations(
    files: Files, path: str, settings: CocoSettings, only: Sequence[str] | None = None
) -> list[CocoImage]:
    """Return the images of an annotations file.

    Args:
        files: the accessible files.
        path: the path of the annotations file.
        settings: which annotations to return, and in which form.
        only: the file names of the images to return, in this order; None: all images in the order of their numbers.

    Raises:
        ValueError: the file is not a COCO annotations file.
    """
    try:
        content = json.loads(files.read_text(path))
        images = {item["id"]: item for item in sorted(content.get("images", ()), key=lambda item: item["id"])}
        labels = {
            category["id"]: category["id"] if settings.category_ids else number
            for number, category in enumerate(content.get("categories", ()), 1)
        }
        objects: dict[int, list[dict[str, object]]] = {number: [] for number in images}
        for annotation in content.get("annotations", ()):
            if annotation["image_id"] in objects and _wanted(annotation, settings):
                objects[annotation["image_id"]].append(annotation)
        parsed = [_image(images[number], objects[number], labels, settings) for number in images]
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ValueError(f"'{path}' is not a COCO annotations file: {error!r}") from error
    selected = [image for image in parsed if len(image.boxes) or not settings.skip_empty]
    if only is None:
        return selected
    by_name = {image.file_name: image for image in selected}
    return [by_name[name] for name in only if name in by_name]


def _box(annotation: dict[str, Any]) -> Sequence[float]:
    """Return the left, top, width and height of an object's box; zeros for an object without a box."""
    box: Sequence[float] = annotation.get("bbox", (0.0, 0.0, 0.0, 0.0))
    return box


def _wanted(annotation: dict[str, object], settings: CocoSettings) -> bool:
    _, _, width, height = _box(annotation)
    if annotation.get("iscrowd") and not settings.crowds:
        return False
    return width >= settings.min_size and height >= settings.min_size


def _is_int32(number: object) -> bool:
    return isinstance(number, int) and -(2**31) <= number < 2**31


def _image(
    item: dict[str, Any], objects: list[dict[str, Any]], labels: dict[int, int], settings: CocoSettings
) -> CocoImage:
    name, *numbers = item["file_name"], item["id"], item["height"], item["width"]
    if not isinstance(name, str) or "\0" in name or not all(_is_int32(number) for number in numbers):
        raise ValueError(f"an image needs a name, and whole numbers as its id, height and width: {item!r}")
    image = CocoImage(name, *numbers)
    scale = np.array([image.width, image.height] * 2 if settings.relative else [1] * 4, np.float32)
    boxes = np.array([_box(o) for o in objects], np.float32).reshape(-1, 4)
    if settings.corners:
        boxes[:, 2:] += boxes[:, :2]
    image.boxes = boxes / scale
    # Objects whose category is not in the list of categories get the background's label, 0.
    image.labels = np.array([labels.get(o["category_id"], 0) for o in objects], np.int32)
    image.segmentations = [o.get("segmentation", []) for o in objects]
    polygons, vertices, start = [], [], 0
    for index, outlines in enumerate(image.segmentations):
        # Crowds have run-length encoded masks, which are dictionaries, instead of lists of polygons.
        for outline in outlines if isinstance(outlines, list) else ():
            end = start + len(outline) // 2
            polygons.append((index, start, end))
            vertices.extend(outline)
            start = end
    image.polygons = np.array(polygons, np.int32).reshape(-1, 3)
    image.vertices = np.array(vertices, np.float32).reshape(-1, 2) / scale[:2]
    return image


# -- preprocessed annotations ----------------------------------------------------------------------------------------

_COUNT = np.dtype("<u4")


def write_preprocessed(files: Files, folder: str, images: Sequence[CocoImage], polygons: bool, numbers: bool) -> None:
    """Write annotations as tables, which load faster than the annotations file.

    Args:
        files: the accessible files, confined to the folders where writing is allowed.
        folder: the folder to write the tables to.
        images: the annotations.
        polygons: whether to write the objects' polygons, too.
        numbers: whether to write the images' numbers, too.
    """
    os.makedirs(files.path(folder), exist_ok=True)
    with open(files.path(join(folder, "filenames.dat")), "w", encoding="utf-8") as file:
        file.writelines(f"{image.file_name}\n" for image in images)
    objects = [len(image.boxes) for image in images]
    _write(files, folder, "offsets", np.cumsum([0, *objects])[:-1], "<i4")
    _write(files, folder, "counts", objects, "<i4")
    _write(files, folder, "boxes", [image.boxes for image in images], "<f4")
    _write(files, folder, "labels", [image.labels for image in images], "<i4")
    if numbers:
        _write(files, folder, "original_ids", [image.id for image in images], "<i4")
    if polygons:
        _write_outlines(files, folder, images)


def _write_outlines(files: Files, folder: str, images: Sequence[CocoImage]) -> None:
    polygons = [len(image.polygons) for image in images]
    vertices = [len(image.vertices) for image in images]
    _write(files, folder, "polygons_count", polygons, "<i8")
    _write(files, folder, "polygon_offset", np.cumsum([0, *polygons])[:-1], "<i8")
    _write(files, folder, "polygon_data", [image.polygons for image in images], "<i4", columns=3)
    _write(files, folder, "vertices_count", vertices, "<i8")
    _write(files, folder, "vertices_offset", np.cumsum([0, *vertices])[:-1], "<i8")
    _write(files, folder, "vertices", [image.vertices for image in images], "<f4", columns=2)


def _write(files: Files, folder: str, name: str, values: Any, dtype: str, columns: int = 1) -> None:
    parts = [np.asarray(part, dtype).reshape(-1) for part in values]
    flat = np.concatenate(parts) if parts else np.empty(0, dtype)
    with open(files.path(join(folder, f"{name}.dat")), "wb") as file:
        file.write(np.array([flat.size // columns], _COUNT).tobytes() + flat.tobytes())


def read_preprocessed(files: Files, folder: str, polygons: bool) -> list[CocoImage]:
    """Return the images of a folder written by :func:`write_preprocessed` or DALI.

    Args:
        files: the accessible files, confined to the folders where reading is allowed.
        folder: the folder of the tables.
        polygons: whether to read the objects' polygons, too.
    """
    names = files.read_text(join(folder, "filenames.dat")).splitlines()
    offsets, counts = _read(files, folder, "offsets", "<i4"), _read(files, folder, "counts", "<i4")
    boxes, labels = _read(files, folder, "boxes", "<f4").reshape(-1, 4), _read(files, folder, "labels", "<i4")
    try:
        numbers = _read(files, folder, "original_ids", "<i4")
    except OSError:
        numbers = np.arange(len(names))  # DALI writes the images' numbers only on request.
    images = []
    for name, number, start, count in zip(names, numbers.tolist(), offsets.tolist(), counts.tolist()):
        span = slice(start, start + count)
        images.append(CocoImage(name, number, boxes=boxes[span], labels=labels[span]))
    if polygons:
        outlines, corners = (
            _read(files, folder, "polygon_data", "<i4").reshape(-1, 3),
            _read(files, folder, "vertices", "<f4"),
        )
        for image, first, count in zip(
            images, _read(files, folder, "polygon_offset", "<i8"), _read(files, folder, "polygons_count", "<i8")
        ):
            image.polygons = outlines[first : first + count]
        for image, first, count in zip(
            images, _read(files, folder, "vertices_offset", "<i8"), _read(files, folder, "vertices_count", "<i8")
        ):
            image.vertices = corners.reshape(-1, 2)[first : first + count]
    return images


def _read(files: Files, folder: str, name: str, dtype: str) -> np.ndarray:
    data = files.read(join(folder, f"{name}.dat"))[_COUNT.itemsize :]
    return data.view(dtype) if data.flags.c_contiguous and data.ctypes.data % 8 == 0 else data.copy().view(dtype)
