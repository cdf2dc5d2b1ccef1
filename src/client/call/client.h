/* The inside of a vigil_client: what all of its calls and watches share, and the driver that they
 * run on. */
#ifndef VIGIL_CLIENT_CALL_CLIENT_H
#define VIGIL_CLIENT_CALL_CLIENT_H

#include "base/metric/counter.h"
#include "client/call/local.h"
#include "client/connect/channel.h"
#include "client/driver/driver.h"

#include <vigil/client.h>

/* Written by the loop's thread, read by any. */
struct client_counters {
    _Atomic uint64_t calls_started, calls_completed, calls_retried;
    _Atomic uint64_t watches, watch_resumes, watch_events, queued_bytes;
    _Atomic int64_t watch_revision; /* the newest one in a response to a watch */
};

struct vigil_client {
    struct driver driver;

    /* Constant. */
    int64_t call_timeout_ms;
    size_t send_bytes_max, receive_bytes_max;
    struct slice prefix;        /* owned */
    struct client_local *local; /* owned; NULL: the client uses servers */

    /* Writes that were started and have not reached the store in this process. A blocking write
     * that finds some takes their way, so that it does not overtake one of its own thread. */
    _Atomic unsigned writes_posted;

    /* The loop's thread. */
    unsigned writes_arrived; /* part of writes_posted that has arrived in this turn */
    struct channel *channel; /* constant until the client is freed */
    struct client_watch_stream *watch_streams; /* the first one; NULL: none */
    struct lease_keeper *lease_keeper;         /* NULL: not used yet */
    struct client_counters counters;
};

/* vigil_client_new over any network. The loops of a simulated one are stepped, so such a client has
 * no own thread. `local` is NULL, or a store in this process: the client owns it from then on, even
 * if this fails. */
int client_new_over(struct network *network, struct client_local *local,
                    const vigil_options *options, vigil_client **ret_client, vigil_error *error);

/* The prefix of the keys of a client, which may be NULL; no call is made with NULL. */
static inline struct slice client_prefix(const struct vigil_client *client)
{
    return client ? client->prefix : SLICE_EMPTY;
}

/* For functions that return statistics, whose struct may have another size in the program: what it
 * does not have is left out, and the rest is 0. Both pointers may be NULL. */
static inline void client_stats_copy(void *ret_stats, size_t size, const void *stats, size_t bytes)
{
    if (!ret_stats)
        return;
    memset(ret_stats, 0, size);
    if (stats)
        memcpy(ret_stats, stats, size_min(size, bytes));
}

/* Memory of one decoded response. A hostile one takes 32 times its length (codec/pb/pb.h), one with
 * the smallest keys about 8 times, and an ordinary one less than twice. */
static inline size_t client_decode_bytes_max(const struct vigil_client *client)
{
    return size_min(client->receive_bytes_max, SIZE_MAX / 8) * 4 + 64 * 1024;
}

#endif
