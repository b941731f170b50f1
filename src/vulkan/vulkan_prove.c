/* What a driver offers beyond the least is tried before it is used: 16-bit floats, subgroups, each matrix shape, and
 * where subgroups keep the elements of their matrices. What fails is taken off the target with a warning, and layouts
 * are those that were seen, whatever the tables say. Verdicts and layouts are kept like a calibration; what has no
 * verdict yet, because a driver offers more than before or the device was lost on the way, is tried. */
#include "vulkan/vulkan_prove.h"

#include <stdio.h>

/* Another number when an experiment changes: old files are left alone. */
static const smg_vk_kept proofs = {"proofs", "# smg proof 2 "};

typedef struct feature_row {
    const char *name;                     /* as in target.h */
    smg_status (*prove)(smg_vk_proof *);  /* an experiment of vulkan_prove.h */
    bool (*offered)(const smg_target *t); /* by the target as it is */
    void (*remove)(smg_target *t);        /* and what depends on it */
} feature_row;

/* ---- features ------------------------------------------------------------------------------------------ */

#define REMOVE(target, field)                                                                                          \
    do {                                                                                                               \
        (target)->field = 0;                                                                                           \
        (target)->field##_from = SMG_FACT_MEASURED;                                                                    \
    } while (0)

static bool has_fp16(const smg_target *t) {
    return t->fp16 != 0 && t->max_invocations >= 32 && t->max_size_x >= 32;
}
static void remove_fp16(smg_target *t) {
    REMOVE(t, fp16);
}

static bool has_subgroups(const smg_target *t) {
    return t->subgroup_size > 1;
}
static void remove_subgroups(smg_target *t) {
    REMOVE(t, subgroup_selectable);
    REMOVE(t, subgroup_arithmetic);
    REMOVE(t, subgroup_clustered);
    REMOVE(t, subgroup_shuffle);
    t->subgroup_size = 1; /* not relied on */
    t->subgroup_size_from = SMG_FACT_MEASURED;
}

static bool has_arithmetic(const smg_target *t) {
    return has_subgroups(t) && t->subgroup_arithmetic != 0;
}
static void remove_arithmetic(smg_target *t) {
    REMOVE(t, subgroup_arithmetic);
}

static bool has_clustered(const smg_target *t) {
    return t->subgroup_size >= 4 && t->subgroup_clustered != 0;
}
static void remove_clustered(smg_target *t) {
    REMOVE(t, subgroup_clustered);
}

static bool has_shuffle(const smg_target *t) {
    return has_subgroups(t) && t->subgroup_shuffle != 0;
}
static void remove_shuffle(smg_target *t) {
    REMOVE(t, subgroup_shuffle);
}

/* What others depend on comes first. */
static const feature_row features[] = {
    {"fp16", smg_vk_prove_fp16, has_fp16, remove_fp16},
    {"subgroup_size", smg_vk_prove_subgroup_size, has_subgroups, remove_subgroups},
    {"subgroup_arithmetic", smg_vk_prove_subgroup_arithmetic, has_arithmetic, remove_arithmetic},
    {"subgroup_clustered", smg_vk_prove_subgroup_clustered, has_clustered, remove_clustered},
    {"subgroup_shuffle", smg_vk_prove_subgroup_shuffle, has_shuffle, remove_shuffle},
};

/* ---- verdicts -------------------------------------------------------------------------------------------- */

typedef struct proving {
    smg_vk_device *dev;
    smg_vk_proof proof;
    bool running; /* the proof has its buffers */
    bool tried;   /* a verdict is new */
} proving;

static const smg_vk_verdict *find_verdict(const smg_vk_device *dev, const char *what) {
    for (int i = 0; i < dev->verdicts.count; i++)
        if (strcmp(dev->verdicts.items[i].what, what) == 0) return &dev->verdicts.items[i];
    return NULL;
}

static smg_status add_verdict(smg_vk_device *dev, const char *what, const char *why) {
    smg_vk_verdict *verdict = SMG_ARRAY_PUSH(dev->arena, &dev->verdicts);
    if (!verdict) return SMG_MEMORY;
    snprintf(verdict->what, sizeof verdict->what, "%s", what);
    snprintf(verdict->why, sizeof verdict->why, "%s", why);
    for (char *c = verdict->why; *c; c++)
        if (*c == '\n') *c = ' '; /* it is kept in one line */
    return SMG_OK;
}

/* What an experiment's status says of the feature: one that cannot be built or run is none. Out of memory says nothing,
 * and after a loss nothing more can be tried. */
static smg_status judge(proving *p, const char *what, smg_status status, bool had_failure) {
    smg_context *ctx = p->dev->ctx;
    if (status == SMG_MEMORY || status == SMG_DEVICE_MEMORY) return status;
    p->tried = true;
    smg_status added = add_verdict(p->dev, what, status == SMG_OK ? p->proof.why : smg_context_error(ctx));
    if (status == SMG_OK || smg_vk_is_lost(p->dev) || added != SMG_OK) return status == SMG_OK ? added : status;
    if (!had_failure) smg_context_clear_error(ctx);
    return SMG_OK;
}

static smg_status begin(proving *p) {
    if (p->running) return SMG_OK;
    smg_target kept = p->proof.found;
    SMG_TRY(smg_vk_proof_create(p->dev, &p->proof));
    p->proof.found = kept;
    p->running = true;
    return SMG_OK;
}

static smg_status prove_feature(proving *p, const feature_row *row) {
    if (!row->offered(&p->dev->target)) return SMG_OK;
    if (!find_verdict(p->dev, row->name)) {
        bool had_failure = smg_context_status(p->dev->ctx) != SMG_OK;
        SMG_TRY(begin(p));
        SMG_TRY(judge(p, row->name, row->prove(&p->proof), had_failure));
    }
    const smg_vk_verdict *verdict = find_verdict(p->dev, row->name);
    if (!verdict->why[0]) return SMG_OK;
    smg_log(p->dev->ctx, SMG_LOG_WARNING, "device '%s' does without %s: %s", p->dev->target.name, row->name,
            verdict->why);
    row->remove(&p->dev->target);
    return SMG_OK;
}

static void shape_name(const smg_matrix_shape *s, char out[SMG_VK_VERDICT_TEXT]) {
    snprintf(out, SMG_VK_VERDICT_TEXT, "matrix %dx%dx%d %s %s %s %s", s->m, s->n, s->k, s->a, s->b, s->c, s->result);
}

/* Rates that were measured when the file was made. */
static void take_rates(smg_target *offered, const smg_target *kept) {
    char name[SMG_VK_VERDICT_TEXT], other[SMG_VK_VERDICT_TEXT];
    for (int i = 0; i < offered->matrix_count; i++) {
        shape_name(&offered->matrix[i], name);
        for (int j = 0; j < kept->matrix_count && offered->matrix[i].rate <= 0; j++) {
            shape_name(&kept->matrix[j], other);
            if (strcmp(name, other) == 0) offered->matrix[i].rate = kept->matrix[j].rate;
        }
    }
}

/* The proof, and the rate of a shape that no table knows. */
static smg_status measure_shape(proving *p, smg_matrix_shape *shape) {
    SMG_TRY(smg_vk_prove_matrix(&p->proof, shape));
    return p->proof.why[0] || shape->rate > 0 ? SMG_OK : smg_vk_matrix_rate(&p->proof, shape, &shape->rate);
}

static smg_status try_shape(proving *p, smg_matrix_shape *shape, const char *name) {
    const char *untried = smg_vk_matrix_untried(&p->dev->target, shape);
    if (untried) return add_verdict(p->dev, name, untried);
    bool had_failure = smg_context_status(p->dev->ctx) != SMG_OK;
    SMG_TRY(begin(p));
    return judge(p, name, measure_shape(p, shape), had_failure);
}

/* Shapes that were tried and are wrong. Drivers offer dozens: one warning names them all. */
typedef struct wrong_shapes {
    int count;
    char list[1024]; /* no log line is longer */
} wrong_shapes;

static void add_wrong(wrong_shapes *wrong, const char *name, const char *why) {
    size_t length = strlen(wrong->list), room = sizeof wrong->list - length;
    const char *types = name + strlen("matrix ");
    if (wrong->count++ > 0)
        snprintf(wrong->list + length, room, ", %s", types);
    else
        snprintf(wrong->list, room, "%s (%s)", types, why);
}

/* *out_good: it stays. Why not is told of each; a shape that could not be tried is no failure of the driver's. */
static smg_status prove_shape(proving *p, smg_matrix_shape *shape, wrong_shapes *wrong, bool *out_good) {
    char name[SMG_VK_VERDICT_TEXT];
    shape_name(shape, name);
    if (!find_verdict(p->dev, name)) SMG_TRY(try_shape(p, shape, name));
    const smg_vk_verdict *verdict = find_verdict(p->dev, name);
    bool untried = smg_vk_matrix_untried(&p->dev->target, shape) != NULL;
    *out_good = verdict->why[0] == 0 && !untried;
    if (!verdict->why[0]) return SMG_OK;
    smg_log(p->dev->ctx, SMG_LOG_INFO, "device '%s' does without %s: %s", p->dev->target.name, name, verdict->why);
    if (!untried) add_wrong(wrong, name, verdict->why);
    return SMG_OK;
}

static smg_status prove_shapes(proving *p) {
    smg_target *target = &p->dev->target;
    smg_target *offered = &p->dev->offered;
    wrong_shapes wrong = {0};
    target->matrix_count = 0;
    for (int i = 0; i < offered->matrix_count && target->subgroup_size > 1; i++) {
        bool good = false;
        SMG_TRY(prove_shape(p, &offered->matrix[i], &wrong, &good));
        if (good) target->matrix[target->matrix_count++] = offered->matrix[i];
    }
    if (wrong.count > 0)
        smg_log(p->dev->ctx, SMG_LOG_WARNING, "device '%s' does without %d of its %d matrix shapes: %s", target->name,
                wrong.count, offered->matrix_count, wrong.list);
    return SMG_OK;
}

/* ---- layouts --------------------------------------------------------------------------------------------- */

static const smg_fragment *find_fragment(const smg_target *target, const smg_fragment *like, int64_t lanes) {
    for (int i = 0; i < target->fragment_count; i++)
        if (smg_fragment_same_matrix(&target->fragments[i], like) && smg_fragment_lanes(&target->fragments[i]) == lanes)
            return &target->fragments[i];
    return NULL;
}

/* What was seen stands in for what the tables say. */
static void take_layouts(smg_vk_device *dev, const smg_target *found) {
    smg_target *target = &dev->target, tables = *target;
    tables.fragment_count = dev->offered.fragment_count;
    memcpy(tables.fragments, dev->offered.fragments, sizeof tables.fragments);
    smg_target_keep_operands(&tables);
    target->fragment_count = found->fragment_count;
    memcpy(target->fragments, found->fragments, sizeof target->fragments);
    for (int i = 0; i < target->fragment_count; i++) target->fragments[i].from = SMG_FACT_MEASURED;
    smg_target_keep_operands(target);
    for (int i = 0; i < tables.fragment_count; i++) {
        const smg_fragment *known = &tables.fragments[i];
        const smg_fragment *seen = find_fragment(target, known, target->subgroup_size);
        if (smg_fragment_lanes(known) != target->subgroup_size) continue;
        if (!seen || !smg_layout_equal(&seen->layout, &known->layout))
            smg_log(dev->ctx, SMG_LOG_WARNING, "device '%s' keeps matrix %s %dx%d %s otherwise than known: %s",
                    target->name, smg_matrix_use_word(known->use), known->rows, known->columns, known->type,
                    seen ? "its own layout is used" : "it is opaque");
    }
}

/* ---- the file ---------------------------------------------------------------------------------------------- */

static const char passed_word[] = "# passed ", failed_word[] = "# failed ";

/* Verdicts are comments of a target text: "# passed WHAT" and "# failed WHAT: WHY". */
static smg_status read_verdict(smg_vk_device *dev, const char *line, size_t length) {
    char what[SMG_VK_VERDICT_TEXT], why[SMG_VK_VERDICT_TEXT] = "";
    size_t skip = sizeof passed_word - 1;
    bool failed = strncmp(line, failed_word, skip) == 0;
    if (length <= skip || length - skip >= sizeof what + sizeof why) return SMG_OK;
    if (!failed && strncmp(line, passed_word, skip) != 0) return SMG_OK;
    line += skip;
    length -= skip;
    const char *colon = failed ? memchr(line, ':', length) : NULL;
    size_t name = colon ? (size_t)(colon - line) : length;
    if (name >= sizeof what) return SMG_OK;
    memcpy(what, line, name);
    what[name] = 0;
    if (failed) snprintf(why, sizeof why, "%.*s", colon ? (int)(length - name - 2) : 0, colon ? colon + 2 : "");
    if (failed && !why[0]) snprintf(why, sizeof why, "it failed");
    return find_verdict(dev, what) ? SMG_OK : add_verdict(dev, what, why);
}

static smg_status read_kept(proving *p, const char *path) {
    const char *body = NULL;
    smg_target kept;
    /* Layouts and verdicts are of subgroups of one size. */
    if (!smg_vk_kept_read(p->dev, &proofs, path, &kept, &body) || kept.subgroup_size != p->dev->target.subgroup_size)
        return SMG_OK;
    p->proof.found = kept;
    take_rates(&p->dev->offered, &kept);
    while (*body) {
        size_t length = strcspn(body, "\n");
        SMG_TRY(read_verdict(p->dev, body, length));
        body += length + (body[length] == '\n');
    }
    return SMG_OK;
}

static void write_kept(proving *p, const char *path) {
    smg_text body;
    smg_target kept = p->dev->offered;
    smg_text_init(&body, p->dev->ctx);
    for (int i = 0; i < p->dev->verdicts.count; i++) {
        const smg_vk_verdict *v = &p->dev->verdicts.items[i];
        if (v->why[0])
            smg_text_addf(&body, "%s%s: %s\n", failed_word, v->what, v->why);
        else
            smg_text_addf(&body, "%s%s\n", passed_word, v->what);
    }
    kept.fragment_count = p->proof.found.fragment_count;
    memcpy(kept.fragments, p->proof.found.fragments, sizeof kept.fragments);
    smg_target_print(&kept, &body);
    smg_vk_kept_write(p->dev, &proofs, path, &body);
    smg_text_free(&body);
}

/* ---- all ----------------------------------------------------------------------------------------------------- */

static smg_status prove_features(proving *p) {
    for (size_t i = 0; i < SMG_COUNT_OF(features); i++) SMG_TRY(prove_feature(p, &features[i]));
    p->dev->proved = true;
    return SMG_OK;
}

static smg_status prove_matrices(proving *p) {
    SMG_TRY(prove_shapes(p));
    take_layouts(p->dev, &p->proof.found);
    p->dev->proved_matrices = true;
    return SMG_OK;
}

/* Without matrices until they are proved. A table's rates of a CPU are for as many cores as it says. */
static void take_off_matrices(smg_vk_device *dev) {
    const smg_target *t = &dev->target;
    bool scaled = t->type == SMG_DEVICE_CPU && t->cores_from == SMG_FACT_TABLE;
    dev->offered = *t;
    for (int i = 0; i < dev->offered.matrix_count && scaled; i++)
        dev->offered.matrix[i].rate *= (double)smg_cpu_cores() / (double)t->cores;
    dev->target.matrix_count = dev->target.fragment_count = 0;
}

smg_status smg_vk_prove(smg_vk_device *dev, bool matrices) {
    SMG_TRY(smg_vk_check_alive(dev));
    if (dev->proved && (dev->proved_matrices || !matrices)) return SMG_OK;
    const char *path = NULL;
    SMG_TRY(smg_vk_kept_path(dev, &proofs, &path));
    if (!dev->proved) take_off_matrices(dev);
    proving p = {.dev = dev};
    smg_status status = read_kept(&p, path);
    if (status == SMG_OK && !dev->proved) status = prove_features(&p);
    if (status == SMG_OK && matrices) status = prove_matrices(&p);
    if (p.tried && (status == SMG_OK || smg_vk_is_lost(dev))) write_kept(&p, path);
    if (p.running) smg_vk_proof_destroy(&p.proof);
    return status == SMG_OK ? smg_target_verify(dev->ctx, &dev->target) : status;
}

int smg_vk_verdicts(const smg_vk_device *dev, const smg_vk_verdict **out_verdicts) {
    *out_verdicts = dev->verdicts.items;
    return dev->verdicts.count;
}
