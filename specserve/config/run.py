"""The whole configuration of one run."""

from specserve.config.attention import AttentionConfig
from specserve.config.build import BuildConfig
from specserve.config.cuda_graph import CudaGraphConfig
from specserve.config.engine import EngineConfig
from specserve.config.logging import LoggingConfig
from specserve.config.model import ModelConfig
from specserve.config.parallel import ParallelConfig
from specserve.config.policy import PolicyConfig
from specserve.config.quantization import QuantizationConfig
from specserve.config.scheduler import SchedulerConfig
from specserve.config.server import ServerConfig
from specserve.config.speculation import SpeculationConfig
from specserve.config.strict import StrictModel
from specserve.config.task import TaskConfig


class RunConfig(StrictModel):
    """One section per group of conf/, under the group's name."""

    model: ModelConfig
    quantization: QuantizationConfig
    speculation: SpeculationConfig
    policy: PolicyConfig
    scheduler: SchedulerConfig
    attention: AttentionConfig
    cuda_graph: CudaGraphConfig
    parallel: ParallelConfig
    engine: EngineConfig
    build: BuildConfig
    server: ServerConfig
    logging: LoggingConfig
    task: TaskConfig
