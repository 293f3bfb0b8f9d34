"""The Python standard library's source as training text, split by file."""

import hashlib
import io
import re
import sysconfig
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# Bytes. Above it the library has generated text only (pydoc's topics).
LARGEST_FILE = 500_000
# Installed packages, and inputs of tests that are broken or foreign on purpose.
EXCLUDED_FOLDERS = frozenset(
    {"site-packages", "dist-packages", "__pycache__", "data", "tokenizedata"}
)
HELD_OUT_RATE = 0.05

_LITERAL_LINE = re.compile(r"""^\s*[\[({]*\s*(['"]|b['"]|u['"]|[-+]?\d|\\x)""")


@dataclass(frozen=True, slots=True)
class Document:
    """One source file; `path` is relative to the library's folder, with forward slashes."""

    path: str
    text: str

    @property
    def is_held_out(self) -> bool:
        """Decided by the path alone, so that it is the same on every machine."""
        digest = hashlib.sha256(self.path.encode()).digest()
        return int.from_bytes(digest[:8]) < HELD_OUT_RATE * 2**64


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """Documents in a fixed order."""

    training: tuple[Document, ...]
    held_out: tuple[Document, ...]


def read_corpus(source: Path | None, *, max_bytes: int | None) -> Corpus:
    """Read a library folder or a packed archive; None is this interpreter's own library.

    `max_bytes` takes files in the order of their hash until that much text is there. Raises
    ValueError if there are too few files to hold some out.
    """
    documents = _spread(_documents(source or Path(sysconfig.get_path("stdlib"))))
    if max_bytes is not None:
        documents = _first_bytes(documents, max_bytes)
    corpus = Corpus(
        training=tuple(document for document in documents if not document.is_held_out),
        held_out=tuple(document for document in documents if document.is_held_out),
    )
    if not corpus.training or not corpus.held_out:
        raise ValueError(
            f"{source or 'local library'}: {len(corpus.training)} files to train on and "
            f"{len(corpus.held_out)} to hold out, expected some of both; use a whole library"
        )
    return corpus


def pack_corpus(source: Path | None, archive: Path) -> int:
    """Write the corpus as a tar.xz, for a machine with another library; returns its bytes."""
    documents = sorted(
        _documents(source or Path(sysconfig.get_path("stdlib"))), key=lambda document: document.path
    )
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(archive, "w:xz") as tar:
        for document in documents:
            content = document.text.encode()
            member = tarfile.TarInfo(document.path)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return archive.stat().st_size


def _documents(source: Path) -> Iterator[Document]:
    files = _folder_files(source) if source.is_dir() else _archive_files(source)
    for path, content in files:
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError:
            continue  # a few tests are in other encodings on purpose
        if text.strip() and not is_data_table(text):
            yield Document(path, text)


def _folder_files(folder: Path) -> Iterator[tuple[str, bytes]]:
    for file in folder.rglob("*.py"):
        relative = file.relative_to(folder)
        if EXCLUDED_FOLDERS.isdisjoint(relative.parts) and file.stat().st_size <= LARGEST_FILE:
            yield relative.as_posix(), file.read_bytes()


def _archive_files(archive: Path) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(archive) as tar:
        for member in tar:
            content = tar.extractfile(member)
            if content is not None:
                yield member.name, content.read()


def is_data_table(text: str) -> bool:
    """Whether most lines are bare literals (code pages, test vectors): nothing to learn there."""
    lines = [line for line in text.splitlines() if line.strip()]
    literals = sum(1 for line in lines if _LITERAL_LINE.match(line))
    return literals > 0.6 * len(lines)


def _spread(documents: Iterator[Document]) -> list[Document]:
    """Order by hash: neighbours in a folder do not end up side by side in the packed stream."""
    return sorted(documents, key=lambda document: hashlib.sha256(document.path.encode()).digest())


def _first_bytes(documents: list[Document], max_bytes: int) -> list[Document]:
    held_out_first = [document for document in documents if document.is_held_out][:8]
    chosen, total = list(held_out_first), 0
    for document in documents:
        if total >= max_bytes:
            break
        if not document.is_held_out:
            chosen.append(document)
            total += len(document.text)
    return chosen
