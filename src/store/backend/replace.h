/*
 * Putting a new checkpoint in the place of a damaged one, which is kept. The new one is made under
 * DIR/rebuilt and renamed when it is durable: there is a checkpoint at every moment.
 */
#ifndef VIGIL_STORE_BACKEND_REPLACE_H
#define VIGIL_STORE_BACKEND_REPLACE_H

#include "store/backend/backend.h"

/* Everything that `from` holds. *ret_saved says where the damaged file is from then on. */
MUST_CHECK
enum status backend_lmdb_replace(const char *dir, size_t map_bytes, struct backend *from,
                                 char *ret_saved, size_t saved_bytes, struct error *ret_error);

#endif
