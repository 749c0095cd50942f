"""One question in the terminal: ``memlab ask [slot=technique] [slot.setting=value] "question"``.

    memlab ask data=locomo data.path=FILE corpus=conv-26 "What did Caroline research?"
    memlab ask memory=FOLDER now=2023-06-01 "Which pet do I have?"

Prints the answer if there is a reader (read/answer=reader chat=...), and the first five results: copies are merged, of
results that say nearly the same with another value the latest is marked, and below a question is its reply. The
arguments of ``memlab run``, with ``system=best`` by default (``plain`` for a memory of that former default), and:

    corpus=NAME    the corpus whose sessions are searched (name or number);
                   needed if the data have several, unless the question is one
                   of the data's own, by its words or its id
    now=DAY        the day of the question: later sessions are not used;
                   default: the day of the data's own question, or of the last
                   session; for a live memory the present
    memory=FOLDER  a live memory instead of data
    timezone=NAME  the time zone of the memory's days, such as Europe/Rome;
                   default: UTC (data have data.timezone)
    --signals      the whole ranking with the scores of each search, facts about
                   the people and things in the question if a graph is
                   configured, and the context

Exit status: 0 answered, 1 failed, 2 the configuration is faulty, 130 interrupted.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from memlab.memory.database import is_memory
from memlab.memory.default import pipeline_of, with_system
from memlab.memory.found import NOTHING, line_of
from memlab.memory.memory import Memory
from memlab.memory.results import MAX_RANKS, RESULT, SearchResult
from memlab.memory.shown import Shown, first_results
from memlab.support.clock import read_moment
from memlab.support.console import Console
from memlab.support.errors import Faults, MemlabError, error_message
from memlab.support.help_text import page
from memlab.support.machine import enough_memory
from memlab.support.paths import expand
from memlab.support.terminal import HELP, clean_logs, own_words
from memlab.support.text.display import plural, safe_line, safe_text

OWN = ("corpus", "now", "memory", "timezone")
"""Words that ``memlab.run`` does not have."""
SIGNALS = "--signals"
"""The flag for the whole ranking."""
RESULTS = 5
"""Number of results that are shown, without copies, of the first MAX_RANKS."""
MIN_RANKS = 10
"""Number of ranks that the whole ranking has at least; all selected ones are shown, of the first MAX_RANKS."""
TO_ANSWER = "for an answer, add a model: read/answer=reader chat.url=http://127.0.0.1:8000/v1 chat.model=NAME"
TEXT = 300
"""Characters of a result's text that are shown."""
ITEM = 1200
"""Characters of an item of the context that are shown."""

_SETTING = re.compile(r"[+~]{0,2}[A-Za-z_][\w./@]*=|~[\w./]+$|-")
_out = Console(highlight=False)


@dataclass(frozen=True)
class AskCommand:
    """A command line: the question, the arguments of ``memlab.run``, and those of this command."""

    question: str
    arguments: list[str]
    own: dict[str, str]
    signals: bool = False

    @classmethod
    def of(cls, arguments: Sequence[str]) -> AskCommand:
        """Take a command line apart; raises Faults unless it holds exactly one question.

        >>> AskCommand.of(["rank.select.k=3", "now=2023-05-20", "Which pet is it?"]).own
        {'now': '2023-05-20'}
        """
        signals = SIGNALS in arguments
        arguments = [w for w in arguments if w != SIGNALS]
        settings = [w for w in arguments if _SETTING.match(w)]
        own, others = own_words(settings, OWN)
        questions = [w for w in arguments if w not in settings]
        faults = []
        if len(questions) != 1:
            count = f"{len(questions)} are given: {', '.join(questions)}" if questions else "none is given"
            faults.append(f'one question is expected, {count}; put it in quotes: "Which pet do I have?"')
        elif not questions[0].strip():
            faults.append("the question is blank")
        faults += [f"{w}: memlab ask has no such flag, only {', '.join((SIGNALS, *HELP))}"
                   for w in others if w.startswith("-")]
        if "memory" in own:
            faults += [f"{w.partition('=')[0]}: a live memory has no data set; leave this or memory= out"
                       for w in settings if re.match(r"(data|corpus)\b", w)]
        elif "timezone" in own:
            faults.append("timezone: is of a live memory (memory=FOLDER); data of your own have data.timezone")
        if faults:
            raise Faults(faults)
        return cls(questions[0], others, own, signals)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    clean_logs()
    if not arguments or any(w in HELP for w in arguments):
        _out.print(escape(page(__doc__)), soft_wrap=True)
        return 0
    try:
        command = AskCommand.of(arguments)
        result, place = answer(command)
        _head(result, place)
        (_show_all if command.signals else _show)(result)
    except MemlabError as error:
        _out.print(f"[red]memlab:[/red] {escape(safe_text(error))}", soft_wrap=True)
        return 2 if isinstance(error, Faults) else 1
    except KeyboardInterrupt:
        _out.print("\ninterrupted; what models made is kept")
        return 130
    except Exception as error:  # of a model or its server
        _out.print(f"[red]memlab:[/red] {escape(safe_text(error_message(error)))}", soft_wrap=True)
        return 1
    return 0


@enough_memory("search less (data.limit=100, or a smaller file or memory), or close other programs")
def answer(command: AskCommand) -> tuple[SearchResult, str]:
    """Ask the question; return the result and a description of the searched sessions; raises MemlabError."""
    now = read_moment(command.own["now"], "now") if "now" in command.own else None
    folder = expand(command.own["memory"]) if "memory" in command.own else None
    if folder and not is_memory(folder):
        raise MemlabError("there is no live memory", where=str(folder),
                          fix="give the folder of a memlab.Memory that something was added to")
    if folder is None:
        from memlab.experiment.harness.sweep import OF_RUNS, read_one  # with Hydra, half a second of the processor
        from memlab.memory.ask_data import ask_data

        arm, settings = read_one(with_system(command.arguments), OF_RUNS)
        return ask_data(arm, command.question, command.own.get("corpus"), now, settings.store)
    with Memory(folder, pipeline_of(folder, command.arguments), timezone=command.own.get("timezone")) as memory:
        return memory.look(command.question, now, MAX_RANKS), f"the memory {folder}"


def _head(result: SearchResult, place: str) -> None:
    asked_on = "on no day" if result.asked_on is None else f"as of {result.asked_on:%Y-%m-%d}"
    _out.print(Text(safe_line(result.question), "bold"))
    _out.print(Text(f"asked of {safe_line(place)}, {asked_on}", "dim"))


def _show(result: SearchResult) -> None:
    """Print the answer and the first results."""
    if result.answer is not None:
        _heading("Answer")
        _out.print(Text(safe_text(result.answer) or "(blank)"))
    found = first_results(result.question, result.results, RESULTS)
    _heading("Found")
    if not found:
        _out.print(NOTHING)
    for n, one in enumerate(found, 1):
        copies = f", said {one.copies} times" if one.copies > 1 else ""
        newer = f", newer than {', '.join(str(older + 1) for older in one.older)}, which says nearly the same"
        reply = f"\n   {safe_line(one.reply, TEXT)}" if one.reply else ""
        _out.print(Text.assemble((f"{n}. ", "dim"), safe_line(one.text, TEXT), reply, "\n   ",
                                 (f"{_day_and_name(one)}{copies}", "dim"), (newer if one.older else "", "bold green")))
    hints = [] if result.answer is not None else [TO_ANSWER]
    hints += [f"{SIGNALS} shows the whole ranking, its scores and the context"] if found else []
    _out.print()
    for hint in hints:
        _out.print(Text(hint, "dim"), soft_wrap=True)


def _day_and_name(one: Shown) -> str:
    """Return the day and the session's name, which in an imported log begins with the day."""
    day = f"{one.days[-1]:%Y-%m-%d}" if one.days else "no date"
    return safe_line(one.place if one.place.startswith(day) else f"{day}, {one.place}")


def _show_all(result: SearchResult) -> None:
    """Print the ranking with its signals, the graph, the context and the answer."""
    _heading("Ranking")
    shown = result.results.filter((pl.col("rank") <= MIN_RANKS) | pl.col("selected"))
    _out.print(_ranking(shown) if shown.height else NOTHING)
    if shown.height:
        _out.print("[dim]with *: selected, and shown in the context; where: session:turns, both counted from 0; below "
                   "each text its session's name and its scores by search[/dim]")
    if result.graph:
        _heading("Graph")
        _out.print(Text(safe_text(result.graph)))
    _heading(f"Context ({plural(len(result.context), 'item')})")
    for item in result.context:
        _out.print(Text(_cut(safe_text(item), ITEM) + "\n"))
    if result.answer is not None:
        _heading("Answer")
        _out.print(Text(safe_text(result.answer) or "(blank)"))


def _heading(text: str) -> None:
    _out.print()
    _out.rule(text, align="left", style="dim")


def _ranking(rows: pl.DataFrame) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), show_edge=False)
    for name, style in (("", "green"), ("rank", ""), ("score", ""), ("said on", "dim"), ("where", "dim")):
        table.add_column(name, style=style, justify="right" if name in ("rank", "score") else "left", no_wrap=True)
    table.add_column("text, signals", overflow="fold")
    for row in rows.iter_rows(named=True):
        signals = "  ".join([*filter(None, [row["name"]]), *(
            f"{name} {value:.3f}" for name, value in row.items() if name not in RESULT and value is not None)])
        table.add_row(
            "*" if row["selected"] else "", str(row["rank"]), f"{row['score']:.3f}",
            "" if row["date"] is None else f"{row['date']:%Y-%m-%d}", _where(row["session"], row["turns"]),
            Text.assemble(safe_line(line_of(row), TEXT), ("\n" + safe_line(signals), "dim")))
    return table


def _where(session: int, turns: Sequence[int]) -> str:
    """Format a place: the session and the range of turns.

    >>> _where(3, [0, 1, 2]), _where(3, [4])
    ('3:0-2', '3:4')
    """
    span = f"{turns[0]}-{turns[-1]}" if len(turns) > 1 else "".join(map(str, turns))
    return f"{session}:{span}"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}… ({len(text):,} characters)"


if __name__ == "__main__":
    raise SystemExit(main())
