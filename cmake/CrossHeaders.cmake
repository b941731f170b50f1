# Vulkan's headers and volk are the same for every system, but Debian has them for the machine that builds alone, beside
# headers that are its own. A build for another system sees them through a folder of links that has nothing else.

if(NOT CMAKE_CROSSCOMPILING OR NOT SMG_VULKAN OR (SMG_VULKAN_INCLUDE_DIR AND SMG_VOLK_INCLUDE_DIR))
    return()
endif()
set(headers "${PROJECT_BINARY_DIR}/headers")
file(MAKE_DIRECTORY "${headers}")
foreach(name IN ITEMS vulkan/vulkan.h vk_video/vulkan_video_codecs_common.h volk.h)
    find_file(smg_found_header "${name}" PATHS /usr/include /usr/local/include PATH_SUFFIXES volk Volk
        NO_CACHE NO_CMAKE_FIND_ROOT_PATH)
    if(NOT smg_found_header)
        message(FATAL_ERROR "${name} is missing (Debian: libvulkan-dev, libvulkan-volk-dev)")
    endif()
    cmake_path(GET name PARENT_PATH folder)
    if(folder) # all of it
        cmake_path(GET smg_found_header PARENT_PATH smg_found_header)
        set(name "${folder}")
    endif()
    file(CREATE_LINK "${smg_found_header}" "${headers}/${name}" SYMBOLIC)
    unset(smg_found_header)
endforeach()
set(SMG_VULKAN_INCLUDE_DIR "${headers}" CACHE PATH "Folder of vulkan/vulkan.h")
set(SMG_VOLK_INCLUDE_DIR "${headers}" CACHE PATH "Folder of volk.h")
