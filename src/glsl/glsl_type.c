/* glsl_type.c: elements of buffers as values and back. Kernels compute in 32 bits; a buffer's type is what its memory
 * holds. Where the device has no 16-bit storage, halves of words are read; writing one would race with whoever writes
 * the other half. */
#include "glsl_private.h"

static bool is_16bit(smg_type type) {
    return type == SMG_TYPE_F16 || type == SMG_TYPE_BF16;
}

const char *glsl_buffer_word(const glsl_writer *w, smg_type type) {
    if (is_16bit(type) && !w->target->storage16) return "uint";
    if (type == SMG_TYPE_BF16) return "uint16_t";
    if (type == SMG_TYPE_F16) return "float16_t";
    if (smg_type_kind(type) == SMG_KIND_FLOAT) return "float";
    return smg_type_kind(type) == SMG_KIND_INT ? "int" : "uint";
}

/* The half of a word that the element is. */
static const char *half_element(glsl_writer *w, smg_type type, const char *name, const char *address) {
    int number = w->serial++;
    GLSL_LINE(w, "int h%d = %s;", number, address);
    const char *half = GLSL_STRING(w, "g_%s[h%d >> 1] >> ((h%d & 1) * 16)", name, number, number);
    return GLSL_STRING(w, type == SMG_TYPE_F16 ? "unpackHalf2x16(%s).x" : "uintBitsToFloat((%s) << 16)", half);
}

const char *glsl_buffer_element(glsl_writer *w, int buffer, const char *address) {
    smg_type type = w->k->buffers.items[buffer].type;
    const char *name = w->buffer_name[buffer];
    if (type == SMG_TYPE_BOOL) return GLSL_STRING(w, "(g_%s[%s] != 0u)", name, address);
    if (!is_16bit(type)) return GLSL_STRING(w, "g_%s[%s]", name, address);
    if (!w->target->storage16) return half_element(w, type, name, address);
    w->uses[GLSL_USE_16BIT] = true;
    return GLSL_STRING(w, type == SMG_TYPE_F16 ? "float(g_%s[%s])" : "uintBitsToFloat(uint(g_%s[%s]) << 16)", name,
                       address);
}

const char *glsl_buffer_value(glsl_writer *w, smg_type type, const char *value, smg_kind kind) {
    const char *text = glsl_convert(w, value, kind, smg_type_kind(type));
    if (type == SMG_TYPE_BOOL) return GLSL_STRING(w, "%s ? 1u : 0u", text);
    if (!is_16bit(type)) return text;
    if (!w->target->storage16) glsl_fail(w, SMG_UNSUPPORTED, "writes 16-bit floats, the device has no 16-bit storage");
    w->uses[GLSL_USE_16BIT] = true;
    return GLSL_STRING(w, type == SMG_TYPE_F16 ? "float16_t(%s)" : "uint16_t(smg_bf16(%s))", text);
}
