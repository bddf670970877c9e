"""The example of a served model: requests that are batched, refused with a reason, and answered though it ends."""

import asyncio
import http.client
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import corefw as torch
from corefw.vision.datasets import Digits
from tests.walk import run

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "examples" / "served"


def module(name):
    """A file of the example as a module."""
    spec = importlib.util.spec_from_file_location(f"served_{name}", FOLDER / f"{name}.py")
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def test_the_page_and_the_readme_tell_the_same_figures():
    page, readme = (ROOT / "docs" / "serving.md").read_text(), (FOLDER / "README.md").read_text()
    table = page[page.index("| | corefw") : page.index("## Batches")]
    assert table.count("|") > 20 and table.strip() in readme


# -- batches ----------------------------------------------------------------------------------------------------------
def asked(items, compute, **options):
    """What came to those who asked for some items at once, and the batcher."""

    async def main():
        batcher = module("batching").Batcher(compute, **options)
        working = asyncio.create_task(batcher.work())
        answers = await asyncio.gather(*map(batcher.ask, items), return_exceptions=True)
        working.cancel()
        return answers, batcher

    return asyncio.run(main())


def test_what_comes_at_once_is_computed_together():
    batches = []
    answers, batcher = asked(range(7), lambda items: batches.append(items) or [2 * i for i in items], most=3)
    assert answers == [0, 2, 4, 6, 8, 10, 12] and batches == [[0, 1, 2], [3, 4, 5], [6]]
    assert (batcher.items, batcher.batches, batcher.largest) == (7, 3, 3) and not batcher.waiting


def test_a_full_batch_does_not_wait():
    begun = time.monotonic()
    assert asked(range(4), lambda items: items, most=4, patience=60)[0] == [0, 1, 2, 3]
    assert time.monotonic() - begun < 30


def test_an_error_is_told_to_those_of_its_batch_alone():
    answers, _ = asked([1, 0, 2], lambda items: [1 / i for i in items], most=2)
    assert [type(answer) for answer in answers] == [ZeroDivisionError, ZeroDivisionError, float]


# -- the server -------------------------------------------------------------------------------------------------------
class Server:
    """The program on a free port."""

    def __init__(self, folder, *options):
        command = [sys.executable, "-m", "corefw", "run", "server.py", "--port", "0", *options]
        kept = {name: value for name, value in os.environ.items() if not name.startswith("COREFW_")}
        self.process = subprocess.Popen(command, cwd=folder, env=kept, stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline().removeprefix("listening on port "))

    def begin(self, method, path, body=None):
        """Send a request."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, path, body)
        return connection

    def ask(self, method, path, body=None):
        """(status, answer) of a request."""
        return self.answered(self.begin(method, path, body))

    @staticmethod
    def answered(connection):
        """(status, answer) of a request that was sent."""
        response = connection.getresponse()
        text = response.read()
        connection.close()
        return response.status, json.loads(text)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A copy of the example, with weights."""
    for package in ("starlette", "uvicorn"):
        pytest.importorskip(package)
    copy = shutil.copytree(FOLDER, tmp_path_factory.mktemp("served") / "served", ignore=lambda *_: ["digits.pt"])
    assert "held-out digits are read rightly" in run(copy, "corefw run train.py")
    return copy


@pytest.fixture(scope="module")
def server(folder):
    started = Server(folder, "--patience", "0.3", "--most", "8")
    yield started
    started.process.kill()
    started.process.communicate()


def test_requests_at_once_are_answered_in_batches(server, folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", torch)  # as `corefw run` does
    pictures = Digits(train=False).data[:12].flatten(1).tolist()
    model = module("network").network()
    model.load_state_dict(torch.load(folder / "digits.pt"))
    with torch.no_grad():
        expected = model(torch.tensor(pictures).float().view(-1, 1, 8, 8) / 16).softmax(1)
    with ThreadPoolExecutor(12) as threads:
        bodies = [json.dumps({"pixels": pixels}) for pixels in pictures]
        answers = list(threads.map(lambda body: server.ask("POST", "/digits", body), bodies))
    assert {status for status, _ in answers} == {200}
    assert [answer["digit"] for _, answer in answers] == expected.argmax(1).tolist()
    scores = torch.tensor([answer["score"] for _, answer in answers])
    torch.testing.assert_close(scores, expected.amax(1), rtol=1e-5, atol=1e-6)
    status, health = server.ask("GET", "/health")
    assert status == 200 and health["state"] == "ready" and health["requests"] == 12
    assert health["batches"] < 12 and 1 < health["largest"] <= 8
    assert max(answer["batch"] for _, answer in answers) == health["largest"]


@pytest.mark.parametrize(
    "body, status, reason",
    [
        ("{", 422, "the body is not JSON: "),
        ("[1]", 422, "a list of 64 numbers, the rows of 8 x 8; there came none"),
        ('{"pixels": [1, 2]}', 422, "a list of 64 numbers, the rows of 8 x 8; there came 2 of them"),
        (json.dumps({"pixels": [0] * 63 + [17]}), 422, "pixel 63 must be a number from 0 to 16; there came 17"),
        (json.dumps({"pixels": [0, "1"] + [0] * 62}), 422, "pixel 1 must be a number from 0 to 16; there came '1'"),
        (json.dumps({"pixels": [float("nan")] + [0] * 63}), 422, "pixel 0 must be a number from 0 to 16"),
        (b"\xff\xfe\xff", 422, "the body is not JSON"),
        (" " * 20000, 413, "a body has at most 16384 bytes"),
    ],
)
def test_bad_input_is_refused_with_the_reason(server, body, status, reason):
    found, answer = server.ask("POST", "/digits", body)
    assert found == status and reason in answer["error"]


def test_what_has_come_is_answered_though_it_ends(folder):
    server = Server(folder, "--patience", "2", "--most", "8")
    try:
        body = json.dumps({"pixels": [3] * 64})
        sent = [server.begin("POST", "/digits", body) for _ in range(4)]
        while server.ask("GET", "/health")[1]["waiting"] < 4:
            time.sleep(0.01)
        server.process.send_signal(signal.SIGTERM)
        answers = [server.answered(connection) for connection in sent]
        assert {(status, answer["batch"]) for status, answer in answers} == {(200, 4)}
        assert server.process.wait(30) == -signal.SIGTERM, "as a program that SIGTERM ends"
        with pytest.raises(ConnectionRefusedError):
            server.begin("GET", "/health")
    finally:
        server.process.kill()
        server.process.communicate()
