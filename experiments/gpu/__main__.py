"""Check of a card: ``memlab experiment gpu [device=auto|cpu|cuda:0] [size=auto|real|small] [out=gpu.json]``.

It compares what the device computes with what the CPU computes, and measures its speed beside that of other libraries:
three to six minutes on a card. Models of full size have random weights, so nothing is fetched. Results are printed as a
table and written as JSON. The exit status is 1 if a result is off.
"""

from __future__ import annotations

import math
import platform
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from memlab import __version__
from memlab.models.local.backend import resolve
from memlab.models.serving.environment import driver_values
from memlab.support.errors import MemlabError, did_you_mean
from memlab.support.files import disk_faults, make_folder, write_json
from memlab.support.help_text import Parser
from memlab.support.machine import package_version
from memlab.support.paths import expand
from memlab.support.terminal import own_words, print

from . import agreement, random_models, speed
from .rows import Row, row_of

WORDS = {"device": "auto", "size": "auto", "out": "gpu.json"}
"""Names of the words and their defaults; a file lies in the current folder."""

PACKAGES = ("torch", "transformers", "sentence-transformers", "FlagEmbedding", "flash-attn", "faiss-cpu", "faiss-gpu",
            "faiss-gpu-cu12", "faiss-gpu-cuvs", "numpy")


def main(argv: Sequence[str] | None = None) -> int:
    """Check a device, print the table and write the file; return 1 if a row is off."""
    parser = Parser(prog="memlab experiment gpu", description=__doc__)
    parser.add_argument("words", nargs="*", metavar="NAME=VALUE", help="device=, size= and out=, as above")
    try:
        words = _words(parser.parse_args(argv).words)
        device = resolve(words["device"], "auto", "auto").devices[0]
        out = expand(words["out"])
        with disk_faults(out, other="give out=FILE, in a folder of yours"):  # before minutes of work
            make_folder(out.parent)
            there = out.exists()
            out.open("a").close()
            if not there:
                out.unlink()
        return _measure(words["size"], device, out)
    except MemlabError as error:
        print(f"memlab experiment gpu: {error}")
        return 2


def _measure(size: str, device: str, out: Path) -> int:
    small = size == "small" or size == "auto" and device == "cpu"
    machine = describe(device)
    print("; ".join(filter(None, [
        f"{machine['device']}, driver {machine['driver']}, CUDA {machine['cuda']}" if device != "cpu" else "cpu",
        ", ".join(f"{name} {version}" for name, version in machine["packages"].items()),
        f"{'small' if small else 'full'} sizes, random weights where speed is measured"])))
    begin, rows, spent = time.perf_counter(), list[Row](), list[float]()
    for row in examine(device, speed.SMALL if small else speed.REAL):
        rows.append(row)
        spent.append(round(time.perf_counter() - begin, 1))
        print(line(row), flush=True)
    taken = time.perf_counter() - begin
    off = [row for row in rows if row.state == "off"]
    write_json(out, {**machine, "size": "small" if small else "real", "seconds": round(taken, 1),
                     "rows": [{**asdict(row), "numbers": finite(row.numbers), "ended_at_s": end}
                              for row, end in zip(rows, spent)]})
    counts = ", ".join(f"{sum(row.state == state for row in rows)} {state}" for state in ("ok", "off", "skipped"))
    print(f"\n{counts}; {taken:.0f} s; {out}")
    for row in off:
        print(f"  {row.name}: {row.advice or 'report it with this file'}")
    return 1 if off else 0


def examine(device: str, sizes: speed.Sizes) -> Iterator[Row]:
    """Yield the rows of a device, each when it is ready."""
    with tempfile.TemporaryDirectory(prefix="memlab-gpu-") as folder:
        encoder, reranker = Path(folder) / "encoder", Path(folder) / "reranker"
        made = row_of("speed", "random models", partial(_save_models, encoder, reranker, sizes, device))
        if made.state != "ok":
            yield made
            return
        large, turns = sizes is speed.REAL, random_models.texts(256 if sizes is speed.REAL else 32, (3, 120))
        checks: list[tuple[str, Callable[[], Row]]] = [
            ("vectors, embedded encoder", partial(agreement.vectors, None, device, turns)),
            ("vectors, random encoder", partial(agreement.vectors, encoder, device, turns[:64])),
            ("batches", partial(agreement.batches, device, turns)),
            ("late interaction", partial(agreement.matches, device, sizes.shape.hidden, sizes.tokens // 4)),
            ("exact search", partial(agreement.exact, device, sizes.shape.hidden, sizes.vectors // 10)),
            ("inverted lists", partial(agreement.inverted_lists, device, 128, sizes.vectors // 4)),
            ("order of a reranking", partial(agreement.rerank_order, reranker, device)),
            ("late index", partial(agreement.late_index, device, 8 if large else 1))]
        for name, check in checks:
            yield row_of("agreement", name, check)
        rates: list[speed.Rates] = []

        def measure_rates() -> Row:
            rates.append(speed.device_rates(device, sizes))
            return rates[0].row()

        yield row_of("rates", "rates of the device", measure_rates)
        if not rates:
            return
        measures: list[tuple[str, Callable[[], Row]]] = [
            ("encoding turns", partial(speed.time_encoding, encoder, device, sizes, rates[0], False)),
            ("encoding sessions", partial(speed.time_encoding, encoder, device, sizes, rates[0], True)),
            ("FlagEmbedding's encoder", partial(speed.flag_rate, "encoder", encoder, device, sizes)),
            ("reranking", partial(speed.time_reranking, reranker, device, sizes, rates[0])),
            ("FlagEmbedding's reranker", partial(speed.flag_rate, "reranker", reranker, device, sizes)),
            ("late interaction", partial(speed.late_interaction, device, sizes, rates[0])),
            ("exact search", partial(speed.exact_search, device, sizes, rates[0]))]
        for name, measure in measures:
            yield row_of("speed", name, measure)


def line(row: Row) -> str:
    """Return a row as it is printed."""
    rest = "; ".join(filter(None, [row.result, row.share, row.beside]))
    return f"{row.state:>7}  {row.name:<44}  {rest}" + (f"\n{'':>7}  -> {row.advice}" if row.advice else "")


def finite(numbers: Mapping[str, float]) -> dict[str, float | None]:
    """Return numbers as JSON holds them: None for one that is not finite."""
    return {name: number if math.isfinite(number) else None for name, number in numbers.items()}


def describe(device: str) -> dict[str, Any]:
    """Return what the device, its driver and the packages are."""
    import torch

    described: dict[str, Any] = {"memlab": __version__, "python": platform.python_version(), "device": "cpu",
                                 "cuda": torch.version.cuda,
                                 "packages": {name: version for name in PACKAGES if (version := package_version(name))}}
    if device != "cpu":
        properties = torch.cuda.get_device_properties(device)
        described |= {"device": properties.name, "memory_gb": round(properties.total_memory / 1e9, 1),
                      "capability": f"{properties.major}.{properties.minor}",
                      "multiprocessors": properties.multi_processor_count,
                      "driver": next(iter(driver_values("driver_version")), "")}
    return described


def _save_models(encoder: Path, reranker: Path, sizes: speed.Sizes, device: str) -> Row:
    random_models.save_encoder(encoder, sizes.shape, device)
    random_models.save_reranker(reranker, sizes.shape, device)
    return Row("speed", "random models", "saved")


def _words(given: Sequence[str]) -> dict[str, str]:
    """Return the words with defaults; raise MemlabError for an unknown one."""
    own, others = own_words(given, WORDS)
    for word in others:
        raise MemlabError(f"there is no word '{word}'", fix=did_you_mean(word.partition("=")[0], WORDS))
    if blank := [name for name, value in own.items() if not value]:
        raise MemlabError(f"'{blank[0]}=' has no value", fix=f"{blank[0]}={WORDS[blank[0]]}")
    words = WORDS | own
    if not re.fullmatch(r"auto|cpu|cuda(:\d+)?", words["device"]):
        raise MemlabError(f"device={words['device']} is none of auto, cpu, cuda, cuda:0", fix="device=auto")
    if words["size"] not in ("auto", "real", "small"):
        raise MemlabError(f"size={words['size']} is none of auto, real, small", fix="size=small")
    return words
