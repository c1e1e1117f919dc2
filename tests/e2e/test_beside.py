"""Both programs in one client: each captures, each says its own once, and of two handoffs ours gives way."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .answers import bash, call, say
from .client import Client
from .home import wait_until
from .messages_api import MessagesApi
from .neighbour import THEIR_HANDOFF, TIMELINE, Neighbour, doctor_line
from .plan import HANDOFF_HEADER, handoffs_in
from .surviving import Surviving, surviving

pytestmark = pytest.mark.e2e

OUR_TIMELINE = "# Endless Mode — recent work in this project"


@pytest.fixture
def us(client: Client, api: MessagesApi, endless_bin: Path) -> Iterator[Surviving]:
    with surviving(client, api, endless_bin) as found:
        yield found


def test_beside_a_running_claude_mem_both_capture_and_each_speaks_once(us: Surviving, api: MessagesApi) -> None:
    neighbour = Neighbour(us.home)
    api.script([say("Hello.")])
    us.client.run("An earlier session", skip_permissions=True)
    seen = len(api.main)
    with neighbour.at_work() as pid:
        api.script([call(bash("echo one")), call(bash("echo two")).full(), call(bash("echo three")), say("Through.")])
        result = us.client.run("Count the herons until full", skip_permissions=True)
        assert result.text == "Through.", result.stderr
        found = doctor_line(us.home.command([us.endless, "doctor", "--json"]), "beside")
    first, after = api.main[seen], api.after_compaction()
    assert (first.count(TIMELINE), first.count(OUR_TIMELINE)) == (1, 0), "its timeline, and not ours as well"
    us.once(after, "Count the herons until full", result.session_id)
    assert (after.count(TIMELINE), after.count(OUR_TIMELINE)) == (1, 0)
    assert found["status"] == "ok" and "claude-mem works here too" in found["message"] and str(pid) in found["message"]
    wait_until(lambda: "Through." in us.bottle(result.session_id), what="the bottle after the end")
    text = us.bottle(result.session_id)
    assert "echo three" in text and "[#cm:" in text and "a wading bird" in text
    mine = f"WHERE content_session_id = '{result.session_id}'"
    assert neighbour.rows(f"SELECT prompt_text FROM user_prompts {mine}") == [("Count the herons until full",)]
    assert neighbour.rows("SELECT count(*) FROM observations") == [(3,)]
    assert neighbour.rows("SELECT count(*) FROM sdk_sessions") == [(2,)]


def test_beside_its_endless_mode_ours_stands_down_and_doctor_says_so(us: Surviving, api: MessagesApi) -> None:
    Neighbour(us.home, hands_over=True)
    api.script([call(bash("echo one")), call(bash("echo two")).full(), call(bash("echo three")), say("Through.")])
    result = us.client.run("Count the herons until full", skip_permissions=True)
    assert result.text == "Through.", result.stderr
    after = api.after_compaction()
    assert after.count(HANDOFF_HEADER) == 1
    assert handoffs_in(after)[0].startswith(THEIR_HANDOFF)
    assert "(Endless Mode handoff " not in after.text
    found = doctor_line(us.home.command([us.endless, "doctor", "--json"]), "beside")
    assert found["status"] == "warn" and "hands nothing over here" in found["message"]
    wait_until(lambda: "Through." in us.bottle(result.session_id), what="our bottle all the same")
