# What `cmake --install` puts where: headers, libraries, the CMake package `smg` (targets smg::shared,
# smg::static and smg::smg, the first of them that exists) and the pkg-config file.

include(CMakePackageConfigHelpers)
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/smg")

install(DIRECTORY include/smg DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.h")
install(TARGETS ${libraries} EXPORT smgTargets)
install(EXPORT smgTargets NAMESPACE smg:: DESTINATION "${package_dir}")

configure_package_config_file(cmake/smgConfig.cmake.in smgConfig.cmake
    INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file(smgConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/smgConfig.cmake" "${PROJECT_BINARY_DIR}/smgConfigVersion.cmake"
    cmake/SmgDependencies.cmake DESTINATION "${package_dir}")

set(pc_requires_private "shaderc SPIRV-Tools yyjson libutf8proc")
if(TARGET PkgConfig::smg_protobuf_c)
    string(APPEND pc_requires_private " libprotobuf-c")
endif()
set(pc_libs_private "-lstdc++ -lm -pthread")
if(CMAKE_DL_LIBS)
    string(APPEND pc_libs_private " -l${CMAKE_DL_LIBS}")
endif()
# Relative to the file itself, so that an installed tree can be moved.
file(RELATIVE_PATH pc_prefix "/p/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/p")
configure_file(cmake/smg.pc.in smg.pc @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/smg.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
