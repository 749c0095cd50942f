"""The report as one HTML file that needs no network: styles, scripts, charts and data travel inside it.

Text of benchmarks and models is escaped by jinja2 where it becomes markup. Where it becomes data it is packed, and the
script only ever sets it as text. A content policy in the page forbids every request.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
from functools import cache
from typing import Any

from memlab.evaluate.compare import finite
from memlab.evaluate.verbalise import opponent
from memlab.report import arm_settings, drill_down, effects, figures, units
from memlab.report.view_model import ReportView
from memlab.support.text.display import replace_surrogates, safe_line, safe_text


def pack(text: str) -> str:
    """Return gzip of the UTF-8 text in base64: no character of it can end a script element. Same text, same result.

    >>> unpack(pack("</script> grün"))
    '</script> grün'
    """
    return base64.b64encode(gzip.compress(text.encode(), compresslevel=9, mtime=0)).decode("ascii")


def unpack(packed: str) -> str:
    """Return the text that ``pack`` packed."""
    return gzip.decompress(base64.b64decode(packed)).decode()


QUESTIONS = 5_500_000
"""Most characters of the packed questions, so that a page stays under 8 MB."""

LISTED = 40
"""Differing questions that are part of the page itself, for readers without scripting."""

TALL = 20
"""Rows from which on the arms table scrolls under its head."""


def page(view: ReportView) -> str:
    """Render the whole report."""
    shared, differ = view.manifests
    return _environment().get_template("report.html.j2").render(
        view=view, c=view.comparison, opening=view.opening, table=view.table, pair=view.pair, questions=view.differing,
        before_after=_around(view.opening.sentence, view.opening.winner), tall=TALL, listed=LISTED,
        chart=figures.evidence_against_tokens(view), reliability=figures.reliability(view), label=units.label,
        bars=effects.bars, terms=effects.TERMS, opponent=opponent, shared=shared, differing=differ,
        commands=arm_settings.commands(view.arms), drill_data=_questions(view),
        css=_raw(_template("design.css") + _template("report.css")), script=_raw(_template("report.js")),
        drill_script=_raw(_template("questions.js")), raw=_raw)


def _around(sentence: str, name: str | None) -> tuple[str, str, str]:
    """Split a sentence at the first mention of an arm, so that it can be coloured.

    >>> _around("Use best: it is best.", "best"), _around("All are level.", None)
    (('Use ', 'best', ': it is best.'), ('All are level.', '', ''))
    """
    sentence = safe_line(sentence)
    match = name and re.search(rf"(?<![\w.-]){re.escape(safe_line(name))}(?![\w-])", sentence)
    return (sentence[:match.start()], match[0], sentence[match.end():]) if match else (sentence, "", "")


def _questions(view: ReportView) -> str:
    """Return the packed data of the questions, of fewer of them where all would take more than ``QUESTIONS``."""
    first, second = (safe_line(view.pair.arm), safe_line(view.pair.other)) if view.pair else ("", "")
    more = {"first": first, "second": second, "labels": [units.label(metric) for metric in view.columns]}
    most: int | None = None
    while True:
        data = drill_down.drill_down(view.arms, view.columns, most)
        packed = pack(_json(data | more))
        if len(packed) <= QUESTIONS or not data["questions"]:
            return packed
        most = int(len(data["questions"]) * QUESTIONS / len(packed) * 0.98)


def _json(value: Any) -> str:
    """Return JSON without NaN or infinity, which become null, and without halves of characters."""
    text = json.dumps(finite(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return replace_surrogates(text)


def _raw(text: str) -> Any:
    from markupsafe import Markup

    return Markup(text)  # noqa: S704  (our own files, and charts, which escape their texts)


@cache
def _environment() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    env = Environment(loader=PackageLoader("memlab.report"), autoescape=True, undefined=StrictUndefined,
                      trim_blocks=True, lstrip_blocks=True, finalize=_clean)
    env.filters.update(line=safe_line, breakable=_breakable)
    return env


def _clean(value: Any) -> Any:
    """Make control characters of a text visible; our own markup passes."""
    return safe_text(value) if type(value) is str else value


def _breakable(name: str) -> Any:
    """Let a name break after its dots, slashes and underscores, and where it is very long anywhere."""
    from markupsafe import Markup

    return Markup("<wbr>").join(re.findall(r"[^._/]{0,24}[._/]?", safe_line(name)))


@cache
def _template(name: str) -> str:
    from importlib.resources import files

    return (files("memlab.report") / "templates" / name).read_text(encoding="utf-8")

