"""Run benchmarks: ``python -m benchmarks`` for all, ``python -m benchmarks pairs`` for one."""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks import harness  # first: it fixes the number of threads

SUBJECTS = sorted(
    path.stem.removeprefix("bench_") for path in Path(__file__).parent.glob("bench_*.py")
)


def main(names: list[str]) -> int:
    """Run the named subjects, or all."""
    unknown = [name for name in names if name not in SUBJECTS]
    if unknown:
        print(f"no benchmark named {', '.join(unknown)}; there are {', '.join(SUBJECTS)}")
        return 2
    for name in names or SUBJECTS:
        harness.importlib.import_module(f"benchmarks.bench_{name}").run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
