"""`aotdyn cache`: shows and clears what has been compiled."""

import pytest

from aotdyn.package.compilers.cache import Cache, digest
from aotdyn.package.printer import sized


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("AOTDYN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("AOTDYN_CACHE_LIMIT", "2")
    return Cache()


def test_an_empty_cache(cache, command):
    done = command("cache")
    assert done.returncode == 0
    assert done.stdout == f"{cache.folder}: 0 bytes of 2.1 MB\n"
    assert command("cache", "--clear").stdout == f"0 entries removed from {cache.folder}\n"


def test_what_is_in_it(cache, command):
    cache.put("object", digest("a"), bytes(1500))
    cache.put("object", digest("b"), bytes(500))
    cache.put("library", digest("a"), bytes(10))
    library, objects = cache.usage()
    assert (library.entries, objects.entries) == (1, 2) and objects.size >= 2000
    assert command("cache").stdout.splitlines() == [
        f"{cache.folder}: {sized(library.size + objects.size)} of 2.1 MB",
        f"  library: 1 entries, {sized(library.size)}",
        f"  object: 2 entries, {sized(objects.size)}",
    ]


def test_clearing(cache, command):
    for name in "abc":
        cache.put("object", digest(name), b"x")
    assert command("cache", "--clear").stdout == f"3 entries removed from {cache.folder}\n"
    assert cache.get("object", digest("a")) is None
    assert command("cache").stdout.startswith(f"{cache.folder}: 0 bytes")


def test_what_other_processes_are_writing_is_no_entry(cache, command):
    cache.put("object", digest("a"), b"x")
    (cache.folder / ".new-other" / "ab").mkdir(parents=True)
    (cache.folder / ".new-other" / "ab" / "half").write_bytes(bytes(99))
    assert "object: 1 entries" in command("cache").stdout
    assert command("cache", "--clear").stdout.startswith("1 entries removed")
    assert (cache.folder / ".new-other" / "ab" / "half").exists()
