# The static library that hosts link: one object with only the public functions global (decisions/0012-static-library.md).
#
# Everything of smg, protobuf-c's code and volk is compiled with hidden visibility, which a static library alone does
# not honour: each of these symbols would be the host's too. So the objects are linked into one, and what is hidden
# becomes local to it.

# target: a static library with the public functions of the archive `internal`, which holds the objects ARGN.
function(smg_add_static target internal)
    if(NOT CMAKE_OBJCOPY OR APPLE OR WIN32)
        # No objcopy for this format, or no hidden symbols in it: an ordinary archive, with the internal names in it.
        add_library(${target} STATIC ${ARGN})
        return()
    endif()
    set(folder "${PROJECT_BINARY_DIR}/generated")
    separate_arguments(flags NATIVE_COMMAND "${CMAKE_C_FLAGS}") # -m32 and the like
    if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
        list(APPEND flags -flinker-output=nolto-rel) # under -flto machine code, whose symbols objcopy sees
    endif()
    add_custom_command(OUTPUT "${folder}/${target}.o" BYPRODUCTS "${folder}/${target}_all.o"
        COMMAND "${CMAKE_COMMAND}" -E make_directory "${folder}"
        COMMAND "${CMAKE_C_COMPILER}" ${flags} -r -nostdlib -o "${folder}/${target}_all.o"
            -Wl,--whole-archive "$<TARGET_FILE:${internal}>" -Wl,--no-whole-archive
        COMMAND "${CMAKE_OBJCOPY}" --localize-hidden "${folder}/${target}_all.o" "${folder}/${target}.o"
        DEPENDS ${internal} COMMENT "Linking ${target}.o, public symbols only" VERBATIM)
    add_library(${target} STATIC "${folder}/${target}.o")
    set_target_properties(${target} PROPERTIES LINKER_LANGUAGE C)
endfunction()
