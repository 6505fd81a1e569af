"""The transforms of `torchvision.transforms.v2`, with the same names and results, for PIL images, arrays and tensors.

>>> from penstock.plugin.torchvision.transforms import v2
>>> transform = v2.Compose([v2.Resize(256), v2.CenterCrop(224), v2.ToImage(), v2.ToDtype("float32", scale=True)])

:func:`export` turns a transform that is not random into a model for Triton. Random transforms draw the same parameters as
torchvision's after the same `torch.manual_seed`.
"""

from penstock.plugin.torchvision import transforms, tv_tensors
from penstock.plugin.torchvision._export import ExportError, export, pipeline
from penstock.plugin.torchvision._random import manual_seed

__all__ = ["ExportError", "export", "manual_seed", "pipeline", "transforms", "tv_tensors"]
