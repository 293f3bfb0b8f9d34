"""One comment, written to a real HTTP server that behaves as the forges do."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from specserve.review.comment import MARKER
from specserve.review.post import PostError, github, gitlab, post

ROOT = Path(__file__).parent.parent.parent


@dataclass
class Conversation:
    """The comments of one request; `foreign` ids belong to somebody else."""

    url: str = ""
    comments: list[dict[str, Any]] = field(default_factory=list)
    foreign: set[int] = field(default_factory=set)
    seen: list[tuple[str, str, str | None]] = field(default_factory=list)

    @property
    def github(self) -> dict[str, str]:
        """What the action's step finds in its environment."""
        return {
            "GITHUB_API_URL": self.url,
            "GITHUB_REPOSITORY": "some/body",
            "GITHUB_TOKEN": "token",
            "PULL_REQUEST": "7",
        }

    @property
    def gitlab(self) -> dict[str, str]:
        """What the job finds in its environment."""
        return {
            "CI_API_V4_URL": self.url,
            "CI_PROJECT_ID": "5",
            "CI_MERGE_REQUEST_IID": "7",
            "SPECSERVE_TOKEN": "token",
        }


@pytest.fixture
def conversation() -> Iterator[Conversation]:
    """Listed in pages; created with POST; updated with PATCH or PUT, by their author only."""
    talk = Conversation()

    class Forge(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            query = parse_qs(urlsplit(self.path).query)
            size, page = int(query["per_page"][0]), int(query["page"][0])
            self._answer(200, talk.comments[size * (page - 1) : size * page])

        def do_POST(self) -> None:
            talk.comments.append({"id": len(talk.comments) + 1, "body": self._body()})
            self._answer(201, talk.comments[-1])

        def do_PATCH(self) -> None:
            number = int(self.path.rpartition("/")[2])
            body = self._body()
            if number in talk.foreign:
                self._answer(403, {"message": "not yours"})
                return
            talk.comments[number - 1]["body"] = body
            self._answer(200, talk.comments[number - 1])

        do_PUT = do_PATCH

        def _body(self) -> str:
            read = self.rfile.read(int(self.headers["Content-Length"]))
            return str(json.loads(read)["body"])

        def _answer(self, code: int, value: object) -> None:
            key = self.headers["Authorization"] or self.headers["PRIVATE-TOKEN"]
            talk.seen.append((self.command, self.path, key))
            self.send_response(code)
            self.end_headers()
            self.wfile.write(json.dumps(value).encode())

        def log_message(self, format: str, *args: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Forge)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    talk.url = f"http://127.0.0.1:{server.server_address[1]}"
    yield talk
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_first_review_is_a_new_comment(conversation: Conversation) -> None:
    conversation.comments.append({"id": 1, "body": "looks good"})
    post(github(conversation.github), f"{MARKER}\none")

    assert ["looks good", f"{MARKER}\none"] == [c["body"] for c in conversation.comments]
    assert ("POST", "/repos/some/body/issues/7/comments", "Bearer token") == conversation.seen[-1]


def test_later_ones_update_it_however_long_the_conversation(conversation: Conversation) -> None:
    conversation.comments += [{"id": n, "body": "…"} for n in range(1, 151)]
    post(github(conversation.github), f"{MARKER}\none")
    post(github(conversation.github), f"{MARKER}\ntwo")

    assert 151 == len(conversation.comments)
    assert f"{MARKER}\ntwo" == conversation.comments[-1]["body"]


def test_on_gitlab_it_is_a_note_of_the_merge_request(conversation: Conversation) -> None:
    post(gitlab(conversation.gitlab), f"{MARKER}\none")
    post(gitlab(conversation.gitlab), f"{MARKER}\ntwo")

    assert [f"{MARKER}\ntwo"] == [c["body"] for c in conversation.comments]
    assert ("PUT", "/projects/5/merge_requests/7/notes/1", "token") == conversation.seen[-1]


def test_a_comment_of_somebody_else_that_looks_like_ours_is_left_alone(
    conversation: Conversation,
) -> None:
    conversation.comments.append({"id": 1, "body": f"{MARKER} ha"})
    conversation.foreign.add(1)
    post(github(conversation.github), f"{MARKER}\none")

    assert [f"{MARKER} ha", f"{MARKER}\none"] == [c["body"] for c in conversation.comments]


def test_a_forge_that_does_not_answer_is_an_error(conversation: Conversation) -> None:
    with pytest.raises(PostError, match=r"GET http://127\.0\.0\.1:9/"):
        post(github({**conversation.github, "GITHUB_API_URL": "http://127.0.0.1:9"}), MARKER)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["github", "review.md"], 0, ""),
        (["gitlab", "review.md"], 2, "CI_API_V4_URL"),
        (["github", "nowhere.md"], 1, "nowhere.md"),
        (["github"], 2, "usage"),
    ],
)
def test_as_a_program_it_says_what_is_missing(
    arguments: list[str], code: int, words: str, conversation: Conversation, tmp_path: Path
) -> None:
    (tmp_path / "review.md").write_text(MARKER)
    ran = subprocess.run(
        [sys.executable, "-m", "specserve.review.post", *arguments],
        cwd=tmp_path,
        env={**os.environ, **conversation.github, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert (code, True) == (ran.returncode, words in ran.stderr), ran.stderr
