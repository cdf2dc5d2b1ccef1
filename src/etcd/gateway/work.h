/*
 * Large bodies of the gateway, turned from JSON into messages by the worker (io/worker.h): nobody
 * else on the I/O thread waits for that.
 *
 *     gateway_work_start ──► worker: reads ──► the face's loop: done ──► gateway_work_next…
 *
 * The worker has a copy of the body, so the peer may leave meanwhile. The copy and the messages are
 * charged to the peer's account until they are dropped. One desk to a face, on its thread.
 */
#ifndef VIGIL_ETCD_GATEWAY_WORK_H
#define VIGIL_ETCD_GATEWAY_WORK_H

#include "base/slice.h"
#include "base/status.h"
#include "codec/pb/json_read.h"

struct account;
struct gateway_desk;
struct gateway_work;
struct loop;
struct worker;

/* Longer bodies are the worker's. The slowest one of this length takes about 1 ms. */
enum { GATEWAY_WORK_BYTES_MAX = 64 << 10 };

struct gateway_desk *gateway_desk_new(struct loop *loop, struct worker *worker);
void gateway_desk_free(struct gateway_desk *desk); /* must not be busy; accepts NULL */
/* Some work has not come back: the loop must go on. NULL never is. */
bool gateway_desk_busy(const struct gateway_desk *desk);

/*
 * Takes the next value from *json and appends its message. ST_END: there is none. ST_INVALID,
 * ST_LIMIT: it is no such message, and error says why. ST_NOMEM.
 */
MUST_CHECK
enum status gateway_json_take(const struct pb_message *type, struct slice *json,
                              struct buf *message, char error[PB_JSON_ERROR_BYTES]);

struct gateway_order {
    const struct pb_message *type;
    bool many; /* values, up to the first that is no message; otherwise only the first is read */
    struct slice json;
    struct account *account; /* may be NULL */
    /* Once, unless the work is dropped before; never from within start. ST_OK, or why the worker
     * has not read it: ST_REQUEST_TOO_MANY_REQUESTS, ST_STOPPED. */
    void (*done)(void *owner, enum status status);
    void *owner;
};

/* ST_REQUEST_TOO_MANY_REQUESTS: the worker has too much to do. ST_NOMEM: the account holds too
 * much. */
MUST_CHECK
enum status gateway_work_start(struct gateway_desk *desk, const struct gateway_order *order,
                               struct gateway_work **ret_work);
/* Once it is done: as gateway_json_take. The message is borrowed until the work is dropped. */
MUST_CHECK
enum status gateway_work_next(struct gateway_work *work, struct slice *ret_message,
                              char error[PB_JSON_ERROR_BYTES]);
/* At any time; NULL is fine. */
void gateway_work_drop(struct gateway_work *work);

#endif
