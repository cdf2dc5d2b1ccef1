/* Builds the key index at start from the versions of the checkpoint. */
#ifndef VIGIL_STORE_LOAD_H
#define VIGIL_STORE_LOAD_H

#include "store/backend/backend.h"
#include "store/index/index.h"

/*
 * Drops the versions of a record that was only partly checkpointed because of a stop; it will be
 * replayed.
 */
MUST_CHECK
enum status store_load_drop_unfinished(struct backend *backend);

/* The index must be empty. No other memory grows with the number of versions. */
MUST_CHECK
enum status store_load_index(struct backend *backend, struct index *index);

#endif
