/* One fixture for tests of glsl/: texts of kernels built by hand must compile for subgroups of 8, 32 and none; where
 * there is a device, its results must agree with the interpreter's. */
#ifndef SMG_SUPPORT_GLSL_CASE_H
#define SMG_SUPPORT_GLSL_CASE_H

#include "glsl/glsl.h"
#include "spirv/spirv.h"
#include "support/hand_kernels.h"
#if SMG_VULKAN
#include "vulkan/vulkan.h"
#endif

typedef struct glsl_fixture {
    smg_context *ctx;
    smg_spirv_compiler *compiler;
    smg_target target; /* the device's, where there is one */
    bool device;
    int ran; /* kernels, on the device */
#if SMG_VULKAN
    smg_vk_device *dev;
#endif
} glsl_fixture;

/* Of a group of tests: state is a glsl_fixture. */
int glsl_set_up(void **state);
int glsl_tear_down(void **state);

/* The kernel of a text, verified. */
smg_kernel *glsl_parse(glsl_fixture *f, smg_arena *arena, const char *text);
/* A target that has everything, for texts that only are compiled. */
smg_target glsl_full_target(int subgroup, bool shuffle_only);
/* Writes the kernel, with neighbours at once and sizes named, into an empty text, which the caller frees. */
void glsl_write_text(glsl_fixture *f, smg_kernel *k, const smg_target *target, smg_text *out_text);
/* The same text has each of these parts, up to a NULL. */
void glsl_expect_parts(glsl_fixture *f, smg_kernel *k, const smg_target *target, const char *const *parts);
/* What lanes tell each other becomes instructions first. */
void glsl_compile(glsl_fixture *f, smg_arena *arena, smg_kernel *k, const smg_target *target,
                  smg_spirv_module *out_module);
/* Shapes first, first + step and so on. */
void glsl_check_shapes(void **state, hand_maker *make, size_t first, size_t step);
/* One kernel as it is, for the device's own subgroups; does nothing where there is no device. */
void glsl_check_here(glsl_fixture *f, smg_arena *arena, smg_kernel *k);
/* All shapes. */
void glsl_check(void **state, hand_maker *make);
/* Drivers take seconds for each of these: every kind meets a fourth of the shapes, and four of them or more together
 * meet all; with SMG_ALL_CASES each does. */
void glsl_check_kinds(void **state, hand_maker *const *kinds, size_t count);

#if SMG_VULKAN
#define GLSL_CASE_BUFFERS 4
typedef struct glsl_values {
    double *data[GLSL_CASE_BUFFERS];
    int64_t count[GLSL_CASE_BUFFERS];
} glsl_values;
typedef struct glsl_built {
    smg_glsl_interface face;
    smg_vk_pipeline *pipeline;
} glsl_built;
void glsl_fill(const smg_kernel *k, const int64_t *symbols, glsl_values *v);
/* Apart from running: software drivers take their time, and one pipeline serves all sizes. */
glsl_built glsl_build(glsl_fixture *f, const smg_kernel *k, const smg_target *target, const smg_spirv_module *module);
/* Runs on the device into data[]; the diagnostics words go to out_bad. */
void glsl_run_device(glsl_fixture *f, const smg_kernel *k, const glsl_built *made, const int64_t *symbols,
                     glsl_values *v, uint32_t out_bad[4]);
#endif

#endif
