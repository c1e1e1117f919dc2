"""The HTTP surface: every refusal is JSON, no connection can hold up another."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from endless_mode import __version__
from tests.processes import LONG, eventually
from tests.worker.parts import Place

CAP = 8 * 1024 * 1024


@pytest.fixture(params=["--h11", "--fast"])
def served(place: Place, request: pytest.FixtureRequest) -> Iterator[Place]:
    if request.param == "--fast":
        pytest.importorskip("httptools")
    place.worker(request.param)
    yield place


def call(place: Place, method: str, path: str, body: bytes = b"", extra: str = "") -> tuple[int, Any]:
    head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(body)}\r\n"
    answer = place.exchange(f"{head}{extra}\r\n".encode() + body)
    top, _, content = answer.partition(b"\r\n\r\n")
    return int(top[9:12]), json.loads(content) if content[:1] in b"{[" and content else content


def refused(place: Place, method: str, path: str, body: bytes = b"") -> tuple[int, str]:
    status, error = call(place, method, path, body)
    assert set(error) == {"code", "message", "hint"}
    assert all(isinstance(part, str) for part in error.values()) and error["message"]
    return status, error["code"]


def test_health_says_who_answers(served: Place) -> None:
    status, health = call(served, "GET", "/api/health")
    assert status == 200
    assert (health["status"], health["version"], health["protocol"]) == ("ok", __version__, 1)
    assert health["pid"] == served.worker_pid()


def test_a_seal_is_answered(served: Place) -> None:
    path = served.projects / "s-1.jsonl"
    body = json.dumps({"contentSessionId": "s-1", "transcriptPath": str(path), "timeoutMs": 5}).encode()
    environ = f"X-Endless-User-Home: {served.root}\r\n"
    assert call(served, "POST", "/api/sessions/seal", body, environ) == (
        200,
        {"sealed": True, "gap": 2, "bottlePath": "/bottle.md", "mode": "full"},
    )
    assert served.calls("seal")[0]["timeout"] == 5
    body = json.dumps({"contentSessionId": "s-1", "transcriptPath": str(path)}).encode()
    call(served, "POST", "/api/sessions/seal", body)
    assert served.calls("seal")[1]["timeout"] == 20_000


def test_a_bottle_is_queued_or_waited_for(served: Place) -> None:
    assert call(served, "POST", "/api/sessions/render-bottle", b'{"contentSessionId":"s"}')[0] == 202
    body = b'{"contentSessionId":"s","wait":true}'
    assert call(served, "POST", "/api/sessions/render-bottle", body) == (
        200,
        {"queued": False, "bottlePath": "/bottle.md", "mode": None},
    )


def test_the_drain_is_told(served: Place) -> None:
    status, drain = call(served, "GET", "/api/sessions/drain-status?contentSessionId=s-1")
    assert status == 200
    assert drain == {
        "contentSessionId": "s-1", "drained": False, "pending": 3, "claimed": 0, "generating": False
    }  # fmt: skip


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("GET", "/", b"", 404, "not_found"),
        ("POST", "/api/sessions", b"{}", 404, "not_found"),
        ("GET", "/api/sessions/seal", b"", 405, "method_not_allowed"),
        ("DELETE", "/hooks/claude-code/Stop", b"", 405, "method_not_allowed"),
        ("POST", "/hooks/Claude/Stop", b"{}", 404, "unknown_hook"),
        ("POST", "/hooks/claude-code/..", b"{}", 404, "unknown_hook"),
        ("POST", "/hooks/claude-code/stop", b"{}", 404, "unknown_hook"),
        ("POST", "/hooks/claude-code/Stop", b"", 400, "malformed_json"),
        ("POST", "/hooks/claude-code/Stop", b"\xff\xfe", 400, "malformed_json"),
        ("POST", "/hooks/claude-code/Stop", b"[" * 100_000, 400, "malformed_json"),
        ("POST", "/hooks/claude-code/Stop", b"[1]", 400, "invalid_body"),
        ("POST", "/hooks/claude-code/Stop", b'{"session_id":"../etc"}', 400, "bad_session_id"),
        ("POST", "/hooks/claude-code/Stop", b'{"transcript_path":"/etc/passwd"}', 400, "transcript_refused"),
        ("POST", "/hooks/claude-code/Stop", b'{"session_id":"s","prompt":"fail:x"}', 500, "internal_error"),
        ("POST", "/api/sessions/seal", b"{", 400, "malformed_json"),
        ("POST", "/api/sessions/seal", b"[]", 400, "invalid_body"),
        ("POST", "/api/sessions/seal", b'{"contentSessionId":"s"}', 400, "invalid_body"),
        ("POST", "/api/sessions/seal", b'{"contentSessionId":7,"transcriptPath":"/x"}', 400, "invalid_body"),
        (
            "POST",
            "/api/sessions/seal",
            b'{"contentSessionId":"..","transcriptPath":"/x"}',
            400,
            "invalid_body",
        ),
        (
            "POST",
            "/api/sessions/seal",
            b'{"contentSessionId":"s","transcriptPath":"/x","timeoutMs":60001}',
            400,
            "invalid_body",
        ),
        (
            "POST",
            "/api/sessions/seal",
            b'{"contentSessionId":"s","transcriptPath":"/etc/x.jsonl"}',
            400,
            "transcript_refused",
        ),
        ("POST", "/api/sessions/render-bottle", b'{"contentSessionId":"s","more":1}', 400, "invalid_body"),
        ("GET", "/api/sessions/drain-status", b"", 400, "bad_session_id"),
        ("GET", "/api/sessions/drain-status?contentSessionId=a/b", b"", 400, "bad_session_id"),
        ("POST", "/api/worker/stop", b'{"version":1}', 400, "invalid_body"),
    ],
)
def test_what_is_wrong_is_refused_as_json(
    served: Place, method: str, path: str, body: bytes, status: int, code: str
) -> None:
    assert refused(served, method, path, body) == (status, code)


def test_what_is_no_http_is_refused_as_json(served: Place) -> None:
    for garbage in (
        b"\x16\x03\x01\x02\x00\x01\r\n\r\n",
        b"GET\r\n\r\n",
        b"POST / HTTP/1.1\r\nbad header\r\n\r\n",
    ):
        head, _, body = served.exchange(garbage).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 400")
        assert json.loads(body)["code"] == "malformed_http"


def test_an_announced_large_body_is_refused_before_it_is_sent(served: Place) -> None:
    head = b"POST /hooks/claude-code/Stop HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (CAP + 1)
    answer = served.exchange(head)
    assert answer.startswith(b"HTTP/1.1 413")
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["code"] == "too_large"


def test_a_streamed_body_is_refused_when_it_grows_too_large(served: Place) -> None:
    head = b"POST /hooks/claude-code/Stop HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunk = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
    answer = served.exchange(head + chunk * 40)
    assert answer.startswith(b"HTTP/1.1 413")
    assert call(served, "GET", "/api/health")[0] == 200


def test_a_body_of_just_the_allowed_size_is_taken(served: Place) -> None:
    body = served.payload("Stop", "say:big")
    assert call(served, "POST", "/hooks/claude-code/Stop", body + b" " * (CAP - len(body)))[0] == 200


def test_200_stalled_connections_hold_nobody_up(served: Place) -> None:
    stalled: list[socket.socket] = []
    for n in range(200):
        sock = served.connect()
        sock.sendall((b"", b"POST /ho", b"POST /hooks/claude-code/Stop HTTP/1.1\r\nContent-Length: 99\r\n\r\n{")[n % 3])
        stalled.append(sock)
    answers = [served.hook("Stop", served.payload("Stop", f"say:{n}")).stdout for n in range(5)]
    assert answers == [b"%d" % n for n in range(5)]
    for sock in stalled:
        sock.close()


def test_stalled_connections_are_closed_after_a_while(served: Place) -> None:
    quiet, begun, slow = served.connect(), served.connect(), served.connect()
    begun.sendall(b"GET /api/health HTT")
    slow.sendall(b"POST /hooks/claude-code/Stop HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{")
    assert quiet.recv(100) == b""
    assert begun.recv(100) == b""
    assert slow.recv(100).startswith(b"HTTP/1.1 408")
    for sock in (quiet, begun, slow):
        sock.close()


def test_a_connection_may_carry_several_requests(served: Place) -> None:
    with served.connect() as sock:
        for _ in range(3):
            sock.sendall(b"GET /api/health HTTP/1.1\r\nHost: x\r\n\r\n")
            answer = b""
            while not answer.endswith(b"}"):
                answer += sock.recv(4096)
            assert answer.startswith(b"HTTP/1.1 200")


def test_many_requests_run_side_by_side(served: Place) -> None:
    held = [served.hook_process("PreCompact", served.payload("PreCompact", f"hold:d{n}")) for n in range(4)]
    for n in range(4):
        eventually((served.home.root / f"d{n}.held").exists)
    assert served.hook("Stop", served.payload("Stop", "say:quick")).stdout == b"quick"
    for n in range(4):
        (served.home.root / f"d{n}").touch()
    assert [child.communicate(timeout=LONG)[0] for child in held] == [b"released"] * 4


def test_odd_values_in_a_hook_input_cost_only_themselves(served: Place) -> None:
    body = (
        b'\xef\xbb\xbf{"session_id":"s-9","prompt":"say:half a \\ud83d pair","context_tokens":1.5,'
        b'"model":{"id":"x"},"agent_id":null,"stop_hook_active":NaN}'
    )
    assert call(served, "POST", "/hooks/claude-code/Stop", body) == (200, "half a \ufffd pair".encode())
    assert served.calls()[0]["session"] == "s-9"


def test_the_openapi_document_names_every_route_and_resolves(served: Place) -> None:
    status, document = call(served, "GET", "/api/openapi.json")
    assert status == 200 and document["openapi"] == "3.1.0"
    assert set(document["paths"]) >= {
        "/api/sessions/seal",
        "/api/sessions/render-bottle",
        "/api/sessions/drain-status",
        "/api/health",
        "/api/worker/stop",
        "/api/openapi.json",
        "/hooks/{client}/{event}",
    }
    schemas = document["components"]["schemas"]
    assert set(schemas["SealRequest"]["properties"]) == {"contentSessionId", "transcriptPath", "timeoutMs"}

    def references(node: Any) -> Iterator[str]:
        if isinstance(node, dict):
            if "$ref" in node:
                yield node["$ref"]
            for value in node.values():
                yield from references(value)
        elif isinstance(node, list):
            for value in node:
                yield from references(value)

    assert {name.rpartition("/")[2] for name in references(document)} == set(schemas)


def test_the_log_never_holds_what_was_said(served: Place) -> None:
    mark = "MARKER-4711"
    bodies = [
        served.payload("Stop", mark),
        served.payload("Stop", "fail:" + mark),
        served.payload("Stop", session_id=mark + "/.."),
        served.payload("Stop", transcript_path="/etc/" + mark),
        served.payload("Stop", cwd=mark, model=mark, last_assistant_message=mark),
        mark.encode(),
        json.dumps({mark: mark}).encode(),
    ]
    for body in bodies:
        served.hook("Stop", body)
        call(served, "POST", "/api/sessions/seal", body, f"X-Endless-Project-Dir: {mark}\r\n")
        call(served, "POST", f"/api/{mark}?{mark}", body)
        call(served, "POST", f"/hooks/claude-code/{mark}", body)
    served.exchange(f"{mark}\r\n{mark}\r\n\r\n".encode())
    eventually(lambda: served.log("failed"))
    served.client.stop()
    eventually(lambda: not served.locked())
    for path in served.home.logs.iterdir():
        assert mark not in path.read_text()
    (failed,) = served.log("failed")
    assert failed["error"] == "RuntimeError" and failed["where"].startswith("recording.py:")
