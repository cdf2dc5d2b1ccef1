/*
 * A gRPC call that comes from within the process: no connection carries it, no frame is made. The
 * service behind the method cannot tell; whoever opened the call delivers the messages, pulls the
 * answer and hears its status. What the JSON gateway calls services through.
 *
 *     open ──► deliver… ──► half_close ──► (on_output ──► fill …) ──► status ──► close
 *
 * One owner, one thread, that of the service. Close ends the call at any time; a service with an
 * operation under way holds the call's memory as it always does.
 */
#ifndef VIGIL_WIRE_GRPC_LOCAL_H
#define VIGIL_WIRE_GRPC_LOCAL_H

#include "wire/grpc/server.h"
#include "wire/http/field.h"

struct account;
struct grpc_local;

struct grpc_local_hooks {
    /*
     * There is more to fill, or the status is known. Called from within whatever the service does,
     * a message may not be written yet: fill only once the phase is GRPC_LOCAL_OVER, or later.
     */
    void (*on_output)(void *owner);
    void *owner;
    struct wire_peer peer;   /* on whose behalf */
    struct account *account; /* charged with what the call holds; may be NULL */
};

/*
 * fields: the call's metadata, with names in lower case; copied. ST_UNIMPLEMENTED: the server has
 * no such method. ST_NOMEM. server outlives the call and every hold on it.
 */
MUST_CHECK
enum status grpc_local_open(struct grpc_server *server, struct slice path,
                            const struct http_field *fields, size_t field_count,
                            struct grpc_local_hooks hooks, int64_t now_ns,
                            struct grpc_local **ret_local);
/* The service hears the end, if it has not; nothing more is heard of the call. */
void grpc_local_close(struct grpc_local *local);
DEFINE_CLEANUP(struct grpc_local *, grpc_local_close)

const struct grpc_method *grpc_local_method(const struct grpc_local *local);

/* One request message, copied unless the service is done with it on return. Too long a one ends the
 * call with grpc-go's words; one after the end is dropped. */
void grpc_local_deliver(struct grpc_local *local, struct slice message, int64_t now_ns);
void grpc_local_half_close(struct grpc_local *local, int64_t now_ns);
/* The service asks for no more messages for now; looked at after each deliver and fill. */
bool grpc_local_paused(const struct grpc_local *local);

enum grpc_local_phase {
    GRPC_LOCAL_SILENT,  /* nothing has been said */
    GRPC_LOCAL_MESSAGE, /* messages are queued */
    GRPC_LOCAL_SOURCE,  /* the answer will be pulled from a source */
    GRPC_LOCAL_OVER,    /* the status is known; messages may still be queued */
};
enum grpc_local_phase grpc_local_phase(const struct grpc_local *local);
/* Bytes that are queued, prefixes included; those of a source are not. */
size_t grpc_local_queued(const struct grpc_local *local);

enum grpc_local_fill {
    GRPC_LOCAL_MORE,
    GRPC_LOCAL_PARKED, /* nothing until on_output */
    GRPC_LOCAL_END,    /* that was all */
};
/* Writes at most room (not 0) bytes of messages, each behind its prefix, and says how many. */
enum grpc_local_fill grpc_local_fill(struct grpc_local *local, uint8_t *dst, size_t room,
                                     int64_t now_ns, size_t *ret_len);

/* In phase GRPC_LOCAL_OVER. The text lives until close. */
enum grpc_code grpc_local_status(const struct grpc_local *local, struct slice *ret_text);

/* The client's deadline, which its owner keeps, has passed: what is queued is dropped, the service
 * hears the end. */
void grpc_local_expire(struct grpc_local *local);

/* The server leaves: a call that parks ends with ST_STOPPED. */
void grpc_local_leave(struct grpc_local *local);

#endif
