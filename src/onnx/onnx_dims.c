/* Sizes during import: symbols for the dims of inputs, equalities, broadcasting, and sentences about
 * shapes.
 *
 * A dim of an input is a number, a name, an expression of names ("sequence + 1") or nothing. Names
 * may hold any characters and become symbols that sizes can have; nothing becomes a symbol of its own.
 */
#include <stdio.h>

#include "onnx/onnx_private.h"

#define NAME_BYTES 100

/* ---- sentences ---------------------------------------------------------------------------------- */

static const char *keep(smg_onnx_build *b, smg_text *text) {
    const char *copy = smg_arena_string(b->arena, smg_text_cstr(text));
    smg_text_free(text);
    return copy ? copy : "?";
}

const char *smg_onnx_size_text(smg_onnx_build *b, smg_size size) {
    smg_text text;
    smg_text_init(&text, b->ctx);
    smg_size_print(b->sizes, size, &text);
    return keep(b, &text);
}

const char *smg_onnx_shape_text(smg_onnx_build *b, const smg_onnx_value *value) {
    if (!value) return "nothing";
    smg_text text;
    smg_text_init(&text, b->ctx);
    for (const char *at = smg_import_dtype_word(value->dtype); *at; at++) {
        char lower = *at >= 'A' && *at <= 'Z' ? (char)(*at - 'A' + 'a') : *at;
        smg_text_add_n(&text, &lower, 1);
    }
    smg_text_add(&text, "[");
    for (int i = 0; i < value->rank; i++) {
        if (i > 0) smg_text_add(&text, ", ");
        smg_size_print(b->sizes, value->dims[i], &text);
    }
    smg_text_add(&text, "]");
    return keep(b, &text);
}

smg_status smg_onnx_failed(smg_onnx_build *b, const smg_onnx_node *n) {
    smg_status status = smg_context_status(b->ctx);
    if (status != SMG_OK) return status;
    return smg_fail(b->ctx, SMG_INTERNAL, "%s failed without a reason", n->op);
}

smg_status smg_onnx_fail(smg_onnx_build *b, const smg_onnx_node *n, smg_status code, const char *format, ...) {
    char line[768];
    va_list args;
    (void)n; /* the driver names it */
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    return smg_fail(b->ctx, code, "%s", line);
}

/* ---- arithmetic --------------------------------------------------------------------------------- */

bool smg_onnx_is_const(const smg_onnx_build *b, smg_size size, int64_t value) {
    int64_t found = 0;
    return smg_size_is_const(b->sizes, size, &found) && found == value;
}

smg_size smg_onnx_int(smg_onnx_build *b, int64_t value) {
    return smg_size_const(b->sizes, value);
}

smg_size smg_onnx_product(smg_onnx_build *b, int rank, const smg_size *dims) {
    smg_size product = smg_size_const(b->sizes, 1);
    for (int i = 0; i < rank; i++) product = smg_size_mul(b->sizes, product, dims[i]);
    return product;
}

/* ---- equalities --------------------------------------------------------------------------------- */

static void learn_alias(smg_onnx_build *b, const char *name, const char *same_as) {
    const char *symbol = smg_arena_string(b->arena, name);
    smg_onnx_alias *row = symbol && same_as ? SMG_ARRAY_PUSH(b->arena, &b->aliases) : NULL;
    if (!row) return;
    *row = (smg_onnx_alias){symbol, same_as};
    b->restart = true;
}

/* Without the symbols that are factors of all terms: no symbol is 0. */
static smg_size without_symbols(smg_onnx_build *b, smg_size size) {
    if (size < 0 || size == SMG_SIZE_ZERO) return size;
    for (int i = 0; i < smg_size_symbol_count(b->sizes); i++) {
        smg_size symbol = smg_size_symbol(b->sizes, smg_size_symbol_name(b->sizes, i));
        while (symbol >= 0 && smg_size_divide_exact(b->sizes, size, symbol, &size)) continue;
    }
    return size;
}

/* A symbol that the equality of x and y determines, as a size that is possible for every value of the
 * others. Of several, the one that came last: the file named the others before. */
static bool determined(smg_onnx_build *b, smg_size x, smg_size y, int *out_symbol, smg_size *out_size) {
    smg_size difference = without_symbols(b, smg_size_sub(b->sizes, x, y));
    int64_t low = 0, high = 0;
    for (int i = smg_size_symbol_count(b->sizes) - 1; i >= 0 && difference >= 0; i--) {
        if (!smg_size_solve(b->sizes, difference, i, out_size)) continue;
        smg_size_bounds(b->sizes, *out_size, &low, &high);
        if (low < 1 || low > smg_size_symbol_max(b->sizes, i)) continue;
        *out_symbol = i;
        return true;
    }
    return false;
}

/* What the equality says about the inputs, for the next start; the caller fails this one. That a symbol is 1 is
 * believed last. */
static void learn_equal(smg_onnx_build *b, smg_size x, smg_size y) {
    int symbol = 0;
    smg_size size = SMG_SIZE_NONE;
    const char *name = NULL, *same_as = NULL;
    if (smg_onnx_bound_until_equal(b, x, y, 2)) return;
    if (determined(b, x, y, &symbol, &size))
        learn_alias(b, smg_size_symbol_name(b->sizes, symbol), smg_onnx_size_text(b, size));
    else if (smg_onnx_symbol_until_equal(b, x, y, &name, &same_as))
        learn_alias(b, name, smg_arena_string(b->arena, same_as));
    else if (smg_onnx_multiple_until_equal(b, x, y, &name, &same_as))
        learn_alias(b, name, same_as);
    else
        smg_onnx_bound_until_equal(b, x, y, 1);
}

bool smg_onnx_learn_multiple(smg_onnx_build *b, smg_size all, smg_size part) {
    int64_t number = 1;
    const char *name = NULL, *multiple = NULL;
    if (smg_size_is_const(b->sizes, part, &number) && number < 1) return false;
    smg_size whole = smg_size_mul(b->sizes, part, smg_size_div(b->sizes, all, part));
    if (whole < 0 || !smg_onnx_multiple_until_equal(b, whole, all, &name, &multiple))
        return whole >= 0 && smg_onnx_bound_until_equal(b, whole, all, 2);
    learn_alias(b, name, multiple);
    return b->restart;
}

/* What earlier starts learned; the newest first, because its size has no symbol that an older one names. */
smg_status smg_onnx_define_aliases(smg_onnx_build *b) {
    for (int i = b->aliases.count - 1; i >= 0; i--) {
        smg_size size = SMG_SIZE_NONE;
        const char *cursor = b->aliases.items[i].same_as;
        SMG_TRY(smg_size_parse(b->sizes, &cursor, &size));
        SMG_TRY(smg_size_define(b->sizes, b->aliases.items[i].symbol, size));
    }
    return SMG_OK;
}

smg_status smg_onnx_equal(smg_onnx_build *b, const smg_onnx_node *n, smg_size x, smg_size y, const char *what) {
    int64_t low = 0, high = 0;
    if (x == y && x >= 0) return SMG_OK;
    smg_size difference = smg_size_sub(b->sizes, x, y);
    if (difference < 0) return smg_onnx_failed(b, n);
    smg_size_bounds(b->sizes, difference, &low, &high);
    if (low > 0 || high < 0)
        return smg_onnx_fail(b, n, SMG_INVALID, "%s: %s and %s must be equal", what, smg_onnx_size_text(b, x),
                             smg_onnx_size_text(b, y));
    learn_equal(b, x, y);
    return smg_onnx_fail(b, n, SMG_UNSUPPORTED, "%s: %s and %s must be equal, which is not so for every size", what,
                         smg_onnx_size_text(b, x), smg_onnx_size_text(b, y));
}

static smg_status broadcast_pair(smg_onnx_build *b, const smg_onnx_node *n, smg_size dim, smg_size *io_dim) {
    int64_t low = 0, high = 0;
    if (dim == *io_dim || smg_onnx_is_const(b, dim, 1)) return SMG_OK;
    if (smg_onnx_is_const(b, *io_dim, 1)) {
        *io_dim = dim;
        return SMG_OK;
    }
    smg_size difference = smg_size_sub(b->sizes, dim, *io_dim);
    smg_size_bounds(b->sizes, difference, &low, &high);
    bool never = low > 0 || high < 0;
    smg_size_bounds(b->sizes, dim, &low, NULL);
    smg_size_bounds(b->sizes, *io_dim, &high, NULL);
    if (never && low > 1 && high > 1)
        return smg_onnx_fail(b, n, SMG_INVALID, "extents %s and %s cannot be broadcast", smg_onnx_size_text(b, *io_dim),
                             smg_onnx_size_text(b, dim));
    learn_equal(b, dim, *io_dim);
    return smg_onnx_fail(b, n, SMG_UNSUPPORTED, "extents %s and %s can be broadcast for some sizes only",
                         smg_onnx_size_text(b, *io_dim), smg_onnx_size_text(b, dim));
}

smg_status smg_onnx_broadcast(smg_onnx_build *b, const smg_onnx_node *n, int rank, const smg_size *dims, int *io_rank,
                              smg_size *io_dims) {
    smg_size result[SMG_MAX_RANK];
    int most = rank > *io_rank ? rank : *io_rank;
    for (int i = 0; i < most; i++) {
        int old = i - (most - *io_rank), new_axis = i - (most - rank);
        result[i] = old >= 0 ? io_dims[old] : smg_onnx_int(b, 1);
        if (new_axis >= 0) SMG_TRY(broadcast_pair(b, n, dims[new_axis], &result[i]));
    }
    for (int i = 0; i < most; i++) io_dims[i] = result[i];
    *io_rank = most;
    return SMG_OK;
}

/* ---- symbols of inputs -------------------------------------------------------------------------- */

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_plain(const char *name) {
    if (!is_letter(name[0]) || strlen(name) >= NAME_BYTES) return false;
    for (; *name; name++)
        if (!is_letter(*name) && !is_digit(*name)) return false;
    return true;
}

static smg_size symbol(smg_onnx_build *b, const char *name) {
    smg_size made = smg_size_symbol(b->sizes, name);
    for (int i = 0; i < b->bounds.count; i++) {
        int at = smg_size_symbol_find(b->sizes, b->bounds.items[i].symbol);
        if (at >= 0 && b->bounds.items[i].most < smg_size_symbol_max(b->sizes, at))
            smg_size_symbol_set_max(b->sizes, at, b->bounds.items[i].most);
    }
    return made;
}

/* Other names as plain ones; a hash keeps different names apart. */
static smg_size odd_symbol(smg_onnx_build *b, const char *raw) {
    char name[NAME_BYTES + 16];
    size_t length = 0;
    if (!is_letter(raw[0])) name[length++] = '_';
    for (const char *at = raw; *at && length < NAME_BYTES - 16; at++)
        name[length++] = is_letter(*at) || is_digit(*at) ? *at : '_';
    snprintf(name + length, 16, "_%08llx", (unsigned long long)(smg_hash_text(SMG_HASH_SEED, raw) & 0xffffffffu));
    return symbol(b, name);
}

static bool is_known(const smg_onnx_build *b, const char *name) {
    bool known = smg_size_symbol_find(b->sizes, name) >= 0;
    for (int i = 0; i < b->aliases.count && !known; i++) known = strcmp(b->aliases.items[i].symbol, name) == 0;
    return known;
}

/* sum := product {(+|-) product}; product := name | number | name * number ...; all names are symbols
 * already. Only looks; the text form of sizes reads it afterwards. */
static bool is_expression(smg_onnx_build *b, const char *at) {
    bool want_operand = true;
    for (;;) {
        while (*at == ' ') at++;
        if (!want_operand) {
            if (!*at) return true;
            if (*at != '+' && *at != '-' && *at != '*') return false;
            at++;
            want_operand = true;
            continue;
        }
        char name[NAME_BYTES];
        size_t length = 0;
        bool number = is_digit(*at);
        while ((is_letter(*at) || is_digit(*at)) && length + 1 < sizeof name) name[length++] = *at++;
        name[length] = '\0';
        if (length == 0 || (number && (length > 9 || strspn(name, "0123456789") != length))) return false;
        if (!number && !is_known(b, name)) return false;
        want_operand = false;
    }
}

static smg_size expression(smg_onnx_build *b, const char *text) {
    smg_size size = SMG_SIZE_NONE;
    const char *cursor = text;
    if (smg_size_parse(b->sizes, &cursor, &size) != SMG_OK) return SMG_SIZE_NONE;
    return size;
}

static size_t dims_of(const pb_value_info *input, pb_dimension *const **out_dims) {
    *out_dims = input->type->tensor_type->shape->dim;
    return input->type->tensor_type->shape->n_dim;
}

static smg_status check_input(smg_onnx_build *b, const pb_value_info *input) {
    const char *label = b->model->label;
    if (!input->type || !input->type->tensor_type)
        return smg_fail(b->ctx, SMG_UNSUPPORTED, "'%s': input '%s' is not a tensor", label, input->name);
    if (!input->type->tensor_type->shape)
        return smg_fail(b->ctx, SMG_UNSUPPORTED, "'%s': input '%s' has no shape; smg needs at least its rank", label,
                        input->name);
    if (input->type->tensor_type->shape->n_dim > SMG_MAX_RANK)
        return smg_fail(b->ctx, SMG_UNSUPPORTED,
                        "'%s': input '%s' has %zu axes, at most %d are "
                        "possible",
                        label, input->name, input->type->tensor_type->shape->n_dim, SMG_MAX_RANK);
    return SMG_OK;
}

static const char *param_of(const pb_dimension *dim) {
    return dim->value_case == SMG__PB__DIMENSION__VALUE_DIM_PARAM ? dim->dim_param : "";
}

smg_status smg_onnx_name_dims(smg_onnx_build *b, const pb_value_info *input) {
    pb_dimension *const *dims = NULL;
    SMG_TRY(check_input(b, input));
    size_t count = dims_of(input, &dims);
    for (size_t i = 0; i < count; i++) {
        const char *name = param_of(dims[i]);
        if (is_plain(name) && symbol(b, name) < 0) return smg_context_status(b->ctx);
    }
    return SMG_OK;
}

static smg_size nameless(smg_onnx_build *b, const pb_value_info *input, size_t axis) {
    char name[NAME_BYTES + 32];
    if (!is_plain(input->name) || strlen(input->name) > NAME_BYTES - 24) {
        snprintf(name, sizeof name, "%.60s %zu", input->name, axis);
        return odd_symbol(b, name);
    }
    snprintf(name, sizeof name, "%s_%zu", input->name, axis);
    return symbol(b, name);
}

smg_status smg_onnx_input_dims(smg_onnx_build *b, const pb_value_info *input, int *out_rank, smg_size *out_dims) {
    pb_dimension *const *dims = NULL;
    size_t count = dims_of(input, &dims);
    *out_rank = (int)count;
    for (size_t i = 0; i < count; i++) {
        const char *name = param_of(dims[i]);
        bool fixed = dims[i]->value_case == SMG__PB__DIMENSION__VALUE_DIM_VALUE && dims[i]->dim_value != -1;
        if (fixed && (dims[i]->dim_value < 1 || dims[i]->dim_value > SMG_SIZE_UNBOUNDED))
            return smg_fail(b->ctx, SMG_UNSUPPORTED, "'%s': axis %zu of input '%s' is %lld, must be in [1, %lld]",
                            b->model->label, i, input->name, (long long)dims[i]->dim_value,
                            (long long)SMG_SIZE_UNBOUNDED);
        if (fixed) {
            out_dims[i] = smg_onnx_int(b, dims[i]->dim_value);
        } else if (is_plain(name)) {
            out_dims[i] = symbol(b, name);
        } else if (name[0] && is_expression(b, name)) {
            out_dims[i] = expression(b, name);
        } else {
            out_dims[i] = name[0] ? odd_symbol(b, name) : nameless(b, input, i);
        }
        if (out_dims[i] < 0) return smg_context_status(b->ctx);
    }
    return SMG_OK;
}
