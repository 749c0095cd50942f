"""Text of a report as compressed base64, which the page opens with the browser's own ``DecompressionStream``."""

from __future__ import annotations

import base64
import gzip


def pack(text: str) -> str:
    """Return gzip of the UTF-8 text in base64: no character of it can end a script element. Same text, same result.

    >>> unpack(pack("</script> grün"))
    '</script> grün'
    """
    return base64.b64encode(gzip.compress(text.encode(), compresslevel=9, mtime=0)).decode("ascii")


def unpack(packed: str) -> str:
    """Return the text that ``pack`` packed."""
    return gzip.decompress(base64.b64decode(packed)).decode()
