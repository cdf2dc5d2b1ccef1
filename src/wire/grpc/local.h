/*
 * A gRPC call from within the process, without a connection and without frames; the JSON gateway
 * uses it. For the service it is an ordinary call. Its owner, which opened the call, delivers the
 * messages, pulls the answer and reads the status.
 *
 *     open ──► deliver… ──► half_close ──► (on_output ──► fill …) ──► status ──► close
 *
 * One owner, on the service's thread. Close may end the call at any time; a service with an
 * operation in progress holds the call's memory, as for any call.
 */
#ifndef VIGIL_WIRE_GRPC_LOCAL_H
#define VIGIL_WIRE_GRPC_LOCAL_H

#include "wire/grpc/server.h"
#include "wire/http/field.h"
#include "wire/peer/peer.h"

struct account;
struct grpc_local;

struct grpc_local_hooks {
    /*
     * There is more to fill, or the status is known. Called from within functions of the service,
     * when a message may not be written completely: call fill only in phase GRPC_LOCAL_OVER, or
     * later.
     */
    void (*on_output)(void *owner);
    void *owner;
    struct wire_peer peer;   /* the client on whose behalf the call is made */
    struct account *account; /* charged for what the call holds; may be NULL */
};

/*
 * fields: the call's metadata, with names in lower case; copied. ST_UNIMPLEMENTED: the server has
 * no such method. ST_NOMEM. The server outlives the call and every hold on it.
 */
MUST_CHECK
enum status grpc_local_open(struct grpc_server *server, struct slice path,
                            const struct http_field *fields, size_t field_count,
                            struct grpc_local_hooks hooks, int64_t now_ns,
                            struct grpc_local **ret_local);
/* Calls the service's on_end, if it is due. No hook is called afterwards. */
void grpc_local_close(struct grpc_local *local);
DEFINE_CLEANUP(struct grpc_local *, grpc_local_close)

const struct grpc_method *grpc_local_method(const struct grpc_local *local);

/* Delivers one request message, which is copied if the service needs it after it returns. A message
 * that is too long ends the call with grpc-go's error; a message after the end is dropped. */
void grpc_local_deliver(struct grpc_local *local, struct slice message, int64_t now_ns);
void grpc_local_half_close(struct grpc_local *local, int64_t now_ns);
/* The service wants no more messages for now. To be checked after each deliver and fill. */
bool grpc_local_paused(const struct grpc_local *local);

enum grpc_local_phase {
    GRPC_LOCAL_SILENT,  /* there is no answer yet */
    GRPC_LOCAL_MESSAGE, /* messages are queued */
    GRPC_LOCAL_SOURCE,  /* the answer will be pulled from a source */
    GRPC_LOCAL_OVER,    /* the status is known; messages may still be queued */
};
enum grpc_local_phase grpc_local_phase(const struct grpc_local *local);
/* Bytes that are queued, including prefixes, but not those of a source. */
size_t grpc_local_queued(const struct grpc_local *local);

enum grpc_local_fill {
    GRPC_LOCAL_MORE,
    GRPC_LOCAL_PARKED, /* nothing until on_output */
    GRPC_LOCAL_END,    /* that was all */
};
/* Writes at most room bytes (not 0) of messages with their prefixes. */
enum grpc_local_fill grpc_local_fill(struct grpc_local *local, uint8_t *dst, size_t room,
                                     int64_t now_ns, size_t *ret_len);

/* Only in phase GRPC_LOCAL_OVER. The text lives until close. */
enum grpc_code grpc_local_status(const struct grpc_local *local, struct slice *ret_text);

/* The deadline, which the owner watches, has passed: drops what is queued and calls the service's
 * on_end. */
void grpc_local_expire(struct grpc_local *local);

/* The server shuts down: a call that parks ends with ST_STOPPED. */
void grpc_local_leave(struct grpc_local *local);

#endif
