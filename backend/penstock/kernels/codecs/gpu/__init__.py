"""The decoders that decode images of a batch to the memory of a GPU; :mod:`penstock.kernels.codecs.image_codec_gpu` chooses among them."""
