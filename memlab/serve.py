"""Serve a model to runs: ``python -m memlab.serve MODEL``, ``... list``, ``... stop [MODEL|--all]``, ``... key``.

The server is vLLM in an environment of its own, with a generated key, on loopback unless ``--host`` says otherwise.
When it has answered a real request, the one line that a run needs is printed to standard output; all else goes to
standard error.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from pydantic import ValidationError

from memlab.errors import Faults, MemlabError, did_you_mean
from memlab.runtime.cores import usable_cores
from memlab.runtime.home import bundled_encoder
from memlab.serving import command, environment, node, packaged, records, start
from memlab.serving.settings import names, settings
from memlab.text.display import sanitise_lines

_EPILOG = f"""\
MODEL is one of: {', '.join(names())};
or a model of the hub (owner/model), or a folder. What follows `--` goes to vLLM as it is.
  python -m memlab.serve embedded --create-env cpu     once: makes the environment, then serves
  python -m memlab.serve embedded --detach             in the background
  python -m memlab.serve qwen2.5-7b --host node        for other nodes too: runs with chat.url=auto find it
  python -m memlab.serve list | stop MODEL | stop --all | key MODEL"""


_AUTO = 0  # of --data-parallel
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class _Ended(Exception):
    """A signal asks this command to end."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return 0 if all is well, 1 with a message if not."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    small = {"list": _list, "stop": _stop, "key": _key}
    # under nohup a hang-up stays ignored
    before = {number: signal.signal(number, _end) for number in _SIGNALS
              if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN}
    try:
        return small[words[0]](words[1:]) if words and words[0] in small else _serve(words)
    except MemlabError as fault:
        print(sanitise_lines(str(fault)), file=sys.stderr)
        return 1
    except _Ended:
        _say("stopped")
        return 0
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(number: int, frame: FrameType | None) -> NoReturn:  # noqa: ARG001 - the form of a handler
    for each in _SIGNALS:
        signal.signal(each, signal.SIG_IGN)  # a second Ctrl-C must not leave half a server behind
    raise _Ended


def _serve(words: list[str]) -> int:
    at = words.index("--") if "--" in words else len(words)
    given = _parser().parse_args(words[:at])
    folder = (given.env or environment.default_folder()).expanduser().absolute()
    if given.create_env:
        environment.create(folder, given.create_env, _say)
    if given.model is None:
        if given.create_env:
            return 0
        raise MemlabError("no model is named", fix=f"python -m memlab.serve MODEL; {did_you_mean('', names())}")
    server, leader = start.start(_plan(given, folder, words[at + 1:]), port=given.port, timeout=given.timeout,
                                 say=_say)
    print(start.line(server), flush=True)
    if server.does != "chat":
        _say(f"the run wants the key: export {start.KEY_VARIABLE}=$(python -m memlab.serve key {server.name})")
    if leader is not None and not given.detach:
        _say(f"serving until Ctrl-C, log {server.log}")
        start.watch(server, leader, given.grace)
        _say("stopped")
        return 0
    _say(f"serving in the background, log {server.log}; python -m memlab.serve stop {server.name}")
    return 0


def _plan(given: argparse.Namespace, folder: Path, extra: list[str]) -> start.Plan:
    """Settle everything that the server is started with, in the order in which faults are worth telling."""
    command.check_extra(extra)
    chosen = settings(given.model)
    python = environment.interpreter(folder)
    gpus = environment.gpus()
    device = command.choose_device(given.device, environment.build_of(folder), gpus)
    if device == "cpu":
        chosen = command.for_cpu(chosen)
    own = {"revision": given.revision, "runner": given.runner, "dtype": given.dtype, "max_len": given.max_len,
           "tensor_parallel": given.tensor_parallel, "gpu_memory": given.gpu_memory, "kv_cache": given.kv_cache,
           "data_parallel": given.data_parallel or None}
    try:
        chosen = replace(chosen, **{k: v for k, v in own.items() if v is not None})
    except ValidationError as error:
        raise Faults(f"--{str(fault['loc'][0]).replace('_', '-')}: {fault['msg']}"
                     for fault in error.errors()) from error
    if given.data_parallel == _AUTO:
        chosen = command.for_gpus(chosen, gpus if device == "gpu" else ())
    name, served = str(given.model), [chosen.model]
    if chosen.model == packaged.embedded_folder().name:
        served.append("embedded")
        chosen = replace(chosen, model=str(packaged.ensure_embedded(folder, _say)))
    elif chosen.model == "minilm":
        chosen = replace(chosen, model=str(bundled_encoder()))
    elif command.is_folder(chosen.model):
        name = records.file_name(Path(chosen.model).name)
        served = [name]
    elif given.model in names():
        served.insert(0, name)
    threads = given.threads or usable_cores()
    return start.Plan(name, chosen, tuple(served), python, device, tuple(gpus), threads, tuple(extra),
                      node.address(given.host))


def _stop(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m memlab.serve stop", description="End servers.")
    parser.add_argument("model", nargs="?", help="as `list` shows it; not needed where one server runs")
    parser.add_argument("--all", action="store_true", help="every server of this machine")
    _add_grace(parser)
    given = parser.parse_args(words)
    known = records.servers()
    running = [server for server in known if server.here]
    if not running and not given.all and (jobs := sorted({server.job for server in known if server.job})):
        raise MemlabError("no server runs on this machine", fix=f"those of SLURM jobs: scancel {' '.join(jobs)}")
    for server in running if given.all else [_one(running, given.model)]:
        start.end(server, given.grace)
        print(f"stopped {server.name} ({server.url})")
    return 0


def _list(words: list[str]) -> int:
    argparse.ArgumentParser(prog="python -m memlab.serve list", description="Name the servers.").parse_args(words)
    running = records.servers()
    for server in running:
        state = server.does or "starting"
        if server.does and not server.here:
            state = "does not answer" if server.shared and not node.answers(server.url, server.key) else state
        place = f"process {server.pid}" if server.here else f"on {server.host}"
        place += f", SLURM job {server.job}" if server.job else ""
        print(f"{server.name}  {state}  {server.url}  since {server.started}, {place}\n  log: {server.log}")
        if server.does:
            print(f"  {start.line(server)}")
    if not running:
        print(f"no server runs; python -m memlab.serve MODEL with one of: {', '.join(names())}")
    return 0


def _key(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m memlab.serve key", description="Print a server's key.")
    parser.add_argument("model", nargs="?", help="as `list` shows it; not needed where one server runs")
    print(_one(records.servers(), parser.parse_args(words).model).key)
    return 0


def _one(running: Sequence[records.Server], name: str | None) -> records.Server:
    """Return the server that is meant: by the model's name, or ``name-node-port`` where several serve it."""
    meant = [s for s in running if name in {None, s.name, s.model, s.file.stem}]
    if len(meant) == 1:
        return meant[0]
    what = f"{len(meant)} servers could be meant" if meant else f"no server runs{f' for {name}' if name else ''}"
    known = [s.file.stem for s in meant or running]
    raise MemlabError(what, fix=f"name one of: {', '.join(known)}" if known else "python -m memlab.serve list")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m memlab.serve", description="Serve a model with vLLM.",
                                     epilog=_EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter)
    add: Any = parser.add_argument
    add("model", nargs="?", metavar="MODEL")
    add("--host", metavar="ADDRESS", help="where to listen; `node`: where other nodes reach this one; "
                                          "default: this machine alone")
    add("--port", type=int, default=0, help="default: a free one")
    add("--env", type=Path, metavar="DIR", help="the serving environment; default: $MEMLAB_HOME/serving-env")
    add("--create-env", choices=["cpu", "gpu"], help="make the environment first, unless it is there")
    add("--detach", action="store_true", help="return when the server is ready, and leave it running")
    add("--device", choices=["auto", "cpu", "gpu"], default="auto")
    add("--runner", choices=["generate", "pooling"], help="pooling: encoders and rerankers")
    add("--dtype", choices=["auto", "float32", "float16", "bfloat16"])
    add("--max-len", type=_count, metavar="N", help="tokens of prompt and reply together")
    add("--tensor-parallel", type=_count, metavar="N", help="GPUs that share the weights")
    add("--data-parallel", type=_count_or_auto, metavar="N", help="copies of the weights, each on its own GPUs; "
                                                                  "`auto`: as many as the GPUs hold")
    add("--gpu-memory", type=float, metavar="SHARE", help="share of each GPU's memory, 0 to 1")
    add("--kv-cache", type=_count, metavar="GIB", help="attention cache on a CPU")
    add("--threads", type=_count, metavar="N", help="on a CPU; default: every core")
    add("--revision", metavar="COMMIT", help="of a hub model")
    add("--timeout", type=float, default=1800.0, metavar="S", help="until ready, downloads included; default: 1800")
    _add_grace(parser)
    return parser


def _add_grace(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--grace", type=float, default=start.GRACE, metavar="S",
                        help=f"a server that was asked to end is killed after that; default: {start.GRACE:g}")


def _count(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no positive number")
    return int(text)


def _count_or_auto(text: str) -> int:
    return _AUTO if text == "auto" else _count(text)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
