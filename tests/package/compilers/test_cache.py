"""The compile cache: whole entries, a bound, and use by several processes."""

import os
import threading

import pytest

from aotdyn.package.compilers.cache import CHECKSUM, Cache, digest


@pytest.fixture
def cache(tmp_path):
    return Cache(tmp_path / "cache", limit=100 + 2 * CHECKSUM)


def key(text):
    return digest(text)


def test_entries_come_back(cache):
    assert cache.get("object", key("a")) is None and cache.path("object", key("a")) is None
    cache.put("object", key("a"), b"one")
    cache.put("library", key("a"), b"two")
    assert cache.get("object", key("a")) == b"one"
    assert cache.path("library", key("a")).read_bytes()[:-CHECKSUM] == b"two"
    assert [(u.kind, u.entries, u.size) for u in cache.usage()] == [
        ("library", 1, 3 + CHECKSUM),
        ("object", 1, 3 + CHECKSUM),
    ]


def test_an_entry_that_fails_is_none(cache):
    with pytest.raises(RuntimeError), cache.adding("object", key("a")) as scratch:
        scratch.write_bytes(b"half")
        raise RuntimeError
    assert cache.get("object", key("a")) is None
    assert not [name for name in os.listdir(cache.folder) if name.startswith(".new")]


@pytest.mark.parametrize("damage", [b"", b"on", b"onf", b"one" + bytes(CHECKSUM)])
def test_a_damaged_entry_is_none(cache, damage):
    for read in (cache.get, cache.path):
        path = cache.put("object", key("a"), b"one")
        path.write_bytes(damage + path.read_bytes()[len(damage) :] if damage == b"onf" else damage)
        assert read("object", key("a")) is None and not path.exists()


def test_what_killed_processes_leave_goes_away(cache):
    cache.put("object", key("a"), b"one")
    old, new = cache.folder / ".new-old", cache.folder / ".new-new"
    for folder in (old, new):
        folder.mkdir()
        (folder / "half").write_bytes(b"half")
    os.utime(old, (1000, 1000))
    cache.trim()
    assert not old.exists() and new.exists() and cache.get("object", key("a"))


def test_the_oldest_go_first(cache):
    for age, name in enumerate("abc"):
        path = cache.put("object", key(name), bytes(40))
        os.utime(path, (1000 + age, 1000 + age))
    assert cache.get("object", key("a"))  # now it is the newest
    assert cache.trim() == 1
    assert [bool(cache.get("object", key(name))) for name in "abc"] == [True, False, True]


def test_clearing(cache):
    cache.put("object", key("a"), b"x")
    assert cache.clear() == 1 and cache.usage() == []


def test_keys_tell_parts_apart():
    assert digest("ab", "c") != digest("a", "bc") != digest("abc")


def test_only_one_at_a_time(cache):
    order = []

    def hold(name):
        with cache.alone("header"):
            order.append(name)
            order.append(name)

    threads = [threading.Thread(target=hold, args=(i,)) for i in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert order[::2] == order[1::2]


def test_the_folder_and_the_limit_can_be_set(monkeypatch, tmp_path):
    monkeypatch.setenv("AOTDYN_CACHE", str(tmp_path / "named"))
    monkeypatch.setenv("AOTDYN_CACHE_LIMIT", "3")
    assert Cache().folder == tmp_path / "named" and Cache().limit == 3 << 20
    monkeypatch.delenv("AOTDYN_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert Cache().folder == tmp_path / "aotdyn"
