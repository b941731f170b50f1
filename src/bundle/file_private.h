/* file_private.h: what writing and reading a bundle's file agree on. */
#ifndef SMG_BUNDLE_FILE_PRIVATE_H
#define SMG_BUNDLE_FILE_PRIVATE_H

#include "bundle/file.h"

/* magic 8, version 4, order 4, file 8, head 8 + 8, index 8 + 8, hash of the index 8 */
#define SMG_BFILE_HEADER 64
#define SMG_BFILE_ORDER UINT32_C(0x01020304)
#define SMG_BFILE_MOST_CLASSES 256
#define SMG_BFILE_PAGE 4096
#define SMG_BFILE_ALIGN 64            /* of smaller constants */
#define SMG_BFILE_PART SMG_HASH_BLOCK /* bytes of a constant that are converted, hashed and written at a time */

extern const char smg_bfile_magic[8];

#endif
