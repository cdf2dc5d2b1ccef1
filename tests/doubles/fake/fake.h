/*
 * An engine for tests of the APIs: a simple model in memory whose operations complete when the test
 * wants, in a random order that depends on a seed. It does everything that an engine may do: it
 * completes operations before the starting call returns, much later, or after others that were
 * started later. Answers have their own memory that close frees, so that a sanitizer finds callers
 * that use them too long or never close them.
 *
 * One shard, one thread.
 */
#ifndef VIGIL_FAKE_FAKE_H
#define VIGIL_FAKE_FAKE_H

#include "engine/engine.h"

struct fake_options {
    uint64_t seed;
    /* Percentage of operations that complete inline; the others wait for fake_step. */
    unsigned inline_percent;
    struct engine_identity identity;
    size_t watch_fragment_bytes; /* 0: 2 MiB */
    unsigned watchers_max;       /* limit on the watchers of one stream; 0: 1,000,000 */
    int64_t watch_progress_ns;   /* 0: 10 minutes */
};

struct engine *fake_new(const struct fake_options *options); /* aborts without memory */
/* Nothing may be pending or open. */
void fake_free(struct engine *engine);

/* Executes and completes a random waiting operation. False: none is waiting. */
bool fake_step(struct engine *engine);

size_t fake_waiting(const struct engine *engine);
/* Ranges and writes that were answered and not closed. */
size_t fake_open(const struct engine *engine);

/* The time of the shard's next turns, for progress notifications of watches. */
void fake_set_now(struct engine *engine, int64_t now_ns);
/* There are watches. */
bool fake_listens(const struct engine *engine);

/* Length and content of its snapshots: byte i is i % FAKE_SNAPSHOT_CYCLE. */
enum { FAKE_SNAPSHOT_BYTES = 2 * ENGINE_SNAPSHOT_PIECE_BYTES + 4096, FAKE_SNAPSHOT_CYCLE = 251 };

/* The next operation fails with this status and, if not empty, this text of an upstream server. */
void fake_fail_next(struct engine *engine, enum status status, struct slice text);

#endif
