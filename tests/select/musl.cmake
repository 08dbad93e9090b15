# Toolchain of musl-gcc. PITH_MUSL_ROOT (environment): a folder with usr/include and usr/lib of PCRE2, and with the headers of
# libraries that are loaded at run time, which tests/select/musl.py makes.
set(CMAKE_C_COMPILER musl-gcc)
set(CMAKE_C_FLAGS_INIT "-isystem $ENV{PITH_MUSL_ROOT}/usr/include")
set(CMAKE_EXE_LINKER_FLAGS_INIT -static)
set(CMAKE_FIND_ROOT_PATH $ENV{PITH_MUSL_ROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(ENV{PKG_CONFIG_LIBDIR} $ENV{PITH_MUSL_ROOT}/usr/lib/pkgconfig)
set(ENV{PKG_CONFIG_SYSROOT_DIR} $ENV{PITH_MUSL_ROOT})
