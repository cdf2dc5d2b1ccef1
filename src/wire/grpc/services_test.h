/* For tests and fuzzers: services of every kind. */
#ifndef VIGIL_WIRE_GRPC_SERVICES_TEST_H
#define VIGIL_WIRE_GRPC_SERVICES_TEST_H

#include "wire/connection.h"
#include "wire/grpc/call.h"

/* What the services observed. */
struct test_service {
    size_t messages, half_closes, ends;
    struct grpc_call *call; /* the latest that has not ended */
    struct slice last;      /* its message; for a unary call */
    size_t hold;            /* calls to "Wait" are held when set */
    bool pulls;             /* it has a source, so nothing else can be sent */
    size_t source_bytes;    /* bytes that the sources of "List" and "Watch" have left */
    bool source_done;       /* a source with nothing left is done, not parked */
};

struct test_source {
    struct grpc_source source;
    struct test_service *service;
};

static inline enum grpc_fill test_source_fill(struct grpc_source *source, uint8_t *dst, size_t room,
                                              size_t *ret_len)
{
    struct test_service *t = CONTAINER_OF(source, struct test_source, source)->service;
    size_t n = size_min(room, t->source_bytes);
    memset(dst, 's', n);
    t->source_bytes -= n;
    *ret_len = n;
    if (t->source_bytes)
        return GRPC_FILL_MORE;
    return t->source_done ? GRPC_FILL_DONE : GRPC_FILL_PARKED;
}

static inline void test_note(struct grpc_call *call, struct test_service *t, struct slice message)
{
    t->messages++;
    t->call = call;
    t->pulls = false;
    t->last = message;
}

static inline bool test_send(struct grpc_call *call, struct slice message)
{
    uint8_t *to = grpc_call_message(call, message.len);
    if (to)
        slice_copy(to, message);
    return to;
}

static inline void test_echo(struct grpc_call *call, void *service, struct slice message)
{
    test_note(call, service, message);
    if (!test_send(call, message))
        grpc_call_fail(call, ST_NOMEM);
    grpc_call_finish(call);
}

static inline void test_wait(struct grpc_call *call, void *service, struct slice message)
{
    struct test_service *t = service;
    test_note(call, t, message);
    if (t->hold)
        grpc_call_hold(call);
}

static inline void test_fail(struct grpc_call *call, void *service, struct slice message)
{
    test_note(call, service, message);
    if (message.len)
        grpc_call_fail_text(call, GRPC_NOT_FOUND, message);
    else
        grpc_call_fail(call, ST_COMPACTED);
}

static inline void test_chat(struct grpc_call *call, void *service, struct slice message)
{
    test_note(call, service, message);
    if (!test_send(call, message))
        grpc_call_fail(call, ST_NOMEM);
}

static inline void test_chat_end(struct grpc_call *call, void *service)
{
    ((struct test_service *)service)->half_closes++;
    grpc_call_finish(call);
}

/* The first message of a call sets the source. */
static inline void test_pull(struct grpc_call *call, void *service, struct slice message)
{
    struct test_service *t = service;
    test_note(call, t, message);
    t->pulls = true;
    if (grpc_call_user(call))
        return;
    struct test_source *source = arena_alloc(grpc_call_arena(call), sizeof(*source));
    if (!source) {
        grpc_call_fail(call, ST_NOMEM);
        return;
    }
    *source = (struct test_source){{test_source_fill}, t};
    grpc_call_set_user(call, source);
    grpc_call_set_source(call, &source->source);
}

static inline void test_end(struct grpc_call *call, void *service)
{
    struct test_service *t = service;
    t->ends++;
    if (t->call == call)
        t->call = NULL;
}

static const struct grpc_method test_methods[] = {
    {.path = "/t.T/Echo", .on_message = test_echo, .on_end = test_end},
    {.path = "/t.T/Wait", .on_message = test_wait, .on_end = test_end},
    {.path = "/t.T/Fail", .on_message = test_fail, .on_end = test_end},
    {.path = "/t.T/List",
     .server_streams = true,
     .bulk = true,
     .on_message = test_pull,
     .on_end = test_end},
    {.path = "/t.T/Chat",
     .client_streams = true,
     .server_streams = true,
     .parks = true,
     .on_message = test_chat,
     .on_half_close = test_chat_end,
     .on_end = test_end},
    {.path = "/t.T/Watch",
     .client_streams = true,
     .server_streams = true,
     .parks = true,
     .on_message = test_pull,
     .on_end = test_end},
};

#endif
