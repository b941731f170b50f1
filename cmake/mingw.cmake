# Toolchain: Windows on x86-64 by mingw-w64 (Debian: gcc-mingw-w64-x86-64-win32; scripts/setup.sh --cross).
# Presets mingw; programs run under Wine, where it is there.

set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
# Threads are the system's own: the compiler's variant with POSIX threads would do as well, by one more library.
find_program(CMAKE_C_COMPILER NAMES x86_64-w64-mingw32-gcc-win32 x86_64-w64-mingw32-gcc REQUIRED)
set(CMAKE_RC_COMPILER x86_64-w64-mingw32-windres)
list(APPEND CMAKE_FIND_ROOT_PATH /usr/x86_64-w64-mingw32)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_EXE_LINKER_FLAGS_INIT -static-libgcc)
set(CMAKE_SHARED_LINKER_FLAGS_INIT -static-libgcc)
find_program(SMG_WINE NAMES wine64 wine PATHS /usr/lib/wine)
if(SMG_WINE)
    set(CMAKE_CROSSCOMPILING_EMULATOR "${SMG_WINE}")
endif()
