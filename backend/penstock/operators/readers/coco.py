"""`readers.coco`: images of the COCO data set with boxes, labels and masks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.data_types import FLOAT, INT32, UINT8
from penstock.operators.readers._coco_annotations import (
    CocoImage,
    CocoSettings,
    read_annotations,
    read_preprocessed,
    write_preprocessed,
)
from penstock.operators.readers._reader import EPOCH_SHUFFLE_ARGUMENTS, READER_ARGUMENTS, Reader
from penstock.schema import Alias, Argument, Deprecation, Equivalent, OutputSpec, Schema, register_operator
from penstock.storage import join

# Arguments that apply to the annotations file. With preprocessed annotations, which already reflect them, they are refused.
_ANNOTATION_ARGUMENTS = ("annotations_file", "skip_empty", "ratio", "ltrb", "images", "size_threshold")


def _count_outputs(arguments: dict[str, object]) -> int:
    polygons = arguments.get("polygon_masks") or arguments.get("masks")
    return 3 + 2 * bool(polygons) + bool(arguments.get("pixelwise_masks")) + bool(arguments.get("image_ids"))


def _renamed(name: str, kind: str, default: object, new: str) -> Argument:
    return Argument(name, kind, default, f"Old name of `{new}`.", deprecated=Deprecation("0.28", renamed_to=new))


# The factors that turn a row of `polygons` (object, first vertex, last vertex) into one of `masks` (object, first and last coordinate).
_TO_COORDINATES = np.array([1, 2, 2], np.int32)


@register_operator
class COCO(Reader):
    """Returns the bytes of each image, and the boxes (float32, (n, 4)) and labels (int32, (n,)) of the objects in it.

    ``polygon_masks`` adds polygons (int32, (m, 3): object, first vertex, end of the vertices) and vertices (float32, (k, 2));
    ``pixelwise_masks`` adds the label of each pixel (int32, HWC); ``image_ids`` adds the number of the image.

    >>> images, boxes, labels = fn.readers.coco(  # doctest: +SKIP
    ...     file_root="val2017", annotations_file="instances_val2017.json", ltrb=True, ratio=True
    ... )
    """

    schema = Schema(
        name="readers__COCO",
        devices=("cpu",),
        arguments=(
            *READER_ARGUMENTS,
            *EPOCH_SHUFFLE_ARGUMENTS,
            Argument("annotations_file", "string", "", "The annotations, as COCO's JSON.", path=True),
            Argument(
                "avoid_class_remapping",
                "bool",
                False,
                "Use the file's category numbers as labels, instead of 1, 2, 3 ...",
            ),
            Argument("file_root", "string", None, "The folder that holds the images.", path=True),
            Argument("image_ids", "bool", False, "Also return the images' numbers."),
            Argument("images", "string[]", None, "Names of the images to read, in this order; by default all."),
            Argument("include_iscrowd", "bool", True, "Include objects that stand for crowds."),
            Argument(
                "ltrb", "bool", False, "Return boxes as left, top, right, bottom; otherwise left, top, width, height."
            ),
            Argument(
                "masks",
                "bool",
                False,
                "Like `polygon_masks`, but polygons refer to their first and last coordinates, two of which are a vertex.",
                deprecated=Deprecation("0.28", instead="polygon_masks"),
            ),
            Argument("pixelwise_masks", "bool", False, "Also return label masks."),
            Argument("polygon_masks", "bool", False, "Also return the objects' outlines."),
            Argument("preprocessed_annotations", "string", "", "A folder of preprocessed annotations.", path=True),
            Argument("ratio", "bool", False, "Return coordinates as fractions of the image's extents."),
            Argument("save_preprocessed_annotations", "bool", False, "Save the annotations for faster loading."),
            Argument("save_preprocessed_annotations_dir", "string", "", "The folder to save them in.", path=True),
            Argument("size_threshold", "float", 0.1, "Skip objects with less width or height, in pixels."),
            Argument("skip_empty", "bool", False, "Skip images without objects."),
            _renamed("dump_meta_files", "bool", False, "save_preprocessed_annotations"),
            _renamed("dump_meta_files_path", "string", "", "save_preprocessed_annotations_dir"),
            _renamed("meta_files_path", "string", "", "preprocessed_annotations"),
            _renamed("save_img_ids", "bool", False, "image_ids"),
        ),
        outputs=_count_outputs,
        random=True,
        stateful=True,
        aliases=(Alias("COCOReader", "1.0", fn="coco_reader"),),
        fn="readers.coco",
        equivalents=(Equivalent("torchvision.datasets.CocoDetection", "It gives annotations as dictionaries."),),
    )

    def setup(self) -> None:
        args = self.args
        if args["preprocessed_annotations"]:
            for name in _ANNOTATION_ARGUMENTS:
                if self.given(name):
                    raise ValueError(
                        f'When reading data from preprocessed annotation files, "{name}" is not supported.'
                    )
        if not args["annotations_file"] and not args["preprocessed_annotations"]:
            raise ValueError("`annotations_file` or `preprocessed_annotations` is needed")
        if not args["file_root"]:
            raise ValueError("`file_root` is needed: the folder that holds the images")
        self._polygons = args["polygon_masks"] or args["masks"]
        if args["pixelwise_masks"] and self._polygons:
            raise ValueError("`pixelwise_masks` and `polygon_masks` are mutually exclusive")
        if args["pixelwise_masks"] and args["preprocessed_annotations"]:
            raise ValueError("`pixelwise_masks` need the annotations file: preprocessed annotations hold no masks")
        if args["skip_cached_images"]:
            raise RuntimeError("COCOReader doesn't support `skip_cached_images` option")
        if self.given("save_preprocessed_annotations") != self.given("save_preprocessed_annotations_dir"):
            raise ValueError(
                "`save_preprocessed_annotations` and `save_preprocessed_annotations_dir` should be provided together"
            )
        super().setup()

    def list_items(self) -> Sequence[CocoImage]:
        args = self.args
        if args["preprocessed_annotations"]:
            return read_preprocessed(self.files, args["preprocessed_annotations"], self._polygons)
        settings = CocoSettings(
            corners=args["ltrb"],
            relative=args["ratio"],
            min_size=args["size_threshold"],
            crowds=args["include_iscrowd"],
            category_ids=args["avoid_class_remapping"],
            skip_empty=args["skip_empty"],
        )
        images = read_annotations(self.files, args["annotations_file"], settings, args["images"] or None)
        if args["save_preprocessed_annotations"]:
            write_preprocessed(
                self.files,
                args["save_preprocessed_annotations_dir"],
                images,
                polygons=self._polygons,
                numbers=args["image_ids"],
            )
        return images

    def output_specs(self) -> list[OutputSpec]:
        specs = [OutputSpec(UINT8, "", 1), OutputSpec(FLOAT, "", 2), OutputSpec(INT32, "", 1)]
        if self._polygons:
            specs += [OutputSpec(INT32, "", 2), OutputSpec(FLOAT, "", 2)]
        if self.args["pixelwise_masks"]:
            specs.append(OutputSpec(INT32, "HWC", 3))
        return [*specs, OutputSpec(INT32, "", 1)] if self.args["image_ids"] else specs

    def read(self, item: CocoImage) -> list[np.ndarray]:
        outputs = [self.files.read(join(self.args["file_root"], item.file_name)), item.boxes, item.labels]
        if self._polygons:
            outputs += [item.polygons * _TO_COORDINATES if self.args["masks"] else item.polygons, item.vertices]
        if self.args["pixelwise_masks"]:
            outputs.append(item.mask())
        if self.args["image_ids"]:
            outputs.append(np.array([item.id], np.int32))
        return outputs

    def source_info(self, item: CocoImage, output: int) -> str:
        return item.file_name if output == 0 else ""
