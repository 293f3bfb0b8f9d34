"""`specserve export`: from overrides to the files of another engine."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote

from specserve.config.load import load_run
from specserve.config.run import RunConfig
from specserve.errors import ConfigError, Problem
from specserve.export.document import Header, json_text, launch_command, yaml_text
from specserve.export.engine import TargetEngine, Translation
from specserve.export.losses import DROPPABLE, find_losses, refused
from specserve.export.sglang import SGLANG
from specserve.export.source import read_source
from specserve.export.tensorrt_llm import TENSORRT_LLM
from specserve.export.vllm import VLLM
from specserve.rule_ids import RuleId

ENGINES: Mapping[str, TargetEngine] = {
    "vllm": VLLM,
    "tensorrt-llm": TENSORRT_LLM,
    "sglang": SGLANG,
}


def export_run(
    overrides: Sequence[str],
    config_dirs: Sequence[Path],
    *,
    to: str | None,
    output: Path | None,
    drop: Sequence[str],
) -> str:
    """Text for stdout: the export, or with `output` how to start the engine with the files there.

    Raises ConfigError for a run that is not valid, for what the engine cannot express, and for an
    `output` that cannot be written.
    """
    problems = [*_unknown_engine(to), *_unknown_drops(drop), *_unusable_output(output)]
    if to is None or problems:
        raise ConfigError(problems)
    config = load_run(overrides, config_dirs).config
    translation, header = translate(config, ENGINES[to], drop)
    if output is None:
        return _shown(translation, header, to)
    return _written(translation, header, output)


def translate(
    config: RunConfig, engine: TargetEngine, drop: Sequence[str]
) -> tuple[Translation, Header]:
    """The run in the engine's settings. Raises ConfigError with all that cannot be expressed."""
    source = read_source(config, engine.name)
    losses = find_losses(source, engine)
    problems = [*engine.problems(source), *refused(losses, drop, engine)]
    if problems:
        raise ConfigError(problems)
    return engine.translate(source), Header(source=source, engine=engine, left_out=losses)


def _shown(translation: Translation, header: Header, to: str) -> str:
    """One YAML document: an attachment follows in comments, since it is a file of its own."""
    file = f"{to}.yaml"
    lines = list(header.lines(launch_command(header.engine, translation, file)))
    attachment = translation.attachment
    if attachment is None:
        return yaml_text(lines, translation.settings)
    name = _attachment_path(Path(file)).name
    text = yaml_text(lines, {**translation.settings, attachment.key: name})
    below = [f"{name}, a file of its own (--output FILE writes both):"]
    below += json_text(lines, attachment).splitlines()
    return text + "".join(f"# {line}\n" for line in below)


def _written(translation: Translation, header: Header, output: Path) -> str:
    file, attachment = output.absolute(), translation.attachment
    launch = launch_command(header.engine, translation, quote(str(file)))
    lines = list(header.lines(launch))
    if attachment is None:
        texts = {file: yaml_text(lines, translation.settings)}
    else:
        beside = _attachment_path(file)
        settings = {**translation.settings, attachment.key: str(beside)}
        texts = {file: yaml_text(lines, settings), beside: json_text(lines, attachment)}
    for path, text in texts.items():
        _write(path, text)
    return "\n".join([*(f"wrote {path}" for path in texts), launch, ""])


def _attachment_path(file: Path) -> Path:
    return file.with_suffix(".adaptive.json")


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            [
                Problem(
                    rule=RuleId.UNWRITABLE_FILE,
                    key="--output",
                    value=str(path),
                    expected=f"a file that can be written ({error.strerror})",
                    fix="name a file in a folder that is there and can be written to",
                )
            ]
        ) from error


def _unknown_engine(to: str | None) -> list[Problem]:
    if to in ENGINES:
        return []
    names = ", ".join(ENGINES)
    fix = f"use `specserve export --to {next(iter(ENGINES))}`"
    return [
        Problem(rule=RuleId.WRONG_FLAG, key="--to", value=to, expected=f"one of {names}", fix=fix)
    ]


def _unknown_drops(drop: Sequence[str]) -> list[Problem]:
    return [
        Problem(
            rule=RuleId.WRONG_FLAG,
            key="--drop",
            value=name,
            expected=f"some of {', '.join(DROPPABLE)}, with commas between",
            fix=f"leave {name!r} out of --drop",
        )
        for name in drop
        if name not in DROPPABLE
    ]


def _unusable_output(output: Path | None) -> list[Problem]:
    if output is None or output.suffix in (".yaml", ".yml"):
        return []
    return [
        Problem(
            rule=RuleId.WRONG_FLAG,
            key="--output",
            value=str(output),
            expected="a name that ends in .yaml, which vLLM and SGLang demand of their --config",
            fix=f"use --output {output.with_suffix('.yaml')}",
        )
    ]
