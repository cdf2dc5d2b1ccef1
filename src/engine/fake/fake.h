/*
 * An engine for the tests of the faces: a naive model in memory whose operations complete when the
 * test says so, in an order drawn from a seed. What an engine may do, it does: complete before the
 * starting call returns, much later, after others that were started later. Answers live in memory
 * of their own that is freed by close, so that a sanitizer sees who looks too long or never closes.
 *
 * One shard, one thread.
 */
#ifndef VIGIL_ENGINE_FAKE_FAKE_H
#define VIGIL_ENGINE_FAKE_FAKE_H

#include "engine/engine_private.h"

struct fake_options {
    uint64_t seed;
    /* Of 100 operations so many complete inline; the others wait for fake_step. */
    unsigned inline_percent;
    struct engine_identity identity;
    size_t watch_fragment_bytes; /* 0: 2 MiB */
    unsigned watchers_max;       /* of one stream; 0: 1,000,000 */
    int64_t watch_progress_ns;   /* 0: 10 minutes */
};

struct engine *fake_new(const struct fake_options *options); /* aborts without memory */
/* Nothing may be pending or open. */
void fake_free(struct engine *engine);

/* Takes effect and completes one waiting operation, any one. False: none waits. */
bool fake_step(struct engine *engine);

size_t fake_waiting(const struct engine *engine);
/* Ranges and writes that were answered and not closed. */
size_t fake_open(const struct engine *engine);

/* What the time of the shard's next turns is: for the watches' progress. */
void fake_set_now(struct engine *engine, int64_t now_ns);
/* Somebody watches. */
bool fake_listens(const struct engine *engine);

/* What its snapshots are: so many bytes, of which the i-th is i % FAKE_SNAPSHOT_CYCLE. */
enum { FAKE_SNAPSHOT_BYTES = 2 * ENGINE_SNAPSHOT_PIECE_BYTES + 4096, FAKE_SNAPSHOT_CYCLE = 251 };

/* The next operation fails with this status and, if not empty, an upstream's text. */
void fake_fail_next(struct engine *engine, enum status status, struct slice text);

#endif
