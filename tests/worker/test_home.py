"""Where things are, and that the hook and the worker agree on it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from endless_mode.errors import HomeError
from endless_mode.home import Home, find_home
from endless_mode.hook import hook
from tests.processes import LONG
from tests.worker.parts import HOOK

SEGMENT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="/\0"), min_size=1, max_size=60).filter(
    lambda name: name not in (".", "..")
)
PATHS = st.lists(SEGMENT, min_size=1, max_size=6).map(lambda parts: "/" + "/".join(parts))


@given(data=PATHS, user=PATHS, runtime=PATHS | st.just(""), given=st.booleans(), slash=st.booleans())
def test_the_socket_is_short_private_and_the_same_for_every_spelling(
    data: str, user: str, runtime: str, given: bool, slash: bool
) -> None:
    environ = {b"HOME": os.fsencode(user)}
    if given:
        environ[b"CLAUDE_MEM_DATA_DIR"] = os.fsencode(data + "/" * slash)
    if runtime:
        environ[b"XDG_RUNTIME_DIR"] = os.fsencode(runtime)
    home = find_home(environ)
    assert home.root == Path(data if given else user + "/.claude-mem") / "endless"
    path = os.fsencode(home.socket)
    assert len(path) < 104
    assert path == hook.socket_path(hook.home_dir(hook.data_dir(environ)), environ)
    assert path == os.fsencode(Home(home.data_dir, environ).socket)
    if path.startswith(os.fsencode(home.root) + b"/"):
        assert home.socket == home.run / "worker.sock"
    else:
        assert b"/endless-%d-" % os.getuid() in path


@pytest.mark.parametrize("length", [10, 150])
def test_the_hook_process_computes_what_the_package_computes(tmp_path: Path, length: int) -> None:
    environ = {"HOME": str(tmp_path), "CLAUDE_MEM_DATA_DIR": str(tmp_path / ("ü" * length)), "LC_ALL": "C"}
    program = (
        "import sys, posix; g = {'__name__': 'hook', '__file__': sys.argv[1]};"
        "exec(compile(open(sys.argv[1], 'rb').read(), sys.argv[1], 'exec'), g); e = posix.environ;"
        "posix.write(1, g['socket_path'](g['home_dir'](g['data_dir'](e)), e))"
    )
    command = [sys.executable, "-I", "-S", "-c", program, str(HOOK.with_name("hook.py"))]
    said = subprocess.run(command, env=environ, capture_output=True, timeout=LONG, check=True).stdout
    assert said == os.fsencode(find_home({os.fsencode(k): os.fsencode(v) for k, v in environ.items()}).socket)


def test_two_long_homes_have_two_sockets() -> None:
    long = "/" + "x" * 200
    assert Home(Path(long + "a"), {}).socket != Home(Path(long + "b"), {}).socket


def test_without_a_home_variable_the_users_entry_is_used() -> None:
    import pwd

    assert str(find_home({}).root) == pwd.getpwuid(os.getuid()).pw_dir + "/.claude-mem/endless"


def test_a_relative_data_directory_is_not_taken() -> None:
    environ = {b"HOME": b"/u", b"CLAUDE_MEM_DATA_DIR": b"here"}
    assert find_home(environ).root == Path("/u/.claude-mem/endless")


def test_making_a_home_makes_it_private_and_twice_is_once(tmp_path: Path) -> None:
    home = Home(tmp_path / "a/b", {})
    home.create()
    home.create()
    for path in (home.root, home.bottles, home.archive, home.run, home.spool, home.logs):
        assert path.stat().st_mode & 0o777 == 0o700


def test_an_open_runtime_directory_is_refused(tmp_path: Path) -> None:
    home = Home(tmp_path / ("d" * 150), {})
    if home.socket.parent.exists():
        pytest.fail("a directory of this name should not exist")
    home.socket.parent.mkdir()
    home.socket.parent.chmod(0o777)
    try:
        with pytest.raises(HomeError) as caught:
            home.create()
        assert caught.value.code == "runtime_dir_unsafe"
    finally:
        home.socket.parent.rmdir()


def test_a_link_in_place_of_the_runtime_directory_is_refused(tmp_path: Path) -> None:
    home = Home(tmp_path / ("d" * 151), {})
    mine = tmp_path / "mine"
    mine.mkdir(mode=0o700)
    home.socket.parent.symlink_to(mine)
    try:
        with pytest.raises(HomeError):
            home.create()
    finally:
        home.socket.parent.unlink()
