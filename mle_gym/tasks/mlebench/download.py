"""Fetching a competition's files from Kaggle, with the `kaggle` package."""

from __future__ import annotations

import contextlib
import io
import shutil
from pathlib import Path
from typing import Any

from mle_gym.tasks.task import MissingDependency, TaskUnavailable

__all__ = ["NoCredentials", "download", "require_room"]

_ROOM = 3.0
"""The archive, its contents and the prepared folder lie on the disk together."""


class NoCredentials(TaskUnavailable):
    """Kaggle does not know who asks; it is the same for every competition."""


def require_room(name: str, folder: Path, archive_bytes: int) -> None:
    """Refuse work that would fill the disk.

    Args:
        name: The competition's slug.
        folder: Where the work is to be done.
        archive_bytes: Size of the raw archive.

    Raises:
        TaskUnavailable: Less than three times the archive's size is free; the figures are named.
    """
    free, needed = shutil.disk_usage(folder).free, int(_ROOM * archive_bytes)
    if free < needed:
        raise TaskUnavailable(
            f"Preparing {name} needs about {needed / 1e9:.1f} GB below {folder} and {free / 1e9:.1f} GB are free; "
            "make room or choose another --data-dir."
        )


def download(name: str, folder: Path, size_gb: float | None, *, progress: bool = False) -> Path:
    """Fetch a competition's archive; what an interrupted call has fetched is kept and continued.

    Args:
        name: The competition's slug.
        folder: Where the archive is put, as ``<name>.zip``.
        size_gb: Size to make room for, where it is known beforehand.
        progress: Show a bar.

    Returns:
        The archive.

    Raises:
        MissingDependency: The package ``kaggle`` is not installed.
        TaskUnavailable: No credentials, rules not accepted, no room, or no network; one sentence says which.
    """
    api = _api()
    page = f"https://www.kaggle.com/competitions/{name}"
    folder.mkdir(parents=True, exist_ok=True)
    require_room(name, folder, int((size_gb or 0.0) * 1e9))
    with _sentences(name, page):
        if size_gb is None:
            require_room(name, folder, _total_bytes(api, name))
        quiet = contextlib.nullcontext() if progress else contextlib.redirect_stdout(io.StringIO())
        with quiet:
            api.competition_download_files(name, path=str(folder), quiet=not progress)
    archive = folder / f"{name}.zip"
    if not archive.exists():
        raise TaskUnavailable(f"Kaggle sent no archive of {name}; look at {page}/data and try again.")
    return archive


def _api() -> Any:
    """A client with credentials."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            from kaggle.api.kaggle_api_extended import KaggleApi
    except ImportError as error:
        raise MissingDependency("Downloads need the package 'kaggle'; install mle-gym[kaggle].") from error
    api = KaggleApi()
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            api.authenticate()
    except (SystemExit, OSError, ValueError) as error:
        raise NoCredentials(
            "Kaggle credentials are missing; make an API token at https://www.kaggle.com/settings and put it into "
            "~/.kaggle/kaggle.json or KAGGLE_USERNAME and KAGGLE_KEY."
        ) from error
    return api


def _total_bytes(api: Any, name: str) -> int:
    """Sum of the sizes that Kaggle lists."""
    total, token = 0, None
    while True:
        page = api.competition_list_files(name, page_token=token, page_size=200)
        total += sum(int(file.total_bytes or 0) for file in page.files)
        token = page.next_page_token
        if not token:
            return total


@contextlib.contextmanager
def _sentences(name: str, page: str) -> Any:
    """Turn what the client raises into one sentence for the user."""
    import requests

    try:
        yield
    except requests.exceptions.HTTPError as error:
        status = error.response.status_code if error.response is not None else 0
        reasons = {
            401: "Kaggle does not accept the credentials; make a new API token at https://www.kaggle.com/settings.",
            403: f"Kaggle refuses {name}: join it and accept its rules at {page}/rules with the same account.",
            404: f"Kaggle has no files of {name} any more; see {page}.",
            429: "Kaggle is asked too often from here; wait some minutes and run the same command again.",
        }
        raise TaskUnavailable(reasons.get(status, f"Kaggle answered {name} with HTTP {status}; try again.")) from error
    except (requests.exceptions.RequestException, TimeoutError) as error:
        raise TaskUnavailable(
            f"{name} cannot be fetched from Kaggle ({type(error).__name__}); check the network and run the same "
            "command again, which goes on where it stopped."
        ) from error
