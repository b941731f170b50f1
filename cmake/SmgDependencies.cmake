# The libraries that smg stands on. Used by the build and, installed beside smgConfig.cmake, by
# projects that link smg: both see the same targets.

if(NOT DEFINED SMG_VULKAN)
    set(SMG_VULKAN ON)
endif()

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)

pkg_check_modules(smg_shaderc REQUIRED IMPORTED_TARGET shaderc)
pkg_check_modules(smg_yyjson REQUIRED IMPORTED_TARGET yyjson)
pkg_check_modules(smg_utf8proc REQUIRED IMPORTED_TARGET libutf8proc)
pkg_check_modules(smg_protobuf_c REQUIRED IMPORTED_TARGET libprotobuf-c)
find_package(SPIRV-Tools CONFIG REQUIRED) # SPIRV-Tools-static

if(SMG_VULKAN AND NOT TARGET Vulkan::Headers)
    # Headers only: volk finds the loader at run time, nothing of Vulkan is linked.
    find_path(SMG_VULKAN_INCLUDE_DIR vulkan/vulkan.h REQUIRED)
    add_library(Vulkan::Headers INTERFACE IMPORTED)
    set_target_properties(Vulkan::Headers PROPERTIES
        INTERFACE_INCLUDE_DIRECTORIES "${SMG_VULKAN_INCLUDE_DIR}")
endif()
