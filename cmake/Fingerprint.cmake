# cmake -DOUTPUT=<header> -DROOT=<source folder> -P Fingerprint.cmake
#
# Writes SMG_FINGERPRINT, a hash over every file of src/ and shaders/. It is part of the key of the plan cache: a
# program that was built from other sources may plan otherwise, whatever its version says.

cmake_minimum_required(VERSION 3.21)

file(GLOB_RECURSE files RELATIVE "${ROOT}" "${ROOT}/src/*" "${ROOT}/shaders/*")
list(SORT files)
set(all)
foreach(file IN LISTS files)
    file(SHA256 "${ROOT}/${file}" hash)
    string(APPEND all "${file} ${hash}\n")
endforeach()
string(SHA256 fingerprint "${all}")
set(text "/* Made by cmake/Fingerprint.cmake. */\n#define SMG_FINGERPRINT \"${fingerprint}\"\n")
set(before)
if(EXISTS "${OUTPUT}")
    file(READ "${OUTPUT}" before)
endif()
if(NOT text STREQUAL before)
    file(WRITE "${OUTPUT}" "${text}")
endif()
