"""A pipeline that returns its input, which shows the cost of the backend `penstock`."""

from penstock import fn, pipeline_def, types
from penstock.plugin.triton import autoserialize


@autoserialize
@pipeline_def(batch_size=64)
def passing():
    numbers = fn.external_source(name="numbers", dtype=types.FLOAT, ndim=1)
    return fn.copy(numbers, name="same")
