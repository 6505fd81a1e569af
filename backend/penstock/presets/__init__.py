"""Pipelines made from a model's own `preprocessor_config.json`, which give what its image processor gives, to the bit.

>>> pipeline = presets.preset("models/clip", batch_size=32)  # doctest: +SKIP
"""

from penstock.presets.configuration import ImageSettings, PresetError, families, read_configuration
from penstock.presets.pipelines import preset

__all__ = ["ImageSettings", "PresetError", "families", "preset", "read_configuration"]
