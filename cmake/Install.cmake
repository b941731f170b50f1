# What `cmake --install` puts where: headers, libraries, the CMake package `smg` (targets smg::shared,
# smg::static and smg::smg, the first of them that exists; smg::rt and smg::rt_shared, the runtime without a compiler) and
# pkg-config files, smg and smg-static, smg-rt and smg-rt-shared.

include(CMakePackageConfigHelpers)
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/smg")

if(SMG_COMPILER)
    install(DIRECTORY include/smg DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.h")
else()
    foreach(header IN ITEMS context device rt status tensor version vulkan)
        install(FILES include/smg/${header}.h DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/smg")
    endforeach()
endif()
# Apart: the targets of the static library name what it needs, which a user of the shared one need not have.
foreach(library IN LISTS libraries)
    string(REPLACE "smg_" "" short ${library})
    install(TARGETS ${library} EXPORT smg_${short})
    install(EXPORT smg_${short} NAMESPACE smg:: DESTINATION "${package_dir}")
endforeach()

foreach(library IN LISTS runtimes)
    install(TARGETS ${library} EXPORT smg_rt)
endforeach()
if(runtimes)
    install(EXPORT smg_rt NAMESPACE smg:: DESTINATION "${package_dir}")
endif()

configure_package_config_file(cmake/smgConfig.cmake.in smgConfig.cmake
    INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file(smgConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/smgConfig.cmake" "${PROJECT_BINARY_DIR}/smgConfigVersion.cmake"
    cmake/SmgDependencies.cmake DESTINATION "${package_dir}")

# ---- pkg-config ----------------------------------------------------------------------------------
#
# Names of libraries, and no Requires: pkg-config follows required packages also for who links the shared library,
# takes over their flags, and fails where they are not installed.

set(pc_needs)
foreach(module IN ITEMS smg_shaderc smg_yyjson smg_utf8proc smg_protobuf_c)
    foreach(folder IN LISTS ${module}_LIBRARY_DIRS) # none for those where linkers look anyway
        if(NOT folder IN_LIST CMAKE_C_IMPLICIT_LINK_DIRECTORIES)
            string(APPEND pc_needs "-L${folder} ")
        endif()
    endforeach()
endforeach()
string(APPEND pc_needs "-lshaderc_combined")
foreach(library IN ITEMS "${SMG_GLSLANG_LIBRARY}" "${SMG_SPIRV_OPT_LIBRARY}")
    if(library)
        cmake_path(GET library STEM LAST_ONLY name)
        string(REGEX REPLACE "^lib" " -l" name "${name}")
        string(APPEND pc_needs "${name}")
    endif()
endforeach()
string(APPEND pc_needs " -lSPIRV-Tools -lyyjson -lutf8proc -lprotobuf-c -lstdc++ -lm -pthread")
if(CMAKE_DL_LIBS)
    string(APPEND pc_needs " -l${CMAKE_DL_LIBS}")
endif()

# Relative to the file itself, so that an installed tree can be moved.
file(RELATIVE_PATH pc_prefix "/p/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/p")
string(REGEX REPLACE "/$" "" pc_prefix "${pc_prefix}")
function(smg_install_pc name note libs private cflags)
    set(pc_name ${name})
    set(pc_note "${note}")
    set(pc_libs "${libs}")
    set(pc_libs_private "${private}")
    set(pc_cflags "${cflags}")
    configure_file(cmake/smg.pc.in ${name}.pc @ONLY)
    install(FILES "${PROJECT_BINARY_DIR}/${name}.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endfunction()
# Of two libraries of one name the linker takes the shared one, unless everything is to be static (cc -static). So the
# static one has a file of its own, which names the archive itself.
if(NOT SMG_COMPILER)
    # smg-rt alone.
elseif(SMG_SHARED)
    smg_install_pc(smg "" "-L\${libdir} -lsmg" "${pc_needs}" "")
else()
    smg_install_pc(smg "" "-L\${libdir} -lsmg ${pc_needs}" "" " -DSMG_STATIC")
endif()
if(runtimes)
    set(rt_needs)
    if(NOT WIN32)
        string(REGEX REPLACE "^(.+)$" "-l\\1" rt_needs "${CMAKE_DL_LIBS}")
        string(PREPEND rt_needs "-lm -pthread ")
    endif()
    if(NOT APPLE)
        string(APPEND rt_needs " -Wl,--gc-sections") # the library is one object: what is not called goes
    endif()
    smg_install_pc(smg-rt " (the runtime without a compiler)"
        "\${libdir}/${CMAKE_STATIC_LIBRARY_PREFIX}smg-rt${CMAKE_STATIC_LIBRARY_SUFFIX} ${rt_needs}" ""
        " -DSMG_STATIC")
    if(SMG_SHARED)
        smg_install_pc(smg-rt-shared " (the runtime without a compiler, the shared library)" "-L\${libdir} -lsmg-rt" "" "")
    endif()
endif()
if(SMG_COMPILER)
    smg_install_pc(smg-static " (the static library)"
        "\${libdir}/${CMAKE_STATIC_LIBRARY_PREFIX}smg${CMAKE_STATIC_LIBRARY_SUFFIX} ${pc_needs}" "" " -DSMG_STATIC")
endif()
