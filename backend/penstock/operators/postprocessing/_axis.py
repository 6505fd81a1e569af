"""Base classes of operators along one dimension of scores, such as the classes of a classifier."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.core.arrays import address
from penstock.data_types import FLOAT, FLOAT16, dtype_name
from penstock.kernels.axes import resolve_axis
from penstock.schema import Argument, Operator, Sample, Samples, Workspace
from penstock.schema.operator import Shape
from penstock.schema.plans import NoPlans
from penstock.schema.sharing import share
from penstock.tensors import TensorListGPU
from penstock.tensors.places import places_in_type

AXIS = (
    Argument("axis", "int32", -1, "The dimension along which scores are; negative: from the end."),
    Argument("axis_name", "string", None, "The letter of that dimension in the layout.", example="C"),
)
LABELS = Argument(
    "labels",
    "string[]",
    None,
    "The names of the classes, which become a further output.",
    example=["cat", "dog", "owl"],
)


class AxisOperator(Operator[int, None, NoPlans]):
    """Base class: launches a kernel once for all samples, whose shapes may differ; the state is the dimension."""

    repeats_plans = True

    def setup(self) -> None:
        if self.given("axis") and self.given("axis_name"):
            raise ValueError("`axis` and `axis_name` cannot be given together")
        name = self.args["axis_name"]
        if name is not None and len(name) != 1:
            raise ValueError(f"`axis_name` must be a single letter. Got: {name!r}")

    def launch(
        self, places: np.ndarray, begin: int, end: int, outputs: Sequence[np.ndarray], faults: np.ndarray
    ) -> None:
        """Compute the samples from ``begin`` to ``end``; see :mod:`penstock.operators.postprocessing._axis_cpu`."""
        raise NotImplementedError(f"{type(self).__name__} must say what it computes")

    def resolve(self, workspace: Workspace[int]) -> int:
        """Return the dimension that holds the scores.

        Raises:
            RuntimeError: scores are neither FLOAT nor FLOAT16, or `axis_name` is not in their layout.
            IndexError: `axis` is not a dimension of the scores.
        """
        batch, name = workspace.inputs[0], self.args["axis_name"]
        if len(batch) and batch.dtype not in (FLOAT, FLOAT16):
            raise RuntimeError(f"Scores must be FLOAT or FLOAT16, got {dtype_name(batch.dtype)}: use `fn.cast`")
        if name is None:
            return resolve_axis(self.args["axis"], batch.ndim())
        if name not in batch.layout():
            raise RuntimeError(f"`axis_name` is '{name}', which the layout \"{batch.layout()}\" does not have")
        return batch.layout().index(name)

    def extents(self, samples: Samples[int]) -> set[int]:
        """Return the numbers of scores that samples have along the dimension; raise ValueError if a sample has none."""
        shapes, axis = samples.shape_list(), samples.state
        extents = {shape[axis] for shape in shapes}
        if 0 in extents:
            empty = next(shape for shape in shapes if not shape[axis])
            raise ValueError(f"There are no scores: the shape is {list(empty)}")
        return extents

    def compute_samples(self, workspace: Workspace[int], shapes: Sequence[Shape]) -> None:
        outputs = [batch.elements for batch in workspace.outputs]
        if workspace.failures or not workspace.batch_size or not all(own is not None for own in outputs):
            super().compute_samples(workspace, shapes)
            return
        batch = workspace.inputs[0]
        addresses, scores = places_in_type(batch, np.float32)
        volumes = workspace.outputs[0].sample_volumes()
        places, faults = _places(addresses, batch.shape_array(), volumes, workspace.state), np.full(len(batch), -1)
        share(
            workspace,
            lambda begin, end: self.launch(places, begin, end, outputs, faults),
            batch.sample_volumes(),
        )
        del scores
        for index in np.flatnonzero(faults >= 0).tolist():
            workspace.fail(index, _fault(int(faults[index]), batch.shapes[index]))

    def compute(self, sample: Sample[int]) -> None:
        scores = np.ascontiguousarray(sample.inputs[0], np.float32)
        outputs = [output.reshape(-1) for output in sample.outputs]
        first, volume = np.array([address(scores)]), np.array([sample.outputs[0].size])
        places = _places(first, np.array([scores.shape]), volume, sample.workspace.state)
        faults = np.full(1, -1)
        self.launch(places, 0, 1, outputs, faults)
        if faults[0] >= 0:
            raise _fault(int(faults[0]), sample.shapes[0])


class ClassOperator(AxisOperator):
    """Base class of operators that find classes; if `labels` are set, the names of classes are a further output.

    Attributes:
        names: the labels as :func:`names_of` returns them; None if `labels` are not set.
    """

    # Launches cannot be replayed, because the host waits for the kernels to report scores that are NaN.
    repeatable = False

    def setup(self) -> None:
        super().setup()
        self.names = None if self.args["labels"] is None else names_of(self.args["labels"])

    def result_shapes(self, found: list[Shape], outputs: int) -> list[list[Shape]]:
        """Return the shapes of all outputs.

        Args:
            found: the shapes of the first outputs.
            outputs: the number of these outputs.
        """
        names = [] if self.names is None else [[(*shape, self.names.shape[1]) for shape in found]]
        return [found] * outputs + names

    def find_classes(
        self,
        workspace: Workspace[int],
        values: TensorListGPU | None,
        indices: TensorListGPU,
        names: Sequence[TensorListGPU],
        number: int,
    ) -> None:
        """Find the classes with the highest scores on a GPU.

        Args:
            workspace: the batch's workspace, with allocated outputs.
            values: the output for the scores; None: scores are not needed.
            indices: the output for the classes.
            names: the output for the names of the classes; empty if `labels` are not set.
            number: number of classes to find.
        """
        from penstock.kernels.cuda.launch import locate_all
        from penstock.operators.postprocessing._axis_cuda import find_highest, write_names

        samples = workspace.live
        scores, classes = locate_all(workspace.inputs[0], samples), locate_all(indices, samples)
        found = None if values is None else locate_all(values, samples)
        faults = find_highest(scores, found, classes, workspace.state, number)
        if self.names is not None:
            write_names(classes, locate_all(names[0], samples), self.names)
        for sample, place in zip(samples, faults.tolist()):
            if place >= 0:
                workspace.fail(sample.index, _fault(place, sample.shapes[0]))


def _places(addresses: np.ndarray, shapes: np.ndarray, volumes: np.ndarray, axis: int) -> np.ndarray:
    """Return the kernels' descriptor of each sample: the address of its scores, its results' offset, and the extents before, along and
    after the dimension; ``volumes``: the number of results of each."""
    places = np.empty((len(shapes), 5), np.int64)
    places[:, 0], places[:, 1], places[:, 3] = addresses, volumes.cumsum() - volumes, shapes[:, axis]
    # Most scores have one dimension; a product over none would take as long as over several.
    places[:, 2] = shapes[:, :axis].prod(axis=1) if axis else 1
    places[:, 4] = shapes[:, axis + 1 :].prod(axis=1) if axis + 1 < shapes.shape[1] else 1
    return places


def _fault(place: int, shape: Shape) -> ValueError:
    where = [int(index) for index in np.unravel_index(place, shape)]
    return ValueError(f"The score at {where} is NaN")


def names_of(labels: Sequence[str]) -> np.ndarray:
    """Return names in the form that strings have in a pipeline: rows of uint8, padded with zeros."""
    encoded = [label.encode() for label in labels]
    longest = max(map(len, encoded), default=0)
    return np.array([list(name.ljust(longest, b"\0")) for name in encoded], np.uint8).reshape(len(encoded), longest)


def check_labels(labels: Sequence[str] | None, extents: set[int]) -> None:
    """Raise ValueError unless there is a name for each class of each sample."""
    if labels is None:
        return
    for extent in extents - {len(labels)}:
        raise ValueError(f"`labels` has {len(labels)} names, but there are {extent} scores")


def fill_names(
    names: np.ndarray,
    classes: np.ndarray,
    target: np.ndarray,
    places: np.ndarray,
    begin: int,
    end: int,
    per_row: int,
    faults: np.ndarray,
) -> None:
    """Write the names of the classes found in some samples.

    Args:
        names: the names as :func:`names_of` returns them.
        classes: the classes of all samples, int32 of shape (n,).
        target: the output, 1-D: n names, all as long as the longest one.
        places: the samples' descriptors; see :func:`_places`.
        begin, end: the range of samples to process.
        per_row: number of classes found along the dimension.
        faults: for each sample, a negative number if classes were found; other samples are skipped.
    """
    rows = target.reshape(-1, names.shape[1]) if names.shape[1] else target.reshape(len(classes), 0)
    for sample in range(begin, end):
        if faults[sample] < 0:
            _, first, outer, _, inner = places[sample].tolist()
            own = slice(first, first + outer * inner * per_row)
            rows[own] = names[classes[own]]
