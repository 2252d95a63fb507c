"""Real code bases for the benchmarks, from the package registries, kept in a cache beside other benchmarks' tools."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

HOME = Path.home() / ".cache" / "ctxstream-bench"

PYTHON_PACKAGES = {
    "networkx": "networkx==3.6.1",
    "django": "django==5.2.8",
    "pip": "pip==25.3",
    "pybind11": "pybind11==3.0.1",
}
SOURCE_PACKAGES = {"uvloop": "uvloop==0.22.1"}
NPM_PACKAGES = {"rxjs": "rxjs@7.8.2", "express": "express@5.1.0", "three": "three@0.180.0", "zod": "zod@4.1.12"}
INSIDE = {
    "pybind11": "pybind11/include",
    "zod": "package/src",
    "uvloop": "vendor/libuv",
    "rxjs": "package/src",
    "express": "package",
    "three": "package/examples/jsm",
}


def tree(name: str) -> Path:
    """Return the directory of one code base, fetched on first use; raises `CalledProcessError` without a registry."""
    root = HOME / "trees" / name
    if not root.exists():
        root.mkdir(parents=True)
        _fetch(name, root)
    inside = INSIDE.get(name, "")
    below = sorted(path for path in root.glob("*") if path.is_dir())
    return next(
        (path for path in (root / inside, *(part / inside for part in below)) if inside and path.is_dir()), root
    )


def _fetch(name: str, root: Path) -> None:
    archives = HOME / "archives" / name
    archives.mkdir(parents=True, exist_ok=True)
    if name in NPM_PACKAGES:
        subprocess.run(["npm", "pack", "--silent", NPM_PACKAGES[name]], cwd=archives, check=True)
    else:
        requirement = PYTHON_PACKAGES.get(name) or SOURCE_PACKAGES[name]
        only = ["--no-binary", ":all:"] if name in SOURCE_PACKAGES else ["--only-binary", ":all:"]
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", *only, "-d", str(archives), requirement]
        subprocess.run(command, check=True)
    for archive in archives.iterdir():
        if archive.suffix == ".whl":
            with zipfile.ZipFile(archive) as wheel:
                wheel.extractall(root)
        else:
            with tarfile.open(archive) as packed:
                packed.extractall(root, filter="data")
