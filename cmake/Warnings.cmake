# How every C file of smg is compiled: warnings are errors, floating point is exact.

function(smg_sanitize target)
    if(SMG_SANITIZE)
        target_compile_options(${target} PRIVATE -fsanitize=${SMG_SANITIZE}
            -fno-omit-frame-pointer -fno-sanitize-recover=all)
        target_link_options(${target} PUBLIC -fsanitize=${SMG_SANITIZE})
    endif()
endfunction()

function(smg_configure target)
    target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/include"
        "${PROJECT_SOURCE_DIR}/src" "${PROJECT_BINARY_DIR}/generated")
    target_compile_definitions(${target} PRIVATE SMG_VULKAN=$<BOOL:${SMG_VULKAN}>
        SMG_VERSION="${PROJECT_VERSION}" VK_NO_PROTOTYPES SMG_BUILD)
    target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion
        -Wstrict-prototypes -Wmissing-prototypes -Werror
        # No a * b + c in one rounding behind our back: results are the same on every compiler.
        -ffp-contract=off)
    if(MINGW) # printf as C has it, whatever the system's library does; isnan narrows in branches that are not taken
        target_compile_definitions(${target} PRIVATE __USE_MINGW_ANSI_STDIO=1)
        target_compile_options(${target} PRIVATE -Wno-float-conversion)
    endif()
    smg_sanitize(${target})
endfunction()
