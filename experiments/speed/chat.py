"""Speed of the chat client against a bare ``AsyncOpenAI`` client, over a loopback server in a separate process.

    python experiments/speed/chat.py                              # about 3 min

The server answers every request after a fixed delay. Both clients send the same requests with the same concurrency.
They alternate (the first of each pass changes), and the medians over the passes are reported: of each rate, and of the
ratios within a pass. The bare client consists of workers in one event loop that call ``create`` and keep the text.
memlab's client also checks that prompt and reply fit into the window, can retry, and hands the replies to the caller's
thread; it posts through the same client, without ``create``'s conversions of request and reply. Then resident memory
is read while memlab's client answers 10,000 requests and discards the replies.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from statistics import median

import psutil
from openai import AsyncOpenAI, DefaultAsyncHttpxClient

from memlab.models.chat.openai import OpenAIChat
from memlab.models.protocols import Message, Prompt

SYSTEM = "Answer the question from the conversation that follows, in one short sentence."
REPLY = "She said on the second of May that the dog is called Pepper, and that he is afraid of storms."


def prompts(count: int, words: int) -> list[Prompt]:
    """Return prompts of about the size of a reader's prompt with a few turns in context."""
    return [Prompt((Message("system", SYSTEM), Message("user", f"{i}: " + "what is the dog called " * (words // 5))))
            for i in range(count)]


async def ask_bare(url: str, prompts: list[Prompt], at_once: int) -> list[str]:
    """Ask with the bare client."""
    replies, order = [""] * len(prompts), iter(range(len(prompts)))
    direct = DefaultAsyncHttpxClient(trust_env=False)  # like memlab on loopback: ignore the environment's proxies
    async with AsyncOpenAI(base_url=url, api_key="none", max_retries=0, timeout=300, http_client=direct) as client:

        async def worker() -> None:
            for i in order:
                reply = await client.chat.completions.create(
                    model="m", temperature=0.0, seed=0, max_tokens=256,
                    messages=[{"role": m.role, "content": m.content} for m in prompts[i].messages])
                replies[i] = reply.choices[0].message.content

        await asyncio.gather(*(worker() for _ in range(at_once)))
    return replies


def ask_memlab(url: str, prompts: list[Prompt], at_once: int) -> list[str]:
    """Ask with memlab's client."""
    replies = [""] * len(prompts)
    for i, completion in OpenAIChat(model="m", url=url, concurrency=at_once, window=8192).complete(prompts):
        replies[i] = completion.text
    return replies


CLIENTS: dict[str, Callable[[str, list[Prompt], int], list[str]]] = {
    "bare": lambda url, prompts, at_once: asyncio.run(ask_bare(url, prompts, at_once)), "memlab": ask_memlab}


def measure_time(work: Callable[[str, list[Prompt], int], list[str]], url: str, prompts: list[Prompt],
          at_once: int) -> tuple[float, float, list[str]]:
    """Return the wall time and processor time (all threads) of the work in seconds, and its replies."""
    start, cpu_start = time.perf_counter(), time.process_time()
    replies = work(url, prompts, at_once)
    return time.perf_counter() - start, time.process_time() - cpu_start, replies


def throughput(url: str, count: int, words: int, rounds: int) -> Iterator[str]:
    """Time both clients alternately, for each number of requests at a time."""
    requests = prompts(count, words)
    for at_once in (8, 16, 32, 64):
        cost: dict[str, list[tuple[float, float]]] = {"bare": [], "memlab": []}
        for round_number in range(rounds):
            replies = {}
            for name in sorted(cost, reverse=round_number % 2 == 1):
                *spent, replies[name] = measure_time(CLIENTS[name], url, requests, at_once)
                cost[name].append((spent[0], spent[1]))
            assert replies["bare"] == replies["memlab"]
        (b, b_cpu), (m, m_cpu) = ([median(column) for column in zip(*cost[name])] for name in ("bare", "memlab"))
        ratios = [theirs / mine for (theirs, _), (mine, _) in zip(cost["bare"], cost["memlab"])]
        yield (f"{at_once:>3} at a time: bare {count / b:6.0f} requests/s, memlab {count / m:6.0f}, "
               f"ratio {median(ratios):.2f} (passes {', '.join(f'{ratio:.2f}' for ratio in sorted(ratios))}); "
               f"CPU {1e3 * b_cpu / count:.2f} and {1e3 * m_cpu / count:.2f} ms per request")


def memory(url: str, count: int, words: int) -> Iterator[str]:
    """Report resident memory after every tenth of the requests."""
    requests, process, before = prompts(count, words), psutil.Process(), time.perf_counter()
    resident = []
    for i, _ in enumerate(OpenAIChat(model="m", url=url, window=8192).complete(requests)):
        if (i + 1) % (count // 10) == 0:
            resident.append(process.memory_info().rss / 1e6)
    yield (f"{count:,} requests, 16 at a time, {time.perf_counter() - before:.0f} s; resident MB at each tenth: "
           + ", ".join(f"{s:.0f}" for s in resident))


async def serve(delay: float) -> None:
    """Answer every request after a delay, with as little work as HTTP allows."""
    message = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": REPLY}}
    body = json.dumps({"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": [message],
                       "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}}).encode()
    answer = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
                await reader.readexactly(length)
                await asyncio.sleep(delay)
                writer.write(answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0, limit=2**20)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def main() -> None:
    """Start the server and time both clients."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--serve", action="store_true", help="run as the server")
    parser.add_argument("--delay", type=float, default=0.05, help="seconds before the server answers")
    parser.add_argument("--requests", type=int, default=600, help="requests per pass")
    parser.add_argument("--words", type=int, default=200, help="words per prompt")
    parser.add_argument("--turns", type=int, default=7, help="passes of each client")
    parser.add_argument("--long", type=int, default=10_000, help="requests while memory is read")
    args = parser.parse_args()
    if args.serve:
        asyncio.run(serve(args.delay))
        return
    command = [sys.executable, __file__, "--serve", "--delay", str(args.delay)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = f"http://127.0.0.1:{server.stdout.readline().strip()}/v1"
        try:
            print(f"delay {args.delay} s, {args.requests} requests per pass, {args.words} words per prompt")
            for line in throughput(url, args.requests, args.words, args.turns):
                print(line, flush=True)
            for line in memory(url, args.long, args.words):
                print(line)
        finally:
            server.kill()


if __name__ == "__main__":
    main()
