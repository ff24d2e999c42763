"""Functions of the library whose results depend on their arguments alone: computed while tracing,
where these are plain."""

import ast
import base64
import binascii
import colorsys
import fnmatch
import html
import json
import shlex
import struct
import zlib

from ...package.interruptions import require_own
from ..folding import plain_arguments
from ..signals import GraphBreak, NotConstant
from .table import rule

_FUNCTIONS = (
    ast.literal_eval, base64.b64decode, base64.b64encode, binascii.crc32, binascii.hexlify,
    binascii.unhexlify, colorsys.hls_to_rgb, colorsys.hsv_to_rgb, colorsys.rgb_to_hls,
    colorsys.rgb_to_hsv, fnmatch.fnmatch, fnmatch.fnmatchcase, html.escape, html.unescape,
    json.dumps, json.loads, shlex.join, shlex.quote, shlex.split, struct.calcsize, struct.pack,
    struct.unpack, zlib.adler32, zlib.crc32,
)  # fmt: skip


def _computed(function) -> None:
    @rule(function)
    def compute(t, *args, **kwargs):
        try:
            values, named = plain_arguments(t, args, kwargs)
        except NotConstant:
            return NotImplemented
        try:
            result = function(*values, **named)
        except Exception as error:
            require_own(error)
            # Some of their exceptions hold more than their arguments tell.
            raise GraphBreak("exception", type(error).__qualname__) from None
        return t.wrap_result(result)


for _function in _FUNCTIONS:
    _computed(_function)
