"""Features of TFRecord files, for ``fn.readers.tfrecord``.

>>> features = {
...     "image": FixedLenFeature((), string, ""),
...     "label": FixedLenFeature([1], int64, -1),
... }
>>> inputs = fn.readers.tfrecord(path="data.tfrecord", index_path="data.idx", features=features)  # doctest: +SKIP
>>> images = fn.decoders.image(inputs["image"])  # doctest: +SKIP
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Sequence
from typing import Any

from penstock.errors import as_imported
from penstock.graph import call_operator
from penstock.kernels.codecs.tfrecord import FLOAT32, INT64, STRING, Feature
from penstock.schema.namespaces import written_out
from penstock.schema.op_schema import Described
from penstock.schema.registry import find_schema

__all__ = ["Feature", "FixedLenFeature", "TFRecord", "VarLenFeature", "float32", "int64", "string", "tfrecord"]

int64, string, float32 = INT64, STRING, FLOAT32


def FixedLenFeature(shape: Sequence[int], dtype: int, default_value: object) -> Feature:
    """Return a feature with the same number of values in each record.

    Args:
        shape: the shape of the result; ``()`` for a number or a string.
        dtype: ``int64``, ``float32`` or ``string``.
        default_value: the value for records that lack the feature.
    """
    return _feature(dtype, [operator.index(extent) for extent in shape], default_value)


def VarLenFeature(*arguments: Any) -> Feature:
    """Return a feature with any number of values: ``VarLenFeature([shape,] dtype, default_value)``.

    Args:
        shape: the extents of all dimensions but the first.
        dtype: ``int64`` or ``float32``.
        default_value: accepted for compatibility; a record without the feature yields an empty array (a scalar, if all
            records of the batch lack it).
    """
    if len(arguments) not in (2, 3):
        raise TypeError(f"VarLenFeature takes (dtype, default_value) or (shape, dtype, default_value), got {arguments}")
    shape, dtype, default = arguments if len(arguments) == 3 else (None, *arguments)
    return _feature(dtype, None, default, None if shape is None else [operator.index(extent) for extent in shape])


_PYTHON_TYPES: dict[int, tuple[Any, str]] = {INT64: (int, "int"), STRING: (str, "string"), FLOAT32: (float, "float")}


def _feature(dtype: int, shape: list[int] | None, default: object, partial_shape: list[int] | None = None) -> Feature:
    if dtype not in _PYTHON_TYPES:
        raise RuntimeError(f"Unknown type of a feature: {dtype}. Use `int64`, `float32` or `string`")
    kind, name = _PYTHON_TYPES[dtype]
    if not isinstance(default, kind):
        raise RuntimeError(f"Invalid type for default value, expected {name}, got {default!r}")
    return Feature(dtype, shape, default, partial_shape)


@written_out("fn.readers.tfrecord")
def tfrecord(
    *inputs: object,
    path: str | Sequence[str],
    index_path: str | Sequence[str],
    features: dict[str, Feature],
    **arguments: Any,
) -> dict[str, Any]:
    """Read features of TFRecord files; return a node for each name in ``features``.

    Args:
        path: the path of a file, or the paths of several.
        index_path: the paths of the files' indices: text files with the start and size of one record per line.
        features: the features to read, by name; see :func:`FixedLenFeature` and :func:`VarLenFeature`.
        arguments: arguments that all readers take: ``random_shuffle``, ``num_shards`` ...
    """
    own = {"path": path, "index_path": index_path, "features": features}
    return _read("readers___TFRecord", "TFRecord", "penstock.fn.readers.tfrecord", inputs, own | arguments)


@written_out("fn.tfrecord_reader")
def tfrecord_reader(
    *inputs: object,
    path: str | Sequence[str],
    index_path: str | Sequence[str],
    features: dict[str, Feature],
    **arguments: Any,
) -> dict[str, Any]:
    """Old name of :func:`tfrecord`."""
    _warn_of_old_name("fn.tfrecord_reader")
    own = {"path": path, "index_path": index_path, "features": features}
    return _read("_TFRecordReader", "TFRecordReader", "penstock.fn.tfrecord_reader", inputs, own | arguments)


def _read(
    operator: str, unnamed: str, display: str, inputs: Sequence[object], arguments: dict[str, Any]
) -> dict[str, Any]:
    """Call the private operator, which takes features and their names separately; return its nodes by name."""
    features, device, name = (arguments.pop(word, None) for word in ("features", "device", "name"))
    for name_of_feature, feature in features.items():
        if not isinstance(feature, Feature):
            raise TypeError(
                f'Expected `{as_imported("penstock.tfrecord.Feature")}` for the "{name_of_feature}", but got {type(feature)}. Use '
                f"`{as_imported('penstock.tfrecord.FixedLenFeature')}` or `{as_imported('penstock.tfrecord.VarLenFeature')}` to "
                "define the features to extract."
            )
    own = arguments | {"feature_names": list(features), "features": list(features.values())}
    nodes = call_operator(operator, inputs, own, device, name, display, unnamed=unnamed)
    return dict(zip(features, nodes if isinstance(nodes, list) else [nodes]))


def _warn_of_old_name(name: str) -> None:
    old, new = as_imported(f"penstock.{name}"), as_imported("penstock.fn.readers.tfrecord")
    text = f"WARNING: `{old}` is now deprecated. Use `{new}` instead."
    warnings.warn(text, DeprecationWarning, stacklevel=3)


@written_out("ops.readers__TFRecord")
class TFRecord(Described):
    """:func:`tfrecord` as an operator class: ``ops.readers.TFRecord(...)()``."""

    schema_name = "readers__TFRecord"
    _private_schema = "readers___TFRecord"

    def __init__(
        self, path: str | Sequence[str], index_path: str | Sequence[str], features: dict[str, Feature], **kwargs: Any
    ) -> None:
        schema = find_schema(self._private_schema)
        for key in kwargs:
            if key not in schema.all_arguments and key not in ("device", "name"):
                raise schema.unknown_argument(key)
        self._arguments = {"path": path, "index_path": index_path, "features": features} | kwargs

    @property
    def device(self) -> str:
        """The device of the operator."""
        return self._arguments.get("device", "cpu")

    @property
    def preserve(self) -> bool:
        """Whether the operator runs even if no output depends on it."""
        return bool(self._arguments.get("preserve"))

    def __call__(self, *inputs: object, **kwargs: Any) -> dict[str, Any]:
        """Return a node for each feature, by name.

        Raises:
            ValueError: an argument was already set at construction.
        """
        given = {key: value for key, value in kwargs.items() if value is not None}
        for key in given:
            if self._arguments.get(key) is not None:
                raise ValueError(f"The argument `{key}` was already specified in __init__.")
        display = ".".join(("penstock.ops", *find_schema(self.schema_name).module, type(self).__name__))
        return _read(self._private_schema, type(self).__name__, display, inputs, self._arguments | given)


@written_out("ops.TFRecordReader")
class TFRecordReader(TFRecord):
    """Old name of :class:`TFRecord`."""

    schema_name = "TFRecordReader"
    _private_schema = "_TFRecordReader"

    def __init__(
        self, path: str | Sequence[str], index_path: str | Sequence[str], features: dict[str, Feature], **kwargs: Any
    ) -> None:
        _warn_of_old_name("ops.TFRecordReader")
        super().__init__(path, index_path, features, **kwargs)
