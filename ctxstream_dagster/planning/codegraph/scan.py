"""Scan a directory into a graph: find the files, read each once, resolve what they import, keep what was learnt."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from ctxstream_dagster.errors import ConfigError, CorpusError
from ctxstream_dagster.planning.codegraph.analysis import Analysis, analyse, analysis_version
from ctxstream_dagster.planning.codegraph.cache import Cache
from ctxstream_dagster.planning.codegraph.content import Content, pack_content, read_content, unpack_content
from ctxstream_dagster.planning.codegraph.languages import LANGUAGES, TEXT
from ctxstream_dagster.planning.codegraph.link import link_graph, pack_graph, unpack_graph
from ctxstream_dagster.planning.codegraph.values import CodeGraph, FileNode
from ctxstream_dagster.planning.codegraph.walk import FoundFile, WalkOptions, walk_directory
from ctxstream_dagster.planning.codegraph.worker import Worker

_FILES_PER_WORKER = 16  # starting a process takes as long as parsing some files
_PASSING_REASONS = frozenset({"grammar-unavailable", "parser-crash"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanOptions(WalkOptions):
    """How a directory is scanned. Raises `ConfigError` for a value out of range.

    Attributes:
        max_file_bytes: larger files are skipped as ``too-large``.
        exclude_dirs: names of directories that are not entered. Of these, ``build``, ``dist``, ``target`` and
            ``vendor`` are read where git tracks files in them (those files) and where they are Python packages.
        follow_symlinks: read what links lead to, each directory once.
        respect_gitignore: leave out what .gitignore files and ``.git/info/exclude`` name.
        keep_tracked: read files that git tracks even where the two rules above leave them out.
        workers: most parser processes; 0 parses in this process, where a crash of a grammar ends it.
        parse_timeout_s: processor time one file may take to parse, in seconds; 0.05 or more.
        cache_dir: where analyses are kept from scan to scan, or None; `storage.cache_home` is the usual place.
    """

    workers: int = 1
    parse_timeout_s: float = 3.0
    cache_dir: Path | None = None

    def __post_init__(self) -> None:
        if self.max_file_bytes < 1:
            raise ConfigError(f"max_file_bytes is {self.max_file_bytes}; it must be 1 or more.")
        if self.workers < 0:
            raise ConfigError(f"workers is {self.workers}; it must be 0 (parse in this process) or more.")
        if self.parse_timeout_s < 0.05:
            raise ConfigError(f"parse_timeout_s is {self.parse_timeout_s}; it must be 0.05 or more.")


def scan_repo(root: str | Path, options: ScanOptions | None = None) -> CodeGraph:
    """Return the graph of a directory. Deterministic: independent of hash seed, workers, cache and directory order.

    Raises `CorpusError` when `root` is no readable directory. Everything else that goes wrong costs one file its
    symbols (`FileNode.reason`) or its place (`CodeGraph.skipped`).
    """
    options = options or ScanOptions()
    directory = Path(root)
    if not directory.is_dir():
        raise CorpusError(f"{root} is no directory. Name a directory to scan as a code base.")
    try:
        found, skipped = walk_directory(directory, options)
    except OSError as error:
        raise CorpusError(f"{root} cannot be read ({error.strerror}). Check its permissions.") from error
    with Cache(options.cache_dir) as store:
        if options.cache_dir is None:
            hashes, key, kept = [""] * len(found), b"", dict[bytes, bytes]()
        else:
            hashes = [_sha256(str(directory), file) for file in found]
            key = _graph_key(found, hashes, options)
            if stored := store.graph(key):
                return unpack_graph(stored, root=str(root), skipped=skipped)
            kept = store.analyses(
                [_content_key(file, sha256, options) for file, sha256 in zip(found, hashes, strict=True)]
            )
        files, contents, new = _read_all(directory, found, hashes, kept, options)
        graph = link_graph(str(root), files, contents, skipped=skipped)
        if options.cache_dir is not None:
            store.keep_analyses(new)
            if [node.sha256 for node in files] == hashes and _is_settled(contents):
                store.keep_graph(key, pack_graph(graph, walked=skipped))
    return graph


def read_bytes(root: Path | str, location: str) -> bytes:
    """Return a scanned file's bytes; raises `OSError`."""
    # Path objects and buffers would cost more than reading a small file does.
    with open(f"{root}/{location}", "rb", buffering=0) as file:  # noqa: PTH123
        return file.read()


def _read_all(
    directory: Path,
    found: Sequence[FoundFile],
    hashes: Sequence[str],
    kept: Mapping[bytes, bytes],
    options: ScanOptions,
) -> tuple[list[FileNode], list[Content], dict[bytes, bytes]]:
    nodes: list[FileNode | None] = [None] * len(found)
    contents: list[Content] = [Content()] * len(found)
    new: dict[bytes, bytes] = {}
    positions = iter(range(len(found)))
    lock = threading.Lock()

    def drain() -> None:
        worker = Worker() if options.workers else None
        try:
            while True:
                with lock:
                    position = next(positions, None)
                if position is None:
                    return
                file, sha256 = found[position], hashes[position]
                if sha256 and (stored := kept.get(_content_key(file, sha256, options))):
                    content = unpack_content(stored)
                else:
                    content, sha256 = _read_one(directory, file, worker, options)
                    if options.cache_dir and sha256 and content.analysis.reason not in _PASSING_REASONS:
                        new[_content_key(file, sha256, options)] = pack_content(content)
                nodes[position] = _node(file, sha256, content)
                contents[position] = content
        finally:
            if worker:
                worker.close()

    workers = min(options.workers, 1 + len(found) // _FILES_PER_WORKER)
    if workers <= 1:
        drain()
    else:
        with ThreadPoolExecutor(workers) as pool:
            for done in [pool.submit(drain) for _ in range(workers)]:
                done.result()
    return [node for node in nodes if node is not None], contents, new


def _read_one(directory: Path, file: FoundFile, worker: Worker | None, options: ScanOptions) -> tuple[Content, str]:
    try:
        data = read_bytes(directory, file.location)
    except OSError as error:
        return Content(skip="unreadable", detail=error.strerror or str(error)), ""
    content, source = read_content(file.path, data)
    if content.language != TEXT and not content.skip:
        parse = worker.analyse if worker else analyse
        analysis: Analysis = parse(source, language=content.language, budget_s=options.parse_timeout_s)
        content = replace(content, analysis=analysis)
    return content, hashlib.sha256(data).hexdigest()


def _node(file: FoundFile, sha256: str, content: Content) -> FileNode:
    return FileNode(
        id=0,
        path=file.path,
        language=content.language,
        bytes=file.size,
        chars=content.chars,
        encoding=content.encoding,
        sha256=sha256,
        symbols=content.analysis.count,
        reason=content.analysis.reason,
        derived=content.derived,
        generated=content.generated,
        location=file.location if file.location != file.path else "",
    )


def _sha256(directory: str, file: FoundFile) -> str:
    try:
        return hashlib.sha256(read_bytes(directory, file.location)).hexdigest()
    except OSError:  # told when it is read
        return ""


def _content_key(file: FoundFile, sha256: str, options: ScanOptions) -> bytes:
    name = file.path.rpartition("/")[2]
    return hashlib.sha256(f"{sha256}\0{options.parse_timeout_s}\0{_versions()}\0{name}".encode()).digest()


def _graph_key(found: Sequence[FoundFile], hashes: Sequence[str], options: ScanOptions) -> bytes:
    digest = hashlib.sha256(f"{options.parse_timeout_s}\0{_versions()}".encode())
    for file, sha256 in zip(found, hashes, strict=True):
        digest.update(f"\0{file.path}\0{file.location}\0{sha256}".encode("utf-8", "surrogateescape"))
    return digest.digest()


def _is_settled(contents: Sequence[Content]) -> bool:
    return all(content.analysis.reason not in _PASSING_REASONS and content.skip != "unreadable" for content in contents)


@cache
def _versions() -> str:
    return hashlib.sha256("\n".join(map(analysis_version, LANGUAGES)).encode()).hexdigest()
