# The libraries that smg stands on. Used by the build and, installed beside smgConfig.cmake, by
# projects that link smg's static library: both see the same targets. The shared one needs none of it.
#
# shaderc comes as an archive, with the one SPIRV-Tools that it and smg use (decisions/0019-one-spirv-tools.md).

# SMG_DEPENDENCIES: REQUIRED, or QUIET to go without; SMG_DEPENDENCIES_FOUND says whether all are there.
if(NOT DEFINED SMG_VULKAN)
    set(SMG_VULKAN ON)
endif()
if(NOT DEFINED SMG_COMPILER)
    set(SMG_COMPILER ON)
endif()
if(NOT DEFINED SMG_DEPENDENCIES)
    set(SMG_DEPENDENCIES REQUIRED)
endif()

if(WIN32)
    set(Threads_FOUND TRUE) # the system's own
else()
    set(THREADS_PREFER_PTHREAD_FLAG ON)
    find_package(Threads ${SMG_DEPENDENCIES})
endif()
set(SMG_DEPENDENCIES_FOUND FALSE)
if(SMG_COMPILER)
    find_package(PkgConfig ${SMG_DEPENDENCIES})
    find_package(SPIRV-Tools CONFIG ${SMG_DEPENDENCIES}) # SPIRV-Tools-static
endif()
if(SMG_COMPILER AND PkgConfig_FOUND)
    pkg_check_modules(smg_shaderc ${SMG_DEPENDENCIES} IMPORTED_TARGET shaderc_combined)
    pkg_check_modules(smg_yyjson ${SMG_DEPENDENCIES} IMPORTED_TARGET yyjson)
    pkg_check_modules(smg_utf8proc ${SMG_DEPENDENCIES} IMPORTED_TARGET libutf8proc)
    pkg_check_modules(smg_protobuf_c ${SMG_DEPENDENCIES} IMPORTED_TARGET libprotobuf-c)
    if(Threads_FOUND AND SPIRV-Tools_FOUND AND smg_shaderc_FOUND AND smg_yyjson_FOUND AND smg_utf8proc_FOUND
            AND smg_protobuf_c_FOUND)
        set(SMG_DEPENDENCIES_FOUND TRUE)
    endif()
endif()

if(SMG_DEPENDENCIES_FOUND AND NOT TARGET smg_deps::shaderc)
    # An archive that has everything takes nothing from those after it; Debian's leaves out glslang and the optimiser.
    find_library(SMG_GLSLANG_LIBRARY NAMES libglslang.a glslang)
    find_library(SMG_SPIRV_OPT_LIBRARY NAMES libSPIRV-Tools-opt.a SPIRV-Tools-opt)
    set(smg_shaderc_needs)
    foreach(library IN ITEMS "${SMG_GLSLANG_LIBRARY}" "${SMG_SPIRV_OPT_LIBRARY}")
        if(library)
            list(APPEND smg_shaderc_needs "${library}")
        endif()
    endforeach()
    add_library(smg_deps::shaderc INTERFACE IMPORTED)
    target_link_libraries(smg_deps::shaderc INTERFACE PkgConfig::smg_shaderc ${smg_shaderc_needs} SPIRV-Tools-static)
endif()

if(SMG_VULKAN AND NOT TARGET Vulkan::Headers)
    # Headers only: volk finds the loader at run time, nothing of Vulkan is linked.
    find_path(SMG_VULKAN_INCLUDE_DIR vulkan/vulkan.h)
    if(SMG_VULKAN_INCLUDE_DIR)
        add_library(Vulkan::Headers INTERFACE IMPORTED)
        set_target_properties(Vulkan::Headers PROPERTIES
            INTERFACE_INCLUDE_DIRECTORIES "${SMG_VULKAN_INCLUDE_DIR}")
    elseif(SMG_DEPENDENCIES STREQUAL "REQUIRED")
        message(FATAL_ERROR "vulkan/vulkan.h is missing (Debian: libvulkan-dev)")
    else()
        set(SMG_DEPENDENCIES_FOUND FALSE)
    endif()
endif()
