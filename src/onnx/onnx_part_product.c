/* Products of two tensors whose axes have letters. What the contraction of the graph does not take is made
 * before: letters of one operand alone are summed, axes of extent 1 that meet a longer one are dropped, and a
 * product without a sum is an elementwise one. */
#include "onnx/onnx_part.h"

static const smg_value no_value = {0};

static int place_of(const char *letters, char letter) {
    const char *at = letter ? strchr(letters, letter) : NULL;
    return at ? (int)(at - letters) : -1;
}

static void drop_letter(onnx_lettered *x, int axis) {
    memmove(x->letters + axis, x->letters + axis + 1, strlen(x->letters + axis));
}

/* Sums the letters that neither `other` nor `out` has. */
static void sum_own(smg_onnx_build *b, onnx_lettered *x, const char *other, const char *out) {
    for (int i = (int)strlen(x->letters) - 1; i >= 0 && x->value.id; i--) {
        if (strchr(other, x->letters[i]) || strchr(out, x->letters[i])) continue;
        x->value = smg_graph_reduce(b->graph, "sum", x->value, i, false);
        drop_letter(x, i);
    }
}

static void drop_axis(smg_onnx_build *b, onnx_lettered *x, int axis) {
    x->value = smg_onnx_remove(b, x->value, axis);
    drop_letter(x, axis);
}

/* The same letter has the same extent; 1 against more is dropped. */
static bool match(smg_onnx_build *b, const smg_onnx_node *n, onnx_lettered *x, onnx_lettered *y) {
    smg_size one = smg_onnx_int(b, 1);
    for (int i = (int)strlen(x->letters) - 1; i >= 0; i--) {
        int k = place_of(y->letters, x->letters[i]);
        if (k < 0) continue;
        smg_size p = smg_onnx_dim(b, x->value, i), q = smg_onnx_dim(b, y->value, k);
        if (p < 0 || q < 0) return false;
        if (p == q) continue;
        if (p == one)
            drop_axis(b, x, i);
        else if (q == one)
            drop_axis(b, y, k);
        else if (smg_onnx_equal(b, n, p, q, "extents that are multiplied") != SMG_OK)
            return false;
    }
    return true;
}

smg_value smg_onnx_arrange(smg_onnx_build *b, onnx_lettered x, const char *out_letters) {
    int perm[SMG_MAX_RANK], rank = (int)strlen(out_letters);
    sum_own(b, &x, "", out_letters);
    if (!x.value.id || rank != smg_onnx_rank(b, x.value)) return no_value;
    for (int i = 0; i < rank; i++) perm[i] = place_of(x.letters, out_letters[i]);
    return smg_onnx_permute(b, x.value, perm);
}

/* x in the order of `out`, with extent 1 for letters it lacks. */
static smg_value spread(smg_onnx_build *b, const onnx_lettered *x, const char *out) {
    char own[SMG_MAX_RANK + 1] = "";
    smg_size dims[SMG_MAX_RANK];
    int rank = (int)strlen(out), count = 0;
    for (int i = 0; i < rank; i++)
        if (strchr(x->letters, out[i])) own[count++] = out[i];
    smg_value y = smg_onnx_arrange(b, *x, own);
    for (int i = 0; i < rank; i++) {
        int at = place_of(own, out[i]);
        dims[i] = at < 0 ? smg_onnx_int(b, 1) : smg_onnx_dim(b, y, at);
    }
    return smg_onnx_reshape(b, y, rank, dims);
}

smg_value smg_onnx_multiply(smg_onnx_build *b, const smg_onnx_node *n, onnx_lettered x, onnx_lettered y,
                            const char *out_letters) {
    char labels[3 * (SMG_MAX_RANK + 2)] = "";
    bool sums = false;
    sum_own(b, &x, y.letters, out_letters);
    sum_own(b, &y, x.letters, out_letters);
    if (!x.value.id || !y.value.id || !match(b, n, &x, &y)) return no_value;
    /* A letter that was dropped on one side may now stand alone on the other. */
    sum_own(b, &x, y.letters, out_letters);
    sum_own(b, &y, x.letters, out_letters);
    for (const char *c = x.letters; *c; c++) sums = sums || !strchr(out_letters, *c);
    if (!sums) return smg_onnx_map2(b, "mul", spread(b, &x, out_letters), spread(b, &y, out_letters));
    strcat(labels, x.letters);
    strcat(labels, ",");
    strcat(labels, y.letters);
    strcat(labels, "->");
    strcat(labels, out_letters);
    return smg_graph_contract(b->graph, labels, x.value, y.value);
}
