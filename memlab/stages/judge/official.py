"""LongMemEval's judge word for word: its prompts are read from the user's copy of the official evaluation script.

The script is parsed and never executed. ``memlab data fetch longmemeval_judge`` puts it in place.
"""

from __future__ import annotations

import ast
import itertools
import string
from pathlib import Path
from typing import Any, ClassVar

from memlab.data import benchmarks
from memlab.data.readers import sha256
from memlab.models.protocols import Message, Prompt
from memlab.pipeline.stage import LocalPath, name_of, stage
from memlab.stages.judge.cases import Case
from memlab.stages.judge.llm import ChatJudge, Kind, contains_yes, kind_of
from memlab.support.errors import MemlabError
from memlab.support.files import read_errors

FUNCTION = "get_anscheck_prompt"
PARAMETERS = ("task", "question", "answer", "response", "abstention")
TASKS: dict[Kind, str] = {"default": "multi-session", "temporal": "temporal-reasoning", "update": "knowledge-update",
                          "preference": "single-session-preference", "abstention": "multi-session"}
"""A question type of the script for each kind; abstention is a parameter of its own there."""

Values = dict[str, Any]


class OfficialPrompts:
    """The prompts of an evaluation script.

    Its function ``get_anscheck_prompt`` is followed statement by statement: assignments, conditions on the question
    type, texts and ``format`` of texts are understood; any other code raises MemlabError.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with read_errors(path, fix="make it readable"):
            source = path.read_bytes()
        try:
            body = ast.parse(source).body
        except (SyntaxError, ValueError) as fault:
            raise MemlabError(f"is no Python script ({fault})", where=str(path), fix=_FETCH) from fault
        functions = [node for node in body if isinstance(node, ast.FunctionDef) and node.name == FUNCTION]
        if not functions or [parameter.arg for parameter in functions[0].args.args] != list(PARAMETERS):
            raise MemlabError(f"has no function {FUNCTION}({', '.join(PARAMETERS)})", where=str(path), fix=_FETCH)
        self._body = functions[0].body
        for kind in TASKS:
            self.text(kind, "question", "answer", "response")

    def text(self, kind: Kind, question: str, answer: str, response: str) -> str:
        """Return the prompt for a question of this kind; raise MemlabError if the script has none."""
        values = {"task": TASKS[kind], "question": question, "answer": answer, "response": response,
                  "abstention": kind == "abstention"}
        text = self._run(self._body, values)
        if not isinstance(text, str):
            raise self._fault(f"returns no text for questions of type {TASKS[kind]}")
        return text

    def _fault(self, what: str, node: ast.AST | None = None) -> MemlabError:
        line = f", line {node.lineno}" if isinstance(node, ast.stmt | ast.expr) else ""
        return MemlabError(f"{FUNCTION} {what}", where=f"{self._path}{line}", fix=_FETCH)

    def _run(self, body: list[ast.stmt], values: Values) -> Any:
        """Return what these statements return, or None if they return nothing; assignments go into ``values``."""
        for node in body:
            match node:
                case ast.Assign(targets=[ast.Name(id=name)]):
                    values[name] = self._value(node.value, values)
                case ast.If():
                    result = self._run(node.body if self._value(node.test, values) else node.orelse, values)
                    if result is not None:
                        return result
                case ast.Return(value=ast.expr() as value):
                    return self._value(value, values)
                case ast.Expr(value=ast.Constant()) | ast.Pass():
                    pass
                case _:
                    raise self._fault("holds code that memlab does not read", node)
        return None

    def _value(self, node: ast.expr, values: Values) -> Any:
        match node:
            case ast.Constant(value=str() | bool() as value):
                return value
            case ast.Name(id=name) if name in values:
                return values[name]
            case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
                return [self._value(item, values) for item in items]
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return not self._value(operand, values)
            case ast.BoolOp(op=op, values=parts):
                known = [bool(self._value(part, values)) for part in parts]
                return all(known) if isinstance(op, ast.And) else any(known)
            case ast.Compare(ops=[ast.Eq() | ast.NotEq() | ast.In() | ast.NotIn() as op], comparators=[right]):
                one, other = self._value(node.left, values), self._value(right, values)
                same = one == other if isinstance(op, ast.Eq | ast.NotEq) else one in other
                return same == isinstance(op, ast.Eq | ast.In)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return str(self._value(left, values)) + str(self._value(right, values))
            case ast.Call(func=ast.Attribute(value=template, attr="format"), args=arguments, keywords=[]):
                return self._format(self._value(template, values), [self._value(a, values) for a in arguments], node)
            case _:
                raise self._fault("holds code that memlab does not read", node)

    def _format(self, template: str, values: list[str], node: ast.expr) -> str:
        """Fill the places ``{}`` and ``{0}`` of a text; no attribute or format of a value is looked up."""
        parts, automatic = [], itertools.count()
        try:
            for text, name, form, conversion in string.Formatter().parse(template):
                parts.append(text)
                if form or conversion:
                    raise ValueError(template)
                if name is not None:
                    parts.append(values[int(name) if name else next(automatic)])
        except (ValueError, IndexError) as fault:
            raise self._fault("fills a text in a way that memlab does not read", node) from fault
        return "".join(parts)


_FETCH = "fetch the official one: memlab data fetch longmemeval_judge"


@stage
class OfficialJudge(ChatJudge):
    """LongMemEval's judge: its own prompts, temperature 0, at most 10 tokens, right if the reply contains "yes".

    Accuracies by it can be compared with published ones, given the judge model that they name. The script must have
    the checksum of the official one; ``any_version`` allows another, whose verdicts cannot be compared. Every reply is
    read, an empty or cut one too, as the script does; such replies are counted beside the accuracy. The judges of
    published figures do not think; what a thinking model writes before its reply is not read.
    """

    counts_yes: ClassVar = True
    counts_incomplete: ClassVar = True
    max_tokens: ClassVar = 10

    name: str = "official"
    script: LocalPath | None = None  # null: where `memlab data fetch longmemeval_judge` puts it
    any_version: bool = False  # true: also a script with another checksum

    def __post_init__(self) -> None:
        self._prompts()

    def identity(self) -> dict[str, Any]:
        """Describe the judge by the script's content, not by its path."""
        return {"is": name_of(type(self)), "name": self.name, "sample": self.sample,
                "chat": self.chat.identity(), "script": sha256(self._path())}

    def prompts(self, judged: list[Case]) -> list[Prompt]:
        """Return the script's prompt for each case."""
        texts = self._prompts()
        return [Prompt((Message("user", texts.text(kind_of(case.category, case.abstain), case.text,
                                                   case.gold or "(none is given)", case.response)),),
                       temperature=0.0, max_tokens=self.max_tokens) for case in judged]

    def read(self, reply: str) -> bool | None:
        """Return whether the reply contains "yes"."""
        return contains_yes(reply)

    def _path(self) -> Path:
        return benchmarks.find("longmemeval_judge", self.script, setting="judge.script")

    def _prompts(self) -> OfficialPrompts:
        path, expected = self._path(), benchmarks.FILES["longmemeval_judge"].sha256
        if not self.any_version and (actual := sha256(path)) != expected:
            raise MemlabError(f"the checksum is {actual}, expected {expected}", where=str(path),
                              fix=f"{_FETCH}; or set judge.any_version=true, if the verdicts need not be comparable")
        return OfficialPrompts(path)
