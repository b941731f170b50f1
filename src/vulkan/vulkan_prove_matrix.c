/* One matrix shape on one subgroup (prove_matrix.comp): what its operands hold is read element by element from matrices
 * that hold their own rows and columns, and its product of small whole numbers, which every type holds exactly, is
 * compared with the host's. */
#include "vulkan/prove_matrix_spirv.h"
#include "vulkan/prove_rate_spirv.h"
#include "vulkan/vulkan_measure.h"
#include "vulkan/vulkan_prove.h"

#include <math.h>
#include <stdio.h>

enum { MOST_ELEMENTS = SMG_VK_MOST_ELEMENTS, MOST_EXTENT = 64 };

typedef struct matrix_kernel {
    const char *types; /* of a and b, of c and the result */
    const uint32_t *words;
    size_t bytes;
    const uint32_t *rate_words; /* prove_rate_matrix.comp */
    size_t rate_bytes;
} matrix_kernel;

#define KERNEL(types, variant)                                                                                         \
    {types, smg_prove_matrix_##variant, sizeof smg_prove_matrix_##variant, smg_prove_rate_matrix_##variant,            \
     sizeof smg_prove_rate_matrix_##variant}
static const matrix_kernel kernels[] = {
    KERNEL("f16 f16 f16 f16", f16_f16),   KERNEL("f16 f16 f32 f32", f16_f32),
    KERNEL("bf16 bf16 f32 f32", f16_f32), /* with another type of 16 bits: words_of */
    KERNEL("i8 i8 i32 i32", i8_i32),      KERNEL("u8 u8 u32 u32", u8_u32),
};

static const matrix_kernel *kernel_of(const smg_matrix_shape *shape) {
    char types[40];
    snprintf(types, sizeof types, "%s %s %s %s", shape->a, shape->b, shape->c, shape->result);
    for (size_t i = 0; i < SMG_COUNT_OF(kernels); i++)
        if (strcmp(kernels[i].types, types) == 0) return &kernels[i];
    return NULL;
}

/* A kernel's words, or for matrices of bf16 a copy. */
typedef struct module {
    const uint32_t *words;
    size_t count, room; /* of the copy; 0: there is none */
    uint32_t *copy;
} module;

static smg_status words_of(smg_context *ctx, const smg_matrix_shape *shape, const uint32_t *words, size_t bytes,
                           module *out) {
    *out = (module){.words = words, .count = bytes / sizeof *words};
    if (strcmp(shape->a, "bf16") != 0) return SMG_OK;
    out->room = out->count + SMG_VK_BF16_WORDS;
    SMG_TRY(smg_vk_words_of_bf16(ctx, words, out->count, &out->copy, &out->count));
    out->words = out->copy;
    return SMG_OK;
}

static void free_words(smg_context *ctx, const module *m) {
    smg_free(ctx, m->copy, m->room * sizeof *m->copy);
}

/* ---- whole numbers in memory ------------------------------------------------------------------------- */

static int bytes_of(const char *type) {
    return strcmp(type, "f16") == 0 || strcmp(type, "bf16") == 0 ? 2 : type[1] == '8' ? 1 : 4;
}

static void put(void *memory, const char *type, int at, int value) {
    if (strcmp(type, "f16") == 0) {
        ((uint16_t *)memory)[at] = smg_half_of(value);
    } else if (strcmp(type, "bf16") == 0) {
        ((uint16_t *)memory)[at] = smg_bf16_of(value);
    } else if (strcmp(type, "f32") == 0) {
        ((float *)memory)[at] = (float)value;
    } else if (type[1] == '8') {
        ((uint8_t *)memory)[at] = (uint8_t)value;
    } else {
        ((uint32_t *)memory)[at] = (uint32_t)value;
    }
}

static double get(const void *memory, const char *type, int at) {
    if (strcmp(type, "f16") == 0) return smg_half_value(((const uint16_t *)memory)[at]);
    if (strcmp(type, "f32") == 0) return ((const float *)memory)[at];
    return type[0] == 'u' ? (double)((const uint32_t *)memory)[at] : (double)((const int32_t *)memory)[at];
}

/* From -3 to 3, or as far from 0 up: of any place of an operand, always the same. */
static int number(const char *type, int operand, int row, int column) {
    uint64_t hash = smg_hash_u64(SMG_HASH_SEED + (uint64_t)operand, (uint64_t)row << 32 | (uint64_t)column);
    return (int)(hash >> 20 & 0xffff) % 7 - (type[0] == 'u' ? 0 : 3);
}

/* Rows, columns and values, row by row; the values turned. */
static void put_operand(const smg_fragment *f, void *memory, int at, int turned_at) {
    int size = f->rows * f->columns;
    for (int row = 0; row < f->rows; row++) {
        for (int column = 0; column < f->columns; column++) {
            int place = at + row * f->columns + column, n = number(f->type, (int)f->use, row, column);
            put(memory, f->type, place, row);
            put(memory, f->type, place + size, column);
            put(memory, f->type, place + 2 * size, n);
            put(memory, f->type, turned_at + column * f->rows + row, n);
        }
    }
}

static smg_status put_operands(smg_vk_proof *proof, const smg_fragment operands[SMG_MATRIX_USES]) {
    const smg_fragment *a = &operands[SMG_MATRIX_A], *b = &operands[SMG_MATRIX_B];
    const smg_fragment *c = &operands[SMG_MATRIX_ACCUMULATOR];
    int size_a = a->rows * a->columns, size_b = b->rows * b->columns, size_c = c->rows * c->columns;
    int values = 3 * (size_a + size_b);
    put_operand(a, proof->words, 0, values);
    put_operand(b, proof->words, 3 * size_a, values + size_a);
    SMG_TRY(smg_vk_upload(proof->buffers[0], 0, proof->words, (int64_t)(values + size_a + size_b) * bytes_of(a->type)));
    put_operand(c, proof->words, 0, 3 * size_c);
    SMG_TRY(smg_vk_upload(proof->buffers[1], 0, proof->words, (int64_t)4 * size_c * bytes_of(c->type)));
    SMG_TRY(smg_vk_fill(proof->buffers[2], 0, SMG_VK_PROOF_BYTES, UINT32_MAX));
    return smg_vk_fill(proof->buffers[3], 0, SMG_VK_PROOF_BYTES, UINT32_MAX);
}

/* ---- what came out ------------------------------------------------------------------------------------- */

static smg_status check_product(smg_vk_proof *proof, const smg_matrix_shape *s) {
    int size = s->m * s->n;
    SMG_TRY(smg_vk_download(proof->buffers[2], 0, proof->words, (int64_t)2 * size * bytes_of(s->result)));
    for (int i = 0; i < 2 * size; i++) {
        bool turned = i >= size;
        int row = turned ? i % size % s->m : i / s->n, column = turned ? i % size / s->m : i % s->n;
        int want = number(s->c, SMG_MATRIX_ACCUMULATOR, row, column);
        for (int k = 0; k < s->k; k++)
            want += number(s->a, SMG_MATRIX_A, row, k) * number(s->b, SMG_MATRIX_B, k, column);
        double is = get(proof->words, s->result, i);
        if (is == want) continue;
        snprintf(proof->why, sizeof proof->why, "row %d, column %d of a product%s is %g, must be %d", row, column,
                 turned ? " through shared memory" : "", is, want);
        break;
    }
    return SMG_OK;
}

static uint32_t row_of(const smg_vk_places *p, uint32_t element, uint32_t lane) {
    return p->words[element * p->lanes + lane] & 0xffff;
}

static uint32_t column_of(const smg_vk_places *p, uint32_t element, uint32_t lane) {
    return p->words[element * p->lanes + lane] >> 16;
}

/* What one bit alone adds: one bit of the row or of the column, or nothing. false: something else. */
static bool basis_of(const smg_vk_places *p, uint32_t element, uint32_t lane, smg_basis *out_basis) {
    uint32_t row = row_of(p, element, lane), column = column_of(p, element, lane), one = row | column;
    *out_basis = (smg_basis){.axis = -1};
    if (one == 0) return true;
    *out_basis = (smg_basis){(int8_t)(row ? SMG_FRAGMENT_ROW : SMG_FRAGMENT_COLUMN), (int8_t)smg_log2(one)};
    return (row == 0 || column == 0) && smg_is_power_of_two(one) && one <= MOST_EXTENT;
}

bool smg_vk_find_layout(const smg_vk_places *p, smg_fragment *fragment) {
    smg_layout layout = smg_layout_one();
    smg_basis basis;
    if (p->elements > MOST_ELEMENTS || !smg_is_power_of_two(p->elements)) return false;
    for (uint32_t bit = 0; 1u << bit < p->elements; bit++) {
        if (!basis_of(p, 1u << bit, 0, &basis)) return false;
        smg_layout_set(&layout, SMG_LAYOUT_REGISTER, (int)bit, basis);
    }
    for (uint32_t bit = 0; 1u << bit < p->lanes; bit++) {
        if (!basis_of(p, 0, 1u << bit, &basis)) return false;
        smg_layout_set(&layout, SMG_LAYOUT_LANE, (int)bit, basis);
    }
    if (!smg_fragment_set_layout(fragment, &layout)) return false;
    for (uint32_t e = 0; e < p->elements; e++)
        for (uint32_t l = 0; l < p->lanes; l++)
            if (smg_layout_coordinate(&fragment->layout, SMG_FRAGMENT_ROW, e, l, 0) != row_of(p, e, l) ||
                smg_layout_coordinate(&fragment->layout, SMG_FRAGMENT_COLUMN, e, l, 0) != column_of(p, e, l))
                return false;
    return true;
}

static bool found_before(const smg_vk_proof *proof, const smg_fragment *fragment) {
    for (int i = 0; i < proof->found.fragment_count; i++)
        if (smg_fragment_same_matrix(&proof->found.fragments[i], fragment)) return true;
    return false;
}

static smg_status keep_layouts(smg_vk_proof *proof, const smg_fragment operands[SMG_MATRIX_USES]) {
    smg_target *found = &proof->found;
    uint32_t lanes = (uint32_t)proof->dev->target.subgroup_size;
    int64_t count = 3 + (int64_t)SMG_MATRIX_USES * MOST_ELEMENTS * lanes;
    SMG_TRY(smg_vk_download(proof->buffers[3], 0, proof->words, count * 4));
    for (int use = 0; use < SMG_MATRIX_USES; use++) {
        smg_fragment f = operands[use];
        const smg_vk_places p = {proof->words + 3 + (size_t)use * MOST_ELEMENTS * lanes, proof->words[use], lanes};
        if (found_before(proof, &f)) continue;
        f.from = SMG_FACT_MEASURED;
        if (!smg_vk_find_layout(&p, &f))
            smg_log(proof->dev->ctx, SMG_LOG_INFO, "matrix %s %dx%d %s is opaque: its %u elements a lane are no layout",
                    smg_matrix_use_word(f.use), f.rows, f.columns, f.type, (unsigned)proof->words[use]);
        else if (found->fragment_count < SMG_MAX_FRAGMENTS)
            found->fragments[found->fragment_count++] = f;
    }
    return SMG_OK;
}

/* ---- one shape ------------------------------------------------------------------------------------------- */

const char *smg_vk_matrix_untried(const smg_target *t, const smg_matrix_shape *s) {
    int64_t shared = (int64_t)(s->m + s->n) * s->k * bytes_of(s->a);
    if (kernel_of(s) == NULL) return "there is no kernel that tries these types";
    if (s->m > MOST_EXTENT || s->n > MOST_EXTENT || s->k > MOST_EXTENT) return "it is too large to be tried";
    if (bytes_of(s->a) == 1 ? !t->int8 || !t->storage8 : !t->fp16 || !t->storage16)
        return "its operands are of a type that kernels cannot compute with or store";
    return shared > t->shared_bytes ? "it has no room in shared memory" : NULL;
}

/* Matrices want workgroups of a multiple of what the driver takes for subgroups when it is not asked. */
static int64_t workgroup_of(const smg_target *t, int64_t most) {
    int64_t size = most * t->subgroup_max;
    return size <= t->max_invocations && size <= t->max_size_x ? size : t->subgroup_max;
}

smg_status smg_vk_prove_matrix(smg_vk_proof *proof, const smg_matrix_shape *shape) {
    const smg_target *target = &proof->dev->target;
    smg_fragment operands[SMG_MATRIX_USES];
    const matrix_kernel *kernel = kernel_of(shape);
    smg_context *ctx = proof->dev->ctx;
    module m;
    for (int use = 0; use < SMG_MATRIX_USES; use++) operands[use] = smg_matrix_operand(shape, (smg_matrix_use)use);
    SMG_TRY(put_operands(proof, operands));
    SMG_TRY(words_of(ctx, shape, kernel->words, kernel->bytes, &m));
    const smg_vk_proof_kernel run = {
        .name = "proof of a matrix",
        .words = m.words,
        .bytes = m.count * sizeof *m.words,
        .subgroups = true,
        .constants = {(uint32_t)workgroup_of(target, 1), (uint32_t)shape->m, (uint32_t)shape->n, (uint32_t)shape->k,
                      (uint32_t)target->subgroup_size},
        .constant_count = 5,
        .binding_count = SMG_COUNT_OF(proof->buffers),
    };
    smg_status status = smg_vk_proof_run(proof, &run);
    free_words(ctx, &m);
    SMG_TRY(status);
    SMG_TRY(check_product(proof, shape));
    return proof->why[0] ? SMG_OK : keep_layouts(proof, operands);
}

/* ---- its rate --------------------------------------------------------------------------------------------- */

smg_status smg_vk_matrix_rate(smg_vk_proof *proof, const smg_matrix_shape *shape, double *out_rate) {
    enum { CHAINS = 4, SUBGROUPS = 4 };
    const smg_target *target = &proof->dev->target;
    const matrix_kernel *kernel = kernel_of(shape);
    int64_t lanes = target->subgroup_size, size = workgroup_of(target, SUBGROUPS);
    const uint32_t constants[4] = {(uint32_t)size, (uint32_t)shape->m, (uint32_t)shape->n, (uint32_t)shape->k};
    module m;
    SMG_TRY(words_of(proof->dev->ctx, shape, kernel->rate_words, kernel->rate_bytes, &m));
    const smg_vk_pipeline_desc desc = {
        .name = "rate of a matrix",
        .words = m.words,
        .word_count = m.count,
        .local_size = {(int)size, 1, 1},
        .binding_count = 3,
        .push_bytes = SMG_VK_BENCH_PUSH_BYTES,
        .subgroup_size = (int)lanes,
        .full_subgroups = true,
        .constants = constants,
        .constant_count = 4,
    };
    double flops = 2.0 * shape->m * shape->n * shape->k * CHAINS * ((double)size / (double)lanes);
    smg_vk_pipeline *pipeline = NULL;
    smg_status status = smg_vk_pipeline_create(proof->dev, &desc, &pipeline);
    free_words(proof->dev->ctx, &m);
    SMG_TRY(status);
    status = smg_vk_bench_matrix(proof->dev, pipeline, proof->buffers, flops, out_rate);
    smg_vk_pipeline_destroy(pipeline);
    /* In quarters of an octave, so that a machine gives the same answer each time. */
    if (status == SMG_OK && *out_rate > 0) *out_rate = pow(2.0, floor(4 * log2(*out_rate) + 0.5) / 4);
    return status;
}
