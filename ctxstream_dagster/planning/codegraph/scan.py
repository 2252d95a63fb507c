"""Scan a directory into a graph: find the files, read each once, resolve what they import, keep what was learnt."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ctxstream_dagster.errors import ConfigError, CorpusError
from ctxstream_dagster.planning.codegraph.analysis import Analysis, analyse, analysis_version
from ctxstream_dagster.planning.codegraph.cache import Cache
from ctxstream_dagster.planning.codegraph.content import Content, pack_content, read_content, unpack_content
from ctxstream_dagster.planning.codegraph.hashes import file_hashes, read_bytes
from ctxstream_dagster.planning.codegraph.languages import LANGUAGES
from ctxstream_dagster.planning.codegraph.link import link_graph, pack_graph, root_name, unpack_graph
from ctxstream_dagster.planning.codegraph.values import CodeGraph
from ctxstream_dagster.planning.codegraph.walk import FoundFile, WalkOptions, walk_directory
from ctxstream_dagster.planning.codegraph.worker import Worker

_FILES_PER_WORKER = 16  # starting a process takes as long as parsing some files
_FILES_PER_WRITE = 1_000  # what waits for the cache is in memory twice
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
        references: also find which file mentions a name that one other file defines; no plan needs it.
        workers: most parser processes; 0 parses in this process, where a crash of a grammar ends it.
        parse_timeout_s: processor time one file may take to parse, in seconds; 0.05 or more.
        cache_dir: where analyses are kept from scan to scan, or None; `storage.cache_home` is the usual place.
    """

    references: bool = True
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
            hashes = file_hashes(directory, found, store)
            key = _graph_key(str(root), found, hashes, options)
            if stored := store.graph(key):
                return unpack_graph(stored, root=str(root), skipped=skipped)
            kept = store.analyses(
                [_content_key(file, sha256, options) for file, sha256 in zip(found, hashes, strict=True)]
            )
        contents = _read_all(directory, found, hashes, kept, store, options)
        graph = link_graph(str(root), found, contents, skipped=skipped)
        if options.cache_dir and [sha256 for _, sha256 in contents] == hashes and _is_settled(contents):
            store.keep_graph(key, pack_graph(graph, walked=skipped))
    return graph


def _read_all(
    directory: Path,
    found: Sequence[FoundFile],
    hashes: Sequence[str],
    kept: Mapping[bytes, bytes],
    store: Cache,
    options: ScanOptions,
) -> list[tuple[Content, str]]:
    """Return each file's content with its hash; what of it is new is kept in `store`."""
    contents: list[tuple[Content, str]] = [(Content(), "")] * len(found)
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
                        with lock:
                            new[_content_key(file, sha256, options)] = pack_content(content)
                            if len(new) >= _FILES_PER_WRITE:
                                store.keep_analyses(new)
                                new.clear()
                contents[position] = content, sha256
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
    store.keep_analyses(new)
    return contents


def _read_one(directory: Path, file: FoundFile, worker: Worker | None, options: ScanOptions) -> tuple[Content, str]:
    try:
        data = read_bytes(directory, file.location)
    except OSError as error:
        return Content(skip="unreadable", detail=error.strerror or str(error)), ""

    def parse(source: bytes, language: str) -> Analysis:
        run = worker.analyse if worker else analyse
        return run(source, language=language, budget_s=options.parse_timeout_s, references=options.references)

    return read_content(file.path, data, parse=parse), hashlib.sha256(data).hexdigest()


def _content_key(file: FoundFile, sha256: str, options: ScanOptions) -> bytes:
    name = file.path.rpartition("/")[2]
    return hashlib.sha256(f"{sha256}\0{_what(options)}\0{name}".encode()).digest()


def _graph_key(root: str, found: Sequence[FoundFile], hashes: Sequence[str], options: ScanOptions) -> bytes:
    digest = hashlib.sha256(f"{_what(options)}\0{root_name(root)}".encode("utf-8", "surrogateescape"))
    for file, sha256 in zip(found, hashes, strict=True):
        digest.update(f"\0{file.path}\0{file.location}\0{sha256}".encode("utf-8", "surrogateescape"))
    return digest.digest()


def _what(options: ScanOptions) -> str:
    """Return what besides the content decides what is learnt of a file."""
    return f"{options.parse_timeout_s}\0{options.references}\0{_versions()}"


def _is_settled(contents: Sequence[tuple[Content, str]]) -> bool:
    return all(
        content.analysis.reason not in _PASSING_REASONS and content.skip != "unreadable" for content, _ in contents
    )


@cache
def _versions() -> str:
    return hashlib.sha256("\n".join(map(analysis_version, LANGUAGES)).encode()).hexdigest()
