/* A client's side of Watch calls, for tests of the Watch service in front of a cluster. */
#ifndef VIGIL_ETCD_SERVICE_WATCH_CALLS_TEST_H
#define VIGIL_ETCD_SERVICE_WATCH_CALLS_TEST_H

#include "codec/pb/rpc.pb.h"
#include "etcd/peer_calls_test.h"

#include <stdio.h>

static const struct peer_field token[] = {{"token", "anna.1"}, {NULL, NULL}};

static inline uint32_t open_watch(struct peer *p)
{
    return peer_open(p, PB_WATCH_WATCH_PATH, SLICE_LITERAL("3.7"));
}

static inline void send_request(struct peer *p, uint32_t id, const struct pb_watch_request *request)
{
    struct buf bytes = {0};
    assert_int_equal(pb_append(&pb_watch_request_table, request, &bytes), ST_OK);
    peer_send(p, id, buf_slice(&bytes), false);
    buf_fini(&bytes);
}

static inline void create(struct peer *p, uint32_t id, const char *key, int64_t watch_id)
{
    struct pb_watch_create_request request = {.key = slice_from_text(key), .watch_id = watch_id};
    send_request(p, id,
                 &(struct pb_watch_request){.request_union_case = PB_WATCH_REQUEST_CREATE_REQUEST,
                                            .create_request = &request});
}

static inline void cancel(struct peer *p, uint32_t id, int64_t watch_id)
{
    struct pb_watch_cancel_request request = {.watch_id = watch_id};
    send_request(p, id,
                 &(struct pb_watch_request){.request_union_case = PB_WATCH_REQUEST_CANCEL_REQUEST,
                                            .cancel_request = &request});
}

static inline void ask_progress(struct peer *p, uint32_t id)
{
    struct pb_watch_progress_request request = {0};
    send_request(p, id,
                 &(struct pb_watch_request){.request_union_case = PB_WATCH_REQUEST_PROGRESS_REQUEST,
                                            .progress_request = &request});
}

/* As text, those that have come since *at. */
static inline const char *responses(struct peer *p, uint32_t id, size_t *at)
{
    static char text[8192];
    struct pb_watch_response r;
    size_t n = 0;
    text[0] = 0;
    peer_turn(p);
    while (next_message(p, id, at, &pb_watch_response_table, &r))
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%lld%s%s%s%s%s%.*s;",
                              (long long)r.watch_id, r.created ? " created" : "",
                              r.canceled ? " canceled" : "", r.events_count ? " events" : "",
                              r.fragment ? " fragment" : "", r.cancel_reason.len ? ": " : "",
                              SLICE_ARGS(r.cancel_reason));
    return text;
}

#endif
