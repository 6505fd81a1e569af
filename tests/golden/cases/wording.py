"""Errors that programs recognize by phrases of DALI's messages, which Penstock's messages contain, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from case import Family, feed, images

FAMILY = Family("wording", gpu=False)
PIXELS = feed(images([(6, 8, 3)] * 3), "HWC")
SEQUENCE = feed(images([(4, 2, 2)] * 3), "FHW")
NUMBERS = feed([np.float32([1, 2, 3])] * 3)


def sourced(source: Callable[..., Any], **given: Any) -> Callable[[Any], Any]:
    return lambda module: module.fn.external_source(source, **given)


def generator() -> Any:
    yield [np.zeros(1)] * 3


for name, source, phrase in (
    ("any number", lambda *args: [np.zeros(1)] * 3, "Found var-positional argument `*args` which is not allowed"),
    ("one and any", lambda i, *args: [np.zeros(1)] * 3, "Found var-positional argument `*args` which is not allowed"),
    ("by keyword", lambda **kwargs: [np.zeros(1)] * 3, "Found var-keyword argument `**kwargs` which is not allowed"),
    ("a keyword", lambda *, given=1: [np.zeros(1)] * 3, "Found keyword-only argument `given` which is not allowed."),
    ("two", lambda i, j: [np.zeros(1)] * 3, "Found more than one positional argument, which is not allowed."),
):
    FAMILY.add(f"source with {name}", sourced(source), phrase=phrase)
FAMILY.add(
    "cycle of a generator",
    lambda m: m.fn.external_source(generator(), cycle=True),
    phrase="pass that function instead as `source`.",
)
FAMILY.add(
    "source's layout and ndim",
    lambda m: m.fn.external_source(lambda: [np.zeros((1, 1))] * 3, ndim=2, layout="HWC"),
    phrase='does not match the ndim argument. The arguments provided: ndim = 2, layout: "HWC".',
)
FAMILY.add(
    "node as a condition",
    lambda m: 1 if NUMBERS(m) else 2,
    phrase="it might have been used in truth evaluation for `if` statement, logical expression or cast to a boolean.",
)
for name, define, phrase in (
    (
        "permute_batch",
        lambda m: m.fn.permute_batch(PIXELS(m), indices=[0, 1, 7]),
        "is not a valid index for an input batch of 3 tensors.",
    ),
    ("pad", lambda m: m.fn.pad(PIXELS(m), axes=[0], align=[-1]), "Values of `align` argument must be positive."),
    (
        "paste on a canvas",
        lambda m: m.fn.paste(PIXELS(m), ratio=2, fill_value=0, min_canvas_size=-1.0),
        "min_canvas_size_ of less than 0 is not supported",
    ),
    (
        "paste of floats",
        lambda m: m.fn.paste(m.fn.cast(PIXELS(m), dtype=m.types.FLOAT), ratio=2, fill_value=0),
        "requested type: uint8 current buffer type: float",
    ),
    (
        "debayer of colours",
        lambda m: m.fn.experimental.debayer(PIXELS(m), blue_position=[0, 0], algorithm="bilinear_ocv"),
        "debayer operator expects grayscale (i.e. single channel) images",
    ),
    (
        "debayer by NPP",
        lambda m: m.fn.experimental.debayer(PIXELS(m)[:, :, 0], blue_position=[0, 0], algorithm="default_npp"),
        "default_npp algorithm is not supported on CPU.",
    ),
    (
        "sequence_rearrange to nothing at all",
        lambda m: m.fn.sequence_rearrange(SEQUENCE(m), new_order=[]),
        "Empty result sequences are not allowed",
    ),
    ("enumeration as a scalar", lambda m: m.types.ScalarConstant(m.types.INT16), ".DALIDataType"),
    (
        "sequence_rearrange to nothing",
        lambda m: m.fn.sequence_rearrange(SEQUENCE(m), new_order=feed([np.zeros(0, np.int32)] * 3)(m)),
        "Empty `new_order` for sample 0 is not allowed",
    ),
    (
        "sequence_rearrange of an image",
        lambda m: m.fn.sequence_rearrange(PIXELS(m), new_order=[0]),
        'where outermost dimension represents frames dimension `F`, got data with layout = "HWC"',
    ),
    (
        "spectrogram of nothing",
        lambda m: m.fn.spectrogram(feed([np.zeros(0, np.float32)] * 3)(m)),
        "does not support empty (0-volume) samples",
    ),
    ("squeeze twice", lambda m: m.fn.squeeze(SEQUENCE(m), axes=[1, 1]), "twice same dimension to remove."),
    ("beta of integers", lambda m: m.fn.random.beta(alpha=feed([np.int32(1)] * 3)(m)), "cannot be converted"),
    (
        "reshape of nothing",
        lambda m: m.fn.reshape(feed([np.zeros((320, 0), np.uint8)] * 3)(m), rel_shape=[-1, 1]),
        "when the volume of remaining dimensions is 0. Input shape: 320 x 0",
    ),
    (
        "broadcasting of many dimensions",
        lambda m: feed([np.zeros([1, 2] * 4)] * 3)(m) + feed([np.zeros([2, 1] * 4)] * 3)(m),
        "Broadcasting pattern too complex.",
    ),
):
    FAMILY.add(name, define, phrase=phrase)


def merged(change: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    """Return a definition that merges the numbers of some samples with the result of ``change`` for the other samples' numbers."""

    def define(module: Any) -> Any:
        truth = feed([np.bool_(i % 2) for i in range(3)])(module)
        true, false = module.fn._conditional.split(NUMBERS(module), predicate=truth)
        return module.fn._conditional.merge(true, change(module, false), predicate=truth)

    return define


for name, change in (
    ("types", lambda m, x: m.fn.cast(x, dtype=m.types.INT32)),
    ("sample dimensions", lambda m, x: m.fn.expand_dims(x, axes=[0])),
    ("layouts", lambda m, x: m.fn.reshape(x, layout="A")),
):
    FAMILY.add(
        f"merge of distinct {name}",
        merged(change),
        phrase=f"consistent type, number of dimensions, layout and other metadata. Found distinct {name}",
    )
