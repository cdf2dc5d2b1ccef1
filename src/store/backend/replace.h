/*
 * Replaces a damaged checkpoint with a new one, and keeps the old one. The new one is written to
 * DIR/rebuilt and renamed when it is durable, so that there is a checkpoint at any time.
 */
#ifndef VIGIL_STORE_BACKEND_REPLACE_H
#define VIGIL_STORE_BACKEND_REPLACE_H

#include "store/backend/backend.h"

/* Writes all contents of `from`. *ret_saved is where the damaged file is from then on. */
MUST_CHECK
enum status backend_lmdb_replace(const char *dir, size_t map_bytes, struct backend *from,
                                 char *ret_saved, size_t saved_bytes, struct error *ret_error);

#endif
