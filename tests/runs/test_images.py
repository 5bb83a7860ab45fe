"""Images that a run is started with: from a person's file to whoever does the work (F5)."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import anyio.lowlevel
import msgspec
import pytest

from agentcanvas.app.planning import WorkspacePlanner
from agentcanvas.clock import SystemClock
from agentcanvas.errors import AgentCanvasError, ExecutionError
from agentcanvas.hub import images
from agentcanvas.hub.blobs import Blobs
from agentcanvas.protocol.limits import BlobLimits
from agentcanvas.protocol.records import BlobRef
from agentcanvas.runs.shown import Side
from agentcanvas.runs.state import RunStatus
from tests.chaos.driving import judged
from tests.runs.workspaces import engine_on, git, order, repository, solo

pytestmark = pytest.mark.anyio

PNG = b"\x89PNG\r\n\x1a\n" + b"pixels" * 100
COPYING = "case {images} in *.png) cp {images} seen.png;; esac; echo hello world > greeting.txt"
INTERRUPTED = f"test -f $HOME/second || {{ touch $HOME/second; sleep 600; }}; {COPYING}"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return repository(tmp_path / "repo", {"greeting.txt": "hello\n"})


@pytest.mark.req("F5")
async def test_the_worker_opens_the_image_and_git_sees_nothing_of_it(root: Path) -> None:
    ref = await images.keep_image(root / ".agentcanvas", PNG)
    assert ref == BlobRef.of(PNG, "image/png")
    assert await images.keep_image(root / ".agentcanvas", PNG) == ref
    async with engine_on(root) as engine:
        run_id = await engine.start(order(solo(COPYING), images=(ref,)))
        _ = [entry async for entry in engine.events(run_id)]
        assert (await engine.state(run_id)).status is RunStatus.PARKED
        assert await engine.file(run_id, "task-1", "seen.png", Side.AFTER) == PNG
        assert (await engine.order(run_id)).images == (ref,)
    assert "blobs" not in git(root, "status", "--porcelain", "-uall")


@pytest.mark.req("F5", "D18")
async def test_after_an_interruption_the_image_is_there_still(root: Path) -> None:
    ref = await images.keep_image(root / ".agentcanvas", PNG)
    async with engine_on(root) as engine:
        run_id = await engine.start(order(solo(INTERRUPTED), images=(ref,)))
        home = root / ".agentcanvas" / "sandboxes" / run_id / "coder" / "home"
        with anyio.fail_after(20):
            while not (home / "second").exists():
                await anyio.lowlevel.checkpoint()
    async with engine_on(root) as engine:
        await engine.resume(run_id)
        _ = [entry async for entry in engine.events(run_id)]
        assert await engine.file(run_id, "task-1", "seen.png", Side.AFTER) == PNG


async def test_a_run_does_not_start_with_an_image_that_is_not_there_or_another(root: Path) -> None:
    state = root / ".agentcanvas"
    ref = await images.keep_image(state, PNG)
    wrong = [
        (BlobRef.of(b"never sent", "image/png"),),
        (msgspec.structs.replace(ref, media="image/gif"),),
        (msgspec.structs.replace(ref, size=1),),
        (ref,) * (images.MOST_IMAGES + 1),
    ]
    async with engine_on(root) as engine:
        for refs in wrong:
            with pytest.raises(AgentCanvasError, match=r"hand it in again|leave some out"):
                await engine.start(order(solo("true"), images=refs))
        assert await engine.runs() == ()


async def test_a_damaged_image_is_not_handed_on(root: Path) -> None:
    ref = await images.keep_image(root, PNG)
    images.image_path(root, ref).write_bytes(PNG[:-1] + b"x")
    with pytest.raises(ExecutionError, match="gone or damaged"):
        images.unchanged_image(root, ref)


@pytest.mark.parametrize(
    ("content", "media"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
    ],
)
def test_an_image_is_known_by_its_first_bytes(content: bytes, media: str) -> None:
    assert images.image_ref(content).media == media


@pytest.mark.req("F5")
def test_a_file_that_is_no_image_to_hand_on_is_refused_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "page.png").write_text("<svg onload='alert(1)'/>")
    (tmp_path / "empty.png").touch()
    (tmp_path / "good.png").write_bytes(PNG)
    (tmp_path / "link.png").symlink_to("good.png")
    (tmp_path / "folder.png").mkdir()
    os.mkfifo(tmp_path / "pipe.png")
    with (tmp_path / "huge.png").open("wb") as file:
        file.write(PNG)
        file.truncate(images.LARGEST_IMAGE + 1)
    for name, sentence in {
        "page.png": "use PNG, JPEG, GIF or WebP",
        "empty.png": "use PNG, JPEG, GIF or WebP",
        "link.png": "is a link; name the image it leads to",
        "folder.png": "is not a file",
        "pipe.png": "is not a file",
        "huge.png": "make it smaller",
        "none.png": "No such file",
    }.items():
        with pytest.raises(AgentCanvasError, match=f"{name}.*{sentence}"):
            images.read_image(tmp_path / name)
    assert images.read_image(tmp_path / "good.png") == PNG


def later(root: Path, ref: BlobRef) -> None:
    """As if the image had been handed in two days ago."""
    path = images.image_path(root / ".agentcanvas", ref)
    long_ago = path.stat().st_mtime - 2 * images.WAITS_S
    os.utime(path, (long_ago, long_ago))


@pytest.mark.req("D15", "F5")
async def test_an_image_goes_with_the_last_run_that_needs_it_and_no_sooner(root: Path) -> None:
    state = root / ".agentcanvas"
    ref = await images.keep_image(state, PNG)
    waiting = await images.keep_image(state, PNG + b"for a run to be started")
    forgotten = await images.keep_image(state, PNG + b"of a form that was closed")
    later(root, ref)
    later(root, forgotten)
    async with engine_on(root) as engine:
        planner = WorkspacePlanner(engine, root)
        first, second = [await engine.start(order(solo(COPYING), images=(ref,))) for _ in "12"]
        for run_id in (first, second):
            _ = [entry async for entry in engine.events(run_id)]
        told = await planner.clean_up(0, remove=True)
        assert told.images == forgotten.size, "both runs wait for a person"
        assert not images.image_path(state, forgotten).exists()

        await judged(engine, first, decision="reject", reason="no")
        assert (await planner.clean_up(0, remove=True)).images == 0, "the other one waits still"
        await judged(engine, second, decision="reject", reason="no")
        announced = await planner.clean_up(0, remove=False)
        assert announced.images == ref.size
        assert announced.frees >= ref.size
        assert images.unchanged_image(state, ref).is_file()
        assert (await planner.clean_up(0, remove=True)).images == ref.size
        assert not images.image_path(state, ref).exists()
        assert images.unchanged_image(state, waiting).is_file()
        with pytest.raises(AgentCanvasError, match="hand it in again"):
            await engine.start(order(solo(COPYING), images=(ref,)))


async def test_a_file_that_an_agent_sent_as_well_outlives_the_image(tmp_path: Path) -> None:
    async def whole() -> AsyncIterator[bytes]:
        yield PNG

    ref = await images.keep_image(tmp_path, PNG)
    await Blobs(tmp_path / "blobs", BlobLimits()).put("coder", ref.sha256, whole())
    await images.drop_images(tmp_path, [ref.sha256, "0" * 64])
    assert images.unchanged_image(tmp_path, ref).is_file()


async def test_an_image_that_is_handed_in_again_is_new_again(root: Path) -> None:
    state = root / ".agentcanvas"
    ref = await images.keep_image(state, PNG)
    later(root, ref)
    now_ms = SystemClock().now_ms()
    assert await images.idle_images(state, (), now_ms=now_ms) == {ref.sha256: ref.size}
    assert await images.idle_images(state, {ref.sha256}, now_ms=now_ms) == {}
    await images.keep_image(state, PNG)
    assert await images.idle_images(state, (), now_ms=now_ms) == {}
