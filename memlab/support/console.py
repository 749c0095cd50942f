"""A rich Console that strips control characters, redacts secrets and escapes what the terminal cannot encode."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console as RichConsole
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment

from memlab.support.terminal import encodable, printable


class Console(RichConsole):
    """Rich's console, whose texts are shown as ``printable`` returns them; its own styles and movements pass."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments of a renderable, each with its control characters escaped."""
        for segment in super().render(renderable, options):
            if not segment.control:
                segment = Segment(encodable(printable(segment.text), self.encoding), segment.style)
            yield segment
