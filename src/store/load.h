/* Builds the key index at start from the versions of the checkpoint. */
#ifndef VIGIL_STORE_LOAD_H
#define VIGIL_STORE_LOAD_H

#include "store/backend/backend.h"
#include "store/index/index.h"

/*
 * Verifies the checkpoint (backend_verify) and loads it in one pass, so this comes before the first
 * change. The index must be empty. Versions of a record that was only partly checkpointed because
 * of a stop are left out. No other memory grows with the number of versions.
 */
MUST_CHECK
enum status store_load_index(struct backend *backend, struct index *index);

/* Drops the versions that were left out from the checkpoint; their record will be replayed. */
MUST_CHECK
enum status store_load_drop_unfinished(struct backend *backend);

#endif
