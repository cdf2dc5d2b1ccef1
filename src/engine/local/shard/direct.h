/*
 * The local engine for threads that have no shard: those of a program that contains the store. They
 * wait for answers, and so need neither a loop nor a mailbox.
 *
 * Reading: a thread borrows one of LOCAL_READERS_MAX readers, which pins the newest published state
 * until it is returned. Writing: an operation is posted to the writer, which calls done, on its own
 * thread, when the changes of a group are durable and visible.
 *
 * Only for stores without authentication, and opened with has_readers. Any thread.
 */
#ifndef VIGIL_ENGINE_LOCAL_SHARD_DIRECT_H
#define VIGIL_ENGINE_LOCAL_SHARD_DIRECT_H

#include "engine/engine.h"
#include "store/mvcc/range_walk.h"

struct local_reader;
struct local_shared;

enum { LOCAL_READERS_MAX = 128 };

/* NULL: all are in use. */
struct local_reader *local_reader_begin(struct engine *engine);
void local_reader_end(struct local_reader *reader);

/* False: callers need permissions, and must use a shard. */
bool local_reader_is_free(const struct local_reader *reader);
const struct range_state *local_reader_state(const struct local_reader *reader);

/* The newest version of a key as it is stored, until the reader ends; NULL: the key does not exist.
 * ST_CORRUPT: it is damaged. */
MUST_CHECK
enum status local_reader_get(struct local_reader *reader, struct slice key,
                             const struct change_head **ret_change);

/*
 * A put, a delete, a transaction (both of a struct engine_write) or a compaction, with its request.
 * All operations have the same done. It is called with the first of those that end together, to
 * which the others are linked by in_mailbox.next. It must be short and not wait.
 *
 * Answers refer to the state before, so if they are read, the caller has had a reader since before
 * the call. The status is one of the operation, or, if the store has failed
 * (engine_local_options.on_failure), ST_TIMEOUT for a change that may be on the disk, and
 * ST_STOPPED for one that is not.
 */
void local_direct_start(struct engine *engine, struct engine_op *op, enum engine_kind kind,
                        const void *request);

/* For an engine that opens: all readers. Aborts without memory. */
struct local_reader *local_readers_new(struct local_shared *shared);

#endif
