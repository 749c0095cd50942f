"""Download the data that the shipped update learned from: ``memlab experiment encoder_training fetch NAME``.

The files lie where ``memlab data fetch`` puts a benchmark, and are verified as there. ``memlab experiment
encoder_training merge --help`` tells how trained updates become one.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from encoder_training import merge
from memlab.data.benchmarks import OfficialFolder, checksums
from memlab.data.fetch import download
from memlab.support.errors import MemlabError
from memlab.support.help_text import Parser
from memlab.support.terminal import print
from memlab.support.text.display import safe_line

FRIENDSQA = "https://raw.githubusercontent.com/emorynlp/FriendsQA/9ce6c98a6acf13c87d96b6811e4409b5de43bdfe/dat"
FAIRYTALEQA = ("https://raw.githubusercontent.com/uci-soe/FairytaleQAData/a24ddc17364666b7c13a425b9970c87368b03417/"
               "data-by-train-split")

FRIENDSQA_FILES = {
    "friendsqa_dev.json": "3a85d3fcb175589ffd050fb4bf431da77a6e12589c8ec03f1d54060ce33ec703",
    "friendsqa_tst.json": "a98f24d4b04ac9f8d9468088febf304bd90eada134537277c1a425e31c0372bc",
}
"""File -> SHA-256; the training file is not fetched, since its checksum is not known."""


FAIRYTALEQA_FILES = checksums(Path(__file__).with_name("fairytaleqa.sha256"))
"""File -> SHA-256; the stories of the folder ``all`` are those of the three others."""

FOLDERS = {name: OfficialFolder(name, name, base, tuple((file,) for file in files), "Apache-2.0", files)
           for name, base, files in (("friendsqa", FRIENDSQA, FRIENDSQA_FILES),
                                     ("fairytaleqa", FAIRYTALEQA, FAIRYTALEQA_FILES))}


def main(argv: Sequence[str] | None = None) -> int:
    """Download one data set, or merge updates; return 0, or 1 after a message about what is wrong."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] == ["merge"]:
        return merge.main(words[1:])
    parser = Parser(prog="memlab experiment encoder_training", description=__doc__)
    parser.add_argument("command", choices=["fetch"], help="download and verify")
    parser.add_argument("name", choices=FOLDERS, help="the data set: friendsqa or fairytaleqa")
    parser.add_argument("--base", help="address of the folder that holds the files, such as a mirror")
    options = parser.parse_args(words)
    try:
        print(f"verified: {safe_line(str(download(FOLDERS[options.name], base=options.base)))}")
    except MemlabError as fault:
        print(fault, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
