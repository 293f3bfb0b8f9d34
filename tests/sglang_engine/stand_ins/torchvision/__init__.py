"""Names of torchvision to import, nothing to compute with: a stand-in for tests.

SGLang imports torchvision whether or not there are images, and transformers does once it finds
it. The registry's wheel is built for CUDA and cannot be imported beside a CPU build of torch.
"""

from . import io, transforms

__all__ = ["io", "transforms"]
__version__ = "0.28.0"
