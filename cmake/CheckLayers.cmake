# cmake -DSMG_SOURCE_DIR=<root> -P CheckLayers.cmake
#
# Fails on an include of another folder that src/LAYERS does not allow, and on one that reaches past
# a folder's front header (base also has size.h and other small public parts; internals end in
# _internal.h or _private.h).

cmake_minimum_required(VERSION 3.21)

file(STRINGS "${SMG_SOURCE_DIR}/src/LAYERS" lines REGEX "^[a-z]+:")
set(known)
foreach(line IN LISTS lines)
    string(REGEX MATCH "^([a-z]+):(.*)$" _ "${line}")
    set(folder ${CMAKE_MATCH_1})
    string(STRIP "${CMAKE_MATCH_2}" allowed)
    string(REPLACE " " ";" allowed_${folder} "${allowed}")
    list(APPEND known ${folder})
endforeach()

set(errors)
file(GLOB files "${SMG_SOURCE_DIR}/src/*/*.[ch]" "${SMG_SOURCE_DIR}/src/*/*.def")
foreach(file IN LISTS files)
    file(RELATIVE_PATH path "${SMG_SOURCE_DIR}" "${file}")
    string(REGEX REPLACE "^src/([^/]+)/.*" "\\1" folder "${path}")
    if(NOT folder IN_LIST known)
        string(APPEND errors "\n  ${path}: folder '${folder}' is not in src/LAYERS")
        continue()
    endif()
    file(STRINGS "${file}" includes REGEX "^[ \t]*#[ \t]*include[ \t]*\"[^\"/]+/")
    foreach(include IN LISTS includes)
        string(REGEX MATCH "\"([^\"/]+)/([^\"]*)\"" _ "${include}")
        set(other ${CMAKE_MATCH_1})
        set(header ${CMAKE_MATCH_2})
        if(other STREQUAL folder OR other STREQUAL smg)
            continue()
        elseif(NOT other IN_LIST allowed_${folder})
            string(APPEND errors "\n  ${path}: includes \"${other}/${header}\"; "
                "src/LAYERS allows ${folder}: ${allowed_${folder}}")
        elseif(header MATCHES "_(internal|private)\\.h$")
            string(APPEND errors "\n  ${path}: \"${other}/${header}\" belongs to ${other} alone")
        endif()
    endforeach()
endforeach()
if(errors)
    message(FATAL_ERROR "The folders of src/ are layers:${errors}")
endif()
