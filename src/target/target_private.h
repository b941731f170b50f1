/* Shared by the sources of target/: the facts as a table, one row each, made from SMG_TARGET_FACTS. */
#ifndef SMG_TARGET_PRIVATE_H
#define SMG_TARGET_PRIVATE_H

#include "target/target.h"

typedef struct smg_fact_row {
    const char *key;
    bool is_real;
    size_t value_offset;
    size_t origin_offset;
    double careful;
    const char *unit;
    const char *what;
} smg_fact_row;

enum {
#define SMG_TARGET_FIELD(ctype, field, careful, unit, what) SMG_TARGET_INDEX_##field,
    SMG_TARGET_FACTS(SMG_TARGET_FIELD)
#undef SMG_TARGET_FIELD
        SMG_TARGET_FACT_COUNT
};

extern const smg_fact_row smg_fact_rows[SMG_TARGET_FACT_COUNT];

int64_t smg_fact_int(const smg_target *target, const smg_fact_row *row);
double smg_fact_real(const smg_target *target, const smg_fact_row *row);
smg_fact_origin smg_fact_from(const smg_target *target, const smg_fact_row *row);
void smg_fact_set(smg_target *target, const smg_fact_row *row, int64_t integer, double real, smg_fact_origin origin);
const smg_fact_row *smg_fact_find(const char *key, size_t length);

#endif
