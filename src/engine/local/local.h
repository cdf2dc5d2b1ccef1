/*
 * The local engine: a store in this process.
 *
 *   shards ── requests ──► writer: applies a group, syncs it once, publishes ── answers ──► shards
 *      └── reads: on the shard's own thread, from the newest published state
 *   keeper: next segment of the log, checkpoints, cleaning, defragmenting, hashes, store check
 *   snapshotter: the bytes of snapshots
 *
 * The writer, the keeper and the snapshotter have a thread each (writer.c, keeper.c, snapshot.c).
 * If a write or sync of the log fails, on_fatal is called and must not return.
 */
#ifndef VIGIL_ENGINE_LOCAL_LOCAL_H
#define VIGIL_ENGINE_LOCAL_LOCAL_H

#include "base/error.h"
#include "engine/engine.h"
#include "engine/local/state/options.h"

/* Opens the store and starts the threads. */
MUST_CHECK
enum status engine_local_open(const struct engine_local_options *options,
                              struct engine **ret_engine, struct error *ret_error);

/*
 * Finishes what was started, writes a last checkpoint, ends the threads and closes the store. The
 * shards must have been freed.
 */
void engine_local_close(struct engine *engine); /* accepts NULL */

/* The same for a mirror: everything that was applied becomes durable, which otherwise survives a
 * crash of the process but not one of the machine. A failure says that it is not durable. */
MUST_CHECK
enum status local_mirror_close(struct engine *engine);
/* The same for a mirror that will not be opened again: nothing more is written. */
void local_mirror_abandon(struct engine *engine);

/*
 * Maximum size of a checkpoint in the address space of this process, or in the given one. It is
 * address space, not memory: enough for a billion versions. Where address space is limited
 * (ulimit -v) a quarter of it, which leaves room for the log and for threads.
 */
size_t engine_local_map_bytes(void);
size_t local_map_bytes(uint64_t address_space);

#endif
