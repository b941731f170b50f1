/* What a program writes out. Short inner loops, so that places are constants; of products as many k as gain by it.
 * Where the kernel would then be more code than the driver builds in good time, the loops go first, the outermost
 * before those inside of it, then half of every product at a time. */
#include "lower/lower.h"

#define LOOP_STEPS 8 /* longer loops gain nothing by being written out */

/* Multiply-adds that one product of views is written out for. More of them are a second loop inside the one over
 * slices, behind which a CPU's driver no longer knows that all lanes run: it tests each of them for each load, in the
 * kernel five times the products (bench/NOTES.md), in its compiler seconds. */
#define VIEW_PRODUCTS 512
/* The same where lanes are rows: each has all columns, more sums than there are vector registers, and what is written
 * out of them passes through memory. Half as many run as fast, and are built in two thirds of the time. */
#define OWN_PRODUCTS 256
/* Of a kernel that is much code. A CPU's driver has more of a lane in memory, written out or not, and builds it in time
 * that grows with the square. */
#define FEW_REGISTERS 32
/* Operations of a kernel that has written out a loop over factors from memory which runs once. Each instruction is
 * fetched for the first time then, in a model where other kernels ran before: more of them take longer to fetch than
 * loads that are on their way earlier save (bench/NOTES.md). */
#define STREAM_CODE 1200
#define MATRIX_STEPS 4 /* of a slice whose matrices may be read ahead */

typedef struct body {
    bool barrier, views; /* views: a product of them */
    bool loop;           /* one inside of it */
    bool streams;        /* factors are read from memory by the lanes that multiply them */
} body;

static body look_into(const smg_kernel *k, int loop) {
    body b = {0};
    int depth = 0;
    for (int i = loop; i < k->code.count; i++) {
        const smg_instr *in = &k->code.items[i];
        if (in->kind == SMG_I_LOOP && depth++ > 0) b.loop = true;
        if (in->kind == SMG_I_END && --depth == 0) break;
        if (in->kind == SMG_I_BARRIER) b.barrier = true;
        if (in->kind == SMG_I_MMA && k->tiles.items[in->b].residence == SMG_VIEW) b.views = true;
        if (in->kind == SMG_I_SET && k->tiles.items[in->dst].fragments == SMG_FRAGMENTS_RIGHT) b.streams = true;
    }
    return b;
}

/* A body with a barrier is not repeated: it spills. Nor is one with a loop, or with a product of views, whose many
 * loads a CPU's driver compares with each other: without a branch between them it takes a hundred times as long as for
 * the loop (bench/NOTES.md). */
static void unroll_loop(smg_kernel *k, int at, bool once, bool much) {
    smg_instr *loop = &k->code.items[at];
    if (loop->unroll > 1) return; /* rings want so many steps */
    int64_t steps = smg_kernel_loop_steps(k, loop);
    body b = look_into(k, at);
    int64_t most = !b.streams ? LOOP_STEPS : !once ? SMG_STREAM_STEPS : much ? 0 : SMG_STREAM_STEPS_ONCE;
    bool kept = b.barrier || b.views || (b.streams && once && steps > most);
    loop->unroll = kept ? -1 : b.loop || steps == 0 || steps > most ? 0 : 1;
}

/* much: they were too much code (STREAM_CODE). False: nothing is other than it was. */
static bool unroll_loops(smg_kernel *k, bool much) {
    bool other = false;
    int depth = 0;
    for (int i = 0; i < k->code.count; i++) {
        int before = k->code.items[i].unroll;
        if (k->code.items[i].kind == SMG_I_LOOP) unroll_loop(k, i, depth++ == 0, much);
        if (k->code.items[i].kind == SMG_I_END) depth--;
        other = other || k->code.items[i].unroll != before;
    }
    return other;
}

/* k of a product of views whose factors fit in half of the registers: all their loads are under way at once. Groups of
 * eight k are two a word. */
static int64_t most_ahead(const smg_kernel *k, const smg_target *t, const smg_instr *product, int64_t sums) {
    int64_t rows = smg_kernel_product_rows(k, product), words = rows + smg_kernel_column_words(k, product);
    if (smg_kernel_product_group(k, product) == SMG_WIDEST) words = (rows + sums / rows + 1) / 2;
    return t->registers_lane / 2 / words * sums;
}

/* Words of factors that the product may have written out: some compilers load all of them in front, those of products
 * behind each other too. */
static int64_t most_factors(const smg_kernel *k, const smg_target *t, int at) {
    const smg_instr *code = k->code.items;
    int from = at, to = at + 1;
    while (from > 0 && code[from - 1].kind == SMG_I_MMA) from--;
    while (to < k->code.count && code[to].kind == SMG_I_MMA) to++;
    int64_t room = t->registers_ahead - smg_kernel_registers_around(k, at);
    return room > 0 ? room / (to - from) : 0;
}

/* Of one step of a product by matrices; those that are tiles are there already. */
static int64_t matrix_words(const smg_kernel *k, const smg_instr *product) {
    int64_t elements = smg_matrix_elements(&k->matrix, SMG_FRAGMENTS_SUMS);
    int64_t all = smg_tile_registers(k, &k->tiles.items[product->dst]) / elements;
    int64_t down = smg_matrix_rows(k, product), across = all / down;
    int64_t left = down * smg_matrix_loaded(k, product, SMG_FRAGMENTS_LEFT);
    return (left + across * smg_matrix_loaded(k, product, SMG_FRAGMENTS_RIGHT)) / k->subgroup;
}

/* All steps of a slice, if they are few, or as many of them as there is room for. */
static void unroll_matrices(const smg_kernel *k, smg_instr *product, int64_t steps, int64_t group, int64_t factors) {
    int64_t words = matrix_words(k, product);
    for (int64_t n = 2; n <= steps && steps <= MATRIX_STEPS && n * words <= factors; n++)
        if (steps % n == 0) product->unroll = (int)(n * group);
}

/* There is no barrier inside a product, so the driver may read ahead over all that is written out. */
static void unroll_product(const smg_kernel *k, const smg_target *t, int at) {
    smg_instr *product = &k->code.items[at];
    int64_t group = smg_kernel_product_group(k, product), depth = smg_kernel_product_depth(k, product);
    int64_t sums = smg_tile_registers(k, &k->tiles.items[product->dst]);
    int64_t stride = smg_kernel_product_stride(k, product), rows = smg_kernel_product_rows(k, product);
    int64_t sides = rows + sums / rows, factors = most_factors(k, t, at);
    bool views = k->tiles.items[product->b].residence == SMG_VIEW;
    bool own = views && k->tiles.items[product->a].residence == SMG_REGISTER;
    int64_t most = own ? OWN_PRODUCTS : views ? VIEW_PRODUCTS : smg_target_most_written(t, sums);
    if (product->terms > 0) { /* their sums are registers, too, and two products one operation */
        most = smg_target_most_written(t, sums + sums / 2);
        sums = (sums + 1) / 2;
    }
    if (views && smg_target_hides_loads(t)) {
        int64_t ahead = most_ahead(k, t, product, sums);
        if (ahead < most) most = ahead;
    }
    product->unroll = (int)group;
    if (k->tiles.items[product->dst].fragments) {
        if (depth % stride == 0) unroll_matrices(k, product, depth / stride, group, factors);
        return;
    }
    if (depth % stride != 0 || (!views && !smg_target_hides_loads(t))) return;
    int64_t trips = depth / stride;
    for (int64_t n = 2; n <= trips && n * group * sums <= most && n * group * sides <= factors; n++)
        if (trips % n == 0 && product->terms % (n * group) == 0) product->unroll = (int)(n * group);
}

/* One step back: the first loop that is written out, else half of every product. false: nothing is left. */
static bool unroll_less(smg_kernel *k) {
    bool less = false;
    for (int i = 0; i < k->code.count; i++) {
        smg_instr *in = &k->code.items[i];
        if (in->kind != SMG_I_LOOP || in->unroll != 1) continue;
        in->unroll = -1;
        return true;
    }
    for (int i = 0; i < k->code.count; i++) {
        smg_instr *in = &k->code.items[i];
        if (in->kind != SMG_I_MMA) continue;
        int group = smg_kernel_product_group(k, in), n = in->unroll / group, half = n / 2;
        while (half > 1 && n % half != 0) half--; /* whole parts of partial sums stay such */
        if (half < 1) continue;
        in->unroll = half * group;
        less = true;
    }
    return less;
}

/* Are there products whose lanes are columns? Their sums are read and written by the product's own text, by number: an
 * array that loops index as well is memory, which the driver compares with all loads between (bench/NOTES.md). */
static bool has_direct(const smg_kernel *k) {
    for (int i = 0; i < k->code.count; i++) {
        const smg_instr *in = &k->code.items[i];
        if (in->kind == SMG_I_MMA && k->tiles.items[in->a].residence == SMG_VIEW) return true;
    }
    return false;
}

void smg_kernel_unroll(smg_kernel *k, const smg_target *target) {
    k->written = (int)target->registers_lane; /* none of more columns would be in a register */
    for (int i = 0; i < k->code.count; i++)
        if (k->code.items[i].kind == SMG_I_MMA) unroll_product(k, target, i);
    unroll_loops(k, false);
    int64_t operations = smg_kernel_operations(k);
    if (operations > STREAM_CODE && unroll_loops(k, true)) operations = smg_kernel_operations(k);
    bool few = operations > target->code_budget / 2 && !smg_target_hides_loads(target) && !has_direct(k);
    if (few && k->written > FEW_REGISTERS) {
        k->written = FEW_REGISTERS;
        operations = smg_kernel_operations(k);
    }
    while (operations > target->code_budget && unroll_less(k)) operations = smg_kernel_operations(k);
}
