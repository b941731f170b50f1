/* glsl_head.c: everything in front of the inside of main: extensions, interface, shared memory, the
 * library functions that the text calls, and the sizes. */
#include "glsl_private.h"
#include "smg_shaders.h"

static int diagnostics_binding(const glsl_writer *w) {
    return w->uses[GLSL_USE_DIAGNOSTICS] ? w->k->buffers.count : -1;
}

smg_status glsl_interface_of(glsl_writer *w, smg_glsl_interface *out_interface) {
    const smg_kernel *k = w->k;
    memset(out_interface, 0, sizeof *out_interface);
    for (int b = 0; b < k->buffers.count; b++) {
        if (!w->address_used[b]) continue;
        if (out_interface->address_count == SMG_GLSL_MAX_PUSH) {
            glsl_fail(w, SMG_UNSUPPORTED, "too many buffers are read by their addresses");
            return w->status;
        }
        out_interface->address_bindings[out_interface->address_count++] = b;
    }
    int addresses = 8 * out_interface->address_count;
    for (int s = 0; s < w->symbol_count; s++) {
        if (!w->symbol_used[s]) continue;
        if (out_interface->push_count == SMG_GLSL_MAX_PUSH ||
            addresses + (out_interface->push_count + 1) * 4 > w->target->max_push_bytes) {
            glsl_fail(w, SMG_UNSUPPORTED, "too many symbolic sizes for the device's push constants");
            return w->status;
        }
        out_interface->push_symbols[out_interface->push_count++] = s;
    }
    out_interface->diagnostics = diagnostics_binding(w);
    out_interface->binding_count = k->buffers.count + (out_interface->diagnostics >= 0 ? 1 : 0);
    out_interface->local_size = k->lanes;
    /* A kernel that relies on no subgroup is still built for the size that its registers were counted for. */
    bool whole = w->target->subgroup_selectable && out_interface->local_size % k->subgroup == 0;
    bool sized = w->uses[GLSL_USE_SUBGROUP] || (k->subgroup > 1 && whole);
    out_interface->subgroup_size = sized ? k->subgroup : 0;
    out_interface->shared_bytes = smg_kernel_shared_bytes(k);
    out_interface->even_count = k->evens.count;
    for (int i = 0; i < k->evens.count; i++) {
        out_interface->even_size[i] = k->evens.items[i].size;
        out_interface->even_by[i] = k->evens.items[i].by;
    }
    if (out_interface->binding_count > w->target->max_bindings) {
        glsl_fail(w, SMG_UNSUPPORTED,
                  GLSL_STRING(w, "%d buffers, the device binds at most %lld", out_interface->binding_count,
                              (long long)w->target->max_bindings));
    }
    return w->status;
}

static void write_extensions(const glsl_writer *w, smg_text *out) {
    static const struct {
        glsl_use use;
        const char *name;
    } rows[] = {
        {GLSL_USE_16BIT, "GL_EXT_shader_16bit_storage"},
        {GLSL_USE_SUBGROUP, "GL_KHR_shader_subgroup_basic"},
        {GLSL_USE_SHUFFLE, "GL_KHR_shader_subgroup_shuffle"},
        {GLSL_USE_ARITHMETIC, "GL_KHR_shader_subgroup_arithmetic"},
        {GLSL_USE_CLUSTERED, "GL_KHR_shader_subgroup_clustered"},
        {GLSL_USE_FLOAT16, "GL_EXT_shader_explicit_arithmetic_types_float16"},
        {GLSL_USE_INT16, "GL_EXT_shader_explicit_arithmetic_types_int16"},
        {GLSL_USE_MATRICES, "GL_KHR_memory_scope_semantics"},
        {GLSL_USE_MATRICES, "GL_KHR_cooperative_matrix"},
        {GLSL_USE_ADDRESSES, "GL_EXT_buffer_reference"},
        {GLSL_USE_ADDRESSES, "GL_EXT_shader_explicit_arithmetic_types_int64"},
    };
    smg_text_add(out, "#extension GL_EXT_control_flow_attributes : require\n");
    for (size_t i = 0; i < SMG_COUNT_OF(rows); i++)
        if (w->uses[rows[i].use]) smg_text_addf(out, "#extension %s : require\n", rows[i].name);
    if (w->target->nan_preserve || w->uses[GLSL_USE_BF16])
        smg_text_add(out, "#extension GL_EXT_spirv_intrinsics : require\n");
    if (w->uses[GLSL_USE_BF16])
        /* BFloat16TypeKHR, BFloat16CooperativeMatrixKHR; OpTypeFloat of 16 bits, encoded as BFloat16KHR; OpBitcast. */
        smg_text_add(out, "#define smg_bfloat16 spirv_type(extensions = [\"SPV_KHR_bfloat16\"], "
                          "capabilities = [5116, 5118], id = 22, 16, 0)\n"
                          "spirv_instruction(id = 124) smg_bfloat16 smg_bf16_of_bits(uint16_t bits);\n");
    if (w->target->nan_preserve) {
        /* SignedZeroInfNanPreserve for 32 bits: constants and comparisons with infinity mean it. */
        smg_text_add(out, "spirv_execution_mode(extensions = [\"SPV_KHR_float_controls\"], "
                          "capabilities = [4466], 4461, 32);\n");
    }
}

static void write_buffers(glsl_writer *w, smg_text *out) {
    const smg_kernel *k = w->k;
    for (int b = 0; b < k->buffers.count; b++) {
        const smg_kbuffer *buffer = &k->buffers.items[b];
        const char *mode = !buffer->written ? " readonly" : w->buffer_read[b] ? "" : " writeonly";
        bool groups = w->buffer_wide[b] || w->buffer_eight[b] || w->buffer_pair[b] || w->buffer_halves[b];
        if (w->buffer_halves[b])
            smg_text_addf(out, "layout(set = 0, binding = %d, std430)%s buffer H%d { uint h_%s[]; };\n", b, mode, b,
                          w->buffer_name[b]);
        if (w->buffer_eight[b])
            smg_text_addf(out, "layout(set = 0, binding = %d, std430)%s buffer E%d { uvec4 e_%s[]; };\n", b, mode, b,
                          w->buffer_name[b]);
        for (int width = SMG_PAIR; width <= SMG_WIDE; width *= 2) {
            bool pair = width == SMG_PAIR;
            if (!(pair ? w->buffer_pair : w->buffer_wide)[b]) continue;
            /* the same bytes by groups; `restrict` would deny the other name */
            smg_text_addf(out, "layout(set = 0, binding = %d, std430)%s buffer %s%d { %s %s_%s[]; };\n", b, mode,
                          pair ? "P" : "W", b, glsl_buffer_group_word(w, buffer->type, width), pair ? "p" : "w",
                          w->buffer_name[b]);
        }
        if (groups && !w->buffer_words[b]) continue;
        smg_text_addf(out, "layout(set = 0, binding = %d, std430)%s%s buffer B%d { %s g_%s[]; }; // %s [", b,
                      groups ? "" : " restrict", mode, b, glsl_buffer_word(buffer->type), w->buffer_name[b],
                      smg_type_word(buffer->type));
        smg_size_print(k->sizes, buffer->elements, out);
        smg_text_add(out, "]\n");
    }
    if (w->uses[GLSL_USE_DIAGNOSTICS]) {
        smg_text_addf(out,
                      "layout(set = 0, binding = %d, std430) restrict buffer Diagnostics { uint "
                      "smg_bad[4]; };\n"
                      "void smg_report(int index, int limit)\n"
                      "{\n"
                      "    if (atomicCompSwap(smg_bad[0], 0u, 1u) == 0u) {\n"
                      "        smg_bad[1] = uint(index);\n"
                      "        smg_bad[2] = uint(limit);\n"
                      "    }\n"
                      "}\n",
                      k->buffers.count);
    }
}

static void write_push(glsl_writer *w, smg_text *out) {
    const char *head = "layout(push_constant) uniform Push {\n";
    for (int b = 0; b < w->k->buffers.count; b++) {
        if (!w->address_used[b]) continue;
        smg_text_addf(out, "%s    uint64_t a_%s;\n", head, w->buffer_name[b]);
        head = "";
    }
    for (int s = 0; s < w->symbol_count; s++) {
        if (!w->symbol_used[s]) continue;
        smg_text_addf(out, "%s    int %s;\n", head, glsl_symbol(w, s));
        head = "";
    }
    if (head[0] == '\0') smg_text_add(out, "} push;\n");
}

static void write_shared(glsl_writer *w, smg_text *out) {
    const smg_kernel *k = w->k;
    for (int t = 0; t < k->tiles.count; t++) {
        const smg_tile *tile = &k->tiles.items[t];
        int64_t elements = smg_kernel_memory_bytes(k, t) / smg_type_device_bytes(tile->type);
        if (!smg_tile_in_shared(tile) || elements == 0) continue; /* the first tile of a memory stands for all */
        int group = smg_tile_group(k, t);
        int slots = smg_tile_slots(tile);
        const char *word = group == SMG_PAIR ? "uint" : glsl_local_word(w, tile->type, group);
        smg_text_addf(out, "shared %s t_%s", word, w->tile_name[t]);
        if (slots > 1 && glsl_slot_number(w, tile) >= 0) {
            smg_text_addf(out, "[%d]", slots); /* one behind the other as well, but a driver sees them apart */
            elements /= slots;
        }
        smg_text_addf(out, "[%lld];\n", (long long)(elements / group));
    }
}

/* The sections of the library whose name is called in `sizes` or the body. */
static void write_library(glsl_writer *w, const char *sizes, smg_text *out) {
    static const char marker[] = "//@ ";
    const char *section = strstr(smg_shader_smg_math, marker);
    while (section != NULL) {
        const char *name = section + strlen(marker);
        const char *end = strchr(name, '\n');
        if (end == NULL) return;
        const char *next = strstr(end, marker);
        const char *call = GLSL_STRING(w, "%.*s(", (int)(end - name), name);
        if (strstr(sizes, call) != NULL || strstr(smg_text_cstr(&w->body), call) != NULL) {
            size_t length = next == NULL ? strlen(end + 1) : (size_t)(next - end - 1);
            smg_text_add_n(out, end + 1, length);
        }
        section = next;
    }
}

static void write_sizes(glsl_writer *w, smg_text *out) {
    for (int i = 0; i < w->sizes.count; i++) {
        smg_text_addf(out, "    int z%d = ", i);
        glsl_size_text(w, w->sizes.items[i], out);
        smg_text_add(out, ";\n");
    }
}

void glsl_head(glsl_writer *w, smg_text *out) {
    const smg_kernel *k = w->k;
    smg_text sizes;
    smg_text_init(&sizes, w->ctx);
    write_sizes(w, &sizes);
    smg_text_add(out, "#version 450\n");
    smg_text_addf(out, "// kernel %s: %d lanes in subgroups of %d\n", glsl_comment(w, k->name), k->lanes, k->subgroup);
    for (int a = 0; a < k->axes.count; a++) {
        const smg_kaxis *axis = &k->axes.items[a];
        smg_text_addf(out, "//   axis %s: ", w->axis_name[a]);
        smg_size_print(k->sizes, axis->extent, out);
        smg_text_addf(out, " by %lld%s\n", (long long)axis->tile, axis->grid ? ", grid" : "");
    }
    write_extensions(w, out);
    smg_text_addf(out, "layout(local_size_x = %d) in;\n", k->lanes);
    if (w->k->evens.count > 0) smg_text_add(out, "layout(constant_id = 0) const bool even = false;\n");
    write_push(w, out);
    write_buffers(w, out);
    write_shared(w, out);
    glsl_write_pointers(w, out);
    write_library(w, smg_text_cstr(&sizes), out);
    smg_text_add(out, "\nvoid main()\n{\n");
    glsl_write_lanes(w, out);
    smg_text_add(out, smg_text_cstr(&sizes));
    if (w->status == SMG_OK) w->status = smg_text_status(&sizes);
    smg_text_free(&sizes);
}
