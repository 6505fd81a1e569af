"""Policies: short sequences of augmentations, one of which each sample draws."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from penstock.auto_aug.core._augmentation import Augmentation

Operation = tuple[Augmentation, float, "int | None"]


class Policy:
    """Sub-policies, each a sequence of augmentations with their probabilities and magnitudes.

    Args:
        name: of the policy.
        num_magnitude_bins: how many magnitudes each augmentation's range is divided into.
        sub_policies: sequences of (augmentation, probability that it is applied, magnitude bin); the bin may be None
            where the augmentation has no magnitudes.

    Raises:
        ValueError, TypeError: something is out of range, or not of these forms.

    >>> from penstock.auto_aug.augmentations import equalize, rotate
    >>> policy = Policy("turned", 11, [[(rotate, 0.7, 5), (equalize, 0.3, None)], [(rotate, 0.2, 9)]])
    """

    def __init__(self, name: str, num_magnitude_bins: int, sub_policies: Sequence[Sequence[Operation]]) -> None:
        self.name = name
        self.num_magnitude_bins = num_magnitude_bins
        if not isinstance(num_magnitude_bins, int) or num_magnitude_bins < 1:
            raise ValueError(f"The number of magnitude bins must be a positive integer, got {num_magnitude_bins}.")
        if not isinstance(sub_policies, (list, tuple)):
            raise TypeError(f"The sub-policies must be a list or tuple, got {type(sub_policies)}.")
        for sub_policy in sub_policies:
            if not isinstance(sub_policy, (list, tuple)):
                raise TypeError(f"Each sub-policy must be a list or tuple, got {type(sub_policy)}.")
            for operation in sub_policy:
                self._check(operation)
        self.sub_policies = _distinctly_named(sub_policies)

    def _check(self, operation: Any) -> None:
        if not isinstance(operation, (list, tuple)) or len(operation) != 3:
            raise ValueError(
                f"Each operation must be a triple (augmentation, probability, magnitude), got {operation}."
            )
        augmentation, probability, magnitude = operation
        if not isinstance(augmentation, Augmentation):
            raise TypeError(
                f"Operations must begin with an augmentation made by `@augmentation`, got {augmentation!r}."
            )
        if not isinstance(probability, (int, float)) or not 0 <= probability <= 1:
            raise ValueError(f"The probability of `{augmentation.name}` must be from `[0, 1]`, got {probability!r}.")
        if magnitude is None:
            if augmentation.mag_range is not None:
                raise ValueError(
                    f"`{augmentation.name}` has a range of magnitudes, so its magnitude bin in the policy `{self.name}` must not "
                    "be None."
                )
        elif not isinstance(magnitude, int) or not 0 <= magnitude < self.num_magnitude_bins:
            raise ValueError(
                f"The magnitude of `{augmentation.name}` must be an integer from `[0, {self.num_magnitude_bins - 1}]`, got "
                f"{magnitude!r}."
            )

    @property
    def augmentations(self) -> dict[str, Augmentation]:
        """All augmentations by name, in order of name."""
        found = {operation[0].name: operation[0] for sub_policy in self.sub_policies for operation in sub_policy}
        return dict(sorted(found.items()))

    def __repr__(self) -> str:
        sub_policies = ",\n\t".join(
            repr([(augmentation.name, *rest) for augmentation, *rest in sub_policy]) for sub_policy in self.sub_policies
        )
        augmentations = ",\n\t".join(f"{name!r}: {value!r}" for name, value in self.augmentations.items())
        return (
            f"Policy(name={self.name!r}, num_magnitude_bins={self.num_magnitude_bins}, sub_policies=[\n\t{sub_policies}], "
            f"augmentations={{\n\t{augmentations}}})"
        )


def _distinctly_named(sub_policies: Sequence[Sequence[Operation]]) -> list[list[Operation]]:
    """The sub-policies, where different augmentations of one name are numbered."""
    by_name: dict[str, list[Augmentation]] = defaultdict(list)
    for sub_policy in sub_policies:
        for augmentation, _, _ in sub_policy:
            if augmentation not in by_name[augmentation.name]:
                by_name[augmentation.name].append(augmentation)
    renamed = {
        same: same if len(group) == 1 else same.augmentation(name=f"{number}__{name}")
        for name, group in by_name.items()
        for number, same in enumerate(group)
    }
    return [[(renamed[augmentation], *rest) for augmentation, *rest in sub_policy] for sub_policy in sub_policies]  # type: ignore[misc]
