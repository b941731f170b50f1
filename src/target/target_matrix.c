/* Matrices of a target: the products that it has, and where its subgroups keep their operands. */
#include "target/target_private.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>

static const char *const use_words[SMG_MATRIX_USES] = {"a", "b", "accumulator"};

const char *smg_matrix_use_word(smg_matrix_use use) {
    return use_words[use];
}

/* ---- asking ---------------------------------------------------------------------------------------- */

smg_fragment smg_matrix_operand(const smg_matrix_shape *shape, smg_matrix_use use) {
    smg_fragment f = {.use = use};
    f.rows = use == SMG_MATRIX_B ? shape->k : shape->m;
    f.columns = use == SMG_MATRIX_A ? shape->k : shape->n;
    memcpy(f.type, use == SMG_MATRIX_A ? shape->a : use == SMG_MATRIX_B ? shape->b : shape->c, sizeof f.type);
    return f;
}

bool smg_fragment_same_matrix(const smg_fragment *a, const smg_fragment *b) {
    return a->use == b->use && a->rows == b->rows && a->columns == b->columns && strcmp(a->type, b->type) == 0;
}

int64_t smg_fragment_lanes(const smg_fragment *fragment) {
    return smg_layout_numbers(&fragment->layout, SMG_LAYOUT_LANE);
}

const smg_layout *smg_target_fragment(const smg_target *target, const smg_matrix_shape *shape, smg_matrix_use use) {
    smg_fragment wanted = smg_matrix_operand(shape, use);
    for (int i = 0; i < target->fragment_count; i++) {
        const smg_fragment *f = &target->fragments[i];
        if (smg_fragment_same_matrix(f, &wanted) && smg_fragment_lanes(f) == target->subgroup_size) return &f->layout;
    }
    return NULL;
}

#define DEALT_RUN 4 /* neighbours of a row that a lane takes */

bool smg_matrix_dealt(const smg_matrix_shape *shape, int64_t lanes, smg_layout *out_layout) {
    int64_t rows = shape->m, columns = shape->n;
    smg_layout *l = out_layout;
    if (lanes < 1 || rows * columns < lanes || !smg_is_power_of_two(lanes) || !smg_is_power_of_two(rows) ||
        !smg_is_power_of_two(columns) || !smg_is_power_of_two(shape->k))
        return false;
    int64_t run = rows * columns / lanes < DEALT_RUN ? rows * columns / lanes : DEALT_RUN;
    if (run > columns) run = columns;
    int64_t across = columns / run < lanes ? columns / run : lanes, down = lanes / across;
    *l = smg_layout_one();
    smg_layout_add(l, SMG_LAYOUT_REGISTER, SMG_FRAGMENT_ROW, 1);
    smg_layout_add(l, SMG_LAYOUT_REGISTER, SMG_FRAGMENT_COLUMN, run);
    smg_layout_add(l, SMG_LAYOUT_LANE, SMG_FRAGMENT_COLUMN, across);
    smg_layout_add(l, SMG_LAYOUT_LANE, SMG_FRAGMENT_ROW, down);
    smg_layout_add(l, SMG_LAYOUT_REGISTER, SMG_FRAGMENT_COLUMN, columns / (run * across));
    smg_layout_add(l, SMG_LAYOUT_REGISTER, SMG_FRAGMENT_ROW, rows / down);
    return true;
}

bool smg_matrix_same_shape(const smg_matrix_shape *a, const smg_matrix_shape *b) {
    return a->m == b->m && a->n == b->n && a->k == b->k && strcmp(a->a, b->a) == 0 && strcmp(a->b, b->b) == 0 &&
           strcmp(a->c, b->c) == 0 && strcmp(a->result, b->result) == 0;
}

static bool has_operand(const smg_target *target, const smg_fragment *fragment) {
    for (int i = 0; i < target->matrix_count; i++) {
        smg_fragment of = smg_matrix_operand(&target->matrix[i], fragment->use);
        if (smg_fragment_same_matrix(&of, fragment)) return true;
    }
    return false;
}

void smg_matrices_take(smg_target *target, const smg_target *from) {
    for (int i = 0; i < target->matrix_count; i++)
        for (int j = 0; j < from->matrix_count; j++)
            if (smg_matrix_same_shape(&target->matrix[i], &from->matrix[j]))
                target->matrix[i].rate = from->matrix[j].rate;
    target->fragment_count = from->fragment_count;
    for (int i = 0; i < from->fragment_count; i++) {
        target->fragments[i] = from->fragments[i];
        target->fragments[i].from = SMG_FACT_TABLE;
    }
    smg_target_keep_operands(target);
}

void smg_target_keep_operands(smg_target *target) {
    int count = 0;
    for (int i = 0; i < target->fragment_count; i++)
        if (has_operand(target, &target->fragments[i])) target->fragments[count++] = target->fragments[i];
    target->fragment_count = count;
}

bool smg_fragment_set_layout(smg_fragment *fragment, const smg_layout *layout) {
    const char *why = NULL;
    smg_layout *l = &fragment->layout;
    *l = smg_layout_one();
    smg_layout_add(l, SMG_LAYOUT_REGISTER, SMG_FRAGMENT_ROW, 1);
    smg_layout_add(l, SMG_LAYOUT_REGISTER, SMG_FRAGMENT_COLUMN, 1);
    for (int level = 0; level < SMG_LAYOUT_LEVELS; level++)
        for (int i = 0; i < layout->bits[level]; i++)
            smg_layout_set(l, (smg_layout_level)level, i, layout->basis[level][i]);
    return smg_layout_valid(l, &why) && l->axis_count == 2 && l->bits[SMG_LAYOUT_SUBGROUP] == 0 &&
           smg_layout_span(l, SMG_FRAGMENT_ROW) == fragment->rows &&
           smg_layout_span(l, SMG_FRAGMENT_COLUMN) == fragment->columns;
}

/* ---- verify ---------------------------------------------------------------------------------------- */

static smg_status verify_shape(smg_context *ctx, const smg_target *target, int i) {
    const smg_matrix_shape *shape = &target->matrix[i];
    if (shape->m <= 0 || shape->n <= 0 || shape->k <= 0)
        return smg_fail(ctx, SMG_FORMAT, "target '%s': matrix shape %d is %dx%dx%d", target->name, i, shape->m,
                        shape->n, shape->k);
    if (!shape->a[0] || !shape->b[0] || !shape->c[0] || !shape->result[0])
        return smg_fail(ctx, SMG_FORMAT, "target '%s': matrix shape %d lacks an element type", target->name, i);
    if (!isfinite(shape->rate) || shape->rate < 0)
        return smg_fail(ctx, SMG_FORMAT, "target '%s': the rate of matrix shape %d is %g", target->name, i,
                        shape->rate);
    return SMG_OK;
}

static smg_status verify_fragment(smg_context *ctx, const smg_target *target, const smg_fragment *f) {
    smg_fragment copy = *f;
    if (!smg_fragment_set_layout(&copy, &f->layout))
        return smg_fail(ctx, SMG_FORMAT, "target '%s': the layout of fragment %s %dx%d %s is of %lldx%lld%s",
                        target->name, use_words[f->use], f->rows, f->columns, f->type,
                        (long long)smg_layout_span(&f->layout, SMG_FRAGMENT_ROW),
                        (long long)smg_layout_span(&f->layout, SMG_FRAGMENT_COLUMN),
                        f->layout.bits[SMG_LAYOUT_SUBGROUP] > 0 ? " over several subgroups" : "");
    for (const smg_fragment *other = target->fragments; other < f; other++)
        if (smg_fragment_same_matrix(other, f) && smg_fragment_lanes(other) == smg_fragment_lanes(f))
            return smg_fail(ctx, SMG_FORMAT, "target '%s': fragment %s %dx%d %s of %lld lanes is given twice",
                            target->name, use_words[f->use], f->rows, f->columns, f->type,
                            (long long)smg_fragment_lanes(f));
    return SMG_OK;
}

smg_status smg_matrices_verify(smg_context *ctx, const smg_target *target) {
    if (target->matrix_count < 0 || target->matrix_count > SMG_MAX_MATRIX_SHAPES)
        return smg_fail(ctx, SMG_FORMAT, "target '%s': %d matrix shapes, at most %d", target->name,
                        target->matrix_count, SMG_MAX_MATRIX_SHAPES);
    if (target->fragment_count < 0 || target->fragment_count > SMG_MAX_FRAGMENTS)
        return smg_fail(ctx, SMG_FORMAT, "target '%s': %d fragments, at most %d", target->name, target->fragment_count,
                        SMG_MAX_FRAGMENTS);
    for (int i = 0; i < target->matrix_count; i++) SMG_TRY(verify_shape(ctx, target, i));
    for (int i = 0; i < target->fragment_count; i++) SMG_TRY(verify_fragment(ctx, target, &target->fragments[i]));
    return SMG_OK;
}

/* ---- hash ------------------------------------------------------------------------------------------ */

static uint64_t hash_layout(const smg_layout *layout, uint64_t hash) {
    for (int level = 0; level < SMG_LAYOUT_LEVELS; level++) {
        hash = smg_hash_u64(hash, (uint64_t)layout->bits[level]);
        for (int i = 0; i < layout->bits[level]; i++) {
            smg_basis b = layout->basis[level][i];
            hash = smg_hash_u64(hash, b.axis < 0 ? UINT64_MAX : (uint64_t)b.axis << 8 | (uint64_t)b.bit);
        }
    }
    return hash;
}

uint64_t smg_matrices_hash(const smg_target *target, uint64_t hash) {
    hash = smg_hash_u64(hash, (uint64_t)target->matrix_count);
    for (int i = 0; i < target->matrix_count && i < SMG_MAX_MATRIX_SHAPES; i++) {
        const smg_matrix_shape *shape = &target->matrix[i];
        const int sizes[3] = {shape->m, shape->n, shape->k};
        hash = smg_hash_bytes(hash, sizes, sizeof sizes);
        hash = smg_hash_text(hash, shape->a);
        hash = smg_hash_text(hash, shape->b);
        hash = smg_hash_text(hash, shape->c);
        hash = smg_hash_text(hash, shape->result);
        hash = smg_hash_bytes(hash, &shape->rate, sizeof shape->rate);
    }
    hash = smg_hash_u64(hash, (uint64_t)target->fragment_count);
    for (int i = 0; i < target->fragment_count && i < SMG_MAX_FRAGMENTS; i++) {
        const smg_fragment *f = &target->fragments[i];
        const int sizes[3] = {(int)f->use, f->rows, f->columns};
        hash = smg_hash_text(smg_hash_bytes(hash, sizes, sizeof sizes), f->type);
        hash = hash_layout(&f->layout, hash);
    }
    return hash;
}

/* ---- text ------------------------------------------------------------------------------------------ */

void smg_matrix_print(const smg_matrix_shape *shape, smg_text *text) {
    smg_text_addf(text, "%dx%dx%d %s %s %s %s", shape->m, shape->n, shape->k, shape->a, shape->b, shape->c,
                  shape->result);
}

void smg_matrices_print(const smg_target *target, smg_text *text) {
    for (int i = 0; i < target->matrix_count && i < SMG_MAX_MATRIX_SHAPES; i++) {
        const smg_matrix_shape *shape = &target->matrix[i];
        smg_text_add(text, "matrix = ");
        smg_matrix_print(shape, text);
        if (shape->rate > 0) smg_text_add(text, " ");
        if (shape->rate > 0) smg_text_add_f64(text, shape->rate);
        smg_text_add(text, "\n");
    }
    for (int i = 0; i < target->fragment_count && i < SMG_MAX_FRAGMENTS; i++) {
        const smg_fragment *f = &target->fragments[i];
        smg_text_addf(text, "fragment = %s %dx%d %s ", use_words[f->use], f->rows, f->columns, f->type);
        smg_layout_print(&f->layout, smg_layout_add_side, NULL, text);
        smg_text_addf(text, "  # %s\n", smg_target_origin_word(f->from));
    }
}

/* strtod reads the decimal point of the process's locale; a target file always has '.'. */
bool smg_real_read(const char *text, size_t length, double *out_value) {
    char buffer[64];
    if (length == 0 || length >= sizeof buffer - 8) return false;
    const char *point = localeconv()->decimal_point;
    size_t used = 0;
    for (size_t i = 0; i < length && used < sizeof buffer - 8; i++) {
        char c = text[i];
        bool numeric = (c >= '0' && c <= '9') || c == '-' || c == '+' || c == 'e' || c == 'E';
        if (c == '.') {
            for (const char *p = point; *p && used < sizeof buffer - 8; p++) buffer[used++] = *p;
        } else if (numeric) {
            buffer[used++] = c;
        } else {
            return false;
        }
    }
    buffer[used] = 0;
    char *end = NULL;
    *out_value = strtod(buffer, &end);
    return *end == 0;
}

typedef struct words {
    const char *at, *end;
} words;

static bool next_word(words *w, char *out, size_t capacity) {
    while (w->at < w->end && (*w->at == ' ' || *w->at == '\t')) w->at++;
    size_t length = 0;
    while (w->at + length < w->end && w->at[length] != ' ' && w->at[length] != '\t') length++;
    if (length == 0 || length >= capacity) return false;
    memcpy(out, w->at, length);
    out[length] = 0;
    w->at += length;
    return true;
}

static bool read_extents(const char *word, int count, int *out_extents) {
    for (int i = 0; i < count; i++) {
        int value = 0, digits = 0;
        for (; *word >= '0' && *word <= '9' && digits < 6; word++, digits++) value = value * 10 + (*word - '0');
        if (digits == 0 || *word != (i < count - 1 ? 'x' : 0)) return false;
        out_extents[i] = value;
        word++;
    }
    return true;
}

static bool next_type(words *w, char out[8]) {
    static const char *const known[] = {"f16", "f32", "f64", "bf16", "i8",  "i16",  "i32",
                                        "i64", "u8",  "u16", "u32",  "u64", "e4m3", "e5m2"};
    if (!next_word(w, out, 8)) return false;
    for (size_t i = 0; i < SMG_COUNT_OF(known); i++)
        if (strcmp(known[i], out) == 0) return true;
    return false;
}

bool smg_matrix_read(const char *text, size_t length, smg_matrix_shape *out_shape) {
    words w = {text, text + length};
    char word[32];
    int extents[3] = {0, 0, 0};
    memset(out_shape, 0, sizeof *out_shape);
    if (!next_word(&w, word, sizeof word) || !read_extents(word, 3, extents)) return false;
    if (!next_type(&w, out_shape->a) || !next_type(&w, out_shape->b) || !next_type(&w, out_shape->c) ||
        !next_type(&w, out_shape->result))
        return false;
    out_shape->m = extents[0];
    out_shape->n = extents[1];
    out_shape->k = extents[2];
    if (w.at == w.end) return true;
    return next_word(&w, word, sizeof word) && smg_real_read(word, strlen(word), &out_shape->rate) && w.at == w.end;
}

bool smg_fragment_read(const char *text, size_t length, smg_fragment *out_fragment) {
    words w = {text, text + length};
    char word[32];
    int extents[2] = {0, 0}, use = 0;
    smg_layout layout = smg_layout_one();
    const char *why = NULL;
    memset(out_fragment, 0, sizeof *out_fragment);
    if (!next_word(&w, word, sizeof word)) return false;
    while (use < SMG_MATRIX_USES && strcmp(use_words[use], word) != 0) use++;
    if (use == SMG_MATRIX_USES || !next_word(&w, word, sizeof word) || !read_extents(word, 2, extents) ||
        !next_type(&w, out_fragment->type))
        return false;
    if (smg_layout_read(&w.at, w.end, smg_layout_take_side, NULL, &layout) != NULL || w.at != w.end ||
        !smg_layout_valid(&layout, &why) ||
        smg_layout_registers(&layout) != smg_layout_numbers(&layout, SMG_LAYOUT_REGISTER))
        return false;
    out_fragment->use = (smg_matrix_use)use;
    out_fragment->rows = extents[0];
    out_fragment->columns = extents[1];
    (void)smg_fragment_set_layout(out_fragment, &layout); /* told by smg_target_verify, with the numbers */
    return true;
}
