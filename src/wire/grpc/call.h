/*
 * One gRPC call on a server connection, as its service sees it.
 *
 * A call belongs to its connection and lives on that connection's thread. The service is a table
 * of methods; the connection finds the method by path and calls its functions. All four kinds of
 * call go through here: a unary method gets exactly one message and answers with one.
 *
 *     open ──► on_message… ──► (on_half_close) ──► finish / fail ──► on_end
 *       └────────────── the peer resets, the connection ends ──────────┘
 *
 * on_end comes exactly once for every call the service has heard of (on_message or on_half_close),
 * and it is the last thing it hears of it, never from within one of the functions below. A service
 * that still has an operation under way then takes a hold (grpc_call_hold) so that the call's
 * memory outlives it; no output is sent after on_end.
 */
#ifndef VIGIL_WIRE_GRPC_CALL_H
#define VIGIL_WIRE_GRPC_CALL_H

#include "base/memory/arena.h"
#include "base/slice.h"
#include "base/status.h"
#include "wire/peer.h"

struct grpc_call;

struct grpc_method {
    const char *path;    /* "/etcdserverpb.KV/Range" */
    bool client_streams; /* more than one request message may come */
    bool server_streams; /* more than one response message may go */
    bool bulk;           /* its output waits behind that of other calls when room is short */
    /* Output without progress is no stall: a watch waits. When the server shuts down it is ended at
     * once instead of being waited for, with a status that makes clients go on elsewhere. */
    bool parks;

    /*
     * A whole message arrived. Its bytes live as long as the call (a unary or server-streaming
     * call) or until this returns (client_streams). A unary call is delivered as soon as its
     * message is complete, a server-streaming one when the peer has half-closed, as grpc-go does.
     */
    void (*on_message)(struct grpc_call *call, void *service, struct slice message);
    /* The peer will send no more messages. May be NULL. Never called for a unary method. */
    void (*on_half_close)(struct grpc_call *call, void *service);
    /* The call is over, for whatever reason. May be NULL. */
    void (*on_end)(struct grpc_call *call, void *service);
};

enum grpc_fill {
    GRPC_FILL_MORE,   /* wrote something and has more: ask again when there is room */
    GRPC_FILL_PARKED, /* nothing to send now: ask again after grpc_call_wake */
    GRPC_FILL_DONE,   /* that was the last byte: end the call with status OK */
};

/*
 * Output that is pulled. fill writes at most room bytes of gRPC-framed messages (each with its
 * five-byte prefix, see grpc_prefix_write) to dst and says how many. It may stop in the middle of
 * a message. Embedded in the service's own state, which lives at least until on_end.
 */
struct grpc_source {
    enum grpc_fill (*fill)(struct grpc_source *source, uint8_t *dst, size_t room, size_t *ret_len);
};

enum { GRPC_PREFIX_BYTES = 5 };

static inline void grpc_prefix_write(uint8_t *dst, uint32_t message_len)
{
    dst[0] = 0; /* not compressed */
    dst[1] = (uint8_t)(message_len >> 24);
    dst[2] = (uint8_t)(message_len >> 16);
    dst[3] = (uint8_t)(message_len >> 8);
    dst[4] = (uint8_t)message_len;
}

/* Memory that lives until the call is freed: after on_end and the last release. */
struct arena *grpc_call_arena(struct grpc_call *call);
/* The arena of a call of a method that parks has room for so many bytes before it takes a block of
 * several kilobytes. There may be a hundred thousand such calls. */
enum { GRPC_PARKED_BYTES = 64 };

/* The time of the connection's latest turn. */
int64_t grpc_call_now(const struct grpc_call *call);

/* The common name of the certificate with which the client proved who it is; NULL without one, and
 * once the call has ended. Lives as long as the connection. */
const char *grpc_call_peer_name(const struct grpc_call *call);

/* For the log: where the client is ("" when nobody knows), the method's path, the one request
 * message, and the one response message that is queued whole, or false. */
enum { GRPC_ADDRESS_BYTES = WIRE_ADDRESS_BYTES };
void grpc_call_peer_address(const struct grpc_call *call, char text[GRPC_ADDRESS_BYTES]);
struct wire_peer grpc_call_peer(const struct grpc_call *call);
struct slice grpc_call_path(const struct grpc_call *call);
struct slice grpc_call_request(const struct grpc_call *call);
bool grpc_call_response(const struct grpc_call *call, struct slice *ret_message);

/* A pointer for the service's own use; NULL at first. */
void grpc_call_set_user(struct grpc_call *call, void *user);
void *grpc_call_user(const struct grpc_call *call);

/* The same for who guards the methods (grpc_services_guard): whose call it is. */
void grpc_call_set_caller(struct grpc_call *call, void *caller);
void *grpc_call_caller(const struct grpc_call *call);

/* The value of a request header (lower-case name), or false. Lives as long as the call. */
bool grpc_call_metadata(const struct grpc_call *call, struct slice name, struct slice *ret_value);

/* Keep the call's memory after on_end, until grpc_call_release. */
void grpc_call_hold(struct grpc_call *call);
void grpc_call_release(struct grpc_call *call);

/* True once on_end was called (only a held call can be asked then). */
bool grpc_call_ended(const struct grpc_call *call);

/*
 * Reserves len contiguous bytes for one response message and writes its prefix before them; the
 * service encodes straight into the output, before it returns. NULL when the call is over or a
 * limit is reached. What is reserved counts against the connection's queued bytes.
 */
MUST_CHECK
uint8_t *grpc_call_message(struct grpc_call *call, size_t len);

/* Hands the rest of the output to a source. At most one; after any messages already queued. */
void grpc_call_set_source(struct grpc_call *call, struct grpc_source *source);

/* So many messages were made by its source: for who counts them. */
void grpc_call_sent(struct grpc_call *call, uint64_t messages);

/* A parked source has something to send, or room came back. Cheap to call often. */
void grpc_call_wake(struct grpc_call *call);

/*
 * While paused the peer is given no more window on this call: it may send what it was allowed
 * before, at most a stream's window, which is still delivered. For a service that answers more
 * slowly than it is asked.
 */
void grpc_call_pause(struct grpc_call *call, bool paused);

/* Ends the call once everything queued has been sent. */
void grpc_call_finish(struct grpc_call *call);
/* Ends the call with an error: the table's code and text, or a text of the caller's. */
void grpc_call_fail(struct grpc_call *call, enum status status);
void grpc_call_fail_text(struct grpc_call *call, enum grpc_code code, struct slice text);

#endif
