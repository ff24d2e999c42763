"""CPython's own test files of the language, as each Python installation ships them, and what of
them cannot be run compiled."""

FILES = """
test_augassign test_binop test_bisect test_bool test_builtin test_bytes test_call test_collections
test_compare test_complex test_contains test_context test_contextlib test_copy test_decorators
test_defaultdict test_deque test_descr test_dict test_dictcomps test_dictviews test_dynamic
test_dynamicclassattribute test_enum test_enumerate test_except_star test_exception_group
test_exception_hierarchy test_exception_variations test_exceptions test_extcall test_float
test_format test_fractions test_fstring test_funcattrs test_functools test_generator_stop
test_generators test_genericalias test_genericclass test_genexps test_global test_grammar test_hash
test_heapq test_index test_int test_isinstance test_iter test_iterlen test_itertools
test_keywordonlyarg test_list test_listcomps test_long test_math test_metaclass
test_named_expressions test_numeric_tower test_opcodes test_operator test_ordered_dict test_patma
test_positional_only_arg test_pow test_property test_raise test_random test_range test_re
test_richcmp test_scope test_set test_setcomps test_slice test_sort test_statistics test_string
test_struct test_subclassinit test_super test_textwrap test_tuple test_types test_typing test_unary
test_unpack test_unpack_ex
test_userdict test_userlist test_userstring test_weakref test_weakset test_with test_yield_from
""".split()

# What the test command runs: some tens of methods.
QUICK = """
test_augassign test_binop test_contains test_keywordonlyarg test_raise.TestRaise
test_super.TestSuper.test_super_argtype test_named_expressions.NamedExpressionAssignmentTest
""".split()

# What some methods look at, which is not the same compiled, or left open by the language.
_ADDRESSES = "counts the addresses of objects that are freed at once"
_LAYOUT = "measures the memory of an object"
_TRACEBACK = "walks a traceback: frames of aotdyn stand between those of the program"
_IDENTITY = "asks whether equal strings are one object"
_FREED = "asks whether an object is freed that a part of the frame was called with"
_TRACING = "traces the lines of the program with sys.settrace"
_CLASSES = "asks which classes are left that no variable is needed for any more"
_SIGNAL = "a signal arrives in C, where the frames of aotdyn stand"
_STACK = "leaves itself a stack of some ten frames"
_NAMES = "keeps a name in a class or an object that changes classes where it is compared"
_FRAMES = "tells the source lines of all frames each time that the collector runs"
_SLOT = "relies on a slot of C that CPython fails to bring up to date"
_TIME = "asks for a time that only code without a tracer keeps"
_WARNINGS = "counts the warnings of a deprecated name, which is looked at while tracing, too"

# "file.Class.method": why.
SKIPPED: dict[str, str] = {
    "test_dict.DictTest.test_splittable_popitem": _LAYOUT,
    "test_dict.DictTest.test_str_nonstr": _IDENTITY,
    "test_dict.DictTest.test_oob_indexing_dictiter_iternextitem": _FREED,
    "test_descr.ClassPropertiesAndMethods.test_mutable_bases_catch_mro_conflict": _CLASSES,
    "test_descr.ClassPropertiesAndMethods.test_restored_object_new": _SLOT,
    "test_descr.ClassPropertiesAndMethods.test_slots": _LAYOUT,
    "test_descr.ClassPropertiesAndMethods.test_vicious_descriptor_nonsense": _NAMES,
    "test_descr.MiscTests.test_type_lookup_mro_reference": _NAMES,
    "test_descr.SharedKeyTests.test_subclasses": _LAYOUT,
    "test_exceptions.ExceptionTests.test_recursion_in_except_handler": _STACK,
    "test_functools.TestUpdateWrapper.test_default_update": _IDENTITY,
    "test_functools.TestWraps.test_default_update": _IDENTITY,
    "test_generators.GeneratorTest.test_handle_frame_object_in_creation": _FRAMES,
    "test_generators.SignalAndYieldFromTest.test_raise_and_yield_from": _SIGNAL,
    "test_typing.IOTests.test_io_submodule": _WARNINGS,
    "test_typing.RETests.test_re_submodule": _WARNINGS,
    "test_bytes.BytesTest.test_repeat_id_preserving": _IDENTITY,
    "test_raise.TestTracebackType.test_attrs": _TRACEBACK,
    "test_exceptions.ExceptionTests.testSettingException": _TRACEBACK,
    "test_exceptions.ExceptionTests.testExceptionCleanupState": _FREED,
    **{
        f"test_exceptions.PEP626Tests.test_{each}": _TRACEBACK
        for each in (
            "lineno_after_other_except", "lineno_after_raise_in_except",
            "lineno_after_raise_in_with_exit", "lineno_after_raise_simple", "lineno_after_with",
            "lineno_in_finally_except", "lineno_in_finally_normal", "lineno_in_named_except",
            "lineno_in_try", "missing_lineno_shows_as_none",
        )
    },
    "test_exception_group.ExceptionGroupFields.test_basics_ExceptionGroup_fields": _TRACEBACK,
    "test_exception_group.NestedExceptionGroupBasicsTest.test_iteration_full_tracebacks":
        _TRACEBACK,
    "test_exception_group.NestedExceptionGroupBasicsTest.test_nested_exception_group_tracebacks":
        _TRACEBACK,
    "test_tuple.TupleTest.test_free_after_iterating": _FREED,
    "test_list.ListTest.test_free_after_iterating": _FREED,
    "test_copy.TestCopy.test_copy_weakkeydict": _FREED,
    "test_copy.TestCopy.test_copy_weakvaluedict": _FREED,
    "test_contextlib.ContextManagerTestCase.test_nokeepref": _FREED,
    "test_contextlib.TestExitStack.test_exit_exception_traceback": _TRACEBACK,
    **{
        f"test_operator.{each}OperatorTestCase.{method}": _IDENTITY
        for each in ("C", "Py") for method in ("test_is", "test_is_not")
    },
    **{
        f"test_patma.TestTracing.{each}": _TRACING
        for each in ("test_default_capture", "test_default_wildcard", "test_no_default",
                     "test_only_default_capture", "test_only_default_wildcard",
                     "test_unreachable_code")
    },
    "test_re.ReTests.test_search_anchor_at_beginning": _TIME,
    **{
        f"test_itertools.TestBasicOps.test_{each}_tuple_reuse": _ADDRESSES
        for each in ("combinations", "combinations_with_replacement", "permutations", "product",
                     "zip", "zip_longest")
    },
    **{
        f"test_enumerate.{each}.test_tuple_reuse": _ADDRESSES
        for each in ("EnumerateStartTestCase", "EnumerateTestCase", "SubclassTestCase", "TestBig",
                     "TestLongStart", "TestStart", "TestEmpty")
    },
}  # fmt: skip
