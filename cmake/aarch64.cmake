# Toolchain: Linux on 64-bit ARM (Debian: gcc-aarch64-linux-gnu; scripts/setup.sh --cross).
# Preset aarch64; programs run under qemu, where it is there.

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
list(APPEND CMAKE_FIND_ROOT_PATH /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
find_program(SMG_QEMU NAMES qemu-aarch64 qemu-aarch64-static)
if(SMG_QEMU)
    set(CMAKE_CROSSCOMPILING_EMULATOR "${SMG_QEMU}" -L /usr/aarch64-linux-gnu)
endif()
