"""figures.json: what was trained how, and what came out. Each stage adds its part."""

import dataclasses
import json
import platform
from pathlib import Path
from typing import Any

import torch

from demo_training.corpus import Corpus
from demo_training.settings import Settings

_FILE = "figures.json"


def add_figures(out: Path, part: str, content: dict[str, Any]) -> None:
    """Put `content` under `part` in the folder's figures.json, and leave the other parts."""
    path = out / _FILE
    figures = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**figures, part: content}, indent=2) + "\n")


def training_record(
    settings: Settings, corpus: Corpus, device: torch.device, *, num_training_tokens: int
) -> dict[str, Any]:
    """What a trained model depends on."""
    return {
        "settings": dataclasses.asdict(settings),
        "num_training_files": len(corpus.training),
        "num_held_out_files": len(corpus.held_out),
        "num_training_tokens": num_training_tokens,
        **machine_record(device),
    }


def machine_record(device: torch.device) -> dict[str, Any]:
    """Where it ran."""
    return {
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "python": platform.python_version(),
        "torch": torch.__version__,
    }
