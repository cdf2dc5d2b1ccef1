/* Building the key index at start from the versions of the checkpoint. */
#ifndef VIGIL_STORE_LOAD_H
#define VIGIL_STORE_LOAD_H

#include "store/backend/backend.h"
#include "store/index/index.h"

/* The index is empty so far; nothing else takes memory that grows with the versions. */
MUST_CHECK
enum status store_load_index(struct backend *backend, struct index *index);

#endif
