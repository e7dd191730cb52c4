"""Execute the notebooks and store their outputs: `python docs/notebooks/run.py [NAME …]`; `--out FOLDER` elsewhere.

Outputs keep no execution times, so that a second run changes only what was computed anew.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).parent


def executed(path: Path) -> Any:
    """Return the notebook after all its cells were executed in an empty folder."""
    notebook = nbformat.read(path, as_version=4)
    # Commands that a notebook types are those of this environment.
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(
            notebook, timeout=600, resources={"metadata": {"path": folder}}, record_timing=False, kernel_name="python3"
        )
        client.execute()
    notebook.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return notebook


def main() -> None:
    """Execute the notebooks named, or all."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("names", nargs="*", help="notebooks without their suffix; all by default")
    arguments.add_argument("--out", type=Path, default=HERE)
    options = arguments.parse_args()
    for path in sorted(HERE.glob("*.ipynb")):
        if not options.names or path.stem in options.names:
            print(path.name, file=sys.stderr, flush=True)
            nbformat.write(executed(path), options.out / path.name)


if __name__ == "__main__":
    main()
