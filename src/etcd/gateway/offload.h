/*
 * Parses large JSON bodies of the gateway on the worker thread (io/worker.h), so that other calls
 * of the I/O thread need not wait.
 *
 *     gateway_parse_start ──► worker: parses ──► the API's loop: done ──► gateway_parse_next…
 *
 * The worker has a copy of the body, so the client may disconnect meanwhile. The copy and the
 * messages are charged to the client's account until they are dropped. There is one struct
 * gateway_offload per gateway, used on its thread.
 */
#ifndef VIGIL_ETCD_GATEWAY_OFFLOAD_H
#define VIGIL_ETCD_GATEWAY_OFFLOAD_H

#include "base/slice.h"
#include "base/status.h"
#include "codec/pb/json_read.h"
#include "wire/peer/peer.h"

struct account;
struct gateway_offload;
struct gateway_parse;
struct loop;
struct worker;

/* The worker parses longer bodies. A body of this length takes at most about 1 ms. */
enum { GATEWAY_INLINE_BYTES_MAX = 64 << 10 };

struct gateway_offload *gateway_offload_new(struct loop *loop, struct worker *worker);
void gateway_offload_free(struct gateway_offload *offload); /* must not be busy; accepts NULL */
/* True while the worker parses a body: the loop must keep running. NULL is never busy. */
bool gateway_offload_busy(const struct gateway_offload *offload);

/*
 * Parses the next value of *json and appends its message. ST_END: there are no more values.
 * ST_INVALID, ST_LIMIT: the value is not a message of this type; error has the reason. ST_NOMEM.
 */
MUST_CHECK
enum status gateway_json_take(const struct pb_message *type, struct slice *json,
                              struct buf *message, char error[PB_JSON_ERROR_BYTES]);

struct gateway_parse_input {
    const struct pb_message *type;
    bool many; /* parse all values up to the first invalid one; otherwise only the first value */
    struct slice json;
    struct account *account; /* may be NULL */
    struct wire_peer peer;   /* the client, for the worker's queue */
    /* Called once, unless the parse is dropped before, and never from within start. ST_OK, or why
     * the worker has not parsed the body: ST_REQUEST_TOO_MANY_REQUESTS, ST_STOPPED. */
    void (*done)(void *owner, enum status status);
    void *owner;
};

/* ST_REQUEST_TOO_MANY_REQUESTS: the worker's queue is full. ST_NOMEM: the account is exhausted. */
MUST_CHECK
enum status gateway_parse_start(struct gateway_offload *offload,
                                const struct gateway_parse_input *input,
                                struct gateway_parse **ret_parse);
/* Called after done; returns the same as gateway_json_take. The message is borrowed until the parse
 * is dropped. */
MUST_CHECK
enum status gateway_parse_next(struct gateway_parse *parse, struct slice *ret_message,
                               char error[PB_JSON_ERROR_BYTES]);
/* May be called at any time. Accepts NULL. */
void gateway_parse_drop(struct gateway_parse *parse);

#endif
