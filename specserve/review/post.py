"""Write a review as the one comment of a pull or merge request: updated where it already is.

    python -m specserve.review.post github|gitlab FILE

GitHub: GITHUB_API_URL, GITHUB_REPOSITORY, GITHUB_TOKEN, PULL_REQUEST. GitLab: CI_API_V4_URL,
CI_PROJECT_ID, CI_MERGE_REQUEST_IID, SPECSERVE_TOKEN.
"""

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

from specserve.errors import SpecserveError
from specserve.review.comment import MARKER

_SECONDS = 30
_PAGE = 100
_MOST_PAGES = 50


class PostError(SpecserveError):
    """The comment could not be written."""


@dataclass(frozen=True, slots=True)
class Forge:
    """Where comments are listed and created, where one is updated (`{}`: its id), and how."""

    comments: str
    comment: str
    update: str
    headers: Mapping[str, str]


def github(environment: Mapping[str, str]) -> Forge:
    """Raises KeyError with the name of a variable that is missing."""
    repository = f"{environment['GITHUB_API_URL']}/repos/{environment['GITHUB_REPOSITORY']}"
    return Forge(
        comments=f"{repository}/issues/{environment['PULL_REQUEST']}/comments",
        comment=f"{repository}/issues/comments/{{}}",
        update="PATCH",
        headers={
            "Authorization": f"Bearer {environment['GITHUB_TOKEN']}",
            "Accept": "application/vnd.github+json",
        },
    )


def gitlab(environment: Mapping[str, str]) -> Forge:
    """Raises KeyError with the name of a variable that is missing."""
    project = f"{environment['CI_API_V4_URL']}/projects/{environment['CI_PROJECT_ID']}"
    notes = f"{project}/merge_requests/{environment['CI_MERGE_REQUEST_IID']}/notes"
    return Forge(
        comments=notes,
        comment=f"{notes}/{{}}",
        update="PUT",
        headers={"PRIVATE-TOKEN": environment["SPECSERVE_TOKEN"]},
    )


FORGES: Mapping[str, Callable[[Mapping[str, str]], Forge]] = {"github": github, "gitlab": gitlab}


def post(forge: Forge, text: str) -> None:
    """Update the first comment that begins with the marker, or create one. Raises PostError.

    Somebody else's comment that begins so cannot be updated: then there is one of our own beside.
    """
    for comment in _comments(forge):
        if str(comment.get("body", "")).startswith(MARKER) and _updated(forge, comment, text):
            return
    _send(forge, "POST", forge.comments, text)


def _updated(forge: Forge, comment: Mapping[str, Any], text: str) -> bool:
    try:
        _send(forge, forge.update, forge.comment.format(comment["id"]), text)
    except PostError as error:
        if getattr(error.__cause__, "code", None) in (403, 404):
            return False
        raise
    return True


def _comments(forge: Forge) -> Iterator[Mapping[str, Any]]:
    for page in range(1, _MOST_PAGES + 1):
        found = _send(forge, "GET", f"{forge.comments}?per_page={_PAGE}&page={page}", None)
        yield from found
        if len(found) < _PAGE:
            return


def _send(forge: Forge, method: str, url: str, text: str | None) -> Any:  # noqa: ANN401 (JSON)
    data = None if text is None else json.dumps({"body": text}).encode()
    headers = {**forge.headers, "Content-Type": "application/json"}
    request = Request(url, data=data, method=method, headers=headers)
    try:
        with urlopen(request, timeout=_SECONDS) as answer:
            return json.loads(answer.read() or b"null")
    except (URLError, TimeoutError, json.JSONDecodeError) as error:
        raise PostError(f"{method} {url}: {error}") from error


def main(arguments: Sequence[str]) -> int:
    """The exit code."""
    try:
        name, file = arguments
        post(FORGES[name](os.environ), Path(file).read_text(encoding="utf-8"))
    except (KeyError, ValueError) as error:
        sys.stderr.write(f"usage: python -m specserve.review.post github|gitlab FILE ({error})\n")
        return 2
    except (PostError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
