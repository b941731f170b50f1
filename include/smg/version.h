/* smg/version.h: which smg this is: the headers, and the library that runs. */
#ifndef SMG_VERSION_H
#define SMG_VERSION_H

#include "smg/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of these headers; the build reads them here. */
#define SMG_VERSION_MAJOR 0
#define SMG_VERSION_MINOR 1
#define SMG_VERSION_PATCH 0

/* Of the library, "0.1.0": static storage. */
SMG_API const char *smg_version(void);

#ifdef __cplusplus
}
#endif
#endif
