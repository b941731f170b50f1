/* Elementwise operators: a row of the op table where there is one, else a few of them. Operands that are
 * one known number become numbers of the graph, so that rewrites see them. */
#include <math.h>

#include "onnx/onnx_part.h"

typedef struct word_pair {
    const char *onnx, *row;
} word_pair;

static const char *row_of(const word_pair *pairs, size_t count, const char *word) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(pairs[i].onnx, word) == 0) return pairs[i].row;
    return NULL;
}

/* Shapes of all inputs broadcast: said of the node, before a builder says it of values. */
static smg_status check_shapes(smg_onnx_build *b, const smg_onnx_node *n) {
    smg_size dims[SMG_MAX_RANK];
    int rank = 0;
    for (int i = 0; i < n->input_count; i++)
        SMG_TRY(smg_onnx_broadcast(b, n, n->inputs[i]->rank, n->inputs[i]->dims, &rank, dims));
    return SMG_OK;
}

static smg_status no_row(smg_onnx_build *b, const smg_onnx_node *n) {
    return smg_onnx_fail(b, n, SMG_INTERNAL, "%s has no row of the op table", n->op);
}

/* ---- one operand ---------------------------------------------------------------------------- */

smg_status smg_onnx_convert_unary(smg_onnx_build *b, const smg_onnx_node *n) {
    static const word_pair pairs[] = {
        {"Neg", "neg"},   {"Abs", "abs"},     {"Exp", "exp"},   {"Log", "log"},         {"Sqrt", "sqrt"},
        {"Tanh", "tanh"}, {"Erf", "erf"},     {"Sin", "sin"},   {"Cos", "cos"},         {"Floor", "floor"},
        {"Ceil", "ceil"}, {"Round", "round"}, {"Relu", "relu"}, {"Sigmoid", "sigmoid"}, {"Reciprocal", "recip"},
        {"Not", "not"},   {"IsNaN", "isnan"},
    };
    const char *row = row_of(pairs, SMG_COUNT_OF(pairs), n->op);
    if (!row) return no_row(b, n);
    return smg_onnx_set_like(b, n, 0, 0, smg_onnx_map1(b, row, smg_onnx_in(b, n, 0)));
}

/* Quotients and differences of exponentials and circular functions. */
smg_status smg_onnx_convert_function(smg_onnx_build *b, const smg_onnx_node *n) {
    smg_value x = smg_onnx_in(b, n, 0), y;
    if (strcmp(n->op, "Tan") == 0)
        return smg_onnx_set(b, n, 0, smg_onnx_map2(b, "div", smg_onnx_map1(b, "sin", x), smg_onnx_map1(b, "cos", x)));
    smg_value up = smg_onnx_map1(b, "exp", x);
    smg_value down = smg_onnx_map1(b, "exp", smg_onnx_map1(b, "neg", x));
    y = smg_onnx_map2(b, strcmp(n->op, "Sinh") == 0 ? "sub" : "add", up, down);
    return smg_onnx_set(b, n, 0, smg_onnx_with(b, "mul", y, 0.5));
}

/* atan(x): x is folded to [-tan(pi/8), tan(pi/8)], where four terms are as good as f32. */
static smg_value arctan(smg_onnx_build *b, smg_value x) {
    static const double term[] = {8.05374449538e-2, -1.38776856032e-1, 1.99777106478e-1, -3.33329491539e-1};
    static const double quarter = 0.78539816339744830962; /* pi/4 */
    smg_value size = smg_onnx_map1(b, "abs", x);
    smg_value steep = smg_onnx_with(b, "gt", size, 2.414213562373095);
    smg_value middle = smg_onnx_with(b, "gt", size, 0.4142135623730950);
    smg_value above = smg_onnx_with(b, "sub", size, 1.0), below = smg_onnx_with(b, "add", size, 1.0);
    smg_value over = smg_onnx_select(b, steep, smg_onnx_like(b, x, -1.0), smg_onnx_select(b, middle, above, size));
    smg_value under = smg_onnx_select(b, steep, size, smg_onnx_select(b, middle, below, smg_onnx_like(b, x, 1.0)));
    smg_value t = smg_onnx_map2(b, "div", over, under), z = smg_onnx_map1(b, "square", t);
    smg_value sum = smg_onnx_with(b, "mul", z, term[0]);
    for (int i = 1; i < 4; i++) sum = smg_onnx_map2(b, "mul", smg_onnx_with(b, "add", sum, term[i]), z);
    smg_value base = smg_onnx_select(b, middle, smg_onnx_like(b, x, quarter), smg_onnx_like(b, x, 0.0));
    base = smg_onnx_select(b, steep, smg_onnx_like(b, x, 2.0 * quarter), base);
    smg_value y = smg_onnx_map2(b, "add", smg_onnx_map2(b, "mul", sum, t), t);
    y = smg_onnx_map2(b, "add", base, y);
    return smg_onnx_select(b, smg_onnx_with(b, "lt", x, 0.0), smg_onnx_map1(b, "neg", y), y);
}

/* sqrt(1 - x^2) for x in [-1, 1], sqrt(x^2 - 1) for x >= 1: from factors, which do not cancel. */
static smg_value leg(smg_onnx_build *b, smg_value x, bool inside) {
    smg_value less = smg_onnx_with(b, "sub", x, 1.0), more = smg_onnx_with(b, "add", x, 1.0);
    if (inside) less = smg_onnx_map1(b, "neg", less);
    return smg_onnx_map1(b, "sqrt", smg_onnx_map2(b, "mul", less, more));
}

/* 2 atan(x / (1 + sqrt(1 - x^2))): nothing is divided by 0. */
static smg_value arcsin(smg_onnx_build *b, smg_value x) {
    smg_value below = smg_onnx_with(b, "add", leg(b, x, true), 1.0);
    return smg_onnx_with(b, "mul", arctan(b, smg_onnx_map2(b, "div", x, below)), 2.0);
}

/* sign(x) log(|x| + sqrt(x^2 + 1)) */
static smg_value area_sinh(smg_onnx_build *b, smg_value x) {
    smg_value size = smg_onnx_map1(b, "abs", x);
    smg_value root = smg_onnx_map1(b, "sqrt", smg_onnx_with(b, "add", smg_onnx_map1(b, "square", x), 1.0));
    smg_value y = smg_onnx_map1(b, "log", smg_onnx_map2(b, "add", size, root));
    return smg_onnx_select(b, smg_onnx_with(b, "lt", x, 0.0), smg_onnx_map1(b, "neg", y), y);
}

smg_status smg_onnx_convert_inverse(smg_onnx_build *b, const smg_onnx_node *n) {
    smg_value x = smg_onnx_in(b, n, 0), y = {0};
    if (strcmp(n->op, "Atan") == 0) y = arctan(b, x);
    if (strcmp(n->op, "Asin") == 0) y = arcsin(b, x);
    if (strcmp(n->op, "Acos") == 0)
        y = smg_onnx_with(b, "add", smg_onnx_map1(b, "neg", arcsin(b, x)), 1.57079632679489661923);
    if (strcmp(n->op, "Asinh") == 0) y = area_sinh(b, x);
    if (strcmp(n->op, "Acosh") == 0) y = smg_onnx_map1(b, "log", smg_onnx_map2(b, "add", x, leg(b, x, false)));
    if (strcmp(n->op, "Atanh") == 0) {
        smg_value up = smg_onnx_with(b, "add", x, 1.0);
        smg_value down = smg_onnx_with(b, "add", smg_onnx_map1(b, "neg", x), 1.0);
        y = smg_onnx_with(b, "mul", smg_onnx_map1(b, "log", smg_onnx_map2(b, "div", up, down)), 0.5);
    }
    return smg_onnx_set_like(b, n, 0, 0, y);
}

smg_status smg_onnx_convert_sign(smg_onnx_build *b, const smg_onnx_node *n) {
    smg_value x = smg_onnx_in(b, n, 0);
    smg_value low = smg_onnx_select(b, smg_onnx_with(b, "lt", x, 0.0), smg_onnx_like(b, x, -1.0), x);
    smg_value y = smg_onnx_select(b, smg_onnx_with(b, "gt", x, 0.0), smg_onnx_like(b, x, 1.0), low);
    return smg_onnx_set_like(b, n, 0, 0, y);
}

smg_status smg_onnx_convert_isinf(smg_onnx_build *b, const smg_onnx_node *n) {
    bool negative = smg_onnx_attr_int(b, n, "detect_negative", 1) != 0;
    bool positive = smg_onnx_attr_int(b, n, "detect_positive", 1) != 0;
    smg_value x = smg_onnx_in(b, n, 0);
    if (negative && positive)
        return smg_onnx_set(b, n, 0, smg_onnx_with(b, "eq", smg_onnx_map1(b, "abs", x), HUGE_VAL));
    if (negative || positive) return smg_onnx_set(b, n, 0, smg_onnx_with(b, "eq", x, positive ? HUGE_VAL : -HUGE_VAL));
    return smg_onnx_set(b, n, 0, smg_onnx_map2(b, "lt", x, x));
}

/* ---- two operands --------------------------------------------------------------------------- */

smg_status smg_onnx_convert_binary(smg_onnx_build *b, const smg_onnx_node *n) {
    static const word_pair pairs[] = {
        {"Add", "add"},           {"Sub", "sub"},        {"Mul", "mul"},
        {"Div", "div"},           {"Greater", "gt"},     {"Less", "lt"},
        {"GreaterOrEqual", "ge"}, {"LessOrEqual", "le"}, {"Equal", "eq"},
        {"And", "and"},           {"Or", "or"},          {"Xor", "ne"},
    };
    const char *row = row_of(pairs, SMG_COUNT_OF(pairs), n->op);
    if (!row) return no_row(b, n);
    SMG_TRY(check_shapes(b, n));
    smg_value x = smg_onnx_operand(b, n, 0), y = smg_onnx_operand(b, n, 1);
    return smg_onnx_set_like(b, n, 0, 0, smg_onnx_map2(b, row, x, y));
}

/* Towards zero: what the quotient of a remainder with the dividend's sign is rounded to. */
static smg_value truncated_quotient(smg_onnx_build *b, smg_value x, smg_value y) {
    smg_value q = smg_onnx_map2(b, "div", x, y);
    const smg_node *node = smg_graph_node_of(b->graph, q);
    if (!node || smg_type_kind(node->type) == SMG_KIND_INT) return q; /* truncates as it is */
    return smg_onnx_select(b, smg_onnx_with(b, "lt", q, 0.0), smg_onnx_map1(b, "ceil", q),
                           smg_onnx_map1(b, "floor", q));
}

smg_status smg_onnx_convert_mod(smg_onnx_build *b, const smg_onnx_node *n) {
    SMG_TRY(check_shapes(b, n));
    smg_value x = smg_onnx_operand(b, n, 0), y = smg_onnx_operand(b, n, 1);
    bool fmod = smg_onnx_attr_int(b, n, "fmod", 0) != 0;
    if (!fmod && smg_type_kind(smg_onnx_type(n, 0)) == SMG_KIND_FLOAT)
        return smg_onnx_fail(b, n, SMG_INVALID, "fmod is 0, must be 1 for floats");
    if (!fmod) return smg_onnx_set_like(b, n, 0, 0, smg_onnx_map2(b, "mod", x, y));
    smg_value whole = smg_onnx_map2(b, "mul", y, truncated_quotient(b, x, y));
    return smg_onnx_set_like(b, n, 0, 0, smg_onnx_map2(b, "sub", x, whole));
}

/* x to a whole power by repeated squares, 1/x for negative ones. */
static smg_value whole_power(smg_onnx_build *b, smg_value x, int power) {
    smg_value result = {0}, square = x;
    for (int rest = power < 0 ? -power : power; rest > 0; rest /= 2) {
        if (rest % 2 == 1) result = result.id ? smg_onnx_map2(b, "mul", result, square) : square;
        if (rest > 1) square = smg_onnx_map1(b, "square", square);
    }
    return power < 0 ? smg_onnx_map1(b, "recip", result) : result;
}

static bool same(double x, double y) {
    return x >= y && x <= y;
}

/* {0} when a power of this number needs the general row. */
static smg_value known_power(smg_onnx_build *b, smg_value x, double power) {
    bool real = smg_graph_node_of(b->graph, x) && smg_type_kind(smg_graph_node_of(b->graph, x)->type) == SMG_KIND_FLOAT;
    if (real && same(power, 0.5)) return smg_onnx_map1(b, "sqrt", x);
    if (real && same(power, -0.5)) return smg_onnx_map1(b, "rsqrt", x);
    bool whole = same(power, floor(power)) && fabs(power) <= 8.0 && !same(power, 0.0);
    if (!whole || (power < 0.0 && !real)) return (smg_value){0};
    return whole_power(b, x, (int)power);
}

smg_status smg_onnx_convert_pow(smg_onnx_build *b, const smg_onnx_node *n) {
    smg_type type = smg_onnx_type(n, 0);
    double power;
    SMG_TRY(check_shapes(b, n));
    smg_value x = smg_onnx_operand(b, n, 0);
    if (smg_onnx_has(n, 1) && n->inputs[1]->rank <= n->inputs[0]->rank && smg_onnx_is_number(b, n->inputs[1], &power)) {
        smg_value y = known_power(b, x, power);
        if (y.id || !x.id) return smg_onnx_set_like(b, n, 0, 0, y);
    }
    smg_value base = smg_onnx_to(b, x, SMG_TYPE_F32);
    smg_value exponent = smg_onnx_to(b, smg_onnx_operand(b, n, 1), SMG_TYPE_F32);
    smg_value y = smg_onnx_map2(b, "pow", base, exponent);
    if (type != SMG_TYPE_F32) y = smg_onnx_to(b, smg_onnx_map1(b, "round", y), type);
    return smg_onnx_set_like(b, n, 0, 0, y);
}

/* ---- any number of operands ----------------------------------------------------------------- */

/* An operand of a minimum or maximum: an integer that no i32 reaches does what the last i32 does. */
static smg_value bound_of(smg_onnx_build *b, const smg_onnx_node *n, int input) {
    double number;
    bool known = smg_onnx_type(n, input) == SMG_TYPE_I32 && smg_onnx_is_number(b, n->inputs[input], &number);
    if (!known || (number >= INT32_MIN && number <= INT32_MAX)) return smg_onnx_operand(b, n, input);
    smg_value x = smg_graph_number(b->graph, "i32", number < 0 ? INT32_MIN : INT32_MAX);
    return smg_onnx_stretch(b, x, n->inputs[input]->rank, n->inputs[input]->dims);
}

smg_status smg_onnx_convert_variadic(smg_onnx_build *b, const smg_onnx_node *n) {
    static const word_pair pairs[] = {{"Max", "max"}, {"Min", "min"}, {"Sum", "add"}, {"Mean", "add"}};
    const char *row = row_of(pairs, SMG_COUNT_OF(pairs), n->op);
    if (!row) return no_row(b, n);
    SMG_TRY(check_shapes(b, n));
    bool bounds = strcmp(n->op, "Max") == 0 || strcmp(n->op, "Min") == 0;
    smg_value y = bounds ? bound_of(b, n, 0) : smg_onnx_operand(b, n, 0);
    for (int i = 1; i < n->input_count; i++)
        y = smg_onnx_map2(b, row, y, bounds ? bound_of(b, n, i) : smg_onnx_operand(b, n, i));
    if (strcmp(n->op, "Mean") == 0 && n->input_count > 1) y = smg_onnx_with(b, "mul", y, 1.0 / (double)n->input_count);
    return smg_onnx_set_like(b, n, 0, 0, y);
}

smg_status smg_onnx_convert_where(smg_onnx_build *b, const smg_onnx_node *n) {
    SMG_TRY(check_shapes(b, n));
    smg_value condition = smg_onnx_operand(b, n, 0);
    smg_value x = smg_onnx_operand(b, n, 1), y = smg_onnx_operand(b, n, 2);
    return smg_onnx_set_like(b, n, 0, 1, smg_onnx_select(b, condition, x, y));
}

smg_status smg_onnx_convert_clip(smg_onnx_build *b, const smg_onnx_node *n) {
    smg_value x = smg_onnx_in(b, n, 0);
    if (smg_onnx_has(n, 1)) x = smg_onnx_map2(b, "max", x, bound_of(b, n, 1));
    if (smg_onnx_has(n, 2)) x = smg_onnx_map2(b, "min", x, bound_of(b, n, 2));
    return smg_onnx_set_like(b, n, 0, 0, x);
}

/* ---- types ---------------------------------------------------------------------------------- */

/* Integers are i32 in the graph: a narrower type keeps the low bits. */
static smg_value narrowed(smg_onnx_build *b, smg_value x, smg_import_dtype dtype) {
    static const struct {
        smg_import_dtype dtype;
        double span, low;
    } rows[] = {{SMG_IMPORT_U8, 256.0, 0.0}, {SMG_IMPORT_I8, 256.0, -128.0}, {SMG_IMPORT_I16, 65536.0, -32768.0}};
    for (size_t i = 0; i < SMG_COUNT_OF(rows); i++) {
        if (rows[i].dtype != dtype) continue;
        smg_value shifted = smg_onnx_with(b, "sub", x, rows[i].low);
        smg_value low_bits = smg_onnx_with(b, "mod", shifted, rows[i].span);
        return smg_onnx_with(b, "add", low_bits, rows[i].low);
    }
    return x;
}

static smg_status cast_to(smg_onnx_build *b, const smg_onnx_node *n, smg_import_dtype dtype) {
    smg_type type = smg_onnx_graph_type(dtype);
    smg_value y = smg_onnx_to(b, smg_onnx_in(b, n, 0), type);
    smg_import_dtype from = n->inputs[0]->dtype;
    if (smg_import_dtype_bytes(dtype) < smg_import_dtype_bytes(from)) y = narrowed(b, y, dtype);
    return smg_onnx_set_typed(b, n, 0, dtype, y);
}

smg_status smg_onnx_convert_cast(smg_onnx_build *b, const smg_onnx_node *n) {
    int64_t to = smg_onnx_attr_int(b, n, "to", 0);
    smg_import_dtype dtype = smg_onnx_dtype(to);
    if (dtype == SMG_IMPORT_DTYPE_NONE)
        return smg_onnx_fail(b, n, SMG_UNSUPPORTED, "to is element type %lld, which smg lacks", (long long)to);
    return cast_to(b, n, dtype);
}

smg_status smg_onnx_convert_cast_like(smg_onnx_build *b, const smg_onnx_node *n) {
    return cast_to(b, n, n->inputs[1]->dtype);
}
