/*
 * The inside of a vigil_call: a unary request, its attempts and its result.
 *
 *     created ──► waiting ⇄ sent
 *        │          │ ▲       │
 *        │          ▼ │       │
 *        │         pausing ◄──┤
 *        └──────► completed ◄─┴─ (from every state)
 *
 * The states are those of the loop's thread: a call that was started by the user is `created` until
 * the loop has received it. One reference is the user's; one is the loop's from the start until the
 * completion, and one belongs to a posted cancellation.
 */
#ifndef VIGIL_CLIENT_CALL_H
#define VIGIL_CLIENT_CALL_H

#include "base/memory/arena.h"
#include "client/queue.h"
#include "codec/pb/pb.h"

struct client_method {
    const char *path; /* "/etcdserverpb.KV/Range" */
    const struct pb_message *response;
    bool reads; /* changes nothing, so it may be repeated */
    /* Removes a prefix of this length from the keys of a response; NULL: it has none. */
    void (*strip)(void *response, size_t prefix_len);
};

enum call_state {
    CALL_CREATED,
    CALL_WAITING, /* for a connection, a token, or the peer's limit of streams */
    CALL_SENT,
    CALL_PAUSING, /* before another attempt */
    CALL_COMPLETED,
};

struct vigil_call {
    struct grpc_client_call grpc; /* has the request; used by the session while sent */
    struct vigil_client *client;  /* a reference */
    const struct client_method *method;
    _Atomic unsigned refs;
    _Atomic bool started, canceled; /* by the user */
    struct client_command start, cancel;
    struct client_object object;
    _Atomic bool completed; /* the result is final; set with the client's lock, read without */

    /* The loop's thread, from the start on. */
    enum call_state state;
    bool stopping; /* its stream is being cancelled, and the error is set */
    struct client_member member;
    struct channel_waiter waiter;
    struct timer deadline, pause;
    unsigned attempts;   /* that were sent */
    unsigned renewals;   /* of the token because of this call */
    uint64_t generation; /* of the connection of the last attempt */

    int64_t timeout_ms;
    struct arena arena; /* of the response */
    void *response;     /* in the arena; NULL: none */
    vigil_error error;
    vigil_done done;
    void *user;
    struct queue_item item; /* of the queue that receives the completion, if there is one */
};

/* With a request that is still empty. NULL: no memory. */
struct vigil_call *client_call_new(struct vigil_client *client, const struct client_method *method);

/* Gives a new call its request. The result is NULL without memory, and then the call is freed. */
struct vigil_call *client_call_with(struct vigil_call *call, const struct pb_message *type,
                                    const void *message);

/* The decoded response of a call of this method that has succeeded; otherwise NULL. */
const void *client_call_response(const struct vigil_call *call, const struct client_method *method);

/* Asserts every invariant; for tests. The loop's thread. */
void client_call_check(const struct vigil_call *call);

#endif
