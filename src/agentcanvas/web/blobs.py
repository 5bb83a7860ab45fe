"""The door for what is too large for a message: ``/api/v1/blobs/<sha256>`` (D35)."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import FileResponse, Response

from agentcanvas.hub.blobs import BlobReceipt, Blobs
from agentcanvas.hub.guard import Principal
from agentcanvas.web.doors import Doors
from agentcanvas.web.messages import AgentHeaders, AgentQuery
from agentcanvas.web.operation import Operation, operation
from agentcanvas.web.views import BlobPath

_CREATED = 201
_TYPE = "application/octet-stream"


class BlobsApi:
    """The operations on blobs; any agent may read what it knows the hash of."""

    def __init__(self, doors: Doors, blobs: Blobs) -> None:
        self._doors = doors
        self._blobs = blobs

    def routes(self) -> list[Operation]:
        """Every operation at its address."""
        path = "/blobs/{sha256}"
        return [
            operation("PUT", path, self.put, status=_CREATED),
            operation("GET", path, self.get),
            operation("DELETE", path, self.drop),
        ]

    async def put(
        self, path: BlobPath, query: AgentQuery, headers: AgentHeaders, request: Request
    ) -> BlobReceipt:
        """Keep a blob; its address is the hash of its content."""
        principal = await self._recognise(query, headers)
        return await self._blobs.put(principal.id, path.sha256, request.stream())

    async def get(self, path: BlobPath, query: AgentQuery, headers: AgentHeaders) -> Response:
        """Give a blob out, as a stream of bytes and nothing a browser would show."""
        await self._recognise(query, headers)
        found = await self._blobs.find(path.sha256)
        return FileResponse(found, media_type=_TYPE, filename=path.sha256)

    async def drop(self, path: BlobPath, query: AgentQuery, headers: AgentHeaders) -> None:
        """Keep a blob no longer; what nobody keeps is gone."""
        principal = await self._recognise(query, headers)
        await self._blobs.drop(principal.id, path.sha256)

    async def _recognise(self, query: AgentQuery, headers: AgentHeaders) -> Principal:
        return await self._doors.recognise(query.shown(headers))
