from letterbox import letterbox

print(repr(letterbox(num_threads=2)))
import numpy as np
from PIL import Image

for name, grey in (("dark.png", 40), ("light.png", 200)):
    Image.fromarray(np.full((48, 64, 3), grey, np.uint8)).save(name)
from penstock import fn
from penstock.pipeline.experimental import pipeline_def


@pipeline_def(batch_size=2, num_threads=1, device_id=None, debug=True)
def looked_into():
    images = fn.external_source(name="images", layout="HWC")
    small = fn.resize(images, size=(4, 6))
    print("small:", small.shape(), small.get().layout())
    return fn.reductions.mean(small)


pipeline = looked_into()
pipeline.feed_input("images", np.full((2, 8, 8, 3), 7, np.uint8))
print(pipeline.run()[0].as_array())
@pipeline_def(batch_size=2, num_threads=1, prefetch_queue_depth=1, enable_memory_stats=True, exec_dynamic=False)
def measured():
    images = fn.external_source(name="images", layout="HWC")
    return fn.resize(images, size=(4, 6), name="small")


pipeline = measured()
pipeline.run(images=np.zeros((2, 8, 8, 3), np.uint8))
print(pipeline.executor_statistics()["CPU_small"])
@pipeline_def(batch_size=2, num_threads=1, trace=True)
def traced():
    return fn.resize(fn.external_source(lambda: [np.zeros((8, 8, 3), np.uint8)] * 2, layout="HWC"), size=(4, 6))


pipeline = traced()
for _ in range(3):
    pipeline.run()
summary = pipeline.trace.summary()
print(sorted(times.name for times in summary.operators), summary.batches)
