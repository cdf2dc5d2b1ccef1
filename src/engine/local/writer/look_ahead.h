/* The writer looks at some requests ahead, so that what they need is in the cache in time. */
#ifndef VIGIL_ENGINE_LOCAL_WRITER_LOOK_AHEAD_H
#define VIGIL_ENGINE_LOCAL_WRITER_LOOK_AHEAD_H

#include "engine/local/state/messages.h"
#include "store/mvcc/applier.h"

/* Looks at the next requests, this one included, and returns the one at which to look again; NULL:
 * never. */
const struct mailbox_node *local_look_ahead(const struct applier *applier,
                                            const struct mailbox_node *node);

#endif
