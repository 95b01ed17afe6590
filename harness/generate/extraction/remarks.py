"""Classifies a block by remarks in the prose: before it, after it, in its file name, or by a label elsewhere.

Weights: SUBMITTED, EARLIER (alternative or earlier version), DRAFT (by its heading: `sections`), REJECTED (wrong,
sketch, comparison, test). A keyword counts only if it describes a program, not in a comparison; a negated positive is a
rejection. The nearest clause decides.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

SEEN_CHARACTERS = 600
_MOST_LABELLED = 1000  # sentences
SUBMITTED, EARLIER, DRAFT, REJECTED = 2, -1, -3, -4

PROGRAM_WORD = (
    r"(?:versions?|implementations?|code|programs?|modules?|models?|kernels?|equivalents?|solutions?|ones?|attempts?|"
    r"approach|scripts?|pytorch|drafts?|variants?|files?|alternatives?|answers?|blocks?|class)"
)
_SUBMITS = re.compile(
    rf"""\bfinal,?\s+(?:[\w`-]+\s+){{0,3}}?{PROGRAM_WORD}\b | \bfinal\s+submission\b | ^\W*final\W*$ | \(\s*final\b
    | \bsubmit(?:ting)?\s+(?:this|it|the\ following|option|version|variant|approach|solution|alternative)\b
    | \bsubmit\W*$ | \bsubmitted\s+{PROGRAM_WORD}\b | \bsubmission\b | \brecommend(?:ed|ing)?\b | \bpreferred\b
    | \bcorrected\b | \bfixed\b(?!\s+(?:size|block|shape|grid|number|point|stride|length))
    | \bhere(?:'s|\ is)\ the\ fix\b | \bto\ be\ (?:graded|evaluated|judged|submitted)\b
    | \b(?:use|take|grade|evaluate)\s+(?:this|the\ following)(?:\s+(?:one|version|instead|code|program|file))*\W*$
    """,
    re.IGNORECASE | re.VERBOSE,
)
_REJECTS = re.compile(
    r"""\b(?:do\ not|don't|never|must\ not|shouldn't|should\ not|cannot)\s+(?:\w+\s+){0,2}?(?:use|submit|grade|copy)\b
    | ^\W*(?:wrong|incorrect|broken|buggy|bad)\b | \b(?:wrong|incorrect|broken|buggy)\W*$
    | \b(?:wrong|incorrect|broken|buggy)\s+(?:\w+\s+){0,2}?PROGRAM\b
    | \bsketch(?:es)?\b | \bpseudo-?code\b | \bskeleton\b | \bmock-?up\b
    | \bfor\s+(?:\w+\s+)?(?:comparison|reference|illustration|orientation|context|the\ record|completeness)\b
    | \b(?:common|typical|frequent)\s+(?:mistake|error)\b | \bhad\s+before\b | \bnot\s+part\s+of\b
    | \b(?:un|not\ )(?:tested|finished)\b | \bexperimental\b
    | ^\W*(?:\w+\s+)?(?:tests?|testing|benchmark(?:ing)?|verification|usage|check)(?:\s+(?:script|code|example))?\W*$
    | \b(?:test|benchmark(?:ing)?|verification)\s+(?:script|code|harness|file)\b
    | \bto\s+(?:benchmark|compare)\b
    """.replace("PROGRAM", PROGRAM_WORD),
    re.IGNORECASE | re.VERBOSE,
)
# These count only next to a word for a program, or at the end of a clause.
_LABELS_EARLIER = re.compile(
    rf"""\b(?P<strong>naive|draft|reference|baseline|unoptimi[sz]ed|straight-?forward)\b
        (?=(?:[\s,-]+[\w`-]+){{0,2}}?[\s-]+{PROGRAM_WORD}\b | (?:\s+one)?\W*$ | \s*[:,(])
    | \b(?:plain|pure|vanilla)\s+(?:pytorch|torch|python)\b
    | \b(?P<weak>original|initial|earlier|previous|old(?:er)?|alternative|alternate)\b
        (?=(?:[\s,-]+[\w`-]+)?[\s-]+{PROGRAM_WORD}\b | \W*$)
    | \b(?P<slower>slower|simpler|first)\s+(?:\w+\s+)?(?:version|attempt|try|draft|cut|alternative|variant|solution)\b
    | ^\W*(?P<also>alternative(?:ly)?)\b
    """,
    re.IGNORECASE | re.VERBOSE,
)
# "rewritten", "replaces", "of the": the keyword names the origin of this block, not the block.
_DERIVES = re.compile(
    r"(?<!not )\b(?:re-?written|optimi[sz](?:ed|es|ing)|re-?implement\w*|accelerat\w+|convert\w+|replac\w+|improv\w+|"
    r"fus(?:es|ed)|faster|speedup|port(?:ed)?)\b",
    re.IGNORECASE,
)
_COMPARES = re.compile(
    r"\b(?:unlike|compared\s+(?:to|with)|in\s+contrast\s+to|instead\s+of|rather\s+than|relative\s+to|as\s+opposed\s+to|"
    r"than|versus|vs\.?|over|against|of|from|like|matches|matching|beats)\s+(?:the|a|an|my|our|your)\b.*?"
    r"(?=,\s*(?:this|here|the\s+following|it|I|we)\b|$)",
    re.IGNORECASE,
)
_NEGATED = re.compile(r"\b(?:not|never|no|isn't|wasn't|aren't|don't|doesn't)\b(?:\s+(?!but\b)[\w`']+){0,3}\s*$", re.I)
_CLAUSE_END = re.compile(r"(?<=[.;:!?])[\s*_`]+|\n|\s+[-\u2013\u2014]+\s+|,?\s+\bbut\b\s+", re.IGNORECASE)
_SENTENCE_END = re.compile(r"(?<=[.!?])[\s*_]+|\n")
_PRESENTS = re.compile(r"\b(?:here|below|following|next|now)\b", re.IGNORECASE)
_HEADING = re.compile(r"^\s*(?:#{1,6}\s+\S.*|\*\*[^*]+\*\*:?|__[^_]+__:?)\s*$")
_REJECTS_AFTERWARDS = re.compile(
    r"""\babove\b[^.]*?\b(?:is|was|has|does|fails|breaks|reads)\b[^.]*?
        \b(?:wrong|incorrect|broken|bugs?|buggy|errors?|mistakes?|not\ (?:work|compile)|out\ of\ bounds)\b
    | ^\W*(?:wait|hmm+|oops|hold\ on)\b[^.]*?
        \b(?:wrong|incorrect|broken|bugs?|off-by-one|errors?|mistakes?|problem|not\ (?:work|compile)|fails|race)\b
    | ^\W*(?:actually|but|however|unfortunately)\b,?\s+(?:there(?:'s|\ is|\ was)|it\ has|this\ has|I\ made)\s+an?\s+
        (?:\w+\s+)?(?:bug|off-by-one|error|mistake|problem|race)\b
    | \b(?:above|this|that|it)\s+(?:\w+\s+){0,3}?(?:fails\b|is\ (?:wrong|broken|incorrect|buggy)|has\ a\ (?:bug|race)
        |(?:does\ not|doesn't|will\ not|won't)\ (?:work|compile))
    | \b(?:do\ not|don't)\s+(?:use|submit|copy)\s+(?:that|this|it|the\ (?:above|code\ above))\b
    | \b(?:bug|error|mistake|problem)\s+in\s+(?:the\s+\w+\s+above|my\s+\w+)\b
    """,
    re.IGNORECASE | re.VERBOSE,
)
_SUBMITS_AFTERWARDS = re.compile(
    rf"""\b(?:above|this|that)(?:\s+{PROGRAM_WORD})?\s+(?:is|was)\s+(?:the|my|what\ I)\s+
        (?:final|submit|submission|recommended|corrected|one\ to\ submit|version\ (?:to|I)\s+(?:submit|recommend))
    | \b(?:submit|use|recommend)\s+(?:the\ )?(?:{PROGRAM_WORD}\s+)?above\b
    """,
    re.IGNORECASE | re.VERBOSE,
)
_LABEL = re.compile(
    r"\b(?:option|version|variant|approach|solution|alternative|attempt|implementation|candidate|method)\s+"
    r"(?:[A-Z]\b|\d{1,2}\b)",
    re.IGNORECASE,
)
_SUFFIX = r"\.(?:py|cuh?|cpp|cxx|cc?|hpp|h|inl|ptx)\b"
FILE_NAME = re.compile(rf"[\w./+-]*\w{_SUFFIX}", re.IGNORECASE)
_FILE_WORD = re.compile(r"^(?:\d{1,2}[.)]|step\s+\d+\b)?[\s:*_`\"']*(?:file\s*(?:name)?\b)?[\s:*_`\"']*", re.IGNORECASE)
_DECORATION = " \t>#*_`\"'():[]/-"
_FILE_AT_END = re.compile(
    r"(?<!\bin )(?<!\bof )(?<!\bto )(?<!from )(?<!with )(?<!than )`(?P<name>[\w./+-]*\w" + _SUFFIX + r")`[*_]*:\s*$",
    re.IGNORECASE,
)
_LEAVES_OUT = re.compile(
    r"^[ \t]*(?:\.\.\.[ \t]*(?:#.*)?|#\s*(?:\.\.\.|\u2026).*|#.*\b(?:same\s+as\s+(?:before|above)|"
    r"(?:code|rest|remainder)\b.{0,20}\b(?:unchanged|the\s+same)).*)$",
    re.MULTILINE | re.IGNORECASE,
)
_REJECTED_STEMS = {
    "test", "tests", "bench", "benchmark", "check", "verify", "compare", "baseline", "naive", "reference", "ref",
    "original", "example", "usage", "old", "draft", "sketch", "wrong", "broken",
}  # fmt: skip
_SUBMITTED_STEMS = {"new", "solution", "submission", "final", "candidate", "answer", "optimized"}


@dataclass(frozen=True, slots=True)
class Remark:
    weight: int = 0
    words: str = ""


def read_lead(before: str) -> Remark:
    """Read the last sentence before a block, one that presents it, or its heading."""
    paragraphs = [part for part in re.split(r"\n\s*\n", before[-SEEN_CHARACTERS:].rstrip()) if part.strip()]
    if not paragraphs:
        return Remark()
    last = paragraphs[-1].strip()
    for index, sentence in enumerate(reversed(_split(_SENTENCE_END, last))):
        if index == 0 or _PRESENTS.search(sentence):
            remark = _classify_sentence(sentence)
            if remark.weight:
                return remark
    heading = next((part for part in reversed(before[-SEEN_CHARACTERS:].split("\n")) if _HEADING.match(part)), "")
    return _classify_sentence(heading)


def read_echo(after: str) -> Remark:
    """Read the first paragraph after a block, without a last clause that ends with a colon."""
    paragraph = re.split(r"\n\s*\n", after[:SEEN_CHARACTERS].lstrip("\n"), maxsplit=1)[0].strip()
    clauses = _split(re.compile(r"(?<=[.;!?])\s+"), paragraph)
    for clause in clauses[:-1] if paragraph.endswith(":") else clauses:
        if match := _REJECTS_AFTERWARDS.search(clause):
            return Remark() if _is_negated(clause, match) else Remark(REJECTED, clause)
        if match := _SUBMITS_AFTERWARDS.search(clause):
            return Remark(REJECTED if _is_negated(clause, match) else SUBMITTED, clause)
    return Remark()


def read_file_name(before: str, info: str, source: str) -> Remark:
    """Read a file name in the info string, on the line before the block, or in its first line."""
    name = find_file_name(before, info, source)
    stems = set(re.split(r"[\W_]+", name.rsplit("/", 1)[-1].rsplit(".", 1)[0].lower()))
    weight = REJECTED if stems & _REJECTED_STEMS else SUBMITTED if stems & _SUBMITTED_STEMS else 0
    return Remark(weight, name if weight else "")


def find_file_name(before: str, info: str, source: str) -> str:
    if found := FILE_NAME.search(info[:SEEN_CHARACTERS]):
        return found[0]
    above, first = before[-SEEN_CHARACTERS:].rstrip().rsplit("\n", 1)[-1], source[:SEEN_CHARACTERS].split("\n", 1)[0]
    if found := _FILE_AT_END.search(above):
        return found["name"]
    for line in (above, first if first.lstrip().startswith(("#", "//")) else ""):
        name = _FILE_WORD.sub("", line.strip(_DECORATION)).strip(_DECORATION)
        if FILE_NAME.fullmatch(name):
            return name
    return ""


def read_gaps(source: str) -> Remark:
    """Reject a program that omits code ("rest unchanged")."""
    if match := _LEAVES_OUT.search(source):
        return Remark(REJECTED, match[0].strip())
    return Remark()


def read_labels(proses: Iterable[str]) -> dict[str, Remark]:
    """Return remarks on labelled blocks ("I submit option A"), by lower-case label."""
    remarks: dict[str, Remark] = {}
    for prose in proses:
        for sentence in islice(_list_labelled(prose), _MOST_LABELLED):
            for clause in _split(_CLAUSE_END, sentence):
                labels = {_normalise(label) for label in _LABEL.findall(clause)}
                remark = _classify_sentence(clause)
                if len(labels) == 1 and remark.weight:
                    remarks[labels.pop()] = remark
    return remarks


def find_label(before: str) -> str | None:
    lines = [line for line in before[-SEEN_CHARACTERS:].split("\n") if line.strip()]
    line = next((line for line in reversed(lines) if _HEADING.match(line)), lines[-1] if lines else "")
    labels = _LABEL.findall(line)
    return _normalise(labels[0]) if labels else None


def _list_labelled(prose: str) -> Iterator[str]:
    for line in prose.split("\n"):
        if len(line) <= 4 * SEEN_CHARACTERS and _LABEL.search(line):
            yield from (sentence for sentence in _split(_SENTENCE_END, line) if _LABEL.search(sentence))


def _normalise(label: str) -> str:
    return " ".join(label.lower().split())


def _split(at: re.Pattern[str], text: str) -> list[str]:
    return [part for part in at.split(text) if part and part.strip(" \t\n#*_>-")]


def _classify_sentence(sentence: str) -> Remark:
    for clause in reversed(_split(_CLAUSE_END, sentence)):
        weight = _weigh(_COMPARES.sub("", clause.replace("*", "").replace("_", " ")).strip())
        if weight:
            return Remark(weight, " ".join(sentence.split()).strip("#* "))
    return Remark()


def _weigh(clause: str) -> int:
    if match := _REJECTS.search(clause):
        return 0 if _is_negated(clause, match) else REJECTED
    if match := _SUBMITS.search(clause):
        return REJECTED if _is_negated(clause, match) else SUBMITTED
    match = _LABELS_EARLIER.search(clause)
    if match is None or _is_negated(clause, match) or _DERIVES.search(clause):
        return 0
    return EARLIER if match["weak"] or match["slower"] or match["also"] else REJECTED


def _is_negated(clause: str, match: re.Match[str]) -> bool:
    return _NEGATED.search(clause[: match.start()]) is not None
