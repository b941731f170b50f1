/* What facts of a target are called. */
#include "target/target_private.h"

const char *smg_target_origin_word(smg_fact_origin origin) {
    switch (origin) {
    case SMG_FACT_TABLE: return "table";
    case SMG_FACT_QUERIED: return "queried";
    case SMG_FACT_MEASURED: return "measured";
    case SMG_FACT_FITTED: return "fitted";
    case SMG_FACT_ASSUMED: break;
    }
    return "assumed";
}

const char *smg_device_type_word(smg_device_type type) {
    switch (type) {
    case SMG_DEVICE_INTEGRATED: return "integrated";
    case SMG_DEVICE_DISCRETE: return "discrete";
    case SMG_DEVICE_VIRTUAL: return "virtual";
    case SMG_DEVICE_CPU: return "cpu";
    case SMG_DEVICE_OTHER: break;
    }
    return "other";
}
