"""``ctxstream graph``: what a directory holds, how its files hang together, and what of it would be skipped."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated

import typer

from ctxstream_dagster.planning.codegraph.picture import DEFAULT_MOST_FILES, graph_dot, graph_svg
from ctxstream_dagster.planning.codegraph.scan import ScanOptions, scan_repo
from ctxstream_dagster.planning.codegraph.summary import graph_json, graph_summary
from ctxstream_dagster.storage import cache_home, write_bytes

_DEFAULTS = ScanOptions()


def graph_command(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A directory of code.")],
    *,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object: files, symbols, edges, skipped, order.")
    ] = False,
    dot: Annotated[Path | None, typer.Option(help="Write the file graph to this file as DOT.")] = None,
    svg: Annotated[Path | None, typer.Option(help="Write the file graph to this file as SVG; needs Graphviz.")] = None,
    most_files: Annotated[int, typer.Option(help="Most files in the picture.", min=1)] = DEFAULT_MOST_FILES,
    max_file_bytes: Annotated[int, typer.Option(help="Skip larger files.", min=1)] = _DEFAULTS.max_file_bytes,
    exclude_dir: Annotated[
        list[str] | None, typer.Option(help="Name of a directory to leave out, beside the usual ones; repeatable.")
    ] = None,
    follow_symlinks: Annotated[bool, typer.Option(help="Read what links lead to.")] = False,
    gitignore: Annotated[bool, typer.Option(help="Leave out what .gitignore files name.")] = True,
    workers: Annotated[int, typer.Option(help="Parser processes; 0 for one a core.", min=0)] = 0,
    cache: Annotated[bool, typer.Option(help="Keep what was parsed for the next scan.")] = True,
) -> None:
    """Scan a directory of code and say what is in it. No model is called.

    ctxstream graph src/ --svg graph.svg
    """
    graph = scan_repo(
        path,
        ScanOptions(
            max_file_bytes=max_file_bytes,
            exclude_dirs=(*_DEFAULTS.exclude_dirs, *(exclude_dir or ())),
            follow_symlinks=follow_symlinks,
            respect_gitignore=gitignore,
            workers=workers or os.cpu_count() or 1,
            cache_dir=cache_home() if cache else None,
        ),
    )
    if dot is not None:
        write_bytes(dot, graph_dot(graph, most_files=most_files).encode("utf-8", "replace"))
    if svg is not None:
        write_bytes(svg, graph_svg(graph, most_files=most_files))
    typer.echo(
        json.dumps(graph_json(graph), ensure_ascii=False, indent=2) if as_json else graph_summary(graph), nl=as_json
    )
