"""Nothing leads nowhere: links and pictures of every page, pages named in the code, and the README's tree."""

import re
from pathlib import Path

import pytest
from markdown.extensions.toc import slugify

from tests.docs.pages import PAGES, ROOT, blocks, page, prose

# Pages of other projects that our code cites.
FOREIGN = {"docs/api.md"}


@pytest.mark.parametrize("file", PAGES, ids=lambda file: file.name)
def test_links_lead_somewhere(file: Path) -> None:
    text = prose(file.read_text(encoding="utf-8"))
    targets = re.findall(r"\]\(([^)\s]+)", text) + re.findall(r'(?:src|srcset|href)="([^"]+)"', text)
    missing = [
        target
        for target in targets
        if not re.match(r"https?://|mailto:|#", target) and not (file.parent / target.partition("#")[0]).exists()
    ]
    assert missing == []


@pytest.mark.parametrize("file", PAGES, ids=lambda file: file.name)
def test_links_into_a_page_lead_to_one_of_its_headings(file: Path) -> None:
    lost = []
    for target, fragment in re.findall(r"\]\(([^)\s#:]*)#([^)\s]+)\)", prose(file.read_text(encoding="utf-8"))):
        text = prose((file.parent / target).read_text(encoding="utf-8") if target else file.read_text(encoding="utf-8"))
        if fragment not in {slugify(heading, "-") for heading in re.findall(r"^#+ (.*)", text, re.MULTILINE)}:
            lost.append(f"{target}#{fragment}")
    assert lost == []


def test_pages_that_the_code_names_exist() -> None:
    files = [
        file
        for pattern in (
            "ctxstream_dagster/**/*.py",
            "assets/**/*",
            "tests/**/*.py",
            "benchmarks/*.py",
            "*.toml",
            "*.yaml",
        )
        for file in ROOT.glob(pattern)
        if file.suffix in (".py", ".yaml", ".toml") and file != Path(__file__)
    ]
    named = {
        (name, str(file.relative_to(ROOT)))
        for file in files
        for name in re.findall(r"\bdocs/[a-z/-]+\.(?:md|svg|png)", file.read_text(encoding="utf-8"))
    }
    assert named
    assert sorted(pair for pair in named if pair[0] not in FOREIGN and not (ROOT / pair[0]).exists()) == []


def tree() -> list[str]:
    """Return the paths of the README's tree, directories with a slash at the end."""
    block = next(block for block in blocks(page("README.md"), "") if "ctxstream_dagster/" in block)
    above: list[str] = []
    paths = []
    for line in block.splitlines():
        depth = (len(line) - len(line.lstrip())) // 2
        name = line.split()[0]
        above[depth:] = [name.rstrip("/")]
        paths.append("/".join(above) + ("/" if name.endswith("/") else ""))
    return paths


def test_the_readme_s_tree_is_the_tree_on_disk() -> None:
    shown = tree()
    assert [path for path in shown if not (ROOT / path).exists()] == []
    folders = [folder for folder in ROOT.iterdir() if folder.is_dir() and not folder.name.startswith(".")]
    rooms = [room for room in (ROOT / "ctxstream_dagster").iterdir() if any(room.glob("*.py"))]
    made = {"site", "build", "dist"}
    wanted = {f"{path.relative_to(ROOT)}/" for path in [*folders, *rooms] if path.name not in made}
    assert sorted(wanted - set(shown)) == []
