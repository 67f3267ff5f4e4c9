"""The peer of the service's rows: FastAPI, a call parsed, one row stored with the same group commit, an id answered."""

from __future__ import annotations

import random
import socket
import time
from pathlib import Path

import msgspec
import uvicorn
from fastapi import FastAPI, Request, Response

from o2pl.serving.batch_writes import DecisionRow, RewardRow, new_event_id
from o2pl.serving.store import Store
from o2pl.serving.writer import Writer


def make_app(folder: Path) -> FastAPI:
    store = Store.open(folder / "o2pl.sqlite")
    number = store.add_application("minimal").id
    writer = Writer(store)
    app = FastAPI()

    @app.post("/personalizer/v1.0/rank")
    async def rank(request: Request) -> Response:
        body = await request.body()
        actions = [each["id"] for each in msgspec.json.decode(body)["actions"]]
        event, place = new_event_id(), random.randrange(len(actions))
        row = DecisionRow(
            number, event, "", time.time(), body, msgspec.json.encode(actions), place, None, 1 / len(actions), None,
            0.5, 0.0, 0,
        )  # fmt: skip
        await writer.write([row])
        answer = {"eventId": event, "rewardActionId": actions[place]}
        return Response(msgspec.json.encode(answer), 201, media_type="application/json")

    @app.post("/personalizer/v1.0/events/{event}/reward")
    async def reward(event: str, request: Request) -> Response:
        value = msgspec.json.decode(await request.body())["value"]
        await writer.write([RewardRow(number, event, "", value, time.time())])
        return Response(status_code=204)

    return app


def main(folder: str) -> None:
    listening = socket.create_server(("127.0.0.1", 0), backlog=2048)
    print(f"ready: http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
    config = uvicorn.Config(make_app(Path(folder)), http="httptools", access_log=False, log_level="warning")
    uvicorn.Server(config).run(sockets=[listening])
