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
test_positional_only_arg test_pow test_property test_raise test_range test_richcmp test_scope
test_set test_setcomps test_slice test_sort test_statistics test_string test_subclassinit
test_super test_textwrap test_tuple test_types test_typing test_unary test_unpack test_unpack_ex
test_userdict test_userlist test_userstring test_weakref test_weakset test_with test_yield_from
""".split()

# Methods that look at what is bound to differ: "file.Class.method": why.
SKIPPED: dict[str, str] = {}
