/* bundle/file.h: the file of a bundle: classes for several targets, weights once.
 *
 *     header     magic, version, byte order, bytes of the file, where head and index are, a hash of the index
 *     head       JSON: what is in the file, for people and other tools; nothing is read from it
 *     index      names, interface, constants, classes with their needs (decisions/0032-bundles.md)
 *     classes    one bundle each, as smg_bundle_write writes it; a constant's source is its number in the index
 *     weights    constants as they lie on the device; larger ones begin at a page
 *
 * Everything is little-endian. What is read is checked before it is used, whatever the bytes are. */
#ifndef SMG_BUNDLE_FILE_H
#define SMG_BUNDLE_FILE_H

#include "bundle/bundle.h"
#include "bundle/interface.h"

#define SMG_BFILE_VERSION 2

/* ---- writing ---------------------------------------------------------------------------------------- */

typedef struct smg_bfile_class_desc {
    const char *name;
    const char *match; /* part of the names of devices that it was made for; "": of none */
    const smg_bundle *bundle;
    const smg_target *target;
} smg_bfile_class_desc;

typedef struct smg_bfile_desc {
    const char *model, *precision, *maker; /* maker: what wrote it, for people */
    const smg_interface *interface;        /* its symbols are those of every class */
    const smg_bfile_class_desc *classes;
    int class_count;
} smg_bfile_desc;

/* INVALID: a class without all run lists, two of one name, a weight that its type on the device does not hold. Nothing
 * is left behind on failure. */
smg_status smg_bfile_write(smg_context *ctx, const smg_bfile_desc *desc, const char *path);

/* ---- reading ---------------------------------------------------------------------------------------- */

/* Where its bytes come from: memory, or calls. */
typedef struct smg_bfile_source {
    int64_t bytes;
    const uint8_t *data; /* all of them; NULL: read is asked */
    /* `bytes` bytes from offset on; all of them lie in the file. false: it failed. */
    bool (*read)(void *user, int64_t offset, void *into, size_t bytes);
    void *user;
} smg_bfile_source;

typedef struct smg_bfile_constant {
    int64_t offset, bytes;
    smg_storage storage; /* one that is the same on host and device */
    uint64_t hash;       /* smg_hash_blocks */
} smg_bfile_constant;

typedef struct smg_bfile_class {
    const char *name, *match;
    smg_target needs;
    int64_t offset, bytes;
} smg_bfile_class;

typedef struct smg_bfile {
    smg_arena *arena;
    smg_bfile_source source;
    const char *label; /* for sentences */
    const char *model, *precision;
    smg_interface *interface;
    int64_t head_offset, head_bytes, weights_bytes;
    uint64_t head_hash;
    int constant_count, class_count;
    smg_bfile_constant *constants;
    smg_bfile_class *classes;
} smg_bfile;

/* Do these first bytes of a file look like a bundle's? */
bool smg_bfile_looks_like(const void *bytes, size_t size);
/* Of the file at this path; false also where there is none. */
bool smg_bfile_is_at(smg_context *ctx, const char *path);
/* Header and index, in the arena; the source is copied and used as long as the file is. FORMAT: no bundle, damaged, of
 * another version or byte order; IO: the source failed. `label` names it. */
smg_status smg_bfile_read(smg_arena *arena, const smg_bfile_source *source, const char *label, smg_bfile **out_file);
/* What looks at a class that was read, beside verifying it. */
typedef smg_status (*smg_bfile_check)(const smg_bfile *file, int index, const smg_bundle *bundle);
/* One class, verified, with all run lists, needing no more than the index says. Data of constants point into the
 * source's memory; they are NULL where it is read by calls (smg_bfile_read_constant). */
smg_status smg_bfile_read_class(const smg_bfile *file, int index, smg_arena *arena, smg_bundle **out_bundle);
/* Bytes of the constants of a class that was read, each once. */
smg_status smg_bfile_weights(const smg_bfile *file, const smg_bundle *bundle, int64_t *out_bytes);
/* Some of a constant's bytes; all of them lie in it. */
smg_status smg_bfile_read_weight(const smg_bfile *file, int constant, int64_t offset, void *into, size_t bytes);
/* Is this the hash of a constant as it was written? FORMAT names it, `name` as a class calls it (NULL: not known). */
smg_status smg_bfile_check_weight(const smg_bfile *file, int constant, const char *name, uint64_t hash);
/* The JSON text, in the arena. */
smg_status smg_bfile_read_head(const smg_bfile *file, smg_arena *arena, const char **out_text);
/* Are the weights those that were written? FORMAT names the first that is not. */
smg_status smg_bfile_check_weights(const smg_bfile *file);
/* The class for a device, by what it was made for: the name, then the type, then matrices, then subgroups, then the
 * first. UNSUPPORTED: none; the sentence has what each misses. */
smg_status smg_bfile_choose(const smg_bfile *file, const smg_target *device, int *out_class);

#endif
