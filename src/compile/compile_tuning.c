/* compile_tuning.c: what was measured of kernels on one device, as a file.
 *
 * A text: a line with the hash of all that follows, then the smg, device and driver it is of, then a line for each that
 * was measured, in this order:
 *
 *     smg tuning 3 0123456789abcdef
 *     smg = 0.1 89ab..
 *     device = NVIDIA H200
 *     driver = NVIDIA 570.1
 *     uuid = 00112233..
 *     kernel 0123456789abcdef 0123456789abcdef 142.1 193.4
 *     passes 0123456789abcdef 0123456789abcdef 140.8
 *     beaten 0123456789abcdef 123456789abcdef0 151.7
 *     apart 0123456789abcdef 812.0 740.5
 *     parts 23456789abcdef01 512 731.2 740.5
 *     tried 123456789abcdef0 740.9 740.5
 *     tried parts 23456789abcdef01 0 752.6 740.5
 *
 * "kernel" has nodes at sizes, the schedule that was confirmed in turns, and what it and the one of the lowest price
 * took, in microseconds. "alone", "passes" and "beaten" (smg_timing_kind) have nodes, one schedule and what it took.
 * "apart" and "together" have nodes that are better so, "tried" nodes for which the other way was no faster; each with
 * what a run took with them together and apart. "parts" have nodes whose sums are better in parts of so many elements,
 * 0: without, "tried parts" a number that was no faster or is faster no more; each with what a run took so and
 * otherwise. Plans are made by kernels, apart, together and parts.
 *
 * The numbers are hashes of what this smg makes of a graph: a schedule, or a number of parts, is taken only where it is
 * among those that the planner finds for the nodes, so that nothing in a file can ask for one that is not legal. */
#include <math.h>
#include <stdlib.h>

#include "compile/compile.h"
#include "smg_fingerprint.h"

#define MOST_SECONDS 1e6 /* of a kernel that was measured */

static const char magic[] = "smg tuning 3 ";
/* Kernels and cuts only; and no sums in parts. */
static const char *const older[] = {"smg tuning 1 ", "smg tuning 2 "};
enum { HASH_DIGITS = 16, MOST_DIGITS = 18 /* of a number that an int64_t has room for */ };

static const char *const kernel_words[] = {"kernel "};
static const char *const timing_words[] = {"alone ", "passes ", "beaten "}; /* by smg_timing_kind */
static const char *const cut_words[] = {"apart ", "together ", "parts "};   /* by smg_cut_kind */
static const char *const tried_words[] = {"tried parts ", "tried "};

/* ---- where it lies -------------------------------------------------------------------------------- */

/* A target that is no device's has nothing measured. */
static bool is_device(const smg_target *t) {
    static const uint8_t none[sizeof(t->uuid)];
    return memcmp(t->uuid, none, sizeof(none)) != 0;
}

static const char *cache_path(smg_context *ctx, const smg_target *t, smg_arena *arena) {
    uint64_t key = smg_hash_bytes(SMG_HASH_SEED, t->uuid, sizeof(t->uuid));
    key = smg_hash_text(smg_hash_text(key, t->name), t->driver);
    return smg_arena_format(arena, "%s/tuning/%016llx.tuning", smg_context_cache_dir(ctx), (unsigned long long)key);
}

/* The lines that say what a file is of. */
static void add_header(const smg_target *t, smg_text *text) {
    smg_text_add(text, "smg = " SMG_VERSION " " SMG_FINGERPRINT "\n");
    smg_text_addf(text, "device = %s\ndriver = %s\nuuid = ", t->name, t->driver);
    for (size_t i = 0; i < sizeof(t->uuid); i++) smg_text_addf(text, "%02x", (unsigned)t->uuid[i]);
    smg_text_add(text, "\n");
}

/* ---- orders --------------------------------------------------------------------------------------- */

/* Measurements and cuts begin with the nodes that they are of. */
static int by_nodes(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* What was tried of some nodes: sums in parts of fewer elements first. Apart and together are one. */
static int by_nodes_and_parts(const void *a, const void *b) {
    const smg_cut *x = a, *y = b;
    int64_t i = x->kind == SMG_CUT_PARTS ? x->chunk : -1, k = y->kind == SMG_CUT_PARTS ? y->chunk : -1;
    int order = by_nodes(&x->at, &y->at);
    return order != 0 ? order : (i > k) - (i < k);
}

/* ---- reading -------------------------------------------------------------------------------------- */

static bool take_hash(const char **at, uint64_t *out) {
    char *end = NULL;
    if (strspn(*at, "0123456789abcdef") != HASH_DIGITS) return false;
    *out = strtoull(*at, &end, 16);
    *at = end;
    return true;
}

static bool take_seconds(const char **at, double *out) {
    char *end = NULL;
    if (**at != ' ') return false;
    *out = strtod(*at + 1, &end) * 1e-6;
    bool good = end != *at + 1 && isfinite(*out) && *out >= 0 && *out < MOST_SECONDS;
    *at = end;
    return good;
}

/* Does the line begin with one of the words? *out_which: with this one. */
static bool take_word(const char **at, const char *const *words, int count, int *out_which) {
    for (int i = 0; i < count; i++) {
        size_t length = strlen(words[i]);
        if (strncmp(*at, words[i], length) != 0) continue;
        *at += length;
        *out_which = i;
        return true;
    }
    return false;
}

/* "AT SCHEDULE MICROSECONDS MICROSECONDS", by ascending AT. */
static bool take_kernel(const char **at, const smg_measured *before, smg_measured *out) {
    if (!take_hash(at, &out->at) || *(*at)++ != ' ' || !take_hash(at, &out->schedule)) return false;
    if (!take_seconds(at, &out->seconds) || !take_seconds(at, &out->cheapest) || *(*at)++ != '\n') return false;
    return before == NULL || before->at < out->at;
}

/* "AT SCHEDULE MICROSECONDS", by ascending AT and SCHEDULE. */
static bool take_timing(const char **at, const smg_timing *before, smg_timing *out) {
    if (!take_hash(at, &out->at) || *(*at)++ != ' ' || !take_hash(at, &out->schedule)) return false;
    if (!take_seconds(at, &out->seconds) || *(*at)++ != '\n') return false;
    return before == NULL || before->at < out->at || (before->at == out->at && before->schedule < out->schedule);
}

static bool take_chunk(const char **at, int64_t *out) {
    char *end = NULL;
    size_t digits = **at == ' ' ? strspn(*at + 1, "0123456789") : 0;
    if (digits == 0 || digits > MOST_DIGITS) return false;
    *out = strtoll(*at + 1, &end, 10);
    *at = end;
    return true;
}

/* "AT MICROSECONDS MICROSECONDS", of parts "AT ELEMENTS MICROSECONDS MICROSECONDS". Of what decides each AT comes once,
 * of what was tried in each number of parts. */
static bool take_cut(const char **at, bool tried, const smg_cut *before, smg_cut *out) {
    if (!take_hash(at, &out->at) || (out->kind == SMG_CUT_PARTS && !take_chunk(at, &out->chunk))) return false;
    if (!take_seconds(at, &out->seconds) || !take_seconds(at, &out->apart) || *(*at)++ != '\n') return false;
    return before == NULL || (tried ? by_nodes_and_parts : by_nodes)(before, out) < 0;
}

typedef struct lines {
    SMG_ARRAY(smg_measured) kernels;
    SMG_ARRAY(smg_timing) timings;
    SMG_ARRAY(smg_cut) cuts;
    SMG_ARRAY(smg_cut) tried;
} lines;

/* Each takes the lines of one kind; *io_good: they are well formed. */
static smg_status take_kernels(const char **at, smg_arena *arena, lines *io, bool *io_good) {
    int which;
    while (*io_good && take_word(at, kernel_words, SMG_COUNT_OF(kernel_words), &which)) {
        smg_measured *slot = SMG_ARRAY_PUSH(arena, &io->kernels);
        if (slot == NULL) return SMG_MEMORY;
        *io_good = take_kernel(at, io->kernels.count > 1 ? slot - 1 : NULL, slot);
    }
    return SMG_OK;
}

static smg_status take_timings(const char **at, smg_arena *arena, lines *io, bool *io_good) {
    int which;
    while (*io_good && take_word(at, timing_words, SMG_COUNT_OF(timing_words), &which)) {
        smg_timing *slot = SMG_ARRAY_PUSH(arena, &io->timings);
        if (slot == NULL) return SMG_MEMORY;
        slot->kind = (smg_timing_kind)which;
        *io_good = take_timing(at, io->timings.count > 1 ? slot - 1 : NULL, slot);
        bool many = io->timings.count > SMG_MOST_TIMINGS && slot[-SMG_MOST_TIMINGS].at == slot->at;
        *io_good = *io_good && !many;
    }
    return SMG_OK;
}

static smg_status take_cuts(const char **at, smg_arena *arena, lines *io, bool *io_good) {
    int which;
    while (*io_good && take_word(at, cut_words, SMG_COUNT_OF(cut_words), &which)) {
        smg_cut *slot = SMG_ARRAY_PUSH(arena, &io->cuts);
        if (slot == NULL) return SMG_MEMORY;
        slot->kind = (smg_cut_kind)which;
        *io_good = take_cut(at, false, io->cuts.count > 1 ? slot - 1 : NULL, slot);
    }
    while (*io_good && take_word(at, tried_words, SMG_COUNT_OF(tried_words), &which)) {
        smg_cut *slot = SMG_ARRAY_PUSH(arena, &io->tried);
        if (slot == NULL) return SMG_MEMORY;
        slot->kind = which == 0 ? SMG_CUT_PARTS : SMG_CUT_APART;
        *io_good = take_cut(at, true, io->tried.count > 1 ? slot - 1 : NULL, slot);
    }
    return SMG_OK;
}

static smg_status parse_lines(smg_context *ctx, const char *path, const char *at, smg_arena *arena, smg_tuning *out) {
    lines l = {0};
    bool good = true;
    SMG_TRY(take_kernels(&at, arena, &l, &good));
    SMG_TRY(take_timings(&at, arena, &l, &good));
    SMG_TRY(take_cuts(&at, arena, &l, &good));
    int count = l.kernels.count + l.timings.count + l.cuts.count + l.tried.count;
    if (!good || *at != '\0')
        return smg_fail(ctx, SMG_FORMAT, "%s: line %d behind the header of the tuning file is malformed", path,
                        good ? count + 1 : count);
    *out = (smg_tuning){.items = l.kernels.items,
                        .count = l.kernels.count,
                        .cuts = l.cuts.items,
                        .cut_count = l.cuts.count,
                        .timings = l.timings.items,
                        .timing_count = l.timings.count,
                        .tried = l.tried.items,
                        .tried_count = l.tried.count};
    return SMG_OK;
}

/* Past the lines of the header, which are this device's and smg's; NULL: they are another one's. */
static const char *past_header(smg_context *ctx, const smg_target *t, const char *body) {
    smg_text own;
    smg_text_init(&own, ctx);
    add_header(t, &own);
    bool same = smg_text_status(&own) == SMG_OK && strncmp(body, smg_text_cstr(&own), own.length) == 0;
    const char *past = same ? body + own.length : NULL;
    smg_text_free(&own);
    return past;
}

/* level: of the line about another one's. */
static smg_status parse(smg_context *ctx, const smg_target *t, const char *path, smg_log_level level, const char *text,
                        size_t size, smg_arena *arena, smg_tuning *out) {
    const char *at = text + sizeof(magic) - 1;
    uint64_t hash = 0;
    const char *header = text;
    int which;
    bool old = take_word(&header, older, SMG_COUNT_OF(older), &which);
    bool good = (old || strncmp(text, magic, sizeof(magic) - 1) == 0) && take_hash(&at, &hash) && *at++ == '\n';
    if (!good || strlen(text) != size || hash != smg_hash_text(SMG_HASH_SEED, at))
        return smg_fail(ctx, SMG_FORMAT, "%s is no tuning file, or a damaged one", path);
    at = old ? NULL : past_header(ctx, t, at);
    if (at != NULL) return parse_lines(ctx, path, at, arena, out);
    SMG_TRY(smg_context_status(ctx));
    smg_log(ctx, level, "tuning file %s is of another device, driver or version of smg: ignored", path);
    return SMG_OK;
}

static smg_status read_file(smg_context *ctx, const smg_target *t, const char *path, smg_log_level level,
                            smg_arena *arena, smg_tuning *out) {
    char *text = NULL;
    size_t size = 0;
    SMG_TRY(smg_file_read(ctx, path, &text, &size));
    smg_status status = parse(ctx, t, path, level, text, size, arena, out);
    smg_free(ctx, text, size + 1);
    return status;
}

/* One that nobody named is never a failure. */
static smg_status read_cache(smg_context *ctx, const smg_target *t, const char *path, smg_arena *arena,
                             smg_tuning *out) {
    bool had_failure = smg_context_status(ctx) != SMG_OK;
    if (!smg_file_exists(path)) return SMG_OK;
    smg_status status = read_file(ctx, t, path, SMG_LOG_INFO, arena, out);
    if (status == SMG_OK || status == SMG_MEMORY || had_failure) return status;
    smg_log(ctx, SMG_LOG_WARNING, "%s: ignored", smg_context_error(ctx));
    smg_context_clear_error(ctx);
    *out = (smg_tuning){0};
    return SMG_OK;
}

smg_status smg_tuning_read(smg_context *ctx, const smg_target *t, const char *path, smg_arena *arena, smg_tuning *out) {
    *out = (smg_tuning){0};
    if (path != NULL) return path[0] != '\0' ? read_file(ctx, t, path, SMG_LOG_WARNING, arena, out) : SMG_OK;
    if (!is_device(t) || !smg_context_cache_dir(ctx)[0]) return SMG_OK;
    path = cache_path(ctx, t, arena);
    return path != NULL ? read_cache(ctx, t, path, arena, out) : SMG_MEMORY;
}

smg_status smg_tuning_known(smg_context *ctx, const smg_target *t, const char *path, smg_arena *arena,
                            smg_tuning *out) {
    *out = (smg_tuning){0};
    return path != NULL ? read_cache(ctx, t, path, arena, out) : smg_tuning_read(ctx, t, NULL, arena, out);
}

/* ---- writing -------------------------------------------------------------------------------------- */

static int by_schedule(const void *a, const void *b) {
    const smg_timing *x = a, *y = b;
    int order = by_nodes(&x->at, &y->at);
    return order != 0 ? order : by_nodes(&x->schedule, &y->schedule);
}

static int by_seconds(const void *a, const void *b) {
    double x = ((const smg_timing *)a)->seconds, y = ((const smg_timing *)b)->seconds;
    return (x > y) - (x < y);
}

static void sort(void *items, int count, size_t size, int (*order)(const void *, const void *)) {
    if (count > 1) qsort(items, (size_t)count, size, order);
}

const smg_cut *smg_tuning_find_cut(const smg_tuning *tuning, const smg_cut *like) {
    for (int i = 0; i < tuning->cut_count; i++)
        if (by_nodes_and_parts(&tuning->cuts[i], like) == 0) return &tuning->cuts[i];
    for (int i = 0; i < tuning->tried_count; i++)
        if (by_nodes_and_parts(&tuning->tried[i], like) == 0) return &tuning->tried[i];
    return NULL;
}

void smg_tuning_sort(smg_tuning *tuning) {
    sort(tuning->items, tuning->count, sizeof(*tuning->items), by_nodes);
    sort(tuning->cuts, tuning->cut_count, sizeof(*tuning->cuts), by_nodes);
    sort(tuning->timings, tuning->timing_count, sizeof(*tuning->timings), by_schedule);
    sort(tuning->tried, tuning->tried_count, sizeof(*tuning->tried), by_nodes_and_parts);
}

/* Of `more`, what is not among the items, which are in order. */
static int add_missing(void *items, int count, const void *more, int more_count, size_t size,
                       int (*order)(const void *, const void *)) {
    int all = count;
    for (int i = 0; i < more_count; i++) {
        const char *one = (const char *)more + (size_t)i * size;
        if (count == 0 || bsearch(one, items, (size_t)count, size, order) == NULL)
            memcpy((char *)items + (size_t)all++ * size, one, size);
    }
    return all;
}

/* What decides is more than tried. */
static void drop_decided(smg_tuning *io) {
    int count = 0;
    for (int i = 0; i < io->tried_count; i++)
        if (io->cut_count == 0 ||
            bsearch(&io->tried[i], io->cuts, (size_t)io->cut_count, sizeof(*io->cuts), by_nodes_and_parts) == NULL)
            io->tried[count++] = io->tried[i];
    io->tried_count = count;
}

/* Of each kernel the fastest stay. */
static void drop_slowest(smg_tuning *io) {
    int count = 0;
    for (int from = 0, to; from < io->timing_count; from = to) {
        for (to = from; to < io->timing_count && io->timings[to].at == io->timings[from].at;) to++;
        int kept = to - from < SMG_MOST_TIMINGS ? to - from : SMG_MOST_TIMINGS;
        sort(&io->timings[from], to - from, sizeof(*io->timings), by_seconds);
        memmove(&io->timings[count], &io->timings[from], (size_t)kept * sizeof(*io->timings));
        sort(&io->timings[count], kept, sizeof(*io->timings), by_schedule);
        count += kept;
    }
    io->timing_count = count;
}

static void add_all(const smg_tuning *from, smg_tuning *io) {
    io->count = add_missing(io->items, io->count, from->items, from->count, sizeof(*io->items), by_nodes);
    io->cut_count = add_missing(io->cuts, io->cut_count, from->cuts, from->cut_count, sizeof(*io->cuts), by_nodes);
    io->timing_count = add_missing(io->timings, io->timing_count, from->timings, from->timing_count,
                                   sizeof(*io->timings), by_schedule);
    io->tried_count =
        add_missing(io->tried, io->tried_count, from->tried, from->tried_count, sizeof(*io->tried), by_nodes_and_parts);
    smg_tuning_sort(io);
}

/* What is new, and of what was there what is not measured again. There is room for one more cut of either kind. */
static smg_status merge(const smg_tuning *before, const smg_tuning *now, smg_arena *arena, smg_tuning *out) {
    size_t items = (size_t)before->count + (size_t)now->count;
    size_t cuts = (size_t)before->cut_count + (size_t)now->cut_count;
    size_t timings = (size_t)before->timing_count + (size_t)now->timing_count;
    size_t tried = (size_t)before->tried_count + (size_t)now->tried_count;
    *out = (smg_tuning){.items = SMG_ARENA_ARRAY(arena, smg_measured, items + 1),
                        .cuts = SMG_ARENA_ARRAY(arena, smg_cut, cuts + 1),
                        .timings = SMG_ARENA_ARRAY(arena, smg_timing, timings + 1),
                        .tried = SMG_ARENA_ARRAY(arena, smg_cut, tried + 1)};
    if (out->items == NULL || out->cuts == NULL || out->timings == NULL || out->tried == NULL) return SMG_MEMORY;
    add_all(now, out);
    add_all(before, out);
    drop_decided(out);
    drop_slowest(out);
    return SMG_OK;
}

static void add_cut(const char *word, const smg_cut *c, smg_text *text) {
    smg_text_addf(text, "%s%016llx", word, (unsigned long long)c->at);
    if (c->kind == SMG_CUT_PARTS) smg_text_addf(text, " %lld", (long long)c->chunk);
    smg_text_addf(text, " %.3f %.3f\n", c->seconds * 1e6, c->apart * 1e6);
}

static void add_lines(const smg_tuning *tuning, smg_text *text) {
    for (int i = 0; i < tuning->count; i++) {
        const smg_measured *m = &tuning->items[i];
        smg_text_addf(text, "%s%016llx %016llx %.3f %.3f\n", kernel_words[0], (unsigned long long)m->at,
                      (unsigned long long)m->schedule, m->seconds * 1e6, m->cheapest * 1e6);
    }
    for (int i = 0; i < tuning->timing_count; i++) {
        const smg_timing *m = &tuning->timings[i];
        smg_text_addf(text, "%s%016llx %016llx %.3f\n", timing_words[m->kind], (unsigned long long)m->at,
                      (unsigned long long)m->schedule, m->seconds * 1e6);
    }
    for (int i = 0; i < tuning->cut_count; i++) add_cut(cut_words[tuning->cuts[i].kind], &tuning->cuts[i], text);
    for (int i = 0; i < tuning->tried_count; i++)
        add_cut(tried_words[tuning->tried[i].kind == SMG_CUT_PARTS ? 0 : 1], &tuning->tried[i], text);
}

static smg_status write_text(smg_context *ctx, const smg_target *t, const char *path, const smg_tuning *tuning) {
    smg_text body, whole;
    smg_text_init(&body, ctx);
    smg_text_init(&whole, ctx);
    add_header(t, &body);
    add_lines(tuning, &body);
    smg_text_addf(&whole, "%s%016llx\n", magic, (unsigned long long)smg_hash_text(SMG_HASH_SEED, smg_text_cstr(&body)));
    smg_text_add(&whole, smg_text_cstr(&body));
    smg_status status = smg_text_status(&body) == SMG_OK ? smg_text_status(&whole) : SMG_MEMORY;
    if (status == SMG_OK) status = smg_file_write_atomic(ctx, path, smg_text_cstr(&whole), whole.length);
    smg_text_free(&body);
    smg_text_free(&whole);
    return status;
}

smg_status smg_tuning_write(smg_context *ctx, const smg_target *t, const char *path, const smg_tuning *tuning,
                            smg_arena *arena, const char **out_path) {
    smg_tuning before = {0}, all;
    const char *folder = smg_context_cache_dir(ctx);
    if (path == NULL && !folder[0])
        return smg_fail(ctx, SMG_INVALID, "there is no cache folder for what was measured: name a file");
    if (path == NULL) {
        folder = smg_path_join(arena, folder, "tuning");
        path = cache_path(ctx, t, arena);
        if (folder == NULL || path == NULL) return SMG_MEMORY;
        SMG_TRY(smg_path_make_dirs(ctx, folder));
    }
    SMG_TRY(smg_tuning_known(ctx, t, path, arena, &before));
    SMG_TRY(merge(&before, tuning, arena, &all));
    *out_path = path;
    return write_text(ctx, t, path, &all);
}

uint64_t smg_tuning_hash(uint64_t hash, const smg_tuning *tuning) {
    hash = smg_hash_u64(hash, (uint64_t)tuning->count);
    for (int i = 0; i < tuning->count; i++)
        hash = smg_hash_u64(smg_hash_u64(hash, tuning->items[i].at), tuning->items[i].schedule);
    for (int i = 0; i < tuning->cut_count; i++) {
        const smg_cut *cut = &tuning->cuts[i];
        hash = smg_hash_u64(smg_hash_u64(hash, cut->at), (uint64_t)cut->kind);
        if (cut->kind == SMG_CUT_PARTS) hash = smg_hash_u64(hash, (uint64_t)cut->chunk);
    }
    return hash;
}

smg_status smg_tuning_copy(const smg_tuning *from, smg_arena *arena, smg_tuning *out) {
    static const smg_tuning none = {0};
    return merge(&none, from, arena, out);
}
