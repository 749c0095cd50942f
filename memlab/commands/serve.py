"""Model servers for runs: ``memlab serve MODEL``, ``... list``, ``... stop [MODEL|--all]``, ``... key``.

The server is vLLM in an environment of its own, with a generated key, on loopback unless ``--host`` sets another
address. After it has answered a real request, the words that a run needs are printed to standard output; everything
else goes to standard error.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any, NoReturn, get_args

from memlab.models.serving import environment, start
from memlab.models.serving.servers import Server, answers, running_servers
from memlab.models.serving.settings import Quantization, served_names
from memlab.models.serving.vllm_command import AUTO, make_plan
from memlab.support.errors import MemlabError, did_you_mean
from memlab.support.help_text import Parser
from memlab.support.paths import expand, path_argument
from memlab.support.terminal import print
from memlab.support.text.display import safe_text

_MODELS = served_names()
_EPILOG = f"""\
Models: {', '.join(_MODELS)}.

Words after `--` are passed on to vLLM.

  memlab serve embedded --create-env cpu     once: makes the environment, then serves
  memlab serve embedded --detach             in the background
  memlab serve qwen2.5-7b --host node        for other nodes too: runs with chat.url=auto find it
  memlab serve list | stop MODEL | stop --all | key MODEL"""

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class _Stopped(Exception):
    """This command received a signal to end."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return 0 on success, 1 with a message on an error."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    commands = {"list": _list, "stop": _stop, "key": _key}
    # under nohup SIGHUP stays ignored
    before = {number: signal.signal(number, _interrupt) for number in _SIGNALS
              if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN}
    try:
        return commands[words[0]](words[1:]) if words and words[0] in commands else _serve(words)
    except MemlabError as error:
        _echo(safe_text(error))
        return 1
    except _Stopped:
        _echo("stopped")
        return 0
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:  # noqa: ARG001 (a handler's signature)
    for each in _SIGNALS:
        signal.signal(each, signal.SIG_IGN)  # a second Ctrl-C must not interrupt the server's end
    raise _Stopped


def _serve(words: list[str]) -> int:
    at = words.index("--") if "--" in words else len(words)
    args = _parser().parse_args(words[:at])
    env = expand(args.env or environment.default_folder()).absolute()
    if args.create_env:
        environment.create(env, args.create_env, _echo)
        if args.model is None:
            return 0
    if args.model is None:
        raise MemlabError("no model is named", fix=f"memlab serve MODEL; {did_you_mean('', _MODELS)}")
    server, leader = start.start(make_plan(args, env, words[at + 1:], _echo), port=args.port,
                                 timeout=args.timeout, echo=_echo)
    try:
        print(start.overrides(server), flush=True)
        if server.task != "chat":
            _echo(f"the run needs the key: export {start.KEY_VARIABLE}=$(memlab serve key {server.name})")
        if leader is None or args.detach:
            _echo(f"serving in the background, log {server.log}; memlab serve stop {server.name}")
        else:
            _echo(f"serving until Ctrl-C, log {server.log}")
            start.watch(server, leader, args.grace)
            _echo("stopped")
    except _Stopped:
        if leader is not None and not args.detach:
            start.end(server, args.grace)
        raise
    return 0


def _stop(words: list[str]) -> int:
    parser = _subparser("stop", "End servers.", "model")
    parser.add_argument("--all", action="store_true", help="every server of this machine")
    _add_grace(parser)
    args = parser.parse_args(words)
    servers = running_servers()
    local = [server for server in servers if server.is_local]
    if not local and not args.all and (jobs := sorted({server.job for server in servers if server.job})):
        raise MemlabError("no server runs on this machine", fix=f"those of SLURM jobs: scancel {' '.join(jobs)}")
    for server in local if args.all else [_one(local, args.model)]:
        start.end(server, args.grace)
        print(f"stopped {server.name} ({server.url})")
    return 0


def _list(words: list[str]) -> int:
    _subparser("list", "Name the servers.").parse_args(words)
    for server in (servers := running_servers()):
        state = server.task or "starting"
        if server.task and not server.is_local and server.shared and not answers(server.url, server.key):
            state = "does not answer"
        place = f"process {server.pid}" if server.is_local else f"on {server.host}"
        place += f", SLURM job {server.job}" if server.job else ""
        print(f"{server.name}  {state}  {server.url}  since {server.started}, {place}\n  log: {server.log}")
        if server.task:
            print(f"  {start.overrides(server)}")
    if not servers:
        print(f"no server runs; memlab serve MODEL with one of: {', '.join(_MODELS)}")
    return 0


def _key(words: list[str]) -> int:
    server = _one(running_servers(), _subparser("key", "Print a server's key.", "model").parse_args(words).model)
    print(server.key, secret=True)
    return 0


def _one(servers: Sequence[Server], name: str | None) -> Server:
    """Return the server of a model by its name, or by ``name-node-port`` where several serve it."""
    matches = [s for s in servers if name in {None, s.name, s.model, s.file.stem}]
    if len(matches) == 1:
        return matches[0]
    what = f"{len(matches)} servers could be meant" if matches else f"no server runs{f' for {name}' if name else ''}"
    options = [s.file.stem for s in matches or servers]
    raise MemlabError(what, fix=f"name one of: {', '.join(options)}" if options else "memlab serve list")


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="memlab serve", description="Serve a model with vLLM.", epilog=_EPILOG)
    add: Any = parser.add_argument
    add("model", nargs="?", metavar="MODEL", help="one of the names below, owner/model of the hub, or a folder")
    add("--host", metavar="ADDRESS", help="where to listen; `node`: where other nodes reach this one; "
                                          "default: loopback, for this machine alone")
    add("--port", type=int, default=0, help="default: a free one")
    add("--env", type=path_argument, metavar="DIR", help="the serving environment; default: $MEMLAB_HOME/serving-env")
    add("--create-env", choices=["cpu", "gpu"], help="make the environment first, unless it exists")
    add("--detach", action="store_true", help="return when the server is ready, and leave it running")
    add("--device", choices=["auto", "cpu", "gpu"], default="auto", help="default: a GPU if there is one")
    add("--runner", choices=["generate", "pooling"], help="pooling: encoders and rerankers")
    add("--dtype", choices=["auto", "float32", "float16", "bfloat16"],
        help="of the weights; default: as the model's files say")
    add("--max-len", type=int, metavar="N", help="tokens of prompt and reply together")
    add("--tensor-parallel", type=int, metavar="N", help="GPUs that share the weights")
    add("--data-parallel", type=_int_or_auto, metavar="N", help="copies of the weights, each on its own GPUs; "
                                                                  "`auto`: as many as the GPUs hold")
    add("--gpu-memory", type=float, metavar="SHARE", help="share of each GPU's memory, 0 to 1; default: 0.9, "
                                                         "less where a run needs the same GPUs")
    add("--quantization", choices=get_args(Quantization), metavar="NAME",
        help=f"on a GPU, 8 bits made of 16-bit weights while they load: {', '.join(get_args(Quantization))}")
    add("--kv-cache", type=int, metavar="GIB", help="attention cache on a CPU")
    add("--revision", metavar="COMMIT", help="of a hub model")
    add("--timeout", type=float, default=1800.0, metavar="S", help="until ready, downloads included; default: 1800")
    _add_grace(parser)
    return parser


def _subparser(command: str, description: str, *arguments: str) -> argparse.ArgumentParser:
    parser = Parser(prog=f"memlab serve {command}", description=description)
    for name in arguments:
        parser.add_argument(name, nargs="?", help="as `list` shows it; not needed if only one server runs")
    return parser


def _add_grace(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--grace", type=float, default=start.GRACE, metavar="S",
                        help=f"seconds after which a server that does not end is killed; default: {start.GRACE:g}")


def _int_or_auto(text: str) -> int:
    return AUTO if text == "auto" else int(text)


def _echo(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
