"""Copy the reader's notebooks to a folder that belongs to the reader.

``python my_notebooks.py FROM TO``: new notebooks are copied, and so are newer versions of those
that the reader has left alone. One that was changed, by running it too, stays as it is.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from pathlib import Path

RECORD = ".copied.json"


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def update(source: Path, target: Path) -> list[str]:
    """Bring `target` up to date; return the names of the changed notebooks that were kept.

    Parameters
    ----------
    source : Path
        The folder that the build writes.
    target : Path
        The reader's folder, made if it is not there.

    Returns
    -------
    list of str
        Notebooks that the reader has changed and of which the build has another version.
    """
    target.mkdir(parents=True, exist_ok=True)
    record_file = target / RECORD
    record = json.loads(record_file.read_text()) if record_file.is_file() else {}
    kept = []
    for path in sorted(source.rglob("*.ipynb")):
        name = path.relative_to(source).as_posix()
        if ".ipynb_checkpoints" in name:
            continue
        mine, new = target / name, sha256(path)
        if mine.is_file() and sha256(mine) != record.get(name):
            if record.get(name) != new:
                kept.append(name)
            continue
        mine.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, mine)
        record[name] = new
    record_file.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")
    return kept


if __name__ == "__main__":
    for changed in update(Path(sys.argv[1]), Path(sys.argv[2])):
        print(f"{changed} was changed and is kept; delete it to get the book's new version")
