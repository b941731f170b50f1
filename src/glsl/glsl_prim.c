/* glsl_prim.c: numbers, kinds and primitives as text. What a primitive is stands in its row of op/prim.def. */
#include <float.h>
#include <math.h>

#include "glsl_private.h"

const char *glsl_kind(smg_kind kind) {
    return kind == SMG_KIND_FLOAT ? "float" : kind == SMG_KIND_INT ? "int" : "bool";
}

const char *glsl_zero(smg_kind kind) {
    return kind == SMG_KIND_FLOAT ? "0.0" : kind == SMG_KIND_INT ? "0" : "false";
}

const char *glsl_convert(glsl_writer *w, const char *text, smg_kind from, smg_kind to) {
    if (from == to) return text;
    if (to == SMG_KIND_BOOL) return GLSL_STRING(w, "(%s != %s)", text, glsl_zero(from));
    return GLSL_STRING(w, "%s(%s)", glsl_kind(to), text);
}

const char *glsl_float(glsl_writer *w, double value) {
    if (isnan(value)) return "uintBitsToFloat(0x7fc00000u)";
    if (value > FLT_MAX) return "uintBitsToFloat(0x7f800000u)";
    if (value < -FLT_MAX) return "uintBitsToFloat(0xff800000u)";
    smg_text text;
    smg_text_init(&text, w->ctx);
    smg_text_add_f32(&text, (float)value);
    const char *digits = smg_text_cstr(&text);
    const char *point = strpbrk(digits, ".e") == NULL ? ".0" : "";
    const char *result = GLSL_STRING(w, digits[0] == '-' ? "(%s%s)" : "%s%s", digits, point);
    if (smg_text_status(&text) != SMG_OK && w->status == SMG_OK) w->status = SMG_MEMORY;
    smg_text_free(&text);
    return result;
}

const char *glsl_constant(glsl_writer *w, smg_kind kind, double value) {
    if (kind == SMG_KIND_FLOAT) return glsl_float(w, value);
    if (kind == SMG_KIND_BOOL) return value != 0 ? "true" : "false";
    if (!(value > -2147483648.0 && value <= 2147483647.0)) {
        if (value <= -2147483648.0) return "(-2147483647 - 1)"; /* also -inf: identity of max */
        return "2147483647";
    }
    return GLSL_STRING(w, value < 0 ? "(%lld)" : "%lld", (long long)value);
}

const char *glsl_apply(glsl_writer *w, smg_prim prim, const char *x, const char *y, const char *z) {
    const char *arg[3] = {x, y, z};
    smg_text text;
    smg_text_init(&text, w->ctx);
    for (const char *at = smg_prim_glsl(prim); *at != 0; at++) {
        if (at[0] == '$' && at[1] >= '0' && at[1] <= '2') {
            smg_text_add(&text, arg[at[1] - '0']);
            at++;
        } else {
            smg_text_add_n(&text, at, 1);
        }
    }
    if (smg_text_status(&text) != SMG_OK && w->status == SMG_OK) w->status = SMG_MEMORY;
    const char *result = GLSL_STRING(w, "%s", smg_text_cstr(&text));
    smg_text_free(&text);
    return result;
}
