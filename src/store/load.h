/* Building the key index at start from the versions of the checkpoint. */
#ifndef VIGIL_STORE_LOAD_H
#define VIGIL_STORE_LOAD_H

#include "store/backend/backend.h"
#include "store/index/index.h"

/*
 * Drops the versions of a record of the log that a stop has kept from being taken over to its end:
 * it will be replayed.
 */
MUST_CHECK
enum status store_load_drop_unfinished(struct backend *backend);

/* The index is empty so far; nothing else takes memory that grows with the versions. */
MUST_CHECK
enum status store_load_index(struct backend *backend, struct index *index);

#endif
