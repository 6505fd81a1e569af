"""AutoAugment: Cubuk, Zoph, Mane, Vasudevan, Le, "AutoAugment: Learning augmentation policies from data"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock import fn, types
from penstock.auto_aug import augmentations as a
from penstock.auto_aug.core import Policy, _args, select, signed_bin
from penstock.auto_aug.core._augmentation import Augmentation, row_of
from penstock.auto_aug.core.suites import accepted_arguments, translations
from penstock.graph import DataNode
from penstock.graph.branching import ternary

_NUM_MAGNITUDE_BINS = 11
# A sub-policy as (name, probability, magnitude bin), as printed in the papers.
_Sub = Sequence[tuple[str, float, "int | None"]]
# The magnitude of operations without one: an impossible value, so that a use of it would be noticed.
_NO_MAGNITUDE = -999

_IMAGE_NET: Sequence[_Sub] = [
    [("equalize", 0.8, None), ("shear_y", 0.8, 4)],
    [("color", 0.4, 9), ("equalize", 0.6, None)],
    [("color", 0.4, 1), ("rotate", 0.6, 8)],
    [("solarize", 0.8, 3), ("equalize", 0.4, None)],
    [("solarize", 0.4, 2), ("solarize", 0.6, 2)],
    [("color", 0.2, 0), ("equalize", 0.8, None)],
    [("equalize", 0.4, None), ("solarize_add", 0.8, 3)],
    [("shear_x", 0.2, 9), ("rotate", 0.6, 8)],
    [("color", 0.6, 1), ("equalize", 1.0, None)],
    [("invert", 0.4, None), ("rotate", 0.6, 0)],
    [("equalize", 1.0, None), ("shear_y", 0.6, 3)],
    [("color", 0.4, 7), ("equalize", 0.6, None)],
    [("posterize", 0.4, 6), ("auto_contrast", 0.4, None)],
    [("solarize", 0.6, 8), ("color", 0.6, 9)],
    [("solarize", 0.2, 4), ("rotate", 0.8, 9)],
    [("rotate", 1.0, 7), ("translate_y", 0.8, 9)],
    [("solarize", 0.8, 4)],
    [("shear_y", 0.8, 0), ("color", 0.6, 4)],
    [("color", 1.0, 0), ("rotate", 0.6, 2)],
    [("equalize", 0.8, None)],
    [("equalize", 1.0, None), ("auto_contrast", 0.6, None)],
    [("shear_y", 0.4, 7), ("solarize_add", 0.6, 7)],
    [("posterize", 0.8, 2), ("solarize", 0.6, 10)],
    [("solarize", 0.6, 8), ("equalize", 0.6, None)],
    [("color", 0.8, 6), ("rotate", 0.4, 5)],
]
_REDUCED_CIFAR10: Sequence[_Sub] = [
    [("invert", 0.1, None), ("contrast", 0.2, 6)],
    [("rotate", 0.7, 2), ("translate_x", 0.3, 9)],
    [("sharpness", 0.8, 1), ("sharpness", 0.9, 3)],
    [("shear_y", 0.5, 8), ("translate_y", 0.7, 9)],
    [("auto_contrast", 0.5, None), ("equalize", 0.9, None)],
    [("shear_y", 0.2, 7), ("posterize", 0.3, 7)],
    [("color", 0.4, 3), ("brightness", 0.6, 7)],
    [("sharpness", 0.3, 9), ("brightness", 0.7, 9)],
    [("equalize", 0.6, None), ("equalize", 0.5, None)],
    [("contrast", 0.6, 7), ("sharpness", 0.6, 5)],
    [("color", 0.7, 7), ("translate_x", 0.5, 8)],
    [("equalize", 0.3, None), ("auto_contrast", 0.4, None)],
    [("translate_y", 0.4, 3), ("sharpness", 0.2, 6)],
    [("brightness", 0.9, 6), ("color", 0.2, 8)],
    [("solarize", 0.5, 2)],
    [("equalize", 0.2, None), ("auto_contrast", 0.6, None)],
    [("equalize", 0.2, None), ("equalize", 0.6, None)],
    [("color", 0.9, 9), ("equalize", 0.6, None)],
    [("auto_contrast", 0.8, None), ("solarize", 0.2, 8)],
    [("brightness", 0.1, 3), ("color", 0.7, 0)],
    [("solarize", 0.4, 5), ("auto_contrast", 0.9, None)],
    [("translate_y", 0.9, 9), ("translate_y", 0.7, 9)],
    [("auto_contrast", 0.9, None), ("solarize", 0.8, 3)],
    [("equalize", 0.8, None), ("invert", 0.1, None)],
    [("translate_y", 0.7, 9), ("auto_contrast", 0.9, None)],
]
_SVHN: Sequence[_Sub] = [
    [("shear_x", 0.9, 4), ("invert", 0.2, None)],
    [("shear_y", 0.9, 8), ("invert", 0.7, None)],
    [("equalize", 0.6, None), ("solarize", 0.6, 6)],
    [("invert", 0.9, None), ("equalize", 0.6, None)],
    [("equalize", 0.6, None), ("rotate", 0.9, 3)],
    [("shear_x", 0.9, 4), ("auto_contrast", 0.8, None)],
    [("shear_y", 0.9, 8), ("invert", 0.4, None)],
    [("shear_y", 0.9, 5), ("solarize", 0.2, 6)],
    [("invert", 0.9, None), ("auto_contrast", 0.8, None)],
    [("equalize", 0.6, None), ("rotate", 0.9, 3)],
    [("shear_x", 0.9, 4), ("solarize", 0.3, 3)],
    [("shear_y", 0.8, 8), ("invert", 0.7, None)],
    [("equalize", 0.9, None), ("translate_y", 0.6, 6)],
    [("invert", 0.9, None), ("equalize", 0.6, None)],
    [("contrast", 0.3, 3), ("rotate", 0.8, 4)],
    [("invert", 0.8, None)],
    [("shear_y", 0.7, 6), ("solarize", 0.4, 8)],
    [("invert", 0.6, None), ("rotate", 0.8, 4)],
    [("shear_y", 0.3, 7), ("translate_x", 0.9, 3)],
    [("shear_x", 0.1, 6), ("invert", 0.6, None)],
    [("solarize", 0.7, 2), ("translate_y", 0.6, 7)],
    [("shear_y", 0.8, 4), ("invert", 0.8, None)],
    [("shear_x", 0.7, 9), ("translate_y", 0.8, 3)],
    [("shear_y", 0.8, 5), ("auto_contrast", 0.7, None)],
    [("shear_x", 0.7, 2), ("invert", 0.1, None)],
]
_REDUCED_IMAGE_NET: Sequence[_Sub] = [
    [("posterize", 0.4, 8), ("rotate", 0.6, 9)],
    [("solarize", 0.6, 5), ("auto_contrast", 0.6, None)],
    [("equalize", 0.8, None), ("equalize", 0.6, None)],
    [("posterize", 0.6, 7), ("posterize", 0.6, 6)],
    [("equalize", 0.4, None), ("solarize", 0.2, 4)],
    [("equalize", 0.4, None), ("rotate", 0.8, 8)],
    [("solarize", 0.6, 3), ("equalize", 0.6, None)],
    [("posterize", 0.8, 5), ("equalize", 1.0, None)],
    [("rotate", 0.2, 3), ("solarize", 0.6, 8)],
    [("equalize", 0.6, None), ("posterize", 0.4, 6)],
    [("rotate", 0.8, 8), ("color", 0.4, 0)],
    [("rotate", 0.4, 9), ("equalize", 0.6, None)],
    [("equalize", 0.8, None)],
    [("invert", 0.6, None), ("equalize", 1.0, None)],
    [("color", 0.6, 4), ("contrast", 1.0, 8)],
    [("rotate", 0.8, 8), ("color", 1.0, 2)],
    [("color", 0.8, 8), ("solarize", 0.8, 7)],
    [("sharpness", 0.4, 7), ("invert", 0.6, None)],
    [("shear_x", 0.6, 5), ("equalize", 1.0, None)],
    [("color", 0.4, 0), ("equalize", 0.6, None)],
    [("equalize", 0.4, None), ("solarize", 0.2, 4)],
    [("solarize", 0.6, 5), ("auto_contrast", 0.6, None)],
    [("invert", 0.6, None), ("equalize", 1.0, None)],
    [("color", 0.6, 4), ("contrast", 1.0, 8)],
    [("equalize", 0.8, None), ("equalize", 0.6, None)],
]


def auto_augment(
    data: DataNode,
    policy_name: str = "image_net",
    shape: DataNode | Sequence[float] | None = None,
    fill_value: int | None = 128,
    interp_type: types.DALIInterpType | None = None,
    max_translate_abs: float | Sequence[float] | None = None,
    max_translate_rel: float | Sequence[float] | None = None,
    seed: int | None = None,
) -> DataNode:
    """Apply one of the sub-policies of a published policy to each sample.

    Args:
        data: uint8 images, HWC.
        policy_name: ``image_net``, ``reduced_image_net``, ``svhn`` or ``reduced_cifar10``.
        shape: height and width of the images (numbers or a node); if set, offsets are fractions of them.
        fill_value, interp_type: the fill value and interpolation of warped images.
        max_translate_abs, max_translate_rel: the largest offset, in pixels (by default 250) or, with ``shape``, as a
            fraction of the extent (by default 1).
        seed: the seed of the random draws.

    >>> images = auto_augment(images, "svhn", shape=(32, 32))  # doctest: +SKIP
    """
    factories = {
        "image_net": get_image_net_policy,
        "reduced_image_net": get_reduced_image_net_policy,
        "svhn": get_svhn_policy,
        "reduced_cifar10": get_reduced_cifar10_policy,
    }
    if policy_name not in factories:
        raise ValueError(
            f"The `policy_name` must be a string that takes one of the values: {', '.join(f'`{name}`' for name in factories)}. Got {policy_name!r}"
        )
    if policy_name == "reduced_image_net":
        if max_translate_abs is not None or max_translate_rel is not None:
            raise ValueError(
                "The policy `reduced_image_net` has no translations, so `max_translate_abs` and `max_translate_rel` do not apply"
            )
        policy = get_reduced_image_net_policy()
    else:
        factory: Any = factories[policy_name]
        policy = factory(shape is not None, max_translate_abs, max_translate_rel)
    keywords = accepted_arguments(
        policy.augmentations.values(), fill_value=fill_value, interp_type=interp_type, shape=shape
    )
    return apply_auto_augment(policy, data, seed, **keywords)


def auto_augment_image_net(
    data: DataNode,
    shape: DataNode | Sequence[float] | None = None,
    fill_value: int | None = 128,
    interp_type: types.DALIInterpType | None = None,
    max_translate_abs: float | Sequence[float] | None = None,
    max_translate_rel: float | Sequence[float] | None = None,
    seed: int | None = None,
) -> DataNode:
    """Apply :func:`auto_augment` with the policy ``image_net``."""
    return auto_augment(data, "image_net", shape, fill_value, interp_type, max_translate_abs, max_translate_rel, seed)


def apply_auto_augment(policy: Policy, data: DataNode, seed: int | None = None, **kwargs: object) -> DataNode:
    """Apply one of the sub-policies of ``policy`` to each sample; ``kwargs`` are for the augmentations.

    Raises:
        ValueError: the policy has no sub-policies.
        UnusedArgException: no augmentation takes a keyword argument.
    """
    if not policy.sub_policies:
        raise ValueError(f"Cannot run empty policy. Got {policy} in `apply_auto_augment` call.")
    augmentations = list(policy.augmentations.values())
    _args.forbid_unused_kwargs(augmentations, kwargs, "apply_auto_augment")
    _args.require_kwargs(augmentations, kwargs, "apply_auto_augment")
    length = max(map(len, policy.sub_policies))
    if not length:
        return data
    draws = fn.random.uniform(range=[0, 1], shape=[length], dtype=types.FLOAT, seed=seed)
    chosen = fn.random.uniform(values=list(range(len(policy.sub_policies))), seed=seed, dtype=types.INT32)
    table = _Table(policy, length)
    probabilities = row_of(table.probabilities, chosen)
    magnitudes = row_of(table.magnitudes, chosen)
    indices = row_of(table.indices, chosen)
    is_signed = any(augmentation.randomly_negate for augmentation in augmentations)
    bins = signed_bin(magnitudes, seed=seed, shape=[length]) if is_signed else magnitudes
    for stage, operations in enumerate(table.stages):
        data = _applied_by_chance(
            draws[stage] < probabilities[stage],
            operations,
            indices[stage],
            data,
            dict(kwargs, magnitude_bin=bins[stage], num_magnitude_bins=policy.num_magnitude_bins),
        )
    return data


def _applied_by_chance(
    condition: DataNode,
    operations: Sequence[Augmentation],
    index: DataNode,
    data: DataNode,
    keywords: dict[str, object],
) -> DataNode:
    return ternary(condition, lambda: select(operations, index, data, **keywords), lambda: data)


class _Table:
    """A policy as arrays with one row per sub-policy and one column per stage.

    Attributes:
        stages: for each stage, the augmentations that any sub-policy applies there.
        indices: the index of each sub-policy's augmentation in the list of the stage.
    """

    def __init__(self, policy: Policy, length: int) -> None:
        shape = (len(policy.sub_policies), length)
        self.probabilities = np.zeros(shape, np.float32)
        self.magnitudes = np.full(shape, _NO_MAGNITUDE, np.int32)
        self.indices = np.zeros(shape, np.int32)
        self.stages: list[list[Augmentation]] = [[] for _ in range(length)]
        for row, sub_policy in enumerate(policy.sub_policies):
            for stage, (augmentation, probability, magnitude) in enumerate(sub_policy):
                operations = self.stages[stage]
                if augmentation not in operations:
                    operations.append(augmentation)
                self.indices[row, stage] = operations.index(augmentation)
                self.probabilities[row, stage] = probability
                if magnitude is not None:
                    self.magnitudes[row, stage] = magnitude


def _policy(name: str, sub_policies: Sequence[_Sub], moving: Sequence[Augmentation] = ()) -> Policy:
    """Return the policy with augmentations whose ranges are the papers': enhancements have no random signs."""
    plain = {"mag_range": (0.1, 1.9), "randomly_negate": False, "mag_to_param": None}
    known = {augmentation.name: augmentation for augmentation in moving} | {
        "shear_x": a.shear_x,
        "shear_y": a.shear_y,
        "rotate": a.rotate,
        "brightness": a.brightness.augmentation(**plain),
        "contrast": a.contrast.augmentation(**plain),
        "color": a.color.augmentation(**plain),
        "sharpness": a.sharpness.augmentation(**(plain | {"mag_to_param": a.sharpness_kernel_shifted})),
        "posterize": a.posterize,
        "solarize": a.solarize.augmentation(mag_range=(0, 256)),
        "solarize_add": a.solarize_add,
        "invert": a.invert,
        "equalize": a.equalize,
        "auto_contrast": a.auto_contrast,
    }
    return Policy(
        name, _NUM_MAGNITUDE_BINS, [[(known[key], *rest) for key, *rest in sub_policy] for sub_policy in sub_policies]
    )


def get_image_net_policy(
    use_shape: bool = False,
    max_translate_abs: float | Sequence[float] | None = None,
    max_translate_rel: float | Sequence[float] | None = None,
) -> Policy:
    """Return the policy found for ImageNet."""
    moving = translations(use_shape, 250, 1.0, max_translate_abs, max_translate_rel)
    return _policy("ImageNetPolicy", _IMAGE_NET, moving)


def get_reduced_cifar10_policy(
    use_shape: bool = False,
    max_translate_abs: float | Sequence[float] | None = None,
    max_translate_rel: float | Sequence[float] | None = None,
) -> Policy:
    """Return the policy found on a reduced CIFAR-10."""
    moving = translations(use_shape, 250, 1.0, max_translate_abs, max_translate_rel)
    return _policy("ReducedCifar10Policy", _REDUCED_CIFAR10, moving)


def get_svhn_policy(
    use_shape: bool = False,
    max_translate_abs: float | Sequence[float] | None = None,
    max_translate_rel: float | Sequence[float] | None = None,
) -> Policy:
    """Return the policy found for the Street View House Numbers."""
    moving = translations(use_shape, 250, 1.0, max_translate_abs, max_translate_rel)
    return _policy("SvhnPolicy", _SVHN, moving)


def get_reduced_image_net_policy() -> Policy:
    """Return the policy found on a reduced ImageNet; it has no translations."""
    return _policy("ReducedImageNetPolicy", _REDUCED_IMAGE_NET)
