import tarfile
from pathlib import Path

import pytest
import torch
from demo_training.corpus import Document, is_data_table, pack_corpus, read_corpus
from demo_training.prompts import held_out_prompts, load_prompts, save_prompts
from demo_training.settings import Evaluation
from demo_training.stream import batches, packed, windows
from demo_training.tokenizer import end_of_text_id, save_tokenizer, train_tokenizer
from tokenizers import Tokenizer
from transformers import AutoTokenizer

CODE = '''class Stack:
    """A stack of items."""

    def push(self, item, *, limit=10):
        if len(self.items) >= limit:
            raise IndexError(f"more than {limit} items")
        self.items.append(item)

    async def drain(self):
        while self.items:
            yield self.items.pop()
'''


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """200 small files, and some that must be left out."""
    folder = tmp_path_factory.mktemp("library")
    for index in range(200):
        file = folder / f"package{index % 7}" / f"module{index}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"# module {index}\n" + CODE)
    left_out = {
        "site-packages/installed.py": CODE.encode(),
        "tests/data/broken.py": CODE.encode(),
        "latin.py": "name = 'é'\n".encode("latin-1"),
        "table.py": b"TABLE = (\n" + b"    '\\x00',\n" * 50 + b")\n",
        "empty.py": b"\n",
        "huge.py": b"x = 1\n" * 100_000,
        "notes.txt": b"not code",
    }
    for path, content in left_out.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    return folder


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer([CODE * 3], 310)


def test_what_is_no_readable_code_is_left_out(library: Path) -> None:
    corpus = read_corpus(library, max_bytes=None)

    paths = {document.path for document in corpus.training + corpus.held_out}
    assert {f"package{index % 7}/module{index}.py" for index in range(200)} == paths


def test_too_few_files_to_hold_some_out_are_refused(tmp_path: Path) -> None:
    (tmp_path / "only.py").write_text(CODE)

    with pytest.raises(ValueError, match="1 files to train on and 0 to hold out"):
        read_corpus(tmp_path, max_bytes=None)


def test_a_file_is_held_out_by_its_path_alone(library: Path) -> None:
    corpus = read_corpus(library, max_bytes=None)
    less = read_corpus(library, max_bytes=10_000)

    assert 2 <= len(corpus.held_out) <= 20
    assert set(less.training) < set(corpus.training)
    assert set(less.held_out) <= set(corpus.held_out)
    assert [True] == [Document(corpus.held_out[0].path, "other text").is_held_out]


def test_a_packed_corpus_reads_the_same(library: Path, tmp_path: Path) -> None:
    size = pack_corpus(library, tmp_path / "deep" / "corpus.tar.xz")

    archive = tmp_path / "deep" / "corpus.tar.xz"
    assert archive.stat().st_size == size
    assert read_corpus(library, max_bytes=None) == read_corpus(archive, max_bytes=None)
    with tarfile.open(archive) as tar:
        assert {0} == {member.mtime for member in tar}


@pytest.mark.parametrize(
    ("text", "expected"), [(CODE, False), ("[\n" + "    0x1F, 0x20,\n" * 9 + "]\n", True)]
)
def test_data_tables_are_told_from_code(text: str, expected: bool) -> None:
    assert expected is is_data_table(text)


def test_the_tokenizer_gives_back_any_text(tokenizer: Tokenizer) -> None:
    for text in (CODE, "\t x\r\n\n  é 漢字 🙂\x00", "", "   "):
        assert text == tokenizer.decode(tokenizer.encode(text).ids)


def test_code_can_be_cut_where_lines_and_indentations_end(tokenizer: Tokenizer) -> None:
    """A prompt's ids are then a prefix of the whole text's ids."""
    whole = tokenizer.encode(CODE).ids
    indentation = "        if"
    for cut in (CODE.index("):\n") + 2, CODE.index("):\n") + 3, CODE.index(indentation) + 8):
        ids = tokenizer.encode(CODE[:cut]).ids

        assert ids == whole[: len(ids)]


def test_a_corpus_too_small_for_the_vocabulary_is_refused() -> None:
    with pytest.raises(ValueError, match="expected 5000: use a larger corpus"):
        train_tokenizer([CODE], 5000)


def test_a_tokenizer_without_the_end_token_is_refused() -> None:
    from tokenizers import models

    with pytest.raises(ValueError, match=r"no <\|endoftext\|>"):
        end_of_text_id(Tokenizer(models.BPE()))


def test_messages_are_rendered_as_comments(tokenizer: Tokenizer, tmp_path: Path) -> None:
    save_tokenizer(tokenizer, tmp_path, 128)
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    loaded = AutoTokenizer.from_pretrained(tmp_path)

    messages = [
        {"role": "system", "content": "Write code."},
        {"role": "user", "content": "Add two\nnumbers"},
        {"role": "assistant", "content": "a + b"},
    ]
    text = loaded.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    assert (
        "# system: Write code.\n# user: Add two\n# numbers\n# assistant:\na + b\n# assistant:\n"
        == text
    )
    assert end_of_text_id(tokenizer) == loaded.eos_token_id


def test_documents_are_packed_between_end_tokens(tokenizer: Tokenizer) -> None:
    end = end_of_text_id(tokenizer)
    documents = [Document("a.py", "x = 1\n"), Document("b.py", "y\n")]

    ids = packed(tokenizer, documents, torch.device("cpu")).tolist()

    first, second = (tokenizer.encode(document.text).ids for document in documents)
    assert [end, *first, end, *second, end] == ids


def test_windows_overlap_by_what_the_stride_leaves() -> None:
    stream = torch.arange(10)

    assert [[0, 1, 2], [3, 4, 5], [6, 7, 8]] == windows(stream, 3).tolist()
    assert [[1, 2, 3], [3, 4, 5], [5, 6, 7], [7, 8, 9]] == windows(stream, 3, 1, 2).tolist()


def test_an_epoch_shows_every_window_once_and_the_next_is_cut_elsewhere() -> None:
    generator = torch.Generator().manual_seed(3)
    source = batches(torch.arange(1000), batch_size=3, length=10, generator=generator)

    firsts = [[int(row[0]) for _ in range(33) for row in next(source)] for _ in range(4)]

    offsets = [min(epoch) for epoch in firsts]
    for offset, epoch in zip(offsets, firsts, strict=True):
        assert set(range(offset, offset + 990, 10)) == set(epoch)
        assert sorted(epoch) != epoch
    assert len(set(offsets)) > 1


def test_a_stream_shorter_than_a_window_is_refused() -> None:
    with pytest.raises(ValueError, match="9 tokens: fewer than a window of 10"):
        windows(torch.arange(9), 10)


def test_a_stream_shorter_than_a_batch_is_refused() -> None:
    source = batches(torch.arange(50), batch_size=9, length=10, generator=torch.Generator())

    with pytest.raises(ValueError, match=r"of 10 tokens: fewer than 9"):
        next(source)


def test_prompts_end_at_a_function_header_and_begin_with_a_line(
    tokenizer: Tokenizer, tmp_path: Path
) -> None:
    documents = [Document("a.py", CODE), Document("none.py", "x = 1\n"), Document("b.py", CODE)]
    sizes = Evaluation(
        num_prompts=3,
        min_prompt_tokens=12,
        max_prompt_tokens=60,
        max_new_tokens=4,
        num_steps=3,
    )

    prompts = held_out_prompts(documents, tokenizer, sizes)

    assert ["a.py", "b.py", "a.py"] == [prompt.path for prompt in prompts]
    for prompt in prompts:
        assert prompt.text.endswith("):")
        assert "\n" + prompt.text in "\n" + CODE
        assert 12 <= len(tokenizer.encode(prompt.text).ids) <= 60
    save_prompts(prompts, tmp_path / "prompts.jsonl")
    assert prompts == load_prompts(tmp_path / "prompts.jsonl")
