/* The cost model: what plan_count.c counted, at the rates of the target. A core runs as many workgroups as its lanes,
 * registers and shared memory hold; each computes, reads and writes what is near, and waits, and while one waits the
 * others have the core. Memory moves what all cores ask for beside that. */
#include <math.h>

#include "plan/plan_internal.h"

bool plan_has_room(const smg_target *t, const smg_price *needs, const char **out_refused) {
    *out_refused = NULL;
    if (needs->shared_bytes > t->shared_bytes) *out_refused = "needs more shared memory than a workgroup has";
    if (needs->registers > t->registers_lane) *out_refused = "needs more registers than a lane has";
    return *out_refused == NULL;
}

/* Drivers that keep them in registers have no such limit: nothing is counted for these. */
static bool keeps_too_much(const smg_kernel *k, const smg_target *t) {
    return t->registers_kept < SMG_REGISTERS_ANY && smg_kernel_registers_kept(k) * k->lanes > t->registers_kept;
}

bool plan_fits(const smg_kernel *k, const smg_target *t, smg_price *price, const char **out_refused) {
    *price = (smg_price){.shared_bytes = smg_kernel_shared_bytes(k), .registers = smg_kernel_registers(k)};
    plan_has_room(t, price, out_refused);
    if (keeps_too_much(k, t)) *out_refused = "keeps more registers across a barrier than fit";
    if (k->buffers.count + smg_kernel_reports(k) > t->max_bindings)
        *out_refused = "needs more storage buffers than a stage has";
    return *out_refused == NULL;
}

/* Slots that a core has in a second. */
static double core_rate(const smg_target *t) {
    return t->fma_rate / (2.0 * (double)t->cores);
}

#define CORE_WIDTH (1.0 / 16.0) /* lanes that a core runs at a time, of those that it switches between */

double plan_width(const smg_target *t) {
    return CORE_WIDTH * (double)t->core_lanes;
}

double plan_share_alone(const smg_target *t, double lanes) {
    return smg_target_switches_lanes(t) ? plan_lesser(1, plan_width(t) / lanes) : 1;
}

/* Share of a core that so many lanes keep busy: what is left of the last turn idles. */
static double busy(const smg_target *t, double lanes) {
    double turns = lanes / plan_width(t);
    return turns / ceil(turns);
}

double plan_alone(const smg_target *t, const plan_counts *counts, double slots) {
    return slots / (core_rate(t) * busy(t, counts->lanes));
}

/* Registers that a lane can have: a workgroup is on one core. */
static double most_registers(const smg_target *t, double lanes) {
    return plan_lesser((double)t->registers_lane, (double)t->registers_core / lanes);
}

#define MOST_RESIDENT 32.0 /* workgroups of a core, however small */

#define DEALT_OUT 8.0 /* registers of a lane, at a time */

/* With those of the driver's compiler. */
static double registers_of(const smg_target *t, const plan_counts *c, const smg_price *price) {
    if (price->taken > 0) return DEALT_OUT * ceil((double)price->taken / DEALT_OUT);
    return (double)price->registers + (c->staged || c->widened ? t->costs.product_registers : t->costs.registers);
}

/* Workgroups that share one core: bounded by lanes, shared memory and registers. */
static smg_resident resident_of(const smg_target *t, const plan_counts *c, const smg_price *price) {
    double subgroup = (double)t->subgroup_size, lanes = ceil(c->lanes / subgroup) * subgroup;
    double registers = lanes * plan_lesser(registers_of(t, c, price), most_registers(t, lanes));
    double count = plan_lesser(floor((double)t->core_lanes / lanes), floor((double)t->registers_core / registers));
    if (price->shared_bytes > 0)
        count = plan_lesser(count, floor((double)t->shared_core / (double)price->shared_bytes));
    return (smg_resident){plan_larger(1, plan_lesser(count, MOST_RESIDENT)), lanes, registers};
}

static double residents(const smg_target *t, const plan_counts *c, const smg_price *price) {
    return resident_of(t, c, price).workgroups;
}

/* What does not fit into registers is stored and loaded for every k of a product, or once. The compiler takes fewer
 * before it spills. */
static double spilled(const smg_target *t, const smg_price *price, const plan_counts *c) {
    double over = (double)price->registers + t->costs.registers - most_registers(t, c->lanes);
    if (price->taken > 0 && price->spilled >= 0) over = (double)price->spilled;
    return over > 0 ? t->costs.spill * over * (1.0 + c->rounds) * c->lanes : 0;
}

#define WHOLE_POWERS 16

/* Most norms have whole exponents. */
static double power(double base, double exponent) {
    int rest = exponent > 0 && exponent <= WHOLE_POWERS ? (int)exponent : 0;
    double product = 1;
    if (rest != exponent) return pow(base, exponent);
    for (; rest > 0; rest /= 2) {
        if (rest % 2 == 1) product *= base;
        base *= base;
    }
    return product;
}

double plan_norm(double a, double b, double exponent) {
    double large = plan_larger(a, b), small = plan_lesser(a, b);
    if (!(large > 0)) return 0;
    if (small == 0) return large; /* which is what the powers come out at, exactly */
    return large * pow(1.0 + power(small / large, exponent), 1.0 / exponent);
}

/* Seconds until each of `count` workgroups of one core is done, when each has the core for `work` and waits for `wait`:
 * one that comes to the core finds there as many others as would be there without it (mean value analysis). */
static double together_seconds(double count, double work, double wait) {
    double there = 0, seconds = work + wait;
    for (int n = 1; n <= (int)count; n++) {
        seconds = work * (1.0 + there) + wait;
        there = n * (seconds - wait) / seconds;
    }
    return seconds;
}

/* A workgroup with fewer subgroups than a core has schedulers has a share of these, and only those with the same share
 * compute while it waits: none where there are no more than shares. By matrices, and where factors come straight from
 * memory, more than that take turns as if schedulers were not shared out (decision 0056). */
static double shared_seconds(const smg_target *t, const plan_counts *c, double count, double work, double wait) {
    double shares = smg_target_switches_lanes(t) ? plan_larger(1, plan_width(t) / c->lanes) : 1;
    bool together = count > shares && (!c->staged || c->matrices);
    double queue = together ? count : ceil(count / shares);
    return together_seconds(queue, count * work / queue, wait);
}

/* A scheduler of a core runs one subgroup at a time, and needs another while that one waits: have so many workgroups
 * two for each? */
static bool fill_schedulers(const smg_target *t, const plan_counts *c, double workgroups) {
    return c->lanes * workgroups >= 2 * plan_width(t);
}

static double waves_of(const smg_target *t, const plan_counts *c, double residents) {
    double of_core = ceil(c->workgroups / (double)t->cores);
    return ceil(of_core / plan_lesser(of_core, residents));
}

typedef struct core_share {
    double workgroups, residents; /* of one core, in all and at a time */
    double work, wait;            /* seconds of one of them */
} core_share;

/* Seconds of all workgroups of a core. The last ones may be fewer, and then have more of it; but as few as leave
 * schedulers idle take as long as the others. */
static double in_waves(const smg_target *t, const plan_counts *c, const core_share *s) {
    double waves = s->workgroups / s->residents, left = s->workgroups - floor(waves) * s->residents;
    double all = shared_seconds(t, c, s->residents, s->work, s->wait);
    if (left > 0 && !fill_schedulers(t, c, left)) return ceil(waves) * all;
    return floor(waves) * all + (left > 0 ? shared_seconds(t, c, left, s->work, s->wait) : 0);
}

double plan_longest_wait(const smg_target *t) {
    return plan_larger(t->costs.step_wait, t->costs.flight) * t->load_latency;
}

/* Seconds in which a workgroup has nothing but slices that are not there yet. They take longer as far as they come from
 * tensors that no cache holds. The workgroup's products take as many times longer as others have its core, on average
 * over the cores. */
static double waited_for(const smg_target *t, const plan_counts *c, double residents) {
    if (!smg_target_switches_lanes(t)) return plan_larger(0, c->ahead - c->hiding);
    double afar = c->traffic > 0 ? plan_lesser(1, c->afar / c->traffic) : 0;
    double longer = 1 + (t->costs.flight / t->costs.step_wait - 1) * afar;
    double together = plan_larger(1, plan_lesser(residents, c->workgroups / (double)t->cores));
    return plan_larger(0, c->ahead * longer - c->hiding * together);
}

/* Bytes near lanes that take as long as what each workgroup reads straight from memory where it is multiplied. The more
 * lanes a core switches between, the more of that is on its way. */
static double streamed_bytes(const smg_target *t, const plan_counts *c, double together) {
    double longer = smg_target_switches_lanes(t) ? sqrt(2 * plan_width(t) / (c->lanes * together)) : 1;
    return t->costs.stream * c->streamed / c->workgroups * longer;
}

/* Of a core with so many of the workgroups. */
static double core_seconds(const smg_target *t, const plan_counts *c, double residents, double of_core) {
    double cores = (double)t->cores, together = plan_lesser(of_core, residents);
    double near = (c->near + streamed_bytes(t, c, together)) * t->costs.near / (t->near_bytes * core_rate(t));
    double slots = c->slots / (core_rate(t) * busy(t, c->lanes * together));
    double work = plan_norm(slots, near, t->costs.near_overlap);
    work *= 1.0 + t->costs.idle * plan_width(t) / (c->lanes * together);
    double moved = c->traffic - c->hidden - c->streamed;
    double transfer = t->costs.transfer * moved / c->workgroups / (t->cache_bandwidth / cores);
    double barriers = c->barriers * t->barrier_cost + c->subgroup_barriers * t->subgroup_barrier_cost;
    double wait = c->wait + waited_for(t, c, residents) + barriers + transfer;
    return in_waves(t, c, &(core_share){of_core, together, work, wait});
}

/* Of the core with most to do, all of whose workgroups run at a time: one less is left whenever one is done. */
static double fullest_core(const smg_target *t, const plan_counts *c, double residents) {
    const plan_uneven *u = &c->uneven;
    double seconds = 0;
    for (int i = 0; i < u->count; i++) {
        double next = i + 1 < u->count ? u->share[i + 1] : 0;
        if (u->share[i] > next) seconds += (u->share[i] - next) * core_seconds(t, c, residents, i + 1);
    }
    return seconds;
}

/* Seconds of the cores alone. Where a core takes one workgroup after the other, the long ones first, they even out. */
static double cores_seconds(const smg_target *t, const plan_counts *c, double residents) {
    if (c->uneven.count > 0 && c->uneven.count <= residents) return fullest_core(t, c, residents);
    return core_seconds(t, c, residents, ceil(c->workgroups / (double)t->cores));
}

/* Memory has as much on its way as lanes have room for (Little's law): so long it takes where that is too little. The
 * first read is among what a workgroup waits for. Beside products of staged factors others hide. */
static double flight_seconds(const smg_target *t, const plan_counts *c, double residents) {
    if (c->staged) return 0;
    return waves_of(t, c, residents) * plan_larger(0, c->turns - 1) * t->costs.flight * t->load_latency;
}

#define FLIGHT_OVERLAP 3.0 /* norm in which memory adds up with the way to it */

/* full: share of the cores' seconds that is left. */
static double seconds_of(const smg_target *t, const plan_counts *counts, const smg_price *needs, double full) {
    plan_counts c = *counts;
    c.slots += spilled(t, needs, &c);
    double together = residents(t, &c, needs), cores = full * cores_seconds(t, &c, together);
    /* Half of the cores saturate memory. */
    double share = plan_lesser(1.0, 2.0 * c.workgroups / (double)t->cores);
    double memory = plan_larger(c.memory / t->bandwidth, c.traffic / t->cache_bandwidth) / share;
    memory = plan_norm(memory, flight_seconds(t, &c, together), FLIGHT_OVERLAP);
    return plan_norm(cores, memory, t->costs.overlap) + t->dispatch_cost;
}

double plan_seconds(const smg_target *t, const plan_counts *counts, const smg_price *needs) {
    return seconds_of(t, counts, needs, 1);
}

/* Seconds of the cores where each of them has so many of the workgroups. */
static double seconds_with(const smg_target *t, const plan_counts *counts, const smg_price *price, double of_core) {
    plan_counts c = *counts;
    c.slots += spilled(t, price, &c);
    double more = of_core * (double)t->cores / c.workgroups;
    c.uneven.count = 0;
    c.workgroups *= more;
    c.traffic *= more;
    c.hidden *= more;
    c.streamed *= more;
    c.afar *= more;
    return cores_seconds(t, &c, residents(t, counts, price));
}

/* Of the way from workgroups that all cores share out to as many as one holds on each that has any. */
#define HEAPED_SHARE 0.5

/* Beside other kernels. Cores that switch between lanes take workgroups of the next one, too, and those that are done
 * first as many as they hold. */
static void price_beside(const smg_target *t, const plan_counts *c, smg_price *price) {
    double of_core = c->workgroups / (double)t->cores, most = plan_larger(1, ceil(of_core));
    if (!smg_target_switches_lanes(t)) return;
    plan_counts even = *c;
    even.uneven.count = 0;
    price->idle = price->seconds - seconds_of(t, &even, price, of_core / most);
    price->resident = resident_of(t, c, price);
    double held = price->resident.workgroups;
    price->resident.workgroups = plan_lesser(most, held);
    if (most < held) price->heaped = HEAPED_SHARE * (seconds_with(t, c, price, held) - seconds_with(t, c, price, most));
}

void plan_price(const smg_kernel *k, const smg_target *t, const int64_t *symbols, smg_price *price) {
    plan_counts c;
    /* Whoever pads little must not pay for who does: what memory may leave out is there. */
    plan_count(k, t, symbols, 1, &c);
    price->seconds = plan_seconds(t, &c, price);
    price_beside(t, &c, price);
    price->bytes = c.moved;
    price->stored = c.stored;
    price->flops = c.flops;
    price->workgroups = c.workgroups;
}

double smg_plan_seconds_taking(const smg_pstep *step, const smg_target *t, const int64_t *symbols,
                               const smg_taken *taken) {
    smg_price price = step->price;
    price.taken = taken->registers;
    price.spilled = taken->spills;
    plan_price(step->kernel, t, symbols, &price);
    return price.seconds;
}

double plan_expect(const smg_kernel *k, const smg_target *t, const int64_t *symbols, double kept,
                   const smg_price *needs) {
    plan_counts c;
    plan_count(k, t, symbols, kept, &c);
    return plan_seconds(t, &c, needs);
}
