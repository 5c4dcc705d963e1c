"""The matrix in every format at once, as files in the state directory that only this user can read."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

from straggler.engine.bandwidth.view import MatrixView
from straggler.engine.statedir import fallbacks, new_file, private_dir, state_dir


def write(view: MatrixView, state: Path | None, at: float) -> Path:
    """Named after the time (Unix seconds); returns their path without the ending. Raises OSError when no place takes them."""
    from straggler.engine.export import matrix_csv, matrix_json, matrix_svg, matrix_text

    texts = {
        "svg": matrix_svg.render(view),
        "csv": matrix_csv.render(view),
        "json": matrix_json.render(view),
        "txt": matrix_text.render(view),
    }
    stem = time.strftime("matrix-%Y%m%dT%H%M%SZ", time.gmtime(at))
    trouble: OSError | None = None
    for place in (state_dir(state), *fallbacks()):
        try:
            with private_dir(place) as folder:
                for ending, text in texts.items():
                    _replace(f"{stem}.{ending}", text, folder)
            return place / stem
        except OSError as error:
            trouble = trouble or error
    raise trouble or OSError("no place to write to")


def _replace(name: str, text: str, folder: int) -> None:
    """Whole or not at all: written beside it first. A draft that a killed program left is no obstacle."""
    draft = f".{name}.{os.getpid()}"
    with suppress(FileNotFoundError):
        os.unlink(draft, dir_fd=folder)
    with open(new_file(draft, folder), "w", encoding="utf-8") as out:
        out.write(text)
    os.replace(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
