/* Einsum: the equation is read into letters per axis (an ellipsis gets letters that the equation does not
 * use), diagonals are taken, and operands are multiplied from the left, each letter summed as soon as nothing
 * that follows has it. */
#include "onnx/onnx_part.h"

#define MAX_TERMS 16

typedef struct equation {
    char term[MAX_TERMS][2 * SMG_MAX_RANK]; /* letters, '.' for an ellipsis; repeated ones stay */
    char out[2 * SMG_MAX_RANK];
    int terms;
    bool explicit_out;
} equation;

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static smg_status read_equation(smg_onnx_build *b, const smg_onnx_node *n, const char *text, equation *e) {
    char *part = e->term[0];
    size_t length = 0;
    e->terms = 1;
    for (const char *at = text; *at; at++) {
        bool dots = strncmp(at, "...", 3) == 0, arrow = at[0] == '-' && at[1] == '>';
        if (*at == ' ') continue;
        if (length == SMG_MAX_RANK + 1 || (*at == ',' && e->terms == MAX_TERMS))
            return smg_onnx_fail(b, n, SMG_UNSUPPORTED, "equation \"%s\" has too many letters", text);
        if (arrow && !e->explicit_out) {
            e->explicit_out = true;
            part = e->out;
        } else if (*at == ',' && !e->explicit_out) {
            part = e->term[e->terms++];
        } else if ((dots && !strchr(part, '.')) || is_letter(*at)) {
            part[length++] = dots ? '.' : *at;
            at += dots ? 2 : 0;
            continue;
        } else {
            return smg_onnx_fail(b, n, SMG_INVALID, "equation \"%s\" has an unexpected \"%s\"", text, at);
        }
        at += arrow ? 1 : 0;
        length = 0;
    }
    if (e->terms == n->input_count) return SMG_OK;
    return smg_onnx_fail(b, n, SMG_INVALID, "equation \"%s\" has %d terms for %d inputs", text, e->terms,
                         n->input_count);
}

/* ---- letters -------------------------------------------------------------------------------- */

static bool used(const equation *e, char c) {
    for (int i = 0; i < e->terms; i++)
        if (strchr(e->term[i], c)) return true;
    return strchr(e->out, c) != NULL;
}

/* Letters for the axes of ellipses, in the order of the result; as many as there are free ones. */
static void free_letters(const equation *e, char out[SMG_MAX_RANK + 1]) {
    int count = 0;
    for (char c = 'A'; c <= 'z' && count < SMG_MAX_RANK; c++)
        if (is_letter(c) && !used(e, c)) out[count++] = c;
    out[count] = '\0';
}

/* `text` with the ellipsis replaced by the last `count` of the `most` first free letters. */
static void expand(const char *text, const char *free_ones, int most, int count, char *out) {
    size_t length = 0;
    for (const char *c = text; *c; c++) {
        if (*c != '.') {
            out[length++] = *c;
            continue;
        }
        for (int i = most - count; i < most; i++) out[length++] = free_ones[i];
    }
    out[length] = '\0';
}

/* Without an arrow: the ellipsis, then the letters that occur once, in order. */
static void implicit_out(const equation *e, const char *free_ones, int most, char *out) {
    size_t length = 0;
    for (int i = 0; i < most; i++) out[length++] = free_ones[i];
    for (char c = 'A'; c <= 'z' && length < SMG_MAX_RANK; c++) {
        int times = 0;
        for (int t = 0; t < e->terms; t++)
            for (const char *at = e->term[t]; *at; at++) times += *at == c ? 1 : 0;
        if (times == 1 && is_letter(c)) out[length++] = c;
    }
    out[length] = '\0';
}

/* ---- diagonals ------------------------------------------------------------------------------ */

/* sum over j of x where i == j, for every letter that occurs twice: x's diagonal. */
static smg_status take_diagonals(smg_onnx_build *b, const smg_onnx_node *n, smg_value x, const char *letters,
                                 onnx_lettered *out) {
    char left[2 * SMG_MAX_RANK];
    memcpy(left, letters, sizeof left);
    for (size_t i = 0; left[i]; i++) {
        const char *again = strchr(left + i + 1, left[i]);
        if (!again) continue;
        int rank = (int)strlen(left), k = (int)(again - left);
        smg_size extent = smg_onnx_dim(b, x, (int)i);
        SMG_TRY(smg_onnx_equal(b, n, extent, smg_onnx_dim(b, x, k), "the extents of a diagonal"));
        smg_value same =
            smg_onnx_map2(b, "eq", smg_onnx_count(b, extent, (int)i, rank), smg_onnx_count(b, extent, k, rank));
        x = smg_onnx_select(b, same, x, smg_onnx_like(b, x, 0.0));
        if (!x.id) return smg_onnx_failed(b, n);
        x = smg_graph_reduce(b->graph, "sum", x, k, false);
        memmove(left + k, left + k + 1, strlen(left + k));
        i--;
    }
    out->value = x;
    memcpy(out->letters, left, sizeof out->letters);
    return x.id ? SMG_OK : smg_onnx_failed(b, n);
}

/* ---- the operator --------------------------------------------------------------------------- */

typedef struct einsum {
    equation e;
    onnx_lettered operand[MAX_TERMS];
    char out[2 * SMG_MAX_RANK];
} einsum;

static int letters_in(const char *text) {
    int count = 0;
    for (const char *c = text; *c; c++) count += *c != '.' ? 1 : 0;
    return count;
}

static smg_status read_operands(smg_onnx_build *b, const smg_onnx_node *n, einsum *job) {
    const equation *e = &job->e;
    char free_ones[SMG_MAX_RANK + 1], letters[4 * SMG_MAX_RANK];
    int dots[MAX_TERMS] = {0}, most = 0;
    free_letters(e, free_ones);
    for (int i = 0; i < e->terms; i++) {
        int rank = n->inputs[i] ? n->inputs[i]->rank : 0;
        dots[i] = rank - letters_in(e->term[i]);
        if (dots[i] < 0 || (dots[i] > 0 && !strchr(e->term[i], '.')))
            return smg_onnx_fail(b, n, SMG_INVALID, "term \"%s\" of the equation does not fit %s", e->term[i],
                                 smg_onnx_shape_text(b, n->inputs[i]));
        if (dots[i] > most) most = dots[i];
    }
    if ((int)strlen(free_ones) < most) return smg_onnx_fail(b, n, SMG_UNSUPPORTED, "the equation has too many letters");
    for (int i = 0; i < e->terms; i++) {
        expand(e->term[i], free_ones, most, dots[i], letters);
        smg_value x = smg_onnx_in(b, n, i);
        if (!x.id) return smg_onnx_failed(b, n);
        SMG_TRY(take_diagonals(b, n, x, letters, &job->operand[i]));
    }
    if (e->explicit_out)
        expand(e->out, free_ones, most, most, job->out);
    else
        implicit_out(e, free_ones, most, job->out);
    if (strlen(job->out) <= SMG_MAX_RANK) return SMG_OK;
    return smg_onnx_fail(b, n, SMG_UNSUPPORTED, "the result has more than %d axes", SMG_MAX_RANK);
}

/* Every letter of the result is in an operand, and once in the result. */
static smg_status check_out(smg_onnx_build *b, const smg_onnx_node *n, const einsum *job) {
    for (const char *c = job->out; *c; c++) {
        bool known = false;
        for (int i = 0; i < job->e.terms; i++) known = known || strchr(job->operand[i].letters, *c) != NULL;
        if (!known || strchr(c + 1, *c))
            return smg_onnx_fail(b, n, SMG_INVALID, "letter %c of the result %s", *c,
                                 known ? "is there twice" : "is in no term");
    }
    return SMG_OK;
}

/* Letters of the product of x and y that the result or a later operand needs. */
static smg_status needed(smg_onnx_build *b, const smg_onnx_node *n, const einsum *job, int next, const onnx_lettered *x,
                         char out[SMG_MAX_RANK + 1]) {
    const char *sources[2] = {x->letters, job->operand[next].letters};
    size_t count = 0;
    out[0] = '\0';
    for (int s = 0; s < 2; s++)
        for (const char *c = sources[s]; *c; c++) {
            bool wanted = strchr(job->out, *c) != NULL;
            for (int i = next + 1; i < job->e.terms; i++)
                wanted = wanted || strchr(job->operand[i].letters, *c) != NULL;
            if (!wanted || strchr(out, *c)) continue;
            if (count == SMG_MAX_RANK)
                return smg_onnx_fail(b, n, SMG_UNSUPPORTED, "a product has more than %d axes", SMG_MAX_RANK);
            out[count++] = *c;
            out[count] = '\0';
        }
    return SMG_OK;
}

smg_status smg_onnx_convert_einsum(smg_onnx_build *b, const smg_onnx_node *n) {
    einsum job = {.e = {.terms = 0}};
    SMG_TRY(read_equation(b, n, smg_onnx_attr_string(b, n, "equation", ""), &job.e));
    SMG_TRY(read_operands(b, n, &job));
    SMG_TRY(check_out(b, n, &job));
    onnx_lettered x = job.operand[0];
    for (int i = 1; i < job.e.terms; i++) {
        onnx_lettered product = {.value = {0}};
        bool last = i == job.e.terms - 1;
        if (last)
            memcpy(product.letters, job.out, sizeof product.letters);
        else
            SMG_TRY(needed(b, n, &job, i, &x, product.letters));
        product.value = smg_onnx_multiply(b, n, x, job.operand[i], product.letters);
        if (!product.value.id) return smg_onnx_failed(b, n);
        x = product;
    }
    return smg_onnx_set_like(b, n, 0, 0, smg_onnx_arrange(b, x, job.out));
}
