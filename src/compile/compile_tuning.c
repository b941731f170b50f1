/* compile_tuning.c: what was measured of kernels on one device, as a file.
 *
 * A text: a line with the hash of all that follows, then the smg, device and driver it is of, then one line a kernel:
 *
 *     smg tuning 1 0123456789abcdef
 *     smg = 0.1 89ab..
 *     device = NVIDIA H200
 *     driver = NVIDIA 570.1
 *     uuid = 00112233..
 *     kernel 0123456789abcdef 0123456789abcdef 142.1 193.4
 *     apart 0123456789abcdef 812.0 740.5
 *
 * nodes at sizes, schedule, and what it and the one of the lowest price took, in microseconds; then nodes
 * that are better apart, or together, and what a run took with them together and apart. The numbers are hashes of what
 * this smg makes of a graph: a schedule is taken only where it is among those that the planner finds for the nodes, so
 * that nothing in a file can ask for one that is not legal. */
#include <math.h>
#include <stdlib.h>

#include "compile/compile.h"
#include "smg_fingerprint.h"

#define MOST_SECONDS 1e6 /* of a kernel that was measured */

static const char magic[] = "smg tuning 1 ";
enum { HASH_DIGITS = 16 };

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

/* "kernel AT SCHEDULE MICROSECONDS MICROSECONDS", by ascending AT. */
static bool take_kernel(const char **at, const smg_measured *before, smg_measured *out) {
    static const char word[] = "kernel ";
    if (strncmp(*at, word, sizeof(word) - 1) != 0) return false;
    *at += sizeof(word) - 1;
    if (!take_hash(at, &out->at) || *(*at)++ != ' ' || !take_hash(at, &out->schedule)) return false;
    if (!take_seconds(at, &out->seconds) || !take_seconds(at, &out->cheapest) || *(*at)++ != '\n') return false;
    return before == NULL || before->at < out->at;
}

/* "together AT MICROSECONDS MICROSECONDS", or "apart ..", behind all kernels, by ascending AT. */
static bool take_cut(const char **at, const smg_cut *before, smg_cut *out) {
    static const char *const words[] = {"apart ", "together "};
    out->together = **at == 't';
    const char *word = words[out->together];
    if (strncmp(*at, word, strlen(word)) != 0) return false;
    *at += strlen(word);
    if (!take_hash(at, &out->at) || !take_seconds(at, &out->seconds) || !take_seconds(at, &out->apart)) return false;
    return *(*at)++ == '\n' && (before == NULL || before->at < out->at);
}

static smg_status parse_lines(smg_context *ctx, const char *path, const char *at, smg_arena *arena, smg_tuning *out) {
    SMG_ARRAY(smg_measured) kernels = {0};
    SMG_ARRAY(smg_cut) cuts = {0};
    bool good = true;
    while (good && *at == 'k') {
        smg_measured *slot = SMG_ARRAY_PUSH(arena, &kernels);
        if (slot == NULL) return SMG_MEMORY;
        good = take_kernel(&at, kernels.count > 1 ? slot - 1 : NULL, slot);
    }
    while (good && *at != '\0') {
        smg_cut *slot = SMG_ARRAY_PUSH(arena, &cuts);
        if (slot == NULL) return SMG_MEMORY;
        good = take_cut(&at, cuts.count > 1 ? slot - 1 : NULL, slot);
    }
    if (!good)
        return smg_fail(ctx, SMG_FORMAT, "%s: line %d behind the header of the tuning file is malformed", path,
                        kernels.count + cuts.count);
    *out = (smg_tuning){kernels.items, kernels.count, cuts.items, cuts.count};
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
    bool good = strncmp(text, magic, sizeof(magic) - 1) == 0 && take_hash(&at, &hash) && *at++ == '\n';
    if (!good || strlen(text) != size || hash != smg_hash_text(SMG_HASH_SEED, at))
        return smg_fail(ctx, SMG_FORMAT, "%s is no tuning file, or a damaged one", path);
    at = past_header(ctx, t, at);
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

/* Measurements and cuts begin with the nodes that they are of. */
static int by_nodes(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

void smg_tuning_sort(smg_tuning *tuning) {
    if (tuning->count > 0) qsort(tuning->items, (size_t)tuning->count, sizeof(*tuning->items), by_nodes);
    if (tuning->cut_count > 0) qsort(tuning->cuts, (size_t)tuning->cut_count, sizeof(*tuning->cuts), by_nodes);
}

/* What is new, and of what was there what is not measured again. */
static smg_status merge(const smg_tuning *before, const smg_tuning *now, smg_arena *arena, smg_tuning *out) {
    *out = (smg_tuning){.items = SMG_ARENA_ARRAY(arena, smg_measured, (size_t)(before->count + now->count) + 1),
                        .cuts = SMG_ARENA_ARRAY(arena, smg_cut, (size_t)(before->cut_count + now->cut_count) + 1)};
    if (out->items == NULL || out->cuts == NULL) return SMG_MEMORY;
    for (int i = 0; i < now->count; i++) out->items[out->count++] = now->items[i];
    for (int i = 0; i < now->cut_count; i++) out->cuts[out->cut_count++] = now->cuts[i];
    smg_tuning_sort(out);
    int items = out->count, cuts = out->cut_count;
    for (int i = 0; i < before->count; i++)
        if (bsearch(&before->items[i].at, out->items, (size_t)items, sizeof(*out->items), by_nodes) == NULL)
            out->items[out->count++] = before->items[i];
    for (int i = 0; i < before->cut_count; i++)
        if (bsearch(&before->cuts[i].at, out->cuts, (size_t)cuts, sizeof(*out->cuts), by_nodes) == NULL)
            out->cuts[out->cut_count++] = before->cuts[i];
    smg_tuning_sort(out);
    return SMG_OK;
}

static smg_status write_text(smg_context *ctx, const smg_target *t, const char *path, const smg_tuning *tuning) {
    smg_text body, whole;
    smg_text_init(&body, ctx);
    smg_text_init(&whole, ctx);
    add_header(t, &body);
    for (int i = 0; i < tuning->count; i++) {
        const smg_measured *m = &tuning->items[i];
        smg_text_addf(&body, "kernel %016llx %016llx %.3f %.3f\n", (unsigned long long)m->at,
                      (unsigned long long)m->schedule, m->seconds * 1e6, m->cheapest * 1e6);
    }
    for (int i = 0; i < tuning->cut_count; i++) {
        const smg_cut *c = &tuning->cuts[i];
        smg_text_addf(&body, "%s %016llx %.3f %.3f\n", c->together ? "together" : "apart", (unsigned long long)c->at,
                      c->seconds * 1e6, c->apart * 1e6);
    }
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
    for (int i = 0; i < tuning->cut_count; i++)
        hash = smg_hash_u64(smg_hash_u64(hash, tuning->cuts[i].at), tuning->cuts[i].together ? 1 : 0);
    return hash;
}

smg_status smg_tuning_copy(const smg_tuning *from, smg_arena *arena, smg_tuning *out) {
    static const smg_tuning none = {0};
    return merge(&none, from, arena, out);
}
