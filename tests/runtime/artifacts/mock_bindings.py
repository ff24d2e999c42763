"""What `cuda.bindings.driver` has of the driver, over the mock driver: answers and handles are
objects of its own, and arguments that the real one would refuse are errors."""

import ctypes
import enum


class CUresult(enum.IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_VALUE = 1
    CUDA_ERROR_INVALID_IMAGE = 200
    CUDA_ERROR_NOT_FOUND = 500


class CUfunction_attribute(enum.IntEnum):
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8


class Handle:
    def __init__(self, value):
        self.value = value


class CUmodule(Handle):
    pass


class CUfunction(Handle):
    pass


_library = None


def _mock():
    global _library
    if _library is None:
        _library = ctypes.CDLL("libcuda.so.1")
    return _library


def cuModuleLoadData(image):
    assert type(image) is int
    module = ctypes.c_void_p()
    answer = _mock().cuModuleLoadData(ctypes.byref(module), ctypes.c_void_p(image))
    return CUresult(answer), CUmodule(module)


def cuModuleGetFunction(module, name):
    assert type(module) is CUmodule and type(name) is bytes
    function = ctypes.c_void_p()
    answer = _mock().cuModuleGetFunction(ctypes.byref(function), module.value, name)
    return CUresult(answer), CUfunction(function)


def cuFuncSetAttribute(function, attribute, value):
    assert type(function) is CUfunction and type(attribute) is CUfunction_attribute
    return (CUresult(_mock().cuFuncSetAttribute(function.value, int(attribute), value)),)


def cuLaunchKernel(function, x, y, z, bx, by, bz, shared, stream, parameters, extra):
    assert type(function) is CUfunction and parameters == 0
    sizes = (x, y, z, bx, by, bz, shared, stream, extra)
    assert {*map(type, sizes)} == {int}
    answer = _mock().cuLaunchKernel(
        function.value, *sizes[:7], ctypes.c_void_p(stream), None, ctypes.c_void_p(extra)
    )
    return (CUresult(answer),)


def _text(name, error):
    assert type(error) is CUresult
    found = ctypes.c_char_p()
    getattr(_mock(), name)(int(error), ctypes.byref(found))
    return CUresult.CUDA_SUCCESS, found.value


def cuGetErrorName(error):
    return _text("cuGetErrorName", error)


def cuGetErrorString(error):
    return _text("cuGetErrorString", error)


def cuDriverGetVersion():
    version = ctypes.c_int()
    return CUresult(_mock().cuDriverGetVersion(ctypes.byref(version))), version.value
