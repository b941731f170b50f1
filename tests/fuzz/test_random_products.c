/* Random products of the sizes that models have, on devices that multiply by matrices: their plans are made and their
 * kernels verified, and none is run. Several axes are contracted, in any order in memory; random_graphs has sizes of
 * which few fill a matrix. SMG_SEED (a number) begins at another seed, SMG_GRAPHS is another count; a failure prints the
 * graph and its seed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "plan/plan.h"
#include "precision/precision.h"
#include "support/check_plan.h"

enum { ROWS, COLUMNS, CONTRACTED, ROLES };

#define MOST_AXES 8
#define MOST_RESULTS (INT64_C(1) << 30)
#define MOST_CONSTANT (INT64_C(1) << 18) /* whose values are looked at */

typedef struct product {
    uint64_t state;
    int count;
    int role[MOST_AXES];
    int64_t extent[MOST_AXES];
    int order[MOST_AXES];
    int symbol; /* axis; -1 */
} product;

static int draw(product *p, int count) {
    p->state = smg_hash_u64(p->state, 1);
    return (int)(p->state % (uint64_t)count);
}

static product product_of(uint64_t seed) {
    static const int64_t extent[] = {1, 2, 3, 7, 8, 14, 16, 20, 32, 48, 64, 96, 128, 197, 256, 768};
    static const int most[ROLES] = {3, 2, 3};
    product p = {.state = smg_hash_u64(SMG_HASH_SEED, seed), .symbol = -1};
    int64_t all = 1;
    for (int role = 0; role < ROLES; role++) {
        for (int i = 1 + draw(&p, most[role]); i > 0; i--) {
            int64_t size = extent[draw(&p, (int)SMG_COUNT_OF(extent))];
            while (size > 1 && all * size > MOST_RESULTS) size /= 2;
            all *= size;
            p.role[p.count] = role;
            p.extent[p.count++] = size;
        }
    }
    if (draw(&p, 2) == 0) p.symbol = 0; /* rows come first */
    return p;
}

/* The axes but those of one role, in any order or in that of roles. */
static int choose_axes(product *p, int without, bool any) {
    int count = 0;
    for (int a = 0; a < p->count; a++)
        if (p->role[a] != without) p->order[count++] = a;
    for (int i = count - 1; any && i > 0; i--) {
        int other = draw(p, i + 1), at = p->order[i];
        p->order[i] = p->order[other];
        p->order[other] = at;
    }
    return count;
}

static int64_t add_dims(const product *p, int count, smg_text *text) {
    int64_t elements = 1;
    for (int i = 0; i < count; i++) {
        smg_text_add(text, i > 0 ? ", " : "[");
        if (p->order[i] == p->symbol)
            smg_text_add(text, "n");
        else
            smg_text_addf(text, "%lld", (long long)p->extent[p->order[i]]);
        elements *= p->extent[p->order[i]];
    }
    smg_text_add(text, "]");
    return elements;
}

static void add_labels(const product *p, int count, char *out) {
    for (int i = 0; i < count; i++) out[i] = (char)('a' + p->order[i]);
    out[count] = 0;
}

static void write_graph(product *p, smg_text *text) {
    static const char *const what[] = {"input f32", "constant f32"};
    char label[3][MOST_AXES + 1];
    int count = choose_axes(p, COLUMNS, true);
    smg_text_addf(text, "graph product\n%sx = input f32", p->symbol >= 0 ? "dim n max 65536\n" : "");
    (void)add_dims(p, count, text);
    add_labels(p, count, label[0]);
    count = choose_axes(p, ROWS, true);
    add_labels(p, count, label[1]);
    int64_t elements = 1;
    for (int i = 0; i < count; i++) elements *= p->extent[p->order[i]];
    bool constant = elements <= MOST_CONSTANT;
    smg_text_addf(text, "\nw = %s", what[constant]);
    (void)add_dims(p, count, text);
    smg_text_add(text, constant ? " random seed=1 scale=0.1" : "");
    count = choose_axes(p, CONTRACTED, draw(p, 4) == 0);
    add_labels(p, count, label[2]);
    smg_text_addf(text, "\np = contract(x, w) \"%s,%s->%s\"\n", label[0], label[1], label[2]);
    int after = draw(p, 3);
    if (after == 1) {
        smg_text_add(text, "r = input f32");
        (void)add_dims(p, count, text);
    }
    smg_text_addf(text, "%s\noutput y = %s\n",
                  after == 0   ? "y = relu(p)"
                  : after == 1 ? "\ny = add(p, r)"
                               : "",
                  after == 2 ? "p" : "y");
}

/* *io_matrices: kernels that multiply by matrices. */
static smg_status plan_one(smg_context *ctx, const product *p, const char *text, const char *target_name, smg_type type,
                           smg_arena *arena, int *io_matrices) {
    smg_graph *g;
    smg_target target;
    smg_plan *plan;
    smg_precision_plan precision;
    const int64_t symbols[] = {p->extent[0]};
    const smg_plan_options options = {.nominal = symbols};
    SMG_TRY(check_target(ctx, target_name, &target));
    SMG_TRY(smg_graph_parse(ctx, text, strlen(text), "product", &g));
    smg_status status = smg_precision_make(g, type, NULL, arena, &precision);
    if (status == SMG_OK) status = smg_plan_make(g, &target, &options, arena, &plan);
    for (int i = 0; status == SMG_OK && i < plan->steps.count; i++)
        *io_matrices += plan->steps.items[i].kernel->matrix.rows > 0;
    smg_graph_destroy(g);
    return status;
}

static bool try_seed(smg_context *ctx, uint64_t seed, int *io_matrices) {
    static const char *const target[] = {"h200", "navi31", "dg2", "bmg", "gfx1201"};
    smg_arena *arena;
    smg_text text;
    const char *on = target[seed % SMG_COUNT_OF(target)];
    smg_type type = seed / SMG_COUNT_OF(target) % 3 == 0 ? SMG_TYPE_BF16 : SMG_TYPE_F16;
    product p = product_of(seed);
    smg_text_init(&text, ctx);
    write_graph(&p, &text);
    assert_int_equal(smg_arena_create(ctx, &arena), SMG_OK);
    smg_status status = plan_one(ctx, &p, smg_text_cstr(&text), on, type, arena, io_matrices);
    if (status != SMG_OK)
        printf("SMG_SEED=%llu, %s on %s: %s\n%s\n", (unsigned long long)seed, smg_type_word(type), on,
               smg_context_error(ctx), smg_text_cstr(&text));
    smg_context_clear_error(ctx);
    smg_arena_destroy(arena);
    smg_text_free(&text);
    return status == SMG_OK;
}

static void have_plans(void **state) {
    const char *given = getenv("SMG_SEED"), *number = getenv("SMG_GRAPHS");
    uint64_t first = given != NULL ? strtoull(given, NULL, 10) : 1;
    int count = number != NULL ? atoi(number) : given != NULL ? 1 : 2000 / CHECK_ONE_IN, failed = 0, matrices = 0;
    for (int i = 0; i < count && failed < 20; i++) failed += !try_seed(*state, first + (uint64_t)i, &matrices);
    printf("%d products from seed %llu on (SMG_SEED, SMG_GRAPHS), %d kernels by matrices\n", count,
           (unsigned long long)first, matrices);
    assert_int_equal(failed, 0);
    if (given == NULL) assert_true(3 * matrices > count);
}

/* Slots along what matrices contract, where the loop went over another axis. */
static void what_failed_before(void **state) {
    static const uint64_t seed[] = {64, 449, 3785, 6403, 11306};
    int matrices = 0;
    for (size_t i = 0; i < SMG_COUNT_OF(seed); i++) assert_true(try_seed(*state, seed[i], &matrices));
}

static int open_context(void **state) {
    smg_context *ctx;
    if (smg_context_create(NULL, &ctx) != SMG_OK) return -1;
    *state = ctx;
    return 0;
}

static int close_context(void **state) {
    smg_context_destroy(*state);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(have_plans), cmocka_unit_test(what_failed_before)};
    return cmocka_run_group_tests(tests, open_context, close_context);
}
