"""Links between the pages of the documentation, and its index."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(path for glob in ("*.md", "docs/*.md", "recordings/*.md") for path in ROOT.glob(glob))
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(rf"{FENCED.pattern}|`[^`\n]+`", re.MULTILINE | re.DOTALL)


def list_anchors(page: Path) -> set[str]:
    """Anchors of a page's headings, as GitHub derives them."""
    headings = re.findall(r"^#+ (.+)$", FENCED.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_of_a_page_leads_to_a_file_and_a_heading(page):
    missing = []
    for link in re.findall(r"\]\((?!https?:)([^)\s]+)\)", CODE.sub("", page.read_text(encoding="utf-8"))):
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        if not target.exists() or (anchor and anchor not in list_anchors(target)):
            missing.append(link)
    assert missing == []


def test_the_index_lists_every_page():
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    assert [path.name for path in ROOT.glob("docs/*.md") if f"]({path.name})" not in index] == ["README.md"]


def test_the_readme_fits_in_120_lines():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 120
