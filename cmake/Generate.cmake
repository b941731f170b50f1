# Sources made at build time, all under <build>/generated: shaders as C strings, protobuf-c code, the
# one file that holds volk.

# shaders/**/*.glsl -> generated/smg_shaders.h (see EmbedText.cmake).
function(smg_embed_shaders)
    file(GLOB_RECURSE shaders CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/shaders/*.glsl"
        "${PROJECT_SOURCE_DIR}/shaders/*.comp")
    add_custom_target(smg_shaders)
    if(NOT shaders)
        return()
    endif()
    set(header "${PROJECT_BINARY_DIR}/generated/smg_shaders.h")
    string(REPLACE ";" "|" joined "${shaders}")
    add_custom_command(OUTPUT "${header}"
        COMMAND "${CMAKE_COMMAND}" "-DOUTPUT=${header}" "-DINPUTS=${joined}"
            "-DROOT=${PROJECT_SOURCE_DIR}/shaders" -P "${PROJECT_SOURCE_DIR}/cmake/EmbedText.cmake"
        DEPENDS ${shaders} "${PROJECT_SOURCE_DIR}/cmake/EmbedText.cmake"
        COMMENT "Embedding shaders" VERBATIM)
    add_custom_target(smg_shaders_header DEPENDS "${header}")
    add_dependencies(smg_shaders smg_shaders_header)
endfunction()

# src/** and shaders/** -> generated/smg_fingerprint.h (see Fingerprint.cmake).
function(smg_add_fingerprint target)
    if(TARGET smg_fingerprint)
        add_dependencies(${target} smg_fingerprint)
        return()
    endif()
    file(GLOB_RECURSE inputs CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/*" "${PROJECT_SOURCE_DIR}/shaders/*")
    set(header "${PROJECT_BINARY_DIR}/generated/smg_fingerprint.h")
    add_custom_command(OUTPUT "${header}.stamp" BYPRODUCTS "${header}"
        COMMAND "${CMAKE_COMMAND}" "-DOUTPUT=${header}" "-DROOT=${PROJECT_SOURCE_DIR}"
            -P "${PROJECT_SOURCE_DIR}/cmake/Fingerprint.cmake"
        COMMAND "${CMAKE_COMMAND}" -E touch "${header}.stamp"
        DEPENDS ${inputs} "${PROJECT_SOURCE_DIR}/cmake/Fingerprint.cmake"
        COMMENT "Fingerprint of the sources" VERBATIM)
    add_custom_target(smg_fingerprint DEPENDS "${header}.stamp")
    add_dependencies(${target} smg_fingerprint)
endfunction()

# folder/*.proto -> generated/<name>.pb-c.{h,c}, compiled apart from our warnings.
# Include as "<name>.pb-c.h".
function(smg_add_protobuf target folder)
    file(GLOB protos CONFIGURE_DEPENDS "${folder}/*.proto")
    if(NOT protos)
        return()
    endif()
    find_program(SMG_PROTOC_C protoc-c)
    if(NOT SMG_PROTOC_C)
        message(FATAL_ERROR "protoc-c is missing (Debian: protobuf-c-compiler; scripts/setup.sh)")
    endif()
    foreach(proto IN LISTS protos)
        cmake_path(GET proto STEM name)
        set(base "${PROJECT_BINARY_DIR}/generated/${name}.pb-c")
        file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/generated")
        add_custom_command(OUTPUT "${base}.c" "${base}.h"
            COMMAND "${SMG_PROTOC_C}" "--proto_path=${folder}"
                "--c_out=${PROJECT_BINARY_DIR}/generated" "${proto}"
            DEPENDS "${proto}" COMMENT "protoc-c ${name}.proto" VERBATIM)
        set_source_files_properties("${base}.c" PROPERTIES COMPILE_OPTIONS "-w")
        target_sources(${target} PRIVATE "${base}.c" "${base}.h")
    endforeach()
endfunction()

# volk, compiled from its header with hidden symbols: a host that brings its own volk or links the
# loader keeps its own functions.
function(smg_add_volk)
    find_path(SMG_VOLK_INCLUDE_DIR volk.h PATH_SUFFIXES volk Volk REQUIRED)
    set(source "${PROJECT_BINARY_DIR}/generated/volk_implementation.c")
    file(CONFIGURE OUTPUT "${source}" CONTENT "#define VOLK_IMPLEMENTATION\n#include <volk.h>\n")
    add_library(smg_volk OBJECT "${source}")
    target_include_directories(smg_volk SYSTEM PUBLIC "${SMG_VOLK_INCLUDE_DIR}")
    target_compile_definitions(smg_volk PUBLIC VK_NO_PROTOTYPES)
    set_target_properties(smg_volk PROPERTIES C_EXTENSIONS ON)
    target_compile_options(smg_volk PRIVATE -ffunction-sections -fdata-sections)
    smg_sanitize(smg_volk)
endfunction()
