"""Records the names of DALI's operators and their arguments, for `penstock operators --missing`.

Run in an environment with DALI: ``python tests/golden/record_interface.py``.
"""

from __future__ import annotations

import json
from pathlib import Path

import nvidia.dali
from nvidia.dali import backend, ops

PATH = Path(__file__).parents[2] / "backend" / "penstock" / "compat" / "dali_interface.json"


def interface() -> dict[str, dict[str, list[str]]]:
    """Return the devices and argument names of each public operator, by the name of its schema."""
    by_device = {"cpu": ops.cpu_ops(), "gpu": ops.gpu_ops(), "mixed": ops.mixed_ops()}
    operators = {}
    for name in sorted(set().union(*by_device.values())):
        schema = backend.TryGetSchema(name)
        if schema is None or schema.IsInternal() or name.startswith("_") or "___" in name:
            continue
        operators[name] = {
            "devices": [device for device, names in by_device.items() if name in names],
            "arguments": sorted(argument for argument in schema.GetArgumentNames() if not argument.startswith("_")),
        }
    return operators


def main() -> None:
    """Write the file."""
    operators = interface()
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(entry)}" for name, entry in operators.items())
    PATH.write_text(f'{{"version": "{nvidia.dali.__version__}", "operators": {{\n{lines}\n}}}}\n', encoding="utf-8")
    print(f"{len(operators)} operators of DALI {nvidia.dali.__version__} -> {PATH}")


if __name__ == "__main__":
    main()
