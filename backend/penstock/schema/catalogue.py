"""Lists operators as users look them up: by family, with purpose and devices."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Literal, TypeAlias

from penstock.schema.declaration import Schema
from penstock.schema.operator import Operator
from penstock.schema.registry import all_schemas, operator_class

GpuSupport: TypeAlias = Literal["", "by host", "kernels"]


def public_operators() -> list[tuple[str, Schema]]:
    """Return the family and the schema of each public operator, sorted by family, then by name in ``fn``."""
    return sorted(_public(), key=lambda entry: (entry[0], entry[1].fn_path))


def _public() -> Iterator[tuple[str, Schema]]:
    for schema in all_schemas():
        if not schema.hidden and not schema.absent and not schema.name.startswith("_"):
            yield family(schema), schema


def family(schema: Schema) -> str:
    """Return the package that declares an operator; for operators of other distributions, the module."""
    module = operator_class(schema.name).__module__
    return module.split(".")[2] if module.startswith("penstock.operators.") else module


def gpu_support(schema: Schema) -> GpuSupport:
    """Return how the operator runs on a GPU: with CUDA kernels, or on the host, with copies."""
    if not {"gpu", "mixed"} & set(schema.devices):
        return ""
    cls = operator_class(schema.name)
    return "by host" if (cls.compute_batch, cls.run) == (Operator.compute_batch, Operator.run) else "kernels"


def description(schema: Schema) -> str:
    """Return the docstring of the operator's class."""
    return inspect.cleandoc(operator_class(schema.name).__doc__ or schema.name)


def summary(schema: Schema) -> str:
    """Return the first line of the operator's description."""
    return description(schema).partition("\n")[0]
