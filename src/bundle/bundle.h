/* bundle: the flat plan format that the runtime takes: no graph, no op, no kernel in it.
 *
 * Takes:    nothing, compile/ fills it in from a plan, program/ reads it; or its own bytes.
 * Gives:    buffers with size expressions, a prepare list, run lists guarded by sizes, modules; bytes without weights;
 *           what a device must have for it; a file with bundles of one model for several targets (bundle/file.h); what
 *           runs see of a model (bundle/interface.h).
 * Promises: plain data in one arena; every index in range after smg_bundle_verify and after smg_bundle_read, whatever
 *           the bytes were.
 * Does not: interpret itself.
 */
#ifndef SMG_BUNDLE_H
#define SMG_BUNDLE_H

#include "base/base.h"
#include "base/size.h"
#include "target/target.h"

#define SMG_BUNDLE_RANK 8
#define SMG_BUNDLE_VERSION 6 /* of its bytes */

typedef enum smg_buffer_kind {
    SMG_BUFFER_INPUT,     /* the caller writes it before a run */
    SMG_BUFFER_OUTPUT,    /* the caller reads it after a run */
    SMG_BUFFER_CONSTANT,  /* uploaded once from `data` */
    SMG_BUFFER_DERIVED,   /* written once by the prepare list, read by later steps of it or ever after */
    SMG_BUFFER_TEMPORARY, /* lives from step `first` to step `last` of a run list; may share memory */
    SMG_BUFFER_STATE,     /* lives across runs: what a run leaves in the output `next` the next run reads here */
    SMG_BUFFER_STACK      /* constants and derived buffers that lie one behind the other, as run steps read them */
} smg_buffer_kind;

/* How elements lie in host memory and on the device: i64 and bool are 4-byte words there, and f32 may be 16 bits. */
typedef enum smg_storage {
    SMG_STORE_F32,
    SMG_STORE_F16,
    SMG_STORE_BF16,
    SMG_STORE_I32,
    SMG_STORE_I64_AS_I32,  /* range-checked at upload */
    SMG_STORE_BOOL_AS_U32, /* host: one byte */
    SMG_STORE_F32_AS_F16,  /* rounded to nearest; what becomes infinite by that is refused at upload */
    SMG_STORE_F32_AS_BF16,
    SMG_STORE_COUNT
} smg_storage;
smg_storage
smg_storage_given(smg_storage storage); /* of the same host elements: as they are on the device by default */
int64_t smg_storage_host_bytes(smg_storage storage);
int64_t smg_storage_device_bytes(smg_storage storage);
const char *smg_storage_word(smg_storage storage); /* host word: "f32", "i64", ... */
bool smg_storage_is_integer(smg_storage storage);  /* i32 or i64 */
/* The storage of that host word that is the same on the device, or by default; false: there is none. */
bool smg_storage_find(const char *word, smg_storage *out_storage);
/* What lies on the device, as a storage whose host elements are just these bytes. */
smg_storage smg_storage_stored(smg_storage storage);
/* Are host elements and those on the device of one format? */
bool smg_storage_same(smg_storage storage);
/* bundle_convert.c: host elements from `position` on to device elements, where the formats differ. INVALID names the
 * first one that the device's type does not hold. */
smg_status smg_storage_narrow(smg_context *ctx, const char *name, smg_storage storage, const void *data,
                              int64_t position, int64_t count, void *out);
/* Device elements to host elements. */
void smg_storage_widen(smg_storage storage, const void *words, int64_t count, void *out);

typedef struct smg_bbuffer {
    const char *name; /* unique among inputs, among outputs */
    smg_buffer_kind kind;
    smg_storage storage;
    int rank;
    smg_size dims[SMG_BUNDLE_RANK];
    smg_size elements;
    const void *data; /* CONSTANT: host bytes, borrowed until the program is made; NULL: the program's maker is asked
                       * for those of `source` */
    int source;       /* CONSTANT: whose bytes they are, as the caller counts; -1: the bundle's own, written with it */
    int next;         /* STATE: an output that every run list writes, of as many elements that lie alike */
    int variant;      /* TEMPORARY: whose run list it belongs to */
    int first, last;  /* TEMPORARY: steps of that list that write and last read it */
    int member_count; /* STACK: which, each in one stack alone; the first lies at its begin */
    int *members;
    int64_t stride; /* STACK: elements from one to the next */
} smg_bbuffer;

typedef struct smg_bbinding {
    int buffer;
    bool written;
} smg_bbinding;

/* One dispatch. workgroups = product over grid of ceil(extent / tile), spread over x and y. */
typedef struct smg_bstep {
    const char *name;
    int module;
    int binding_count;
    smg_bbinding *bindings; /* binding i of the module */
    bool diagnostics;       /* one more binding behind them: the diagnostics buffer */
    int address_count;
    int *address_bindings; /* each binding's address pushed as 8 bytes, in order, in front of the sizes */
    int push_count;
    int *push_symbols; /* each pushed as one 4-byte int, in order */
    int grid_count;
    smg_size *grid_extent;
    int64_t *grid_tile;
    int even_count;      /* the module's even form serves where each size is a multiple of its number; 0: it */
    smg_size *even_size; /* has none. Constant 0 of the pipeline chooses the form */
    int64_t *even_by;
    double estimate; /* seconds at the nominal sizes, by the cost model */
    smg_size bytes;  /* modelled global traffic */
    smg_size flops;
} smg_bstep;

typedef struct smg_bmodule {
    const char *name;
    const uint32_t *words; /* SPIR-V */
    size_t word_count;
    int local_size;   /* invocations, in x */
    int subgroup;     /* required size with full subgroups; 1: any */
    int shared_bytes; /* that it declares */
    uint64_t hash;
    uint64_t text[2]; /* two hashes of what it was compiled from: the same text is the same module */
} smg_bmodule;

/* One run list. Every list is right for all sizes; the guard tells for which it was made. */
typedef struct smg_bvariant {
    smg_size measure; /* guard: low <= measure <= high */
    int64_t low, high;
    bool made; /* false: steps, buffers and modules are still to be added (variant 0 always is made) */
    SMG_ARRAY(smg_bstep) run;
} smg_bvariant;

typedef struct smg_bundle {
    smg_arena *arena;
    smg_sizes *sizes;
    SMG_ARRAY(smg_bbuffer) buffers;
    SMG_ARRAY(smg_bmodule) modules;
    SMG_ARRAY(smg_bstep) prepare;
    SMG_ARRAY(smg_bvariant) variants; /* at least one */
} smg_bundle;

smg_status smg_bundle_verify(smg_context *ctx, const smg_bundle *bundle);
/* The input or state, or the output, of this name; -1: there is none. kind: INPUT for both of the first, or OUTPUT. */
int smg_bundle_find(const smg_bundle *bundle, smg_buffer_kind kind, const char *name);

/* What a device must have for it (bundle_needs.c): facts that are given are limits that it must reach. Read off the
 * modules, but shapes and layouts of matrices, which are those of `from` that the modules name (NULL: none). INTERNAL:
 * a module declares what smg knows no fact for. */
smg_status smg_bundle_needs(smg_context *ctx, const smg_bundle *bundle, const smg_target *from, smg_target *out_needs);

/* ---- as bytes (bundle_bytes.c) ---- */

/* The bundle without the data of constants that have a source. */
void smg_bundle_write(const smg_bundle *bundle, smg_text *out);
/* Where the data of constants comes from: host bytes of `elements` in this storage (NULL: they are asked for when the
 * program is made); false where there is no such source. */
typedef struct smg_bundle_constants {
    bool (*find)(void *user, int source, smg_storage storage, int64_t elements, const void **out_data);
    void *user;
} smg_bundle_constants;
/* Verified; all of it in the arena but data that has a source. FORMAT: damaged, of another version, or a source is not
 * what it was. */
smg_status smg_bundle_read(smg_arena *arena, const void *bytes, size_t size, const smg_bundle_constants *from,
                           smg_bundle **out_bundle);

/* A module's words among them (bundle_words.c). Any words are read as they were written; fewer bytes, or others that
 * are none of these, fail the reader. */
void smg_words_write(const uint32_t *words, size_t count, smg_text *out);
void smg_words_read(smg_reader *r, uint32_t *out_words, size_t count);

/* Does the step's even form serve at all sizes from low to high (one each per symbol)? A size that it relies on and
 * that changes between them says no. */
bool smg_bundle_even(const smg_bundle *bundle, const smg_bstep *step, const int64_t *low, const int64_t *high);
/* May the variant's guard hold at some of these sizes? */
bool smg_bundle_meets(const smg_bundle *bundle, int variant, const int64_t *low, const int64_t *high);
/* The first variant whose guard holds at these sizes, else 0. */
int smg_bundle_choose(const smg_bundle *bundle, const int64_t *values);
/* Bytes of the step's push constants. */
int smg_bundle_push_bytes(const smg_bstep *step);

#endif
