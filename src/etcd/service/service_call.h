/*
 * A call of a service, and the operation it waits for: of the engine, or of the password hasher. An
 * operation uses the call's memory until it is answered, so a call that ends earlier keeps its
 * memory until then.
 *
 *                      begin
 *             ┌──────────────────► pending
 *     idle ◄──┘◄──── answered ────────┤
 *       │                             │ the call ends
 *       │ the call ends               ▼
 *       └────────────► over ◄──── abandoned
 *                          answered
 *
 * Embedded by value in the state of each kind of call; used on the connection's thread.
 */
#ifndef VIGIL_ETCD_SERVICE_SERVICE_CALL_H
#define VIGIL_ETCD_SERVICE_SERVICE_CALL_H

#include "engine/engine.h"
#include "etcd/shared/authenticator.h"
#include "etcd/shared/service.h"
#include "wire/grpc/call.h"

enum service_call_state {
    SERVICE_CALL_IDLE, /* no operation, or it was answered */
    SERVICE_CALL_PENDING,
    SERVICE_CALL_ABANDONED, /* the call has ended, and its memory is held */
    SERVICE_CALL_OVER,
};

struct service_call {
    struct grpc_call *call;
    struct etcd_api *api;
    enum service_call_state state;
};

/* Prepares the call and an operation of the engine that has the caller's permissions. */
static inline void service_call_init(struct service_call *s, struct grpc_call *call,
                                     struct etcd_api *api, struct engine_op *op,
                                     void (*done)(struct engine_op *op))
{
    *s = (struct service_call){.call = call, .api = api};
    op->done = done;
    op->arena = grpc_call_arena(call);
    op->principal = etcd_call_principal(call);
}

/* An operation is about to start. */
static inline void service_call_begin(struct service_call *s)
{
    assert(s->state == SERVICE_CALL_IDLE);
    s->state = SERVICE_CALL_PENDING;
    s->api->under_way++;
}

/* The operation was answered. False: the call has ended. Then free what it owns and call
 * service_call_release. */
MUST_CHECK
static inline bool service_call_answered(struct service_call *s)
{
    bool abandoned = s->state == SERVICE_CALL_ABANDONED;
    assert(abandoned || s->state == SERVICE_CALL_PENDING);
    s->state = abandoned ? SERVICE_CALL_OVER : SERVICE_CALL_IDLE;
    s->api->under_way--;
    return !abandoned;
}

/* The call has ended. True: it is not pending, so what it owns can be freed now. False: its memory
 * is held, and the operation may be given up. */
static inline bool service_call_end(struct service_call *s)
{
    bool pending = s->state == SERVICE_CALL_PENDING;
    assert(pending || s->state == SERVICE_CALL_IDLE);
    s->state = pending ? SERVICE_CALL_ABANDONED : SERVICE_CALL_OVER;
    if (pending)
        grpc_call_hold(s->call);
    return !pending;
}

/* Gives up the memory of a call that had ended before its operation was answered. */
static inline void service_call_release(struct service_call *s)
{
    assert(s->state == SERVICE_CALL_OVER);
    grpc_call_release(s->call);
}

static inline bool service_call_is_pending(const struct service_call *s)
{
    return s->state == SERVICE_CALL_PENDING;
}

#endif
