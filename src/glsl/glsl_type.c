/* glsl_type.c: elements of buffers as values and back. Kernels compute in 32 bits; a buffer's type is what its memory
 * holds. Where the device has no 16-bit storage, or moves words more easily, halves of words are read; writing one
 * would race with whoever writes the other half. */
#include "glsl_private.h"

static const glsl_pointer pointers[SMG_TYPE_COUNT] = {
    [SMG_TYPE_F32] = {"smg_floats", "smg_across", "float", "", "", 4},
    [SMG_TYPE_F16] = {"smg_halves", "smg_across_halves", "float16_t", "float(", ")", 2},
    [SMG_TYPE_BF16] = {"smg_bf16s", "smg_across_bf16s", "uint16_t", "uintBitsToFloat(uint(", ") << 16)", 2},
    [SMG_TYPE_I32] = {"smg_ints", NULL, "int", "", "", 4}, /* of all integers, which are words on the device */
};

static bool is_16bit(smg_type type) {
    return type == SMG_TYPE_F16 || type == SMG_TYPE_BF16;
}

const glsl_pointer *glsl_pointer_to(glsl_writer *w, smg_type type) {
    w->pointer_used[type] = true;
    w->uses[GLSL_USE_16BIT] = w->uses[GLSL_USE_16BIT] || is_16bit(type);
    w->uses[GLSL_USE_FLOAT16] = w->uses[GLSL_USE_FLOAT16] || (type == SMG_TYPE_F16 && w->target->fp16);
    w->uses[GLSL_USE_INT16] = w->uses[GLSL_USE_INT16] || type == SMG_TYPE_BF16;
    return &pointers[type];
}

bool glsl_lies_in_pairs(const glsl_writer *w, int tile, int axis) {
    int access = w->k->tiles.items[tile].access;
    smg_wide pair = {.width = SMG_PAIR, .axis = axis};
    return smg_access_aligned(w->k, access, pair) == SMG_ALIGNED_ALWAYS;
}

const char *glsl_pointer_to_pairs(glsl_writer *w) {
    w->pairs_used = true;
    return "smg_pairs";
}

/* One of two halves of a word. */
static const char *half_of(glsl_writer *w, smg_type type, const char *word, int half) {
    if (type == SMG_TYPE_F16) return GLSL_STRING(w, "unpackHalf2x16(%s)[%d]", word, half);
    return GLSL_STRING(w, half == 0 ? "uintBitsToFloat(%s << 16)" : "uintBitsToFloat(%s & 0xffff0000u)", word);
}

const char *glsl_pair_element(glsl_writer *w, smg_type type, const char *pointer, const char *first, int half) {
    return half_of(w, type, GLSL_STRING(w, "%s.v[(%s) >> 1]", pointer, first), half);
}

const char *glsl_pointer_to_groups(glsl_writer *w, smg_type type, int width) {
    w->pointer_groups[type] |= width;
    return GLSL_STRING(w, "%s%d", glsl_pointer_to(w, type)->word, width);
}

/* ---- across lanes ------------------------------------------------------------------------------------ */

/* A subgroup's neighbours are read in groups: a driver takes as long over one of four as over one element. */
static int width_across(const glsl_writer *w) {
    return w->k->subgroup < SMG_WIDE ? SMG_PAIR : SMG_WIDE;
}

void glsl_declare_across(glsl_writer *w, smg_type type) {
    int width = width_across(w);
    w->across[type] = true;
    GLSL_LINE(w, "%s near;", glsl_pointer_to_groups(w, type, width));
    for (int n = 0; n < w->k->subgroup / width; n++) GLSL_LINE(w, "%s n%d;", glsl_group_word(type, width), n);
}

void glsl_load_across(glsl_writer *w, smg_type type, const char *address) {
    int width = width_across(w);
    GLSL_LINE(w, "near = %s(%s);", glsl_pointer_to_groups(w, type, width), address);
    for (int n = 0; n < w->k->subgroup / width; n++) GLSL_LINE(w, "n%d = near.v[%d];", n, n);
}

const char *glsl_take_across(glsl_writer *w, smg_type type) {
    const char *all = "n0";
    for (int n = 1; n < w->k->subgroup / width_across(w); n++) all = GLSL_STRING(w, "%s, n%d", all, n);
    return GLSL_STRING(w, "%s(%s)", pointers[type].across, all);
}

void glsl_write_lanes(const glsl_writer *w, smg_text *out) {
    int width = width_across(w);
    bool across = false;
    for (int t = 0; t < SMG_TYPE_COUNT; t++) across = across || w->across[t];
    if (!across) return;
    for (int n = 1; n < w->k->subgroup / width; n++)
        smg_text_addf(out, "    bvec%d smg_group%d = bvec%d(gl_SubgroupInvocationID >= %du);\n", width, n, width,
                      n * width);
    smg_text_addf(out, "    uint smg_member = gl_SubgroupInvocationID & %du;\n", width - 1);
}

/* The element of the lane's number. Every lane reads all of them, from addresses that are the same for all
 * lanes, and takes its own as memory has it: neighbours are one load then, and what it loads is made wider once. No
 * function: a driver takes as long over a call as over all that is in it. */
static void write_across(const glsl_writer *w, const glsl_pointer *p, smg_text *out) {
    int width = width_across(w), groups = w->k->subgroup / width;
    bool wider = strcmp(p->element, "float16_t") == 0 && !w->target->fp16; /* a device that cannot choose halves */
    const char *open = !wider ? "" : width == SMG_WIDE ? "vec4(" : "vec2(", *close = wider ? ")" : "";
    smg_text_addf(out, "#define %s(n0", p->across);
    for (int n = 1; n < groups; n++) smg_text_addf(out, ", n%d", n);
    smg_text_addf(out, ") %s", wider ? "" : p->before);
    for (int n = 1; n < groups; n++) smg_text_add(out, "mix(");
    smg_text_addf(out, "%sn0%s", open, close);
    for (int n = 1; n < groups; n++) smg_text_addf(out, ", %sn%d%s, smg_group%d)", open, n, close, n);
    smg_text_addf(out, "[smg_member]%s\n", wider ? "" : p->behind);
}

/* `volatile` because a driver that looks for two loads of one address compares every load with every other; here are
 * none. */
void glsl_write_pointers(const glsl_writer *w, smg_text *out) {
    static const char line[] =
        "layout(buffer_reference, std430, buffer_reference_align = %d) volatile readonly buffer %s%s { %s v[]; };\n";
    if (w->pairs_used) smg_text_addf(out, line, 4, "smg_pairs", "", "uint");
    for (int t = 0; t < SMG_TYPE_COUNT; t++) {
        const glsl_pointer *p = &pointers[t];
        if (!w->pointer_used[t]) continue;
        smg_text_addf(out, line, p->bytes, p->word, "", p->element);
        for (int width = SMG_PAIR; width <= SMG_WIDE; width *= 2)
            if ((w->pointer_groups[t] & width) != 0)
                smg_text_addf(out, line, p->bytes, p->word, width == SMG_PAIR ? "2" : "4",
                              glsl_group_word((smg_type)t, width));
        if (w->across[t]) write_across(w, p, out);
    }
}

/* Are the elements read as halves of words? */
static bool in_words(const glsl_writer *w, smg_type type) {
    return is_16bit(type) && !smg_target_moves_halves(w->target);
}

const char *glsl_buffer_word(smg_type type) {
    if (type == SMG_TYPE_BF16) return "uint16_t";
    if (type == SMG_TYPE_F16) return "float16_t";
    if (smg_type_kind(type) == SMG_KIND_FLOAT) return "float";
    return smg_type_kind(type) == SMG_KIND_INT ? "int" : "uint";
}

/* The half of a word that the element is. */
static const char *half_element(glsl_writer *w, int buffer, const char *address) {
    const char *name = w->buffer_name[buffer];
    int number = w->serial++;
    w->buffer_halves[buffer] = true;
    GLSL_LINE(w, "int h%d = %s;", number, address);
    const char *half = GLSL_STRING(w, "(h_%s[h%d >> 1] >> ((h%d & 1) * 16))", name, number, number);
    return half_of(w, w->k->buffers.items[buffer].type, half, 0);
}

const char *glsl_buffer_element(glsl_writer *w, int buffer, const char *address) {
    smg_type type = w->k->buffers.items[buffer].type;
    const char *name = w->buffer_name[buffer];
    w->buffer_read[buffer] = true;
    if (in_words(w, type)) return half_element(w, buffer, address);
    w->buffer_words[buffer] = true;
    if (type == SMG_TYPE_BOOL) return GLSL_STRING(w, "(g_%s[%s] != 0u)", name, address);
    return glsl_element_value(w, type, GLSL_STRING(w, "g_%s[%s]", name, address));
}

/* A pointer to the buffer's first element, or group. */
static const char *pointer_at(glsl_writer *w, int buffer, const char *word) {
    w->address_used[buffer] = w->uses[GLSL_USE_ADDRESSES] = true;
    return GLSL_STRING(w, "%s(push.a_%s)", word, w->buffer_name[buffer]);
}

const char *glsl_element_at(glsl_writer *w, int buffer, const char *address) {
    bool floats = smg_type_kind(w->k->buffers.items[buffer].type) == SMG_KIND_FLOAT;
    const char *word = glsl_pointer_to(w, floats ? SMG_TYPE_F32 : SMG_TYPE_I32)->word;
    return GLSL_STRING(w, "%s.v[%s]", pointer_at(w, buffer, word), address);
}

const char *glsl_groups_at(glsl_writer *w, int buffer, int width) {
    return GLSL_STRING(w, "%s.v", pointer_at(w, buffer, glsl_pointer_to_groups(w, SMG_TYPE_F32, width)));
}

/* A value as the bits of 16. */
static const char *bits_of(glsl_writer *w, smg_type type, const char *value) {
    return GLSL_STRING(w, type == SMG_TYPE_F16 ? "smg_half(%s)" : "smg_bf16(%s)", value);
}

const char *glsl_buffer_value(glsl_writer *w, smg_type type, const char *value, smg_kind kind) {
    const char *text = glsl_convert(w, value, kind, smg_type_kind(type));
    if (type == SMG_TYPE_BOOL) return GLSL_STRING(w, "%s ? 1u : 0u", text);
    if (!is_16bit(type)) return text;
    if (!w->target->storage16) glsl_fail(w, SMG_UNSUPPORTED, "writes 16-bit floats, the device has no 16-bit storage");
    if (type != SMG_TYPE_F16 || !in_words(w, type) || !w->target->fp16) return glsl_element_memory(w, type, text);
    w->uses[GLSL_USE_16BIT] = w->uses[GLSL_USE_FLOAT16] = w->uses[GLSL_USE_INT16] = true;
    return GLSL_STRING(w, "uint16BitsToFloat16(uint16_t(%s))", bits_of(w, type, text));
}

/* ---- elements ---------------------------------------------------------------------------------------- */

const char *glsl_element_word(glsl_writer *w, smg_type type) {
    if (!is_16bit(type)) return glsl_kind(smg_type_kind(type));
    w->uses[type == SMG_TYPE_F16 ? GLSL_USE_FLOAT16 : GLSL_USE_INT16] = true;
    return type == SMG_TYPE_F16 ? "float16_t" : "uint16_t";
}

const char *glsl_element_value(glsl_writer *w, smg_type type, const char *memory) {
    if (!is_16bit(type)) return memory;
    w->uses[GLSL_USE_16BIT] = true;
    return GLSL_STRING(w, type == SMG_TYPE_F16 ? "float(%s)" : "uintBitsToFloat(uint(%s) << 16)", memory);
}

const char *glsl_element_memory(glsl_writer *w, smg_type type, const char *value) {
    if (!is_16bit(type)) return value;
    w->uses[GLSL_USE_16BIT] = true;
    return GLSL_STRING(w, type == SMG_TYPE_F16 ? "float16_t(%s)" : "uint16_t(smg_bf16(%s))", value);
}

/* ---- groups ------------------------------------------------------------------------------------------ */

const char *glsl_group_word(smg_type type, int width) {
    if (width == SMG_PAIR) return type == SMG_TYPE_F16 ? "f16vec2" : type == SMG_TYPE_BF16 ? "u16vec2" : "vec2";
    return type == SMG_TYPE_F16 ? "f16vec4" : type == SMG_TYPE_BF16 ? "u16vec4" : "vec4";
}

const char *glsl_eight_value(glsl_writer *w, smg_type type, const char *eight, int member) {
    return half_of(w, type, GLSL_STRING(w, "%s[%d]", eight, member / 2), member % 2);
}

const char *glsl_local_word(glsl_writer *w, smg_type type, int group) {
    const char *element = glsl_element_word(w, type);
    if (group == SMG_WIDEST) return "uvec4";
    return group > 1 ? glsl_group_word(type, group) : element;
}

const char *glsl_zero_memory(glsl_writer *w, smg_type type, int group) {
    if (group == SMG_WIDEST) return "uvec4(0u)";
    if (!is_16bit(type))
        return group > 1 ? GLSL_STRING(w, "%s(0.0)", glsl_group_word(type, group)) : glsl_zero(smg_type_kind(type));
    return GLSL_STRING(w, "%s(0)", glsl_local_word(w, type, group));
}

const char *glsl_memory_as(glsl_writer *w, smg_type from, smg_type to, int group, const char *memory) {
    if (from == to) return memory;
    if (group == 1) return glsl_element_memory(w, to, glsl_element_value(w, from, memory));
    return glsl_group_memory(w, to, group, glsl_group_value(w, from, group, memory));
}

const char *glsl_group_value(glsl_writer *w, smg_type type, int width, const char *memory) {
    if (!is_16bit(type)) return memory;
    w->uses[GLSL_USE_16BIT] = true;
    return GLSL_STRING(w, type == SMG_TYPE_F16 ? "vec%d(%s)" : "uintBitsToFloat(uvec%d(%s) << 16)",
                       width == SMG_PAIR ? 2 : 4, memory);
}

const char *glsl_group_memory(glsl_writer *w, smg_type type, int width, const char *value) {
    if (!is_16bit(type)) return value;
    w->uses[GLSL_USE_16BIT] = true;
    if (type == SMG_TYPE_F16) return GLSL_STRING(w, "%s(%s)", glsl_group_word(type, width), value);
    int number = w->serial++;
    GLSL_LINE(w, "%s s%d = %s;", glsl_group_word(SMG_TYPE_F32, width), number, value);
    if (width == SMG_PAIR) return GLSL_STRING(w, "u16vec2(uvec2(smg_bf16(s%d.x), smg_bf16(s%d.y)))", number, number);
    return GLSL_STRING(w, "u16vec4(uvec4(smg_bf16(s%d.x), smg_bf16(s%d.y), smg_bf16(s%d.z), smg_bf16(s%d.w)))", number,
                       number, number, number);
}

/* ---- groups of buffers ------------------------------------------------------------------------------- */

const char *glsl_buffer_group_word(const glsl_writer *w, smg_type type, int width) {
    if (!in_words(w, type)) return glsl_group_word(type, width);
    return width == SMG_PAIR ? "uint" : "uvec2";
}

/* The same numbers from words: a vec2 or vec4. */
static const char *unpacked(glsl_writer *w, smg_type type, int width, const char *words) {
    const char *part[SMG_WIDE] = {"", "", "", ""};
    int number = w->serial++;
    GLSL_LINE(w, "%s u%d = %s;", glsl_buffer_group_word(w, type, width), number, words);
    for (int n = 0; n < width; n++) {
        const char *word = GLSL_STRING(w, width == SMG_PAIR ? "u%d" : "u%d[%d]", number, n / 2);
        part[n] = half_of(w, type, word, n % 2);
    }
    if (width == SMG_PAIR) return GLSL_STRING(w, "vec2(%s, %s)", part[0], part[1]);
    return GLSL_STRING(w, "vec4(%s, %s, %s, %s)", part[0], part[1], part[2], part[3]);
}

const char *glsl_buffer_group_as(glsl_writer *w, smg_type from, smg_type to, int width, const char *memory) {
    if (!in_words(w, from) || width == SMG_WIDEST) return glsl_memory_as(w, from, to, width, memory);
    const char *value = unpacked(w, from, width, memory);
    return to == SMG_TYPE_F32 ? value : glsl_group_memory(w, to, width, value);
}

const char *glsl_buffer_group_memory(glsl_writer *w, smg_type type, int width, const char *value) {
    const char *bits[SMG_WIDE] = {"", "", "", ""};
    if (!in_words(w, type)) return glsl_group_memory(w, type, width, value);
    int number = w->serial++;
    GLSL_LINE(w, "%s s%d = %s;", glsl_group_word(SMG_TYPE_F32, width), number, value);
    for (int n = 0; n < width; n++) bits[n] = bits_of(w, type, GLSL_STRING(w, "s%d[%d]", number, n));
    const char *pair = GLSL_STRING(w, "%s | (%s << 16)", bits[0], bits[1]);
    return width == SMG_PAIR ? pair : GLSL_STRING(w, "uvec2(%s, %s | (%s << 16))", pair, bits[2], bits[3]);
}
