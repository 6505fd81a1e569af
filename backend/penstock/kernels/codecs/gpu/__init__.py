"""Decoders that decode images of a batch into GPU memory; :mod:`penstock.kernels.codecs.image_codec_gpu` chooses among them."""
