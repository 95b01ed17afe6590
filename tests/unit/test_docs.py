"""Links between the pages of the documentation, its index, and the commands that it shows."""

import re
from pathlib import Path

import pytest

from harness.cli.main import list_commands

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


@pytest.fixture(scope="module")
def commands():
    return list_commands()


def list_calls(page):
    """(command, rest) of the lines and code of a page that call `harness`."""
    text = re.sub(r"\\\n", " ", page.read_text(encoding="utf-8"))
    shown = re.findall(r"^(?:    |\$ )(.*)$", text, re.MULTILINE) + re.findall(r"`([^`\n]+)`", text)
    return [call for one in shown for call in re.findall(r"(?<![\w./-])harness ([a-z][a-z-]+)\b([^#|;&]*)", one)]


def test_every_command_and_option_that_a_page_shows_exists(commands):
    calls = [(page.name, *call) for page in PAGES for call in list_calls(page)]
    wrong = []
    for page, name, rest in calls:
        words = rest.split()
        parts = (name, words[0]) if words and (name, words[0]) in commands else (name,)
        known = {
            option
            for one in commands.get(parts, commands["run",]).params
            for option in (*one.opts, *one.secondary_opts)
        }
        used = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
        wrong += [] if parts in commands and used <= known | {"--help"} else [f"{page}: harness {name}{rest}"]
    assert len(calls) > 100
    assert wrong == []


def test_every_command_option_and_argument_says_what_it_is(commands):
    parameters = [(words, one.name, one.help) for words, command in commands.items() for one in command.params]
    assert [words for words, command in commands.items() if not command.help] == []
    assert [one for one in parameters if not one[2]] == []
    assert len(parameters) > 300
