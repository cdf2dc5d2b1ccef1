/*
 * The gRPC messages of one stream, from the DATA in which they arrive. Messages that are whole in
 * one piece of DATA are read in place; only one that continues in the next piece is copied.
 */
#ifndef VIGIL_LOAD_REASSEMBLY_H
#define VIGIL_LOAD_REASSEMBLY_H

#include "base/buf.h"

enum { BENCH_MESSAGE_BYTES_MAX = 64 << 20 };

/* Zeroed at the beginning. Owned by the stream. */
struct bench_reassembly {
    struct buf partial; /* the start of a message whose rest has not come */
};

typedef enum status (*bench_message_fn)(void *argument, struct slice message);

/* Calls fn for each message that the bytes complete, until it fails. ST_MALFORMED: the prefix of a
 * message is wrong, or announces more than BENCH_MESSAGE_BYTES_MAX. */
MUST_CHECK
enum status bench_reassembly_take(struct bench_reassembly *reassembly, struct slice bytes,
                                  bench_message_fn fn, void *argument);

void bench_reassembly_fini(struct bench_reassembly *reassembly);

#endif
