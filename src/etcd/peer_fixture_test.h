/* For tests: the API over the fake engine, and a client with one connection that sends frames. */
#ifndef VIGIL_ETCD_PEER_FIXTURE_TEST_H
#define VIGIL_ETCD_PEER_FIXTURE_TEST_H

#include "etcd/api.h"

#include "base/buf.h"
#include "fake/fake.h"
#include "wire/connection.h"
#include "wire/grpc/call.h"
#include "wire/h2/frame.h"
#include "wire/h2/hpack.h"
#include "wire/memory_test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { PEER_STREAMS = 4096, PEER_FILL_BYTES = 16 * 1024, PEER_WINDOW = 1 << 30 };

static const struct slice peer_urls[] = {SLICE_LITERAL("http://localhost:2379")};

static const struct etcd_config peer_config = {
    .version = "3.7.0",
    .cluster_version = "3.7.0",
    .txn_ops_max = ETCD_TXN_OPS_MAX_DEFAULT,
    .request_bytes_max = 64 * 1024,
    .member_name = "default",
    .peer_urls = peer_urls,
    .peer_url_count = COUNT_OF(peer_urls),
    .client_urls = peer_urls,
    .client_url_count = COUNT_OF(peer_urls),
};

static const struct engine_identity peer_identity = {
    .cluster_id = 7, .member_id = 9, .raft_term = 2};

struct peer_stream {
    struct buf body; /* gRPC-framed messages */
    int code;        /* grpc-status, or -1 */
    char text[256];  /* grpc-message */
    bool ended;
};

struct peer_field {
    const char *name, *value;
};

struct peer {
    struct engine *engine;
    struct engine_shard *shard;
    struct etcd_api *api;
    struct wire_server *server;
    struct wire_connection *connection;
    struct test_memory memory;
    struct hpack_decoder hpack;
    struct buf in;                            /* an incomplete frame */
    struct peer_stream streams[PEER_STREAMS]; /* by id / 2 */
    size_t window_used[PEER_STREAMS];         /* by id / 2: bytes of the server's window in use */
    uint32_t next_id;
    int64_t now_ns; /* the connection's time; a test may advance it */
    /* Sent with every call; the last one has no name. May be NULL. */
    const struct peer_field *metadata;
    struct arena arena; /* memory of the test */
};

/* Changes a new engine before an API uses it; NULL: nothing. */
static void (*peer_prepare)(struct engine *engine);

static inline void peer_ignore(void *owner)
{
    (void)owner;
}

static inline struct peer_stream *peer_stream(struct peer *p, uint32_t id)
{
    assert_true(id / 2 < PEER_STREAMS);
    return &p->streams[id / 2];
}

static inline void peer_feed_frame(struct peer *p, enum h2_frame_type type, uint8_t flags,
                                   uint32_t id, struct slice payload)
{
    struct buf frame = {0};
    assert_int_equal(buf_reserve(&frame, H2_FRAME_HEAD_BYTES + payload.len), ST_OK);
    uint8_t *end = h2_frame_put(frame.ptr, payload.len, type, flags, id);
    slice_copy(end, payload);
    wire_connection_feed(p->connection, slice_of(frame.ptr, H2_FRAME_HEAD_BYTES + payload.len),
                         p->now_ns + 1);
    buf_fini(&frame);
}

/* Lets the server send `by` more bytes on a stream, or on the connection if id is 0. */
static inline void peer_open_window(struct peer *p, uint32_t id, uint32_t by)
{
    uint8_t payload[4];
    h2_put32(payload, by);
    peer_feed_frame(p, H2_WINDOW_UPDATE, 0, id, slice_of(payload, 4));
}

static inline void peer_reset(struct peer *p, uint32_t id)
{
    uint8_t payload[4];
    h2_put32(payload, H2_CANCEL);
    peer_feed_frame(p, H2_RST_STREAM, 0, id, slice_of(payload, 4));
    peer_stream(p, id)->ended = true;
}

/* stream_window: what the server may send on each stream at first. memory_bytes: limit of the
 * memory that the server holds for the connection; 0: none. name: in the client's certificate, or
 * NULL. */
static inline void peer_init_named(struct peer *p, const struct etcd_config *config,
                                   const struct fake_options *options, uint32_t stream_window,
                                   size_t memory_bytes, const char *name)
{
    struct wire_limits limits = WIRE_LIMITS_DEFAULT;
    memset(p, 0, sizeof(*p));
    if (memory_bytes)
        test_memory_init(&p->memory, memory_bytes);
    struct wire_hooks hooks = {
        .on_output = peer_ignore, .peer_name = name, .account = p->memory.account};
    arena_init(&p->arena, NULL, 0, 1 << 30);
    p->next_id = 1;
    p->engine = fake_new(options);
    if (peer_prepare)
        peer_prepare(p->engine);
    assert_int_equal(engine_shard_new(p->engine, NULL, &p->shard), ST_OK);
    assert_int_equal(etcd_api_new(config, p->engine, p->shard, &p->api), ST_OK);
    assert_int_equal(
        wire_server_new(etcd_api_services(p->api), etcd_api_routes(p->api), &limits, &p->server),
        ST_OK);
    assert_int_equal(wire_connection_new(p->server, hooks, 1, &p->connection), ST_OK);
    uint8_t settings[6] = {0, H2_SETTING_INITIAL_WINDOW_SIZE};
    h2_put32(settings + 2, stream_window);
    wire_connection_feed(p->connection, H2_PREFACE, p->now_ns + 1);
    peer_feed_frame(p, H2_SETTINGS, 0, 0, slice_of(settings, sizeof(settings)));
    peer_open_window(p, 0, 1 << 30);
}

static inline void peer_init(struct peer *p, const struct etcd_config *config,
                             const struct fake_options *options, uint32_t stream_window,
                             size_t memory_bytes)
{
    peer_init_named(p, config, options, stream_window, memory_bytes, NULL);
}

static inline struct peer *peer_new(uint64_t seed, unsigned inline_percent, uint32_t stream_window)
{
    struct peer *p = malloc(sizeof(*p));
    assert_non_null(p);
    peer_init(p, &peer_config,
              &(struct fake_options){
                  .seed = seed, .inline_percent = inline_percent, .identity = peer_identity},
              stream_window, 0);
    return p;
}

/* The connection is freed first, and its pending answers are dropped; the engine still completes
 * its operations. */
static inline void peer_fini(struct peer *p)
{
    wire_connection_free(p->connection);
    assert_int_equal(etcd_api_busy(p->api), fake_waiting(p->engine) > 0);
    while (fake_step(p->engine))
        ;
    assert_int_equal(fake_open(p->engine), 0);
    etcd_api_check(p->api);
    wire_server_free(p->server);
    etcd_api_free(p->api);
    engine_shard_free(p->shard);
    fake_free(p->engine);
    test_memory_fini(&p->memory);
    hpack_decoder_fini(&p->hpack);
    for (size_t i = 0; i < PEER_STREAMS; i++)
        buf_fini(&p->streams[i].body);
    buf_fini(&p->in);
    arena_fini(&p->arena);
}

static inline void peer_free(struct peer *p)
{
    peer_fini(p);
    free(p);
}

#endif
