"""The exact behaviours that the tracer's reference description names."""

import torch


def test_straight_line_arithmetic(agree):
    def fn(x, y):
        z = (x - y) ** 2
        return z.sum()

    found = agree(fn, (torch.ones(3), torch.zeros(3)), graphs=1, breaks=0)
    assert found.ops() == ["sub", "pow", "sum"]


def test_int_becomes_symbolic_on_its_second_value(agree):
    def fn(x, n):
        y = x**2
        return (n + 1) * y if n >= 0 else y / n

    x = torch.ones(3)
    found = agree(fn, (x, 2), (x, 3), (x, -2), (x, 4), variants=3)
    assert found.graphs[0].nodes[1].args[0] == 3
    assert "n >= 0" in found.guards(1)
    assert "n < 0" in found.guards(2)
    assert found.ops(2) == ["pow", "truediv"]


def test_guard_on_type_and_value_of_a_string(agree):
    def fn(a, b):
        return a * len(b)

    found = agree(fn, (torch.ones(3), "Hello"), (torch.ones(3), "Hi"), variants=2)
    assert "b == 'Hello'" in found.guards(0)


def test_recompile_log_names_the_failing_guard(caplog):
    import aotdyn
    from aotdyn.runtime import logs

    @aotdyn.compile(backend="eager")
    def fn(a, b):
        return a * len(b)

    shown = []
    logs.sinks["recompiles"].append(shown.append)
    try:
        fn(torch.ones(3), "Hello")
        fn(torch.ones(3), "Hi")
    finally:
        logs.sinks["recompiles"].pop()
    assert len(shown) == 1
    assert "b == 'Hello'" in shown[0]
    assert "'Hi'" in shown[0]


def test_list_of_strings_is_guarded_whole(agree):
    def fn(x, l):
        return x * len(l[0])

    found = agree(fn, (torch.ones(3), ["Hi", "Hello"]), graphs=1)
    guards = found.guards()
    assert "type(l) is list" in guards
    assert "len(l) == 2" in guards
    assert "l[0] == 'Hi'" in guards
    assert "l[1] == 'Hello'" in guards


def test_equal_sizes_share_a_symbol(agree):
    def fn(a, b):
        return a.shape[0] * a * b

    calls = [(torch.randn(n, 3), torch.randn(n, 3)) for n in (4, 8, 20)]
    found = agree(fn, *calls, variants=2)
    assert found.graphs[0].nodes[0].args[0] == 4
    guards = found.guards(1)
    assert "a.size(0) >= 2" in guards
    assert "b.size(0) == a.size(0)" in guards
    assert len(found.graphs[1].symbols) == 1


def test_sizes_zero_and_one_are_static(agree):
    def fn(a):
        return a.sum() * a.shape[0]

    calls = [(torch.randn(n, 3),) for n in (4, 8, 0, 1, 9)]
    found = agree(fn, *calls, variants=4)
    assert [len(g.symbols) for g in found.graphs] == [0, 1, 0, 0]


def test_branch_on_a_symbolic_size_is_guarded_with_its_line(agree):
    def fn(a):
        return a if a.shape[0] * 2 < 16 else a + 1

    found = agree(fn, (torch.randn(8),), (torch.randn(9),), dynamic=True, variants=1)
    guard = next(g for g in found.variants[0].guards if "2*" in str(g.expected))
    assert guard.text(lambda reference: "") == "2*a.size(0) >= 16"
    assert guard.user == f"{__file__}:{fn.__code__.co_firstlineno + 1}"


def test_print_breaks_into_two_graphs(agree):
    def fn(a):
        b = a + 2
        print("Hi")
        return b + a

    found = agree(fn, (torch.ones(3),), (torch.ones(3),), graphs=2, breaks=1, variants=2)
    assert [o.printed for o in found.outcomes] == ["Hi\n", "Hi\n"]
    assert found.variants[1].entry.point is not None
