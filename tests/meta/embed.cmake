# EmbedText.cmake: names, bytes and a file longer than what a string literal may hold.
cmake_minimum_required(VERSION 3.21)
set(folder "$ENV{SMG_TEST_OUTPUT}/embed")
file(REMOVE_RECURSE "${folder}")
string(REPEAT "// \"quotes\" \\ and % ; [brackets]\n" 300 long)
file(WRITE "${folder}/tree/long.glsl" "${long}")
file(WRITE "${folder}/tree/sub/tile-8.glsl" "void f() {}\n")
file(WRITE "${folder}/tree/empty.glsl" "")
execute_process(COMMAND "${CMAKE_COMMAND}" -DROOT=${folder}/tree -DOUTPUT=${folder}/smg_shaders.h
    "-DINPUTS=${folder}/tree/long.glsl|${folder}/tree/sub/tile-8.glsl|${folder}/tree/empty.glsl"
    -P "${SMG_SOURCE_DIR}/cmake/EmbedText.cmake" COMMAND_ERROR_IS_FATAL ANY)
file(WRITE "${folder}/main.c" "#include <stdio.h>\n#include \"smg_shaders.h\"\n"
    "int main(void) { fputs(smg_shader_long, stdout); fputs(smg_shader_empty, stdout);\n"
    "fputs(smg_shader_sub_tile_8, stdout); return 0; }\n")
execute_process(COMMAND $ENV{CC} -std=c11 -Wall -Wextra -Wpedantic -Werror -I${folder}
    ${folder}/main.c -o ${folder}/main COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${folder}/main OUTPUT_VARIABLE got COMMAND_ERROR_IS_FATAL ANY)
if(NOT got STREQUAL "${long}void f() {}\n")
    message(FATAL_ERROR "the embedded text differs from the files")
endif()
