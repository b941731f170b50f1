/* bundle_needs.c: what a device must have to run a bundle, as a target whose given facts are the needs.
 *
 * The modules say it themselves: workgroups and shared memory beside their words, and in the words the capabilities
 * that they declare and the types of matrices that they multiply. Whatever a kernel begins to use is declared, so
 * nothing has to be kept in step with the compiler. Which products of matrices these types belong to, and where their
 * elements lie, only the target knows that the kernels were made for. */
#include "bundle/bundle.h"

enum { SPIRV_HEADER = 5, OP_CAPABILITY = 17, OP_TYPE_INT = 21, OP_TYPE_FLOAT = 22, OP_CONSTANT = 43 };
enum { OP_TYPE_MATRIX = 4456, CAPABILITY_MATRICES = 6022 };

/* ---- capabilities ---------------------------------------------------------------------------------- */

static const struct {
    uint32_t capability;
    size_t fact, origin; /* of a target; 0: any device has it, or it comes with another */
} capabilities[] = {
#define FACT(field) offsetof(smg_target, field), offsetof(smg_target, field##_from)
    {0, 0, 0}, /* Matrix, implied by Shader */
    {1, 0, 0}, /* Shader */
    {9, FACT(fp16)},
    {11, FACT(buffer_addresses)}, /* Int64: only addresses are so wide */
    {22, FACT(storage16)},        /* Int16: bfloat16 as bits */
    {39, FACT(int8)},
    {61, 0, 0}, /* GroupNonUniform */
    {62, FACT(subgroup_arithmetic)},
    {63, FACT(subgroup_arithmetic)},
    {64, FACT(subgroup_arithmetic)},
    {65, FACT(subgroup_shuffle)},
    {66, FACT(subgroup_shuffle)},
    {67, FACT(subgroup_clustered)},
    {4433, FACT(storage16)},
    {4434, FACT(storage16)},
    {4448, FACT(storage8)},
    {4449, FACT(storage8)},
    {4466, FACT(nan_preserve)},
    {5345, 0, 0}, /* VulkanMemoryModel, with matrices */
    {5346, 0, 0}, /* at device scope */
    {5116, 0, 0}, /* BFloat16TypeKHR, of matrices alone */
    {5118, 0, 0}, /* and these */
    {5347, FACT(buffer_addresses)},
    {CAPABILITY_MATRICES, 0, 0},
#undef FACT
};

static void set_fact(smg_target *needs, size_t fact, size_t origin, int64_t value) {
    smg_fact_origin from = SMG_FACT_TABLE;
    memcpy((char *)needs + fact, &value, sizeof(value));
    memcpy((char *)needs + origin, &from, sizeof(from));
}

/* At least so much, and only where it matters. */
#define RAISE(needs, field, value)                                                                                     \
    do {                                                                                                               \
        int64_t raise_ = (value);                                                                                      \
        if (raise_ > 0 && ((needs)->field##_from == SMG_FACT_ASSUMED || raise_ > (needs)->field))                      \
            set_fact((needs), offsetof(smg_target, field), offsetof(smg_target, field##_from), raise_);                \
    } while (0)

static smg_status add_capability(smg_context *ctx, const smg_bmodule *m, uint32_t capability, smg_target *needs) {
    for (size_t i = 0; i < SMG_COUNT_OF(capabilities); i++) {
        if (capabilities[i].capability != capability) continue;
        if (capabilities[i].fact != 0) set_fact(needs, capabilities[i].fact, capabilities[i].origin, 1);
        return SMG_OK;
    }
    return smg_fail(ctx, SMG_INTERNAL, "bundle: module '%s' declares capability %u, for which there is no fact",
                    m->name, (unsigned)capability);
}

/* ---- matrices -------------------------------------------------------------------------------------- */

/* Words of the instruction that makes `id` a result as its `position`-th word; NULL: none does. */
static const uint32_t *made_by(const smg_bmodule *m, uint32_t opcode, size_t position, uint32_t id) {
    for (size_t at = SPIRV_HEADER; at < m->word_count;) {
        size_t length = m->words[at] >> 16;
        if (length == 0 || length > m->word_count - at) return NULL;
        if ((m->words[at] & 0xffffu) == opcode && position < length && m->words[at + position] == id)
            return &m->words[at];
        at += length;
    }
    return NULL;
}

static int constant_of(const smg_bmodule *m, uint32_t id) {
    const uint32_t *at = made_by(m, OP_CONSTANT, 2, id);
    return at != NULL && at[0] >> 16 == 4 && at[3] <= INT16_MAX ? (int)at[3] : -1;
}

/* OpTypeCooperativeMatrixKHR: result, component type, scope, rows, columns, use. */
static bool matrix_type(const smg_bmodule *m, const uint32_t *at, smg_fragment *out) {
    int use = constant_of(m, at[6]);
    const uint32_t *real = made_by(m, OP_TYPE_FLOAT, 1, at[2]), *whole = made_by(m, OP_TYPE_INT, 1, at[2]);
    *out = (smg_fragment){.rows = constant_of(m, at[4]), .columns = constant_of(m, at[5])};
    if (use < 0 || use >= SMG_MATRIX_USES || out->rows < 1 || out->columns < 1) return false;
    if (real == NULL && (whole == NULL || whole[0] >> 16 < 4)) return false;
    out->use = (smg_matrix_use)use;
    uint32_t bits = real != NULL ? real[2] : whole[2];
    const char *kind = real != NULL ? (real[0] >> 16 > 3 ? "bf" : "f") : whole[3] != 0 ? "i" : "u";
    if (bits != 8 && bits != 16 && bits != 32 && bits != 64) return false;
    char digits[3] = {(char)('0' + bits / 10), (char)('0' + bits % 10), 0};
    memcpy(out->type, kind, strlen(kind));
    strcat(out->type, bits == 8 ? "8" : digits); /* NOLINT: at most 4 of 8 bytes */
    return true;
}

typedef struct operands {
    SMG_ARRAY(smg_fragment) list;
} operands;

static bool is_listed(const operands *o, const smg_fragment *fragment) {
    for (int i = 0; i < o->list.count; i++)
        if (smg_fragment_same_matrix(&o->list.items[i], fragment)) return true;
    return false;
}

static smg_status list_operands(smg_context *ctx, smg_arena *arena, const smg_bmodule *m, operands *o) {
    for (size_t at = SPIRV_HEADER; at < m->word_count; at += m->words[at] >> 16) {
        smg_fragment found;
        size_t length = m->words[at] >> 16;
        if (length == 0 || length > m->word_count - at) break; /* told by its capabilities */
        if ((m->words[at] & 0xffffu) != OP_TYPE_MATRIX) continue;
        if (length < 7 || !matrix_type(m, &m->words[at], &found))
            return smg_fail(ctx, SMG_INTERNAL, "bundle: module '%s' has matrices of no known type", m->name);
        if (is_listed(o, &found)) continue;
        smg_fragment *slot = SMG_ARRAY_PUSH(arena, &o->list);
        if (slot == NULL) return SMG_MEMORY;
        *slot = found;
    }
    return SMG_OK;
}

/* Products all of whose operands the modules have, and where the elements of these lie. */
static void take_matrices(const smg_target *from, const operands *o, smg_target *needs) {
    for (int i = 0; i < from->matrix_count; i++) {
        bool used = true;
        for (int use = 0; use < SMG_MATRIX_USES && used; use++) {
            smg_fragment operand = smg_matrix_operand(&from->matrix[i], (smg_matrix_use)use);
            used = is_listed(o, &operand);
        }
        if (!used) continue;
        needs->matrix[needs->matrix_count] = from->matrix[i];
        needs->matrix[needs->matrix_count++].rate = 0;
    }
    for (int i = 0; i < from->fragment_count; i++) {
        if (!is_listed(o, &from->fragments[i])) continue;
        if (smg_fragment_lanes(&from->fragments[i]) != needs->subgroup_max) continue;
        needs->fragments[needs->fragment_count] = from->fragments[i];
        needs->fragments[needs->fragment_count++].from = SMG_FACT_TABLE;
    }
}

/* ---- all of it ------------------------------------------------------------------------------------- */

static smg_status add_module(smg_context *ctx, const smg_bmodule *m, smg_target *needs, bool *io_matrices) {
    for (size_t at = SPIRV_HEADER; at < m->word_count; at += m->words[at] >> 16) {
        size_t length = m->words[at] >> 16;
        if (length == 0 || length > m->word_count - at)
            return smg_fail(ctx, SMG_INTERNAL, "bundle: module '%s' ends within an instruction", m->name);
        if ((m->words[at] & 0xffffu) != OP_CAPABILITY || length < 2) continue;
        *io_matrices |= m->words[at + 1] == CAPABILITY_MATRICES;
        SMG_TRY(add_capability(ctx, m, m->words[at + 1], needs));
    }
    RAISE(needs, max_invocations, m->local_size);
    RAISE(needs, max_size_x, m->local_size);
    RAISE(needs, shared_bytes, m->shared_bytes);
    if (m->subgroup <= 1) return SMG_OK;
    if (!smg_is_power_of_two(m->subgroup))
        return smg_fail(ctx, SMG_INTERNAL, "bundle: module '%s' asks for subgroups of %d", m->name, m->subgroup);
    bool first = needs->subgroup_max_from == SMG_FACT_ASSUMED;
    if (first || m->subgroup < needs->subgroup_min) needs->subgroup_min = m->subgroup;
    if (first || m->subgroup > needs->subgroup_max) needs->subgroup_max = m->subgroup;
    needs->subgroup_size = needs->subgroup_max;
    needs->subgroup_selectable = 1;
    needs->subgroup_min_from = needs->subgroup_max_from = needs->subgroup_size_from = SMG_FACT_TABLE;
    needs->subgroup_selectable_from = SMG_FACT_TABLE;
    return SMG_OK;
}

static void add_steps(const smg_bstep *steps, int count, smg_target *needs) {
    for (int i = 0; i < count; i++) {
        RAISE(needs, max_bindings, steps[i].binding_count + (steps[i].diagnostics ? 1 : 0));
        RAISE(needs, max_push_bytes, smg_bundle_push_bytes(&steps[i]));
    }
}

/* The largest buffer whose size is known. */
static smg_status add_buffers(smg_context *ctx, const smg_bundle *bundle, smg_target *needs) {
    for (int i = 0; i < bundle->buffers.count; i++) {
        const smg_bbuffer *b = &bundle->buffers.items[i];
        int64_t elements = 0, bytes = 0;
        if (!smg_size_is_const(bundle->sizes, b->elements, &elements)) continue;
        if (elements < 0 || !smg_mul_i64(elements, smg_storage_device_bytes(b->storage), &bytes))
            return smg_fail(ctx, SMG_INTERNAL, "bundle: buffer '%s' has %lld elements", b->name, (long long)elements);
        if (bytes > INT64_MAX - 16) continue; /* the program says so */
        bytes = (bytes + 15) / 16 * 16;
        if (bytes < needs->buffer_alignment) continue;
        RAISE(needs, max_buffer_range, bytes);
        RAISE(needs, max_allocation, bytes);
    }
    return SMG_OK;
}

smg_status smg_bundle_needs(smg_context *ctx, const smg_bundle *bundle, const smg_target *from, smg_target *out) {
    operands o = {{0}};
    bool matrices = false;
    smg_target_init(out);
    if (from != NULL) out->type = from->type;
    for (int i = 0; i < bundle->modules.count; i++) {
        SMG_TRY(add_module(ctx, &bundle->modules.items[i], out, &matrices));
    }
    add_steps(bundle->prepare.items, bundle->prepare.count, out);
    for (int i = 0; i < bundle->variants.count; i++) {
        const smg_bvariant *v = &bundle->variants.items[i];
        add_steps(v->run.items, v->run.count, out);
    }
    SMG_TRY(add_buffers(ctx, bundle, out));
    if (!matrices || from == NULL) return SMG_OK;
    for (int i = 0; i < bundle->modules.count; i++) {
        SMG_TRY(list_operands(ctx, bundle->arena, &bundle->modules.items[i], &o));
    }
    take_matrices(from, &o, out);
    if (out->matrix_count > 0) return SMG_OK;
    return smg_fail(ctx, SMG_INTERNAL, "bundle: modules multiply matrices that '%s' does not have", from->name);
}
