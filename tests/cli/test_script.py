"""A program run by us is the program run by python: output, exit status, traceback."""

import pytest

# `launch.py [-m] PROGRAM ARGS` runs a program with our script runner alone: without the commands,
# and without what `import aotdyn` would import every time.
LAUNCH = """
import importlib.util, sys, types
found = importlib.util.find_spec("aotdyn")
sys.modules["aotdyn"] = types.ModuleType("aotdyn")
sys.modules["aotdyn"].__path__ = found.submodule_search_locations
from aotdyn.cli import script
as_module = sys.argv[1] == "-m"
program = script.locate(tuple(sys.argv[1 + as_module:]), as_module)
sys.exit(program.run())
"""

PROGRAMS = {
    "what a script sees": """
        import sys
        print(sys.argv, sys.path[0], __file__, __name__, __package__, __spec__, __cached__)
        print(sorted(globals()), __builtins__, type(__loader__), __annotations__)
        print(sys.modules["__main__"].__dict__ is globals())
    """,
    "a module beside it": "import beside; print(beside.__file__)",
    "a class that is pickled": """
        import pickle
        class Point: pass
        print(pickle.loads(pickle.dumps(Point())).__class__ is Point)
    """,
    "exit without a code": "import sys; sys.exit()",
    "exit with a code": "import sys; sys.exit(7)",
    "exit with a text": "import sys; sys.exit('no luck')",
    "exit with False": "import sys; sys.exit(False)",
    "an exception": """
        def divide(n):
            return 1 / n
        print("before")
        divide(0)
    """,
    "an exception from another": """
        try:
            {}["a"]
        except KeyError as error:
            raise ValueError("b") from error
    """,
    "an exception during another": """
        try:
            {}["a"]
        finally:
            [][0]
    """,
    "an exception in a module beside it": "import raising",
    "an import that fails": "import there_is_no_such_module",
    "an exception group": "raise ExceptionGroup('all', [ValueError(1), TypeError(2)])",
    "a hook for exceptions": """
        import sys
        sys.excepthook = lambda kind, error, traceback: print("hooked", kind, traceback.tb_lineno)
        raise KeyError
    """,
    "an exception that needs its module to be printed": """
        class Odd(Exception):
            def __str__(self):
                return "odd " + __name__
        raise Odd
    """,
    "code that runs at exit": "import atexit; atexit.register(lambda: print('bye', __name__))",
    "a syntax error": "def f(:\n    pass",
    "warnings": "import warnings; warnings.warn('careful')",
    "an encoding": "# coding: latin-1\nprint('\u00e9'.encode())",
    "a future import": "from __future__ import annotations\nx: unknown = 1\nprint(__annotations__)",
    "no future import of ours": "def f(x: 1 + 1): pass\nprint(f.__annotations__)",
}


def dedent(text):
    lines = text.strip("\n").splitlines()
    indent = len(lines[0]) - len(lines[0].lstrip())
    return "\n".join(line[indent:] for line in lines) + "\n"


@pytest.fixture
def folder(tmp_path):
    inner = tmp_path / "pkg"
    inner.mkdir()
    (tmp_path / "beside.py").write_text("")
    (tmp_path / "raising.py").write_text("def f():\n    raise OSError(5, 'oh')\nf()\n")
    (inner / "__init__.py").write_text("print('package')\n")
    (inner / "__main__.py").write_text("print('main', __name__, __package__, __spec__.name)\n")
    (inner / "sub.py").write_text(
        "import sys\nfrom . import __name__ as parent\n"
        "print(parent, __name__, __package__, __spec__.name, __file__)\n"
        "print(sys.argv, sys.path[0], sys.modules['__main__'].__dict__ is globals())\n"
        "sys.exit(len(sys.argv))\n"
    )
    (tmp_path / "launch.py").write_text(LAUNCH)
    return tmp_path


@pytest.mark.parametrize("name", PROGRAMS)
def test_script_like_python(folder, python, name):
    (folder / "program.py").write_text(dedent(PROGRAMS[name]), encoding="latin-1")
    expected = python("program.py", "a", "-b", "--", "c")
    found = python("launch.py", "program.py", "a", "-b", "--", "c")
    assert (found.stdout, found.stderr) == (expected.stdout, expected.stderr)
    assert found.returncode == expected.returncode


@pytest.mark.parametrize("words", [["pkg"], ["pkg.sub"], ["pkg.sub", "a", "-m", "b"], ["beside"]])
def test_module_like_python(folder, python, words):
    expected = python("-m", *words)
    found = python("launch.py", "-m", *words)
    assert (found.stdout, found.stderr) == (expected.stdout, expected.stderr)
    assert found.returncode == expected.returncode


def test_script_in_another_folder(folder, python):
    (folder / "pkg" / "there.py").write_text("import sys\nimport sub_of_there\nprint(sys.path[0])")
    (folder / "pkg" / "sub_of_there.py").write_text("")
    found = python("launch.py", "pkg/there.py")
    assert (found.stdout, found.stderr) == (f"{folder / 'pkg'}\n", "")


def test_two_dashes_before_the_arguments_are_dropped(folder, python):
    (folder / "program.py").write_text("import sys; print(sys.argv)")
    found = python("launch.py", "program.py", "--", "--epochs", "1", "--")
    assert found.stdout == "['program.py', '--epochs', '1', '--']\n"


def test_interrupt(folder, python):
    (folder / "program.py").write_text("raise KeyboardInterrupt\n")
    found = python("launch.py", "program.py")
    assert found.returncode == 130
    assert found.stderr.splitlines()[-1] == "KeyboardInterrupt"


def test_safe_path_leaves_the_path_alone(folder, python):
    (folder / "program.py").write_text("import sys; print(sys.path[0])")
    found = python("-P", "launch.py", "program.py")
    expected = python("-P", "program.py")
    assert found.stdout == expected.stdout != f"{folder}\n"


OWN = """
import os, sys
from aotdyn.cli import script
from aotdyn.package.errors import AotdynError, Unsupported

def ours(source):
    "Code that looks as if it stood in a file of aotdyn's."
    space = {"AotdynError": AotdynError, "Unsupported": Unsupported}
    exec(compile(source, script.PACKAGE + "runtime" + os.sep + "dispatch.py", "exec"), space)
    return space["call"]

def theirs():
    raise ValueError("of the user")
"""


@pytest.mark.parametrize(
    "source, argument, shown",
    [
        ("def call(f):\n    return f()", "theirs", ["<module>", "theirs"]),
        ("def call(f):\n    raise Unsupported('no')", "theirs", ["<module>"]),
        ("def call(f):\n    return bug", "theirs", ["<module>", "call"]),
    ],
    ids=["through our code", "an error that we raise", "a bug of ours"],
)
def test_own_frames_in_tracebacks(folder, python, source, argument, shown):
    (folder / "program.py").write_text(f"{OWN}\nours({source!r})({argument})\n")
    found = python("launch.py", "program.py")
    assert found.returncode == 1
    frames = [line.split(", in ")[1] for line in found.stderr.splitlines() if ", in " in line]
    assert frames == shown


@pytest.mark.parametrize(
    "words, line",
    [
        (["record", "nowhere.py"], "cannot open the script nowhere.py: No such file or directory"),
        (["record", "pkg"], "cannot open the script pkg: Is a directory"),
        (["record", "-m", "nowhere"], "cannot run the module: No module named nowhere"),
        (["record", "-m", "pkg.nowhere"], "cannot run the module: No module named pkg.nowhere"),
    ],
)
def test_program_that_is_not_there(folder, aotdyn, words, line):
    done = aotdyn(*words)
    assert done.returncode == 2
    assert done.stderr == f"aotdyn: {line}\n"
    assert not list(folder.glob("*.rec"))


def test_program_that_is_not_given(aotdyn):
    done = aotdyn("record")
    assert done.returncode == 2
    assert "Missing argument 'SCRIPT' or '-m MODULE'" in done.stderr
