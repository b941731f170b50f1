/* smg/version.h: which smg this is. */
#ifndef SMG_VERSION_H
#define SMG_VERSION_H

#include "smg/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* "0.1.0": static storage. */
SMG_API const char *smg_version(void);

#ifdef __cplusplus
}
#endif
#endif
