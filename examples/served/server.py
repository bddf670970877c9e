"""Serves the network over HTTP: requests in batches, bad input refused with the reason, an orderly end on SIGTERM.

corefw run server.py --port 8000        or, with PyTorch: python server.py --port 8000
"""

import argparse
import asyncio
import json
import socket
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import torch
import uvicorn
from batching import Batcher
from network import MOST, network
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

LIMIT = 1 << 14  # bytes of a body


def pixels_of(body: bytes) -> list[float]:
    """The 64 pixels in a body such as {"pixels": [0, 3.5, 16, ...]}; ValueError with the reason where it is another."""
    try:
        found = json.loads(body)
    except ValueError as error:
        raise ValueError(f"the body is not JSON: {error}") from None
    pixels = found.get("pixels") if isinstance(found, dict) else None
    if not isinstance(pixels, list) or len(pixels) != 64:
        came = f"{len(pixels)} of them" if isinstance(pixels, list) else "none"
        raise ValueError(f'"pixels" must be a list of 64 numbers, the rows of 8 x 8; there came {came}')
    for number, pixel in enumerate(pixels):
        if isinstance(pixel, bool) or not isinstance(pixel, int | float) or not 0 <= pixel <= MOST:
            raise ValueError(f"pixel {number} must be a number from 0 to {MOST}; there came {pixel!r}")
    return pixels


def application(model: torch.nn.Module, most: int, patience: float) -> Starlette:
    """The application: `POST /digits` and `GET /health`."""

    @torch.inference_mode()
    def compute(pictures: list[list[float]]) -> list[dict]:
        scores = model(torch.tensor(pictures).view(-1, 1, 8, 8) / MOST).softmax(1)
        digits = scores.argmax(1).tolist()
        return [
            {"digit": digit, "score": row[digit], "batch": len(pictures)}
            for digit, row in zip(digits, scores.tolist(), strict=True)
        ]

    batcher = Batcher(compute, most, patience)

    async def digits(request: Request) -> JSONResponse:
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > LIMIT:
                return JSONResponse({"error": f"a body has at most {LIMIT} bytes"}, 413)
        try:
            pixels = pixels_of(body)
        except ValueError as error:
            return JSONResponse({"error": str(error)}, 422)
        return JSONResponse(await batcher.ask(pixels))

    async def health(request: Request) -> JSONResponse:
        counts = {"requests": batcher.items, "batches": batcher.batches, "largest": batcher.largest}
        return JSONResponse({"state": "ready", "waiting": len(batcher.waiting)} | counts)

    @asynccontextmanager
    async def lifespan(app: Starlette):
        working = asyncio.create_task(batcher.work())
        yield  # it ends when all requests are answered
        working.cancel()
        with suppress(asyncio.CancelledError):
            await working

    routes = [Route("/digits", digits, methods=["POST"]), Route("/health", health)]
    return Starlette(routes=routes, lifespan=lifespan)


def main() -> None:
    """Load the network and serve it until SIGTERM or Ctrl-C; what has come by then is answered."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000, help="0 for any that is free")
    parser.add_argument("--weights", type=Path, default=Path(__file__).parent / "digits.pt")
    parser.add_argument("--most", type=int, default=32, help="requests in a batch")
    parser.add_argument("--patience", type=float, default=0.005, help="seconds that the first of a batch waits")
    arguments = parser.parse_args()
    listening = socket.create_server((arguments.host, arguments.port))
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # or an answer's second part waits 40 ms
    model = network()
    model.load_state_dict(torch.load(arguments.weights))
    print(f"listening on port {listening.getsockname()[1]}", flush=True)
    app = application(model.eval(), arguments.most, arguments.patience)
    uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=10)).run([listening])


if __name__ == "__main__":
    main()
