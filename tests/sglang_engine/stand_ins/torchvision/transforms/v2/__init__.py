"""A part of torchvision that SGLang and transformers import; see the package."""

from . import functional

__all__ = ["functional"]
