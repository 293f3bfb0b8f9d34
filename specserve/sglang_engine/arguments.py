"""Server arguments as values: each with the specserve key that it comes from."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

Scalar = str | int | float | bool


@dataclass(frozen=True, slots=True)
class File:
    """An argument that is the path of a file with this content; the launcher writes it."""

    name: str
    content: str


Value = Scalar | tuple[Scalar, ...] | File


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """`--flag value`, and the setting of SGLang's (`field`) that it becomes.

    A switch is True, for SGLang's switches cannot be given as false.
    """

    field: str
    value: Value
    key: str

    @property
    def flag(self) -> str:
        """The name on the command line."""
        return "--" + self.field.replace("_", "-")

    def words(self, folder: Path) -> list[str]:
        """On the command line; files lie in `folder`."""
        match self.value:
            case True:
                return [self.flag]
            case tuple():
                return [self.flag, *map(str, self.value)]
            case File(name=name):
                return [self.flag, str(folder / name)]
            case _:
                return [self.flag, str(self.value)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """An environment variable of the server's processes."""

    name: str
    value: str
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerArguments:
    """All that specserve sets for one server; what is absent keeps SGLang's own default.

    `release` is the one whose names these are.
    """

    release: str
    arguments: tuple[Argument, ...]
    environment: tuple[Variable, ...]

    def command_line(self, folder: Path) -> list[str]:
        """The words after the server's command; files lie in `folder`."""
        return [word for argument in self.arguments for word in argument.words(folder)]

    @property
    def files(self) -> Mapping[str, str]:
        """Contents by name, to be written before the server starts."""
        return {
            argument.value.name: argument.value.content
            for argument in self.arguments
            if isinstance(argument.value, File)
        }

    @property
    def settings(self) -> Mapping[str, Value]:
        """Asked values by SGLang's field names."""
        return {argument.field: argument.value for argument in self.arguments}

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        shown = [" ".join(argument.words(Path())) for argument in self.arguments]
        keys = [argument.key for argument in self.arguments]
        shown += [f"{variable.name}={variable.value}" for variable in self.environment]
        keys += [variable.key for variable in self.environment]
        width = max(map(len, shown), default=0)
        for text, key in zip(shown, keys, strict=True):
            yield f"{text:<{width}}  {key}"
