"""`readers.video_resize`: reads sequences of frames from video files and resizes them."""

from __future__ import annotations

from dataclasses import replace

from penstock.operators.image._resize_arguments import FILTER_ARGUMENTS, SIZE_ARGUMENTS
from penstock.operators.readers._gpu_video import GPU_VIDEO_ARGUMENTS, GpuVideoReader
from penstock.operators.readers._video_reader import count_outputs
from penstock.schema import Alias, Schema, Workspace, operator_class, register_operator
from penstock.schema.libraries import PYAV

_RESIZING = (*(argument for argument in FILTER_ARGUMENTS if argument.name != "dtype"), *SIZE_ARGUMENTS)


@register_operator
class GpuVideoResize(GpuVideoReader):
    """Returns sequences of frames like `readers.video`, resized like by `resize`.

    >>> clips = fn.readers.video_resize(
    ...     device="gpu", filenames=["a.mp4"], sequence_length=16, size=[224, 224]
    ... )  # doctest: +SKIP
    """

    schema = Schema(
        name="readers__VideoResize",
        devices=("cpu", "gpu"),
        needs=(PYAV,),
        arguments=(*_RESIZING, *GPU_VIDEO_ARGUMENTS),
        outputs=count_outputs,
        random=True,
        stateful=True,
        aliases=(Alias("VideoReaderResize", "1.0"),),
    )

    def setup(self) -> None:
        names = [argument.name for argument in _RESIZING]
        self._resize = operator_class("Resize")(
            {name: self.args[name] for name in names if name in self.explicit},
            device=self.device,
            tensor_arguments=[name for name in names if name in self.tensor_arguments],
        )
        super().setup()

    def run(self, workspace: Workspace) -> None:
        super().run(workspace)
        names = self._resize.tensor_arguments
        arguments = {name: batch for name, batch in workspace.arguments.items() if name in names}
        frames = workspace.outputs[0]
        resizing = replace(workspace, inputs=[frames], arguments=arguments, outputs=[], samples=[], destinations={})
        self._resize.run(resizing)
        resizing.outputs[0].source_infos = frames.source_infos
        workspace.outputs[0] = resizing.outputs[0]
