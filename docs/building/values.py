"""Format values as Python code."""

from __future__ import annotations

import numpy as np

from penstock.data_types import DALIDataType, DALIImageType, DALIInterpType
from penstock.schema.documentation import MemberDefault

ENUMERATIONS = (DALIDataType, DALIImageType, DALIInterpType)


def value_text(value: object) -> str:
    """Format a value as Python code: enumerations by their names in `types`, arrays as lists."""
    if isinstance(value, MemberDefault):
        return value_text(value.member)
    if isinstance(value, ENUMERATIONS):
        return f"types.{value.name}"
    if isinstance(value, np.ndarray):
        return value_text(value.tolist())
    if isinstance(value, (list, tuple)):
        text = ", ".join(map(value_text, value))
        return f"[{text}]" if isinstance(value, list) else f"({text}{',' * (len(value) == 1)})"
    return repr(value)
