"""`external_source`: data from the user's program, through a callback, an iterable, or `feed_input`."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Sequence
from typing import Any

from penstock.errors import did_you_mean
from penstock.graph import call_operator, current_scope
from penstock.runtime.sources import Source
from penstock.schema.namespaces import written_out
from penstock.schema.op_schema import Described
from penstock.schema.registry import find_schema

__all__ = ["ExternalSource", "external_source"]


def _per_output(value: object, count: int) -> list[object]:
    if isinstance(value, (list, tuple)):
        return [*value, *[None] * (count - len(value))][:count]
    return [value] * count


@written_out("fn.external_source")
def external_source(
    source: object = None,
    num_outputs: int | None = None,
    *,
    cycle: bool | str | None = None,
    name: str | None = None,
    device: str = "cpu",
    layout: object = None,
    dtype: object = None,
    ndim: object = None,
    cuda_stream: object = None,
    use_copy_kernel: bool | None = None,
    blocking: bool | None = None,
    batch: bool | None = True,
    repeat_last: bool = False,
    parallel: bool | None = None,
    no_copy: bool | None = None,
    prefetch_queue_depth: int | None = None,
    bytes_per_sample_hint: object = None,
    batch_info: bool | None = None,
    **kwargs: Any,
) -> Any:
    """Return a node with data from the user's program.

    Args:
        source: a callable that returns a batch (or, with ``batch=False``, a sample), an iterable of these, or a
            generator function. Without it, data is fed with ``Pipeline.feed_input(name, ...)`` or
            ``Pipeline.run(name=...)``. A batch is an array whose first dimension is the batch, or a list of samples of
            possibly different shapes.
        num_outputs: the number of outputs, which the source returns as a sequence in each step; None: a single output, not in a
            sequence.
        cycle: what iterables do at the end: True or ``"quiet"``: they restart; ``"raise"``: StopIteration is raised, and they
            restart after ``reset``; False or None: StopIteration is raised, and they do not restart.
        name: the node's name; not possible together with ``num_outputs``.
        device: ``cpu`` or ``gpu``: where the data is needed.
        layout, dtype, ndim: the layout, type and number of dimensions of the data, or a list with one for each output; other
            data is rejected.
        blocking: whether a run without data waits until another thread feeds some, instead of failing.
        batch: whether the source returns batches rather than single samples; None: True, unless ``parallel`` is set.
        repeat_last: whether a run without new data uses the last batch again; before the first batch, an empty one.
        parallel: whether to run the callback in worker processes.
        no_copy: whether to use fed data without copying it; the data must not change while a run needs it.
        prefetch_queue_depth: the number of batches that worker processes prefetch.
        batch_info: whether a callback that returns batches gets a BatchInfo instead of the number of the iteration.

    Returns:
        The node, or a list of nodes if ``num_outputs`` is set.

    >>> images = external_source(lambda: [np.zeros((4, 6, 3), np.uint8)] * 2, layout="HWC")  # doctest: +SKIP
    """
    if current_scope().debug is None:
        _check_known(kwargs)
    else:
        # In debug mode, the pipeline calls the source itself; DALI ignores unknown arguments there.
        kwargs = {key: value for key, value in kwargs.items() if key in _known_arguments()}
    count = 1 if num_outputs is None else num_outputs
    _check_outputs(source, num_outputs, name)
    if batch is None:
        batch = not parallel
    if parallel:
        _check_parallel(prefetch_queue_depth, bytes_per_sample_hint, no_copy)
    else:
        _check_sequential(prefetch_queue_depth, bytes_per_sample_hint)
    if source is not None and blocking and not repeat_last:
        # A callback is called whenever data is needed, so there is nothing to wait for.
        blocking = None
    if num_outputs is None:
        layouts, dtypes, ndims = [layout], [dtype], [ndim]
    else:
        layouts, dtypes, ndims = (_per_output(value, count) for value in (layout, dtype, ndim))
    shared = _source_of(
        source,
        cycle,
        batch,
        bool(batch_info),
        num_outputs,
        layouts,
        bool(no_copy),
        bool(parallel),
        prefetch_queue_depth,
    )
    nodes = []
    for index in range(count):
        given = dict(
            kwargs,
            blocking=blocking,
            no_copy=no_copy,
            repeat_last=repeat_last,
            layout=layouts[index],
            dtype=dtypes[index],
            ndim=ndims[index],
            bytes_per_sample_hint=bytes_per_sample_hint,
        )
        nodes.append(call_operator("ExternalSource", (), given, device=device, name=name, payload=shared))
    if shared is not None:
        shared.names = [node.name for node in nodes]
    return nodes[0] if num_outputs is None else nodes


def _known_arguments() -> Collection[str]:
    """Return the names of the operator's arguments, without those that describe the source."""
    return find_schema("ExternalSource").all_arguments


def _check_known(arguments: dict[str, object]) -> None:
    for name in arguments:
        if name not in _known_arguments():
            near = did_you_mean(name, [*_known_arguments(), *inspect.signature(external_source).parameters])
            raise ValueError(f'Got an unexpected argument "{name}".{near}')


def _check_outputs(source: object, num_outputs: int | None, name: str | None) -> None:
    if num_outputs is None:
        return
    if source is None:
        raise ValueError(
            "The parameter `num_outputs` is only valid when using `source` to provide data. Use one external source for each name "
            "that is fed."
        )
    if name is not None:
        raise RuntimeError("`num_outputs` is not compatible with a named `external_source`")


def _check_parallel(prefetch_queue_depth: int | None, bytes_per_sample_hint: object, no_copy: bool | None) -> None:
    if no_copy is False:
        raise ValueError(
            "The argument `no_copy` cannot be False with `parallel=True`: workers' memory is used in place"
        )
    for name, value in (
        ("prefetch_queue_depth", prefetch_queue_depth),
        ("bytes_per_sample_hint", bytes_per_sample_hint),
    ):
        if isinstance(value, int) and value < 1:
            raise ValueError(f"`{name}` must be a positive integer, got {value}")


def _check_sequential(prefetch_queue_depth: int | None, bytes_per_sample_hint: object) -> None:
    given = {"prefetch_queue_depth": prefetch_queue_depth, "bytes_per_sample_hint": bytes_per_sample_hint}
    for name, value in given.items():
        if value is not None:
            raise ValueError(
                f"The argument `{name}` is valid only for parallel external sources (when ``parallel`` is True)."
            )


def _check_cycle(source: object, cycle: object) -> None:
    if source is None and cycle:
        raise ValueError("`cycle` argument is only valid for iterable `source`")


def _source_of(
    source: Any,
    cycle: Any,
    batch: bool,
    batch_info: bool,
    num_outputs: int | None,
    layouts: Sequence[Any],
    no_copy: bool,
    parallel: bool,
    prefetch_queue_depth: int | None,
) -> Source | None:
    _check_cycle(source, cycle)
    if source is None:
        if parallel:
            raise ValueError("The argument `parallel` can only be specified with a `source`")
        return None
    if parallel:
        from penstock.graph.autograph import is_converted
        from penstock.runtime.parallel import ParallelSource

        if is_converted(source):
            raise ValueError(
                "The `source` was defined where conditionals are rewritten: inside of the pipeline's function or of a function "
                "that it calls. To allow the `source` to be correctly used in worker processes, it must remain unconverted: "
                "define it outside of them, or decorate the function that makes it with "
                "`penstock.pipeline.do_not_convert`."
            )
        return ParallelSource(
            source,
            cycle,
            batch,
            batch_info,
            num_outputs,
            layouts,
            no_copy,
            prefetch_queue_depth=prefetch_queue_depth or 1,
        )
    return Source(source, cycle, batch, batch_info, num_outputs, layouts, no_copy)


# Arguments for which setting them twice raises RuntimeError; for others, it raises ValueError.
_ONCE = ("source", "layout", "dtype", "ndim", "cuda_stream", "use_copy_kernel")
_ONCE_VALUES = ("batch_info", "parallel", "batch", "prefetch_queue_depth", "bytes_per_sample_hint", "no_copy")


@written_out("ops.ExternalSource")
class ExternalSource(Described):
    """:func:`external_source` as a class: each argument is passed either at construction or at the call."""

    schema_name = "ExternalSource"

    def __init__(
        self,
        source: object = None,
        num_outputs: int | None = None,
        *,
        cycle: bool | str | None = None,
        layout: object = None,
        dtype: object = None,
        ndim: object = None,
        name: str | None = None,
        device: str = "cpu",
        cuda_stream: object = None,
        use_copy_kernel: bool | None = None,
        batch: bool | None = None,
        parallel: bool | None = None,
        no_copy: bool | None = None,
        prefetch_queue_depth: int | None = None,
        bytes_per_sample_hint: object = None,
        batch_info: bool | None = None,
        repeat_last: bool = False,
        **kwargs: Any,
    ) -> None:
        if name is not None and num_outputs is not None:
            raise ValueError("`num_outputs` is not compatible with a named `ExternalSource`")
        _check_cycle(source, cycle)
        self._device = device
        self._arguments = dict(
            kwargs,
            source=source,
            num_outputs=num_outputs,
            cycle=cycle,
            layout=layout,
            dtype=dtype,
            ndim=ndim,
            name=name,
            device=device,
            cuda_stream=cuda_stream,
            use_copy_kernel=use_copy_kernel,
            batch=batch,
            parallel=parallel,
            no_copy=no_copy,
            prefetch_queue_depth=prefetch_queue_depth,
            bytes_per_sample_hint=bytes_per_sample_hint,
            batch_info=batch_info,
            repeat_last=repeat_last,
        )

    @property
    def device(self) -> str:
        """The device on which the data is needed."""
        return self._device

    @property
    def preserve(self) -> bool:
        """Whether the operator runs even if no output depends on it."""
        return bool(self._arguments.get("preserve"))

    def __call__(
        self,
        *,
        source: object = None,
        cycle: bool | str | None = None,
        name: str | None = None,
        layout: object = None,
        dtype: object = None,
        ndim: object = None,
        cuda_stream: object = None,
        use_copy_kernel: bool | None = None,
        batch: bool | None = None,
        parallel: bool | None = None,
        no_copy: bool | None = None,
        prefetch_queue_depth: int | None = None,
        bytes_per_sample_hint: object = None,
        batch_info: bool | None = None,
        repeat_last: bool = False,
        **kwargs: Any,
    ) -> Any:
        """Return the node; see :func:`external_source`."""
        arguments = {
            "source": source,
            "cycle": cycle,
            "name": name,
            "layout": layout,
            "dtype": dtype,
            "ndim": ndim,
            "cuda_stream": cuda_stream,
            "use_copy_kernel": use_copy_kernel,
            "batch": batch,
            "parallel": parallel,
            "no_copy": no_copy,
            "prefetch_queue_depth": prefetch_queue_depth,
            "bytes_per_sample_hint": bytes_per_sample_hint,
            "batch_info": batch_info,
        }
        own = {key: value for key, value in arguments.items() if value is not None}
        for key in (key for key in own if self._arguments[key] is not None):
            if key in _ONCE:
                raise RuntimeError(f"``{key}`` already specified in constructor.")
            if key in _ONCE_VALUES:
                raise ValueError(f"The argument ``{key}`` already specified in constructor.")
        if repeat_last and (source or self._arguments["source"]) is not None:
            raise ValueError("`repeat_last` must not be set with a `source`: it is for sources that are fed by hand")
        if cycle is not None and source is None:
            raise ValueError(
                "The argument ``cycle`` can only be specified if ``source`` is an iterable object or a generator function given in "
                "this call. To cycle through one that was given to the constructor, set ``cycle`` there."
            )
        unknown = [key for key in kwargs if key not in _known_arguments()]
        if unknown:
            near = did_you_mean(unknown[0], [*arguments, *_known_arguments()])
            raise KeyError(f'Argument "{unknown[0]}" is not defined for operator "ExternalSource".{near}')
        given = self._arguments | own | {key: value for key, value in kwargs.items() if value is not None}
        given["repeat_last"] = repeat_last or given["repeat_last"]
        if given["source"] is None and given["num_outputs"] is not None:
            # The program feeds each output; the function cannot make several such nodes in a call.
            count = given.pop("num_outputs")
            return [external_source(**given) for _ in range(count)]
        return external_source(**given)
