"""Segmentation operators."""
