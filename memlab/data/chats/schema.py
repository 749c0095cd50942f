"""Entries of a table of export formats: the fields that each may have, and how a path leads to a value.

A path is fields of JSON objects with dots between them. ``*`` stands for each entry of a list or object, of which the
first that holds something is taken; ``[]`` for each of a list, of which all are taken. ``.`` is the object itself.
``$file``, ``$folder`` and ``$beside`` are the names of the file and its folder, and the content of the file ``beside``.
A list of paths is tried in order.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from memlab.support.errors import MemlabError
from memlab.support.foreign import read_yaml
from memlab.support.paths import PACKAGE

BOOK = PACKAGE / "data" / "chats" / "formats.yaml"
"""The formats of memlab."""

Paths = Annotated[tuple[str, ...], BeforeValidator(lambda value: [value] if isinstance(value, str) else value)]


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class EntryTurn(_Entry):
    """One of several turns that an entry holds; ``missing``: what is counted where it has no text."""

    role: Literal["user", "assistant"]
    text: Paths
    missing: str = ""


class Format(_Entry):
    """A product's export.

    Which files: ``files`` is a pattern of their names, ``splits`` an expression whose matches begin the messages of a
    text, with their fields as groups. ``conversations`` leads to conversations, of which one must have all of ``needs``
    (one of each list); those that have a path of ``omit`` are left out and counted in its words. ``weak``: files beside
    any other export may look like it. ``note`` is said to the user.

    A conversation: ``title``, ``key`` (its id), ``room``, ``started``, ``messages``; ``children`` of a message follow
    it; ``tree``: the fields by which messages name themselves and their parents, and the path of the last one's name.
    ``group``: messages with the same value are one conversation; ``once``: those with the same value count once.
    ``people``: they talk to each other for years, else to an assistant. ``sort``: by time; ``newest``: the newest
    stands first. ``join``: what the assistant says in a row is a turn.

    A message: ``pick`` is a list and the field with the number of the entry that counts. ``role`` is looked up in
    ``roles`` (``"*"`` for any other): user, assistant, or the words in which it is counted; a value at ``bots`` makes
    an assistant. ``time`` in any form, in UTC where it has no zone if ``utc``. ``text`` and its parts are joined by
    ``glue``; ``parts`` follow it, or stand alone if one of them is a text; ``more`` stands beside it where they differ.
    ``replace`` are expressions, ``attachments`` the kinds of what is named, or "". ``turns``: an entry holds several.
    ``skip``: values by which messages are left out, in which words; "" for those that stay. ``counts``: what else is.
    ``html``: texts are marked up. ``latin1``: UTF-8 that was written as Latin-1. ``code``: a reader in Python.
    """

    product: str
    files: str = "*.json*"
    splits: str = ""
    beside: str = ""
    conversations: Paths = (".",)
    needs: tuple[Paths, ...] = ()
    omit: dict[str, str] = {}
    weak: bool = False
    note: str = ""
    title: Paths = ()
    key: Paths = ()
    room: Paths = ()
    started: Paths = (".",)
    group: Paths = ()
    people: bool = False
    sort: bool = False
    newest: bool = False
    join: bool = False
    messages: Paths = ()
    once: str = ""
    children: str = ""
    tree: dict[Literal["key", "parent", "leaf"], Paths] = {}
    pick: tuple[str, str] | None = None
    code: str = ""
    turns: tuple[EntryTurn, ...] = ()
    role: Paths = ()
    roles: dict[str, str] = {}
    bots: Paths = ()
    speaker: Paths = ()
    time: Paths = (".",)
    utc: bool = False
    text: Paths = ()
    parts: Paths = ()
    more: Paths = ()
    glue: str = "\n"
    html: bool = False
    latin1: bool = False
    replace: dict[str, str] = {}
    attachments: dict[str, str] = {}
    calls: Paths = ()
    skip: dict[str, dict[str, str]] = {}
    counts: dict[str, str] = {}


class Refused(_Entry):
    """A file that is known and not read: it has the name and holds the text."""

    product: str
    files: str
    holds: str = ""
    fix: str


class Book(_Entry):
    """A file of formats.

    roles: what roles are called in all. parts: sorts of parts of a message, by their types, or the words in which they
    are counted. prompts: Gemini's labels, in all languages.
    """

    roles: dict[str, str] = {}
    parts: dict[str, str] = {}
    prompts: tuple[str, ...] = ()
    refused: tuple[Refused, ...] = ()
    formats: dict[str, Format]


@cache
def read_book(path: Path) -> Book:
    """Return the formats of a file; raise MemlabError naming the entry and the field that is wrong."""
    try:
        return Book.model_validate(read_yaml(path))
    except (OSError, ValueError, yaml.YAMLError) as fault:
        first = fault.errors()[0] if isinstance(fault, ValidationError) else None
        what = f"{'.'.join(map(str, first['loc']))}: {first['msg']}" if first else str(fault)[:120]
        raise MemlabError(f"this is no file of formats ({what})", where=str(path),
                          fix="see docs/your_own_chats.md, A format of your own") from fault
