/* Element types: one table (SMG_TYPE_MAP in op.h), read by these functions. */
#include "op/op.h"

typedef struct type_row {
    const char *word;
    int64_t host_bytes;
    int64_t device_bytes;
    smg_kind kind;
} type_row;

static const type_row type_rows[SMG_TYPE_COUNT] = {
#define TYPE_ROW(id, word, host, device, kind) [SMG_TYPE_##id] = {word, host, device, SMG_KIND_##kind},
    SMG_TYPE_MAP(TYPE_ROW)
#undef TYPE_ROW
};

const char *smg_type_word(smg_type type) {
    return type < SMG_TYPE_COUNT ? type_rows[type].word : "?";
}

bool smg_type_find(const char *word, smg_type *out_type) {
    if (!word) return false;
    for (int i = 0; i < SMG_TYPE_COUNT; i++) {
        if (strcmp(type_rows[i].word, word) != 0) continue;
        *out_type = (smg_type)i;
        return true;
    }
    return false;
}

int64_t smg_type_host_bytes(smg_type type) {
    return type < SMG_TYPE_COUNT ? type_rows[type].host_bytes : 0;
}

int64_t smg_type_device_bytes(smg_type type) {
    return type < SMG_TYPE_COUNT ? type_rows[type].device_bytes : 0;
}

smg_kind smg_type_kind(smg_type type) {
    return type < SMG_TYPE_COUNT ? type_rows[type].kind : SMG_KIND_FLOAT;
}
