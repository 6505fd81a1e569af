"""Tensors and batches as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

_INDENT = " " * 4
_Item = TypeVar("_Item")
# This many items at either end of long dimensions and large batches are shown.
_EDGE_ITEMS = 2
_MAX_SHOWN_ELEMENTS = 1000
_MAX_LINE_CHARACTERS = 75


def format_tensor(obj: Any, show_data: bool = True) -> str:
    """Return a tensor, of a pipeline or of dynamic mode, as text: its properties and, if ``show_data``, its data."""
    return str(obj) if show_data else _without_data(obj)


def format_batch(obj: Any, show_data: bool = True, indent: str = "") -> str:
    """Return a batch, of a pipeline or of dynamic mode, as text; all lines except the first are indented."""
    return (str(obj) if show_data else _without_data(obj)).replace("\n", "\n" + indent)


def _without_data(shown: Any) -> str:
    """Return only the properties, as the `repr` of a pipeline's tensors and batches, and of dynamic mode's storage, shows them."""
    text = repr(getattr(shown, "storage", shown))
    return type(shown).__name__ + text[text.index("(") :]


def tensor_text(
    name: str, data: np.ndarray | None, dtype: object, layout: str, device: str, shape: Sequence[int]
) -> str:
    """Return a tensor as text: its properties, one per line, and its data, unless ``data`` is None."""
    return _lines(name, _array_text(data), dtype, layout, device, [f"shape={tuple(shape)}"])


def batch_text(
    name: str,
    samples: Sequence[np.ndarray] | None,
    dtype: object,
    layout: str,
    device: str,
    shapes: Sequence[tuple[int, ...]],
) -> str:
    """Return a batch as text: its properties, one per line, and its samples, unless ``samples`` is None."""
    data = None if samples is None else _samples_text(samples)
    return _lines(name, data, dtype, layout, device, [f"num_samples={len(shapes)}", f"shape=[{_shapes_text(shapes)}]"])


def _lines(name: str, data: str | None, dtype: object, layout: str, device: str, extents: list[str]) -> str:
    lines = [] if data is None else [data]
    lines.append(f"dtype={dtype}")
    if layout:
        lines.append(f'layout="{layout}"')
    lines += [f'device="{device}"', *extents]
    body = f",\n{_INDENT}".join(lines)
    return f"{name}(\n{_INDENT}{body})"


def _array_text(data: np.ndarray | None) -> str | None:
    return None if data is None else np.array2string(data, prefix=_INDENT, edgeitems=_EDGE_ITEMS)


def _is_large(samples: Sequence[np.ndarray]) -> bool:
    return len(samples) > 2 * _EDGE_ITEMS + 1 and sum(max(s.size, 1) for s in samples) > _MAX_SHOWN_ELEMENTS


def _samples_text(samples: Sequence[np.ndarray]) -> str:
    if not samples:
        return "[]"
    shown = _edges(samples) if _is_large(samples) else list(samples)
    ndim = samples[0].ndim
    separator = ", " if ndim == 0 else ",\n" + "\n" * (ndim - 1) + _INDENT
    return "[" + separator.join("..." if sample is None else str(_array_text(sample)) for sample in shown) + "]"


def _edges(items: Sequence[_Item]) -> list[_Item | None]:
    """Return the first and the last items, with None in place of the items between."""
    return [*items[:_EDGE_ITEMS], None, *items[-_EDGE_ITEMS:]]


def _shapes_text(shapes: Sequence[tuple[int, ...]]) -> str:
    count = len(shapes)
    is_long = count > 16 or (count > 2 * _EDGE_ITEMS + 1 and count * len(shapes[0]) > 100)
    texts = ["..." if shape is None else str(shape) for shape in (_edges(shapes) if is_long else shapes)]
    line = ", ".join(texts)
    return line if len(line) <= _MAX_LINE_CHARACTERS else (", \n" + _INDENT + " " * len("shape=[")).join(texts)
