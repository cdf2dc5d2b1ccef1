/*
 * The inside of a vigil_client: one loop with its thread, and what all calls and watches share.
 *
 * Public functions run on any thread. They only post commands to the loop; everything else happens
 * in its turns:
 *
 *     any thread ── vigil_call_start … ──► mailbox ──► loop: calls, watches, channel ──► callbacks
 *
 * The client is reference-counted, because calls and watches may outlive vigil_client_free.
 */
#ifndef VIGIL_CLIENT_CALL_CLIENT_H
#define VIGIL_CLIENT_CALL_CLIENT_H

#include "base/container/list.h"
#include "base/lock.h"
#include "client/connect/channel.h"
#include "io/loop.h"

#include <pthread.h>
#include <vigil/client.h>

/* Something to be done in a turn of the loop. Embedded in the object that it is about. */
struct client_command {
    struct mailbox_node in_mailbox;
    void (*run)(struct client_command *command);
};

/* A running call, which ends when the client ends. */
struct client_member {
    struct list in_client; /* links vigil_client.members; its links are NULL until first used */
    /* It has been removed from the list. */
    void (*end)(struct client_member *member);
};

/* What a client has from its first use until it is freed: the streams of watches and leases. */
struct client_part {
    struct list in_client;                 /* links vigil_client.parts */
    void (*end)(struct client_part *part); /* ends everything that it has for users */
    void (*free)(struct client_part *part);
};

/* Learns that everything has ended: calls, watches and leases that are begun from now on end at
 * once. */
struct client_observer {
    struct list in_client; /* links vigil_client.observers */
    /* With the lock held. */
    void (*ended)(struct client_observer *observer);
};

/* An object that has callbacks. */
struct client_object {
    _Atomic bool dropped; /* freed by the user: no callback is made any more */
    bool internal; /* used by another object of the library: its callbacks are not the program's,
                      and everything about it happens on the loop's thread */
};

/* Written by the loop's thread, read by any. */
struct client_counters {
    _Atomic uint64_t connects, connect_errors, disconnects;
    _Atomic uint64_t calls_started, calls_completed, calls_retried;
    _Atomic uint64_t watches, watch_resumes, watch_events, queued_bytes;
    _Atomic uint64_t bytes_sent, bytes_received;
    _Atomic int64_t watch_revision; /* the newest one in a response to a watch */
};

struct vigil_client {
    /* Constant. */
    struct loop *loop;
    bool own_thread;
    pthread_t thread; /* valid with an own thread */
    int64_t call_timeout_ms;
    size_t send_bytes_max, receive_bytes_max;
    struct slice prefix; /* owned */
    void (*log)(void *user, int level, const char *text);
    void *log_user;

    /* The loop's thread. */
    struct channel *channel;
    struct list members;                       /* client_member.in_client */
    struct list parts;                         /* client_part.in_client */
    struct client_watch_stream *watch_streams; /* the first one; NULL: none */
    struct lease_keeper *lease_keeper;         /* NULL: not used yet */
    bool ended;                                /* nothing is started any more */
    bool free_wanted;                          /* freed inside a callback of the program's loop */
    struct client_counters counters;

    /* Any thread. */
    _Atomic unsigned refs;
    _Atomic bool loop_ended; /* no turn is made any more */
    _Atomic bool shutting_down;
    _Atomic(const struct client_object *) inside; /* whose callback is being made */
    _Atomic pthread_t inside_thread;              /* valid while inside is not NULL */
    _Atomic bool quiet;                           /* freed: no callback is made any more */
    struct mailbox mailbox;
    struct client_command shutdown;

    /* Protected by the lock. */
    struct lock lock;
    pthread_cond_t changed;   /* a callback ended, a call completed, or it is freed */
    _Atomic unsigned waiting; /* threads that wait for changed; read without the lock */
    bool all_ended;           /* everything that was begun has ended */
    struct list observers;    /* client_observer.in_client */
    bool running_rest; /* a thread runs the commands that were posted after the end of the loop */
};

/* vigil_client_new over any network. The loops of a simulated one are stepped, so such a client has
 * no own thread. */
int client_new_over(struct network *network, const vigil_options *options,
                    vigil_client **ret_client, vigil_error *error);

void client_ref(struct vigil_client *client);
void client_unref(struct vigil_client *client);

/* Any thread. The command is not posted again before it has run. */
void client_post(struct vigil_client *client, struct client_command *command);

/* On the loop's thread: false if the user has dropped the object. Otherwise the callback may be
 * made, and client_callback_end follows. */
MUST_CHECK
bool client_callback_begin(struct vigil_client *client, const struct client_object *object);
void client_callback_end(struct vigil_client *client);

/* Any thread: no callback of the object is made any more. Waits for one that is being made on
 * another thread. */
void client_drop(struct vigil_client *client, struct client_object *object);

/* With the lock held: waits until something has changed; says that something has. */
void client_wait(struct vigil_client *client);
void client_changed(struct vigil_client *client);

/* Memory of one decoded response. A hostile one takes 32 times its length (codec/pb/pb.h), one with
 * the smallest keys about 8 times, and an ordinary one less than twice. */
static inline size_t client_decode_bytes_max(const struct vigil_client *client)
{
    return size_min(client->receive_bytes_max, SIZE_MAX / 8) * 4 + 64 * 1024;
}

/* A time of the public interface, shortened to what can be added to a clock. */
int64_t client_ns(int64_t ms);

/* In the program's loop: waits until something is due, and does it. The caller has a reference. */
void client_process_and_wait(struct vigil_client *client);

/* True: the caller is inside a callback of this client, so it must not wait for the loop. */
bool client_is_inside(struct vigil_client *client);

#endif
