"""An export as text: a YAML file under a header of comments, and a JSON file that it may name."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import yaml

from specserve import __version__
from specserve.export.engine import Attachment, TargetEngine, Translation
from specserve.export.losses import Loss
from specserve.export.source import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What the reader of a file should know. `left_out` are the losses that --drop accepted."""

    source: Source
    engine: TargetEngine
    left_out: Sequence[Loss]

    def lines(self, launch: str) -> Iterator[str]:
        """Lines of text; `launch` is the command that reads the file."""
        engine, source = self.engine, self.source
        yield f"Written by specserve {__version__} for {engine.name} (rule {engine.rule}):"
        yield f"  {launch}"
        yield "Speculation, its policy and the admission limit only; the rest is yours to set."
        yield f"policy={source.policy.kind}: {'; '.join(map(str, source.ranges))}."
        if source.switches:
            yield f"specserve counts running decodes, {engine.name} {engine.counts}."
        for loss in self.left_out:
            yield f"Left out (--drop {loss.name}): {loss.key}={loss.value}; {loss.instead}."


def launch_command(engine: TargetEngine, translation: Translation, file: str) -> str:
    """The command for a shell, MODEL still to be filled in."""
    variables = [f"{name}={value}" for name, value in translation.environment.items()]
    return " ".join([*variables, engine.command.format(file=file)])


def yaml_text(comments: Sequence[str], settings: Mapping[str, object]) -> str:
    """Settings in their order under the comments; tuples on one line."""
    head = "".join(f"# {line}\n" for line in comments)
    return head + yaml.dump(dict(settings), Dumper=_Dumper, sort_keys=False, width=1000)


def json_text(comments: Sequence[str], attachment: Attachment) -> str:
    """The attachment, an entry a line, with the comments under a key that no engine reads."""
    told = ",\n".join(f"    {json.dumps(line)}" for line in comments)
    entries = [
        f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in attachment.content.items()
    ]
    return "{\n" + ",\n".join([f'  "_comment": [\n{told}\n  ]', *entries]) + "\n}\n"


class _Dumper(yaml.SafeDumper):
    """Plain YAML, no anchors."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _on_one_line(dumper: yaml.SafeDumper, values: tuple[object, ...]) -> yaml.Node:
    return dumper.represent_sequence("tag:yaml.org,2002:seq", values, flow_style=True)


_Dumper.add_representer(tuple, _on_one_line)
