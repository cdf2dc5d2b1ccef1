/*
 * The inside of a vigil_call: a request, its attempts and its result.
 *
 *     created ──► waiting ⇄ sent ──► holding ──► waiting
 *        │          │ ▲       │         │
 *        │          ▼ │       │         │
 *        │         pausing ◄──┤         │
 *        └──────► completed ◄─┴─────────┘ (from every state)
 *
 * Only a call that the user has paused (client/call/parts.h) is holding: its attempt has ended, and
 * the completion or the next request waits for the user.
 *
 * The states are those of the loop's thread: a call that was started by the user is `created` until
 * the loop has received it.
 */
#ifndef VIGIL_CLIENT_CALL_CALL_H
#define VIGIL_CLIENT_CALL_CALL_H

#include "base/memory/arena.h"
#include "client/call/local.h"
#include "client/call/queue.h"
#include "client/driver/operation.h"
#include "codec/pb/pb.h"

struct client_method {
    const char *path; /* "/etcdserverpb.KV/Range" */
    const struct pb_message *request, *response;
    bool reads; /* changes nothing, so it may be repeated */
    bool alone; /* the member answers without the others, so it needs no quorum */
    /* Removes a prefix of this length from the keys of a response; NULL: it has none. */
    void (*strip)(void *response, size_t prefix_len);
    const struct client_part_ops *parts; /* NULL: the response is one message */
    enum client_local_kind kind;
};

/* What a call does whose response comes in parts. The loop's thread. */
struct client_part_ops {
    /* One message. ST_NOMEM; ST_MALFORMED. NULL: it is decoded as vigil_call.response. */
    enum status (*receive)(struct vigil_call *call, struct slice message);
    /* The call has failed and is repeated from its beginning; may be NULL. */
    void (*repeat)(struct vigil_call *call);
    /* The attempt has ended, and the error is set. Calls one of client_call_complete,
     * client_call_hold, client_call_continue and client_call_stop. */
    void (*end)(struct vigil_call *call);
    /* Frees what the call has beyond a vigil_call. Called at the completion and before the call is
     * freed. */
    void (*release)(struct vigil_call *call);
};

enum call_state {
    CALL_CREATED,
    CALL_WAITING, /* for a connection, a token, or the peer's limit of streams */
    CALL_SENT,
    CALL_PAUSING, /* before another attempt */
    CALL_HOLDING, /* the attempt has ended while the user has paused the call */
    CALL_COMPLETED,
};

struct vigil_call {
    struct operation operation;   /* has a reference to the client, and the error */
    struct grpc_client_call grpc; /* has the request; used by the session while sent */
    struct vigil_client *client;
    const struct client_method *method;

    /* The loop's thread, from the start on. */
    enum call_state state;
    bool stopping;  /* its stream is being cancelled, and the error is set */
    bool delivered; /* the user has received a part, so it is not repeated any more */
    bool alone;     /* as in the method, or because of the request */
    bool posted;    /* it is counted in writes_posted of the client; set by the starting thread */
    struct channel_waiter waiter;
    struct timer deadline, pause;
    unsigned attempts;   /* that were sent */
    unsigned renewals;   /* renewals of the token because of this call */
    uint64_t generation; /* generation of the connection of the last attempt */
    int64_t sent_ns;     /* when the last attempt was sent */
    int64_t timeout_ms;
    bool waits_long;     /* the timeout is for reaching a server, not for its answer */
    int64_t reach_by_ns; /* then: when the timeout ends, or would have ended if it was sent */
    const char *invalid; /* why it fails with VIGIL_ERROR_ARGUMENT when it is started, or NULL */
    struct arena arena;  /* memory of the response */
    void *response;      /* in the arena; NULL: none */
    vigil_done done;
    void *user;
    struct queue_item item; /* links the queue that receives the completion, if there is one */
};

/* With a request that is still empty. NULL: no memory, or no client. */
struct vigil_call *client_call_new(struct vigil_client *client, const struct client_method *method);
/* A larger object, which begins with the call; the rest is zeroed. */
struct vigil_call *client_call_new_sized(struct vigil_client *client,
                                         const struct client_method *method, size_t bytes);

/* Gives a new call its request, the struct of method->request. The result is NULL without memory,
 * and then the call is freed. */
struct vigil_call *client_call_with(struct vigil_call *call, const void *message);

/* For a new call whose answer may take any time: unless the user sets a timeout, the client's one
 * only limits how long the request waits to be sent. The call may be NULL, and is returned. */
struct vigil_call *client_call_wait_long(struct vigil_call *call);

/* Room for the encoded request of a call that is not being sent, which the caller fills at once.
 * NULL: no memory. */
uint8_t *client_call_room(struct vigil_call *call, size_t bytes);
/* Replaces the request of a call that is not being sent. ST_NOMEM. */
MUST_CHECK
enum status client_call_encode(struct vigil_call *call, const void *message);

/* -- For a store in this process: client/call/local.h -- */

/* The request of a call that is being executed, encoded. */
struct slice client_call_request(const struct vigil_call *call);
/* On the loop's thread, after begin: the store does not execute the call, which has changed
 * nothing. It goes to the connection. */
void client_call_pass_on(struct vigil_call *call);
/* Takes a response that was made in the arena of the call: the struct of method->response. */
void client_call_take_response(struct vigil_call *call, void *response);
/* Decodes a response, which is in the arena of the call. ST_NOMEM, ST_LIMIT, ST_MALFORMED. */
MUST_CHECK
enum status client_call_decode(struct vigil_call *call, struct slice message);

/* -- For calls with parts, on the loop's thread -- */

/* The timeout begins again, after something was received or the user has resumed. */
void client_call_restart_clock(struct vigil_call *call);
void client_call_stop_clock(struct vigil_call *call);
/* Something was received: the next failure is the first again. */
void client_call_progressed(struct vigil_call *call);

/* The error is set. Releases the loop's reference. */
void client_call_complete(struct vigil_call *call);
/* Completes the call in any state with this error; no effect if it has completed. */
void client_call_stop(struct vigil_call *call, enum vigil_code code, const char *text);
/* The same for a response that cannot be used. */
void client_call_stop_for(struct vigil_call *call, enum status status);
/* The attempt has ended while the user has paused the call. */
void client_call_hold(struct vigil_call *call);
/* Forgets the response and sends the request, which is another one now. */
void client_call_continue(struct vigil_call *call);
/* Frees what the response needed. */
void client_call_drop_response(struct vigil_call *call);

/* The decoded response of a call of this method that has succeeded; otherwise NULL. */
const void *client_call_response(const struct vigil_call *call, const struct client_method *method);

/* Asserts every invariant; for tests. The loop's thread. */
void client_call_check(const struct vigil_call *call);

#endif
