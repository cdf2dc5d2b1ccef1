/* Building the key index at start from the versions of the checkpoint. */
#ifndef VIGIL_STORE_LOAD_H
#define VIGIL_STORE_LOAD_H

#include "store/backend/backend.h"
#include "store/index/index.h"

/* The index is empty so far. Memory is taken for all versions while it runs, and given back. */
MUST_CHECK
enum status store_load_index(struct backend *backend, struct index *index);

#endif
