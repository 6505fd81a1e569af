"""Policies: short sequences of augmentations, one of which is drawn at random for each sample."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from penstock.auto_aug.core._augmentation import Augmentation

Operation = tuple[Augmentation, float, "int | None"]


class Policy:
    """A policy: sub-policies, each a sequence of augmentations with probabilities and magnitudes.

    Args:
        name: the policy's name.
        num_magnitude_bins: the number of magnitudes into which each augmentation's range is divided.
        sub_policies: sequences of (augmentation, probability that it is applied, magnitude bin); the bin may be None if
            the augmentation has no magnitudes.

    Raises:
        ValueError, TypeError: a value is out of range, or does not have the form above.

    >>> from penstock.auto_aug.augmentations import equalize, rotate
    >>> policy = Policy("turned", 11, [[(rotate, 0.7, 5), (equalize, 0.3, None)], [(rotate, 0.2, 9)]])
    """

    def __init__(self, name: str, num_magnitude_bins: int, sub_policies: Sequence[Sequence[Operation]]) -> None:
        self.name = name
        self.num_magnitude_bins = num_magnitude_bins
        if not isinstance(num_magnitude_bins, int) or num_magnitude_bins < 1:
            raise ValueError(f"The `num_magnitude_bins` must be a positive integer, got {num_magnitude_bins}.")
        if not isinstance(sub_policies, (list, tuple)):
            raise TypeError(f"The `sub_policies` must be a list or tuple of sub policies, got {type(sub_policies)}.")
        for sub_policy in sub_policies:
            if not isinstance(sub_policy, (list, tuple)):
                raise TypeError(f"Each sub policy must be a list or tuple, got {sub_policy!r}.")
            for operation in sub_policy:
                self._check(operation)
        self.sub_policies = _distinctly_named(sub_policies)

    def _check(self, operation: object) -> None:
        if not isinstance(operation, (list, tuple)) or len(operation) != 3:
            raise ValueError(
                f"Each operation in sub policy must be specified as a triple: (augmentation, probability, magnitude). Got {operation}."
            )
        augmentation, probability, magnitude = operation
        if not isinstance(augmentation, Augmentation):
            raise TypeError(
                f"Each augmentation in sub policies must be an instance of Augmentation. Got `{augmentation!r}`: is `@augmentation` missing?"
            )
        if not isinstance(probability, (int, float)) or not 0 <= probability <= 1:
            raise ValueError(
                f"Probability of applying the augmentation must be a number from `[0, 1]` range. Got `{probability}` for `{augmentation.name}`."
            )
        if magnitude is None:
            if augmentation.mag_range is not None:
                raise ValueError(
                    f"The augmentation `{augmentation.name}` has `mag_range` specified, so the magnitude bin is required. Got `None` in the policy "
                    f"`{self.name}`."
                )
        elif not isinstance(magnitude, int) or not 0 <= magnitude < self.num_magnitude_bins:
            raise ValueError(
                f"Magnitude of the augmentation must be an integer from `[0, {self.num_magnitude_bins - 1}]` range. Got "
                f"`{magnitude}` for `{augmentation.name}`."
            )
        if probability == 0:
            self._warn(f"The augmentation `{augmentation.name}` is used with probability 0 in one of the sub-policies.")
        if magnitude is not None and augmentation.mag_range is None:
            self._warn(
                f"The magnitude bin `{magnitude}` is ignored by `{augmentation.name}`. The augmentation does not accept magnitudes: "
                "it has no `mag_range`."
            )

    def _warn(self, text: str) -> None:
        warnings.warn(f"Policy `{self.name}`: {text}", UserWarning, stacklevel=4)

    @property
    def augmentations(self) -> dict[str, Augmentation]:
        """All augmentations of the policy by name, sorted by name."""
        found = {operation[0].name: operation[0] for sub_policy in self.sub_policies for operation in sub_policy}
        return dict(sorted(found.items()))

    def __repr__(self) -> str:
        sub_policies = [repr([(augmentation.name, *rest) for augmentation, *rest in one]) for one in self.sub_policies]
        augmentations = [f"{name!r}: {value!r}" for name, value in self.augmentations.items()]
        return (
            f"Policy(name={self.name!r}, num_magnitude_bins={self.num_magnitude_bins}, sub_policies=[{_lines(sub_policies)}], "
            f"augmentations={{{_lines(augmentations)}}})"
        )


def _lines(items: Sequence[str]) -> str:
    return "\n\t" + ",\n\t".join(items) if items else ""


def _distinctly_named(sub_policies: Sequence[Sequence[Operation]]) -> tuple[tuple[Operation, ...], ...]:
    """Return the sub-policies; if different augmentations have the same name, number all names in order of appearance."""
    different = list(dict.fromkeys(augmentation for sub_policy in sub_policies for augmentation, _, _ in sub_policy))
    renamed = {augmentation: augmentation for augmentation in different}
    if len({augmentation.name for augmentation in different}) < len(different):
        digits = len(str(len(different) - 1))
        renamed = {
            augmentation: augmentation.augmentation(name=f"{number:0{digits}}__{augmentation.name}")
            for number, augmentation in enumerate(different)
        }
    return tuple(tuple((renamed[one], *rest) for one, *rest in sub_policy) for sub_policy in sub_policies)  # type: ignore[misc]
