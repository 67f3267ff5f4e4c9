"""`o2pl explain EVENT`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.serving.trained import said, train
from typer.testing import CliRunner

from o2pl.cli import app
from o2pl.serving.store import Store


def test_an_event_is_explained_and_a_model_file_too(store: Store, tmp_path: Path) -> None:
    trained = train(store)
    told = said(trained, "explain", "b2-7")
    assert "event b2-7: a" in told
    assert "version 2" in told
    assert "identical, bit for bit" in told
    assert "shared.reader.likes" in told
    assert "no model yet: uniform" in said(trained, "explain", "b0-3")
    assert "found no event 'nobody'" in said(trained, "explain", "nobody", fails=True)
    file = tmp_path / "policy.o2pl"
    said(trained, "models", "export", "2", str(file))
    context = '{"reader": {"likes": "arts"}, "_multi": [{"id": "a0", "topic": "news"}, {"id": "a2", "topic": "arts"}]}'
    done: Any = CliRunner().invoke(app, ["explain", str(file), "--context", context])
    assert done.exit_code == 0, done.output
    assert "shared.reader.likes" in done.output
    assert "found with --context" in said(trained, "explain", str(file), "--context", context, fails=True)
