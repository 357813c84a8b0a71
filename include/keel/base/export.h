// What libkeel.so shows to the outside.
//
// The library is compiled with hidden visibility. A class or function that another binary (the
// command line, the Python module, a plugin, a test of the public surface) calls across the library
// boundary carries KEEL_EXPORT. Templates and functions defined in a header need none. A class that
// is thrown, caught, dynamic_cast or derived from across the boundary carries it, so that its
// vtable and type information are shared.
//
// Only names in namespace keel, and C names that start with keel_, leave the library: the linker's
// version script (cmake/keel.map) drops everything else, whatever its visibility.

#pragma once

#define KEEL_EXPORT [[gnu::visibility("default")]]
