/* Shared by the sources of target/: the facts as a table, one row each, made from SMG_TARGET_FACTS. */
#ifndef SMG_TARGET_PRIVATE_H
#define SMG_TARGET_PRIVATE_H

#include "target/target.h"

typedef struct smg_fact_row {
    const char *key;
    bool is_real;
    size_t value_offset;
    size_t origin_offset;
    bool is_cost;
    double careful;
    double spreading, least; /* costs.def */
} smg_fact_row;

enum {
#define SMG_TARGET_FIELD(ctype, field, careful, unit, what) SMG_TARGET_INDEX_##field,
    SMG_TARGET_FACTS(SMG_TARGET_FIELD)
#undef SMG_TARGET_FIELD
#define SMG_COST_ROW(field, switching, spreading, least, what) SMG_TARGET_INDEX_cost_##field,
#include "target/costs.def"
#undef SMG_COST_ROW
        SMG_TARGET_FACT_COUNT
};

extern const smg_fact_row smg_fact_rows[SMG_TARGET_FACT_COUNT];

int64_t smg_fact_int(const smg_target *target, const smg_fact_row *row);
double smg_fact_real(const smg_target *target, const smg_fact_row *row);
smg_fact_origin smg_fact_from(const smg_target *target, const smg_fact_row *row);
void smg_fact_set(smg_target *target, const smg_fact_row *row, int64_t integer, double real, smg_fact_origin origin);
const smg_fact_row *smg_fact_find(const char *key, size_t length);

/* ---- matrices: target_matrix.c --------------------------------------------------------------------- */

smg_status smg_matrices_verify(smg_context *ctx, const smg_target *target);
uint64_t smg_matrices_hash(const smg_target *target, uint64_t hash);
void smg_matrices_print(const smg_target *target, smg_text *text);
/* What the `from` target knows of the shapes that `target` has: rates, layouts. */
void smg_matrices_take(smg_target *target, const smg_target *from);

/* Values of `matrix` and `fragment` lines. false: not of that form. */
bool smg_matrix_read(const char *text, size_t length, smg_matrix_shape *out_shape);
bool smg_fragment_read(const char *text, size_t length, smg_fragment *out_fragment);
/* A number with a decimal point, whatever the process's locale says. */
bool smg_real_read(const char *text, size_t length, double *out_value);

#endif
