"""Compute a study from the command line: ``python -m rankbook.studies NAME [--quick]``."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from rankbook import studies


def main(arguments: list[str] | None = None) -> int:
    """Run one study and write its results.

    Returns
    -------
    int
        The exit status.
    """
    parser = argparse.ArgumentParser(prog="python -m rankbook.studies", description=main.__doc__)
    parser.add_argument("name", choices=studies.names(), help="the study")
    parser.add_argument("--quick", action="store_true", help="a small part of it")
    parser.add_argument(
        "--output",
        type=Path,
        help="file to write (by default NAME.json, or NAME.quick.json, in this folder)",
    )
    options = parser.parse_args(arguments)
    results = studies.run(options.name, quick=options.quick)
    suffix = ".quick.json" if options.quick else ".json"
    target = options.output or Path(options.name + suffix)
    write(results, target)
    print(target)
    return 0


def write(results: object, target: Path) -> None:
    """Write JSON beside the target, then put it in its place: never half a file."""
    partial = target.with_name(target.name + ".partial")
    partial.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    os.replace(partial, target)


if __name__ == "__main__":
    sys.exit(main())
