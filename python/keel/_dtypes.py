"""Types of elements, by name. NumPy's and Python's own are understood; NumPy is not needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    import numpy.typing as npt

# "float32", numpy.float32, numpy.dtype("float32"), float
DTypeLike: TypeAlias = "str | type[Any] | npt.DTypeLike"


class DType(NamedTuple):
    name: str
    itemsize: int
    code: int  # DLPack's
    typestr: str  # of array interfaces; empty: they have none


# DLPack's codes.
_INT, _UINT, _FLOAT, _BFLOAT, _COMPLEX, _BOOL = 0, 1, 2, 4, 5, 6

DTYPES: dict[str, DType] = {
    dtype.name: dtype
    for dtype in (
        DType("bool", 1, _BOOL, "|b1"),
        DType("int8", 1, _INT, "|i1"),
        DType("int16", 2, _INT, "<i2"),
        DType("int32", 4, _INT, "<i4"),
        DType("int64", 8, _INT, "<i8"),
        DType("uint8", 1, _UINT, "|u1"),
        DType("uint16", 2, _UINT, "<u2"),
        DType("uint32", 4, _UINT, "<u4"),
        DType("uint64", 8, _UINT, "<u8"),
        DType("float16", 2, _FLOAT, "<f2"),
        DType("bfloat16", 2, _BFLOAT, ""),
        DType("float32", 4, _FLOAT, "<f4"),
        DType("float64", 8, _FLOAT, "<f8"),
        DType("complex64", 8, _COMPLEX, "<c8"),
        DType("complex128", 16, _COMPLEX, "<c16"),
    )
}
_PYTHON_TYPES: dict[Any, str] = {
    bool: "bool",
    int: "int64",
    float: "float64",
    complex: "complex128",
}
# Of the struct module, which buffers describe their elements with: kind by letter.
_LETTERS = {
    **dict.fromkeys("bhilqn", "int"),
    **dict.fromkeys("BHILQN", "uint"),
    **dict.fromkeys("efd", "float"),
    **dict.fromkeys(("Zf", "Zd"), "complex"),
}


def dtype_of(dtype: DTypeLike) -> DType:
    """TypeError names what is not a type of elements."""
    name: Any = dtype
    if not isinstance(dtype, str):
        name = _PYTHON_TYPES.get(dtype)
        if name is None:
            if getattr(dtype, "isnative", True) is False:
                raise TypeError(f"{dtype!r} has another byte order than the machine")
            # A dtype has a name; a class such as numpy.float32 is called what it is.
            name = getattr(dtype, "name", None) or getattr(dtype, "__name__", None)
    found = DTYPES.get(name) if isinstance(name, str) else None
    if found is None:
        raise TypeError(f"{dtype!r} is no type of elements; there are: {', '.join(DTYPES)}")
    return found


def dtype_of_format(text: str, itemsize: int) -> DType:
    """Of a buffer's elements."""
    order, letters = ("@", text) if text[:1] not in "@=<>!" else (text[0], text[1:])
    kind = "bool" if letters == "?" else _LETTERS.get(letters)
    if kind is None or order in ">!":
        raise TypeError(f"elements of the format {text!r} cannot be in an array")
    return DTYPES[kind if kind == "bool" else f"{kind}{8 * itemsize}"]


def dtype_of_dlpack(code: int, bits: int, lanes: int) -> DType:
    for dtype in DTYPES.values():
        if (dtype.code, 8 * dtype.itemsize, 1) == (code, bits, lanes):
            return dtype
    raise BufferError(
        f"DLPack's type with code {code}, {bits} bits and {lanes} lanes cannot be in an array"
    )
