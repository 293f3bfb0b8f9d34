"""The policy of a run in the configuration of other engines: vLLM, TensorRT-LLM, SGLang."""

from specserve.export.run import ENGINES, export_run

__all__ = ["ENGINES", "export_run"]
