# cmake -DOUTPUT=<header> -DINPUTS=<a|b|c> -DROOT=<folder> -P EmbedText.cmake
#
# Writes each text file as `static const char smg_shader_<name>[]`, where <name> is its path below
# ROOT without extension, '/' and other characters as '_' (gemm/tile.glsl: smg_shader_gemm_tile).
# Bytes, not a string literal: C guarantees only 4095 characters for those.

cmake_minimum_required(VERSION 3.21)

string(REPLACE "|" ";" INPUTS "${INPUTS}")
list(SORT INPUTS)
set(text "/* Made by cmake/EmbedText.cmake from the shaders folder. */\n")
string(APPEND text "#ifndef SMG_SHADERS_H\n#define SMG_SHADERS_H\n")
string(APPEND text "#if defined(__GNUC__)\n#define SMG_SHADER_TEXT __attribute__((unused)) static const char\n")
string(APPEND text "#else\n#define SMG_SHADER_TEXT static const char\n#endif\n")
foreach(input IN LISTS INPUTS)
    file(RELATIVE_PATH name "${ROOT}" "${input}")
    string(REGEX REPLACE "\\.[a-z]+$" "" name "${name}")
    string(MAKE_C_IDENTIFIER "${name}" name)
    file(READ "${input}" hex HEX)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
    # 16 bytes a line; the pattern has no counts in CMake's regular expressions.
    set(one "0x[0-9a-f][0-9a-f],")
    set(four "${one}${one}${one}${one}")
    string(REGEX REPLACE "(${four}${four}${four}${four})" "\\1\n" bytes "${bytes}")
    string(APPEND text "\nSMG_SHADER_TEXT smg_shader_${name}[] = {\n${bytes}0x00};\n")
endforeach()
string(APPEND text "\n#endif\n")
file(WRITE "${OUTPUT}" "${text}")
