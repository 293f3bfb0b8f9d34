"""A part of torchvision that SGLang and transformers import; see the package."""

from . import functional, v2
from .functional import InterpolationMode

__all__ = ["InterpolationMode", "functional", "v2"]
