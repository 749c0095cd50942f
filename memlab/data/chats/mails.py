"""Mails of an mbox file: sender, subject, date, text or HTML, and names of files."""

from __future__ import annotations

import re
from email import message_from_bytes, policy
from email.message import EmailMessage
from email.utils import parseaddr
from typing import Any

MAIL = ".mbox"
_BEGIN = re.compile(rb"^From [^\n]*\d{4}[^\n]*\n", re.MULTILINE)
_REPLY = re.compile(r"^(?:\s*(?:re|fwd?|aw|wg|tr|sv|antw|r|i)\s*:)+", re.IGNORECASE)


def read_mails(data: bytes) -> list[dict[str, Any]]:
    """Return the mails as objects; ``thread`` is the subject without "Re:".

    >>> mail = b"From x Mon Jan  1 10:00:00 2024\\nFrom: Ann <a@x.org>\\nSubject: Re: Lake\\n\\nYes.\\n"
    >>> [(mail["from"], mail["thread"], mail["text"]) for mail in read_mails(mail)]
    [('Ann', 'Lake', 'Yes.\\n')]
    """
    return [_mail(piece) for piece in _BEGIN.split(data)[1:]]


def _mail(data: bytes) -> dict[str, Any]:
    mail = message_from_bytes(data.replace(b"\n>From ", b"\nFrom "), EmailMessage, policy=policy.default)
    subject = _header(mail, "subject")
    name, address = parseaddr(_header(mail, "from"))
    return {"$mail": True, "from": name or address, "date": _header(mail, "date"), "subject": subject,
            "thread": _REPLY.sub("", subject).strip(), "text": _text(mail),
            "files": [part.get_filename() or "file" for part in mail.walk() if part.is_attachment()]}


def _header(mail: EmailMessage, name: str) -> str:
    try:
        return " ".join(str(mail[name] or "").split())
    except (ValueError, AttributeError, IndexError, TypeError):  # headers that email cannot parse
        return ""


def _text(mail: EmailMessage) -> str:
    body = mail.get_body(("plain", "html"))
    try:
        text = body.get_content() if body else ""
    except (LookupError, ValueError):  # an unknown encoding
        text = ""
    return text.replace("\r\n", "\n") if isinstance(text, str) else ""
