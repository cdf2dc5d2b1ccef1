/*
 * What the writer has answered in a group: a chain for each shard, at its number, and one for
 * threads without a shard. They are sent together when the group is durable.
 */
#ifndef VIGIL_ENGINE_LOCAL_WRITER_ANSWERS_H
#define VIGIL_ENGINE_LOCAL_WRITER_ANSWERS_H

#include "engine/local/state/shared.h"

/* Empties the chains, of which there is one more than shards_max. */
void local_answers_send(struct local_shared *shared, struct mailbox_chain *chains);

#endif
