# The compiler's version is part of the key of the SPIR-V cache.
target_compile_definitions(${SMG_TARGET} PRIVATE SMG_SHADERC_VERSION="${smg_shaderc_VERSION}")
