/*
 * The services of the face over a real connection and the fake engine: a client of one
 * connection, frame by frame, against operations that complete late and out of order.
 */
#include "etcd/face.h"

#include "base/buf.h"
#include "base/random.h"
#include "codec/pb/health.pb.h"
#include "codec/pb/rpc.pb.h"
#include "engine/fake.h"
#include "wire/connection.h"
#include "wire/h2/frame.h"
#include "wire/h2/hpack.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { PEER_STREAMS = 4096, PEER_FILL_BYTES = 16 * 1024 };

struct peer_stream {
    struct buf body; /* gRPC-framed messages */
    int code;        /* grpc-status, or -1 */
    char text[256];  /* grpc-message */
    bool ended;
};

struct peer {
    struct engine *engine;
    struct engine_shard *shard;
    struct etcd_face *face;
    struct wire_server *server;
    struct wire_connection *connection;
    struct hpack_decoder hpack;
    struct buf in;                            /* a frame that has not wholly come */
    struct peer_stream streams[PEER_STREAMS]; /* by id / 2 */
    uint32_t next_id;
    struct arena arena; /* of the test */
};

static void peer_ignore(void *owner)
{
    (void)owner;
}

static struct peer_stream *peer_stream(struct peer *p, uint32_t id)
{
    assert_true(id / 2 < PEER_STREAMS);
    return &p->streams[id / 2];
}

static void peer_feed_frame(struct peer *p, enum h2_frame_type type, uint8_t flags, uint32_t id,
                            struct slice payload)
{
    struct buf frame = {0};
    assert_int_equal(buf_reserve(&frame, H2_FRAME_HEAD_BYTES + payload.len), ST_OK);
    uint8_t *end = h2_frame_put(frame.ptr, payload.len, type, flags, id);
    slice_copy(end, payload);
    wire_connection_feed(p->connection, slice_of(frame.ptr, H2_FRAME_HEAD_BYTES + payload.len), 1);
    buf_fini(&frame);
}

/* Lets the server send so many bytes more on a stream, or on the connection for id 0. */
static void peer_open_window(struct peer *p, uint32_t id, uint32_t by)
{
    uint8_t payload[4];
    h2_put32(payload, by);
    peer_feed_frame(p, H2_WINDOW_UPDATE, 0, id, slice_of(payload, 4));
}

/* stream_window: what the server may send on each stream at first. */
static void peer_init(struct peer *p, const struct etcd_config *config,
                      const struct fake_options *options, uint32_t stream_window)
{
    struct wire_limits limits = WIRE_LIMITS_DEFAULT;
    struct wire_hooks hooks = {.on_output = peer_ignore};
    memset(p, 0, sizeof(*p));
    arena_init(&p->arena, NULL, 0, 1 << 30);
    p->next_id = 1;
    p->engine = fake_new(options);
    assert_int_equal(engine_shard_new(p->engine, NULL, &p->shard), ST_OK);
    assert_int_equal(etcd_face_new(config, p->engine, p->shard, &p->face), ST_OK);
    assert_int_equal(wire_server_new(etcd_face_services(p->face), etcd_face_routes(p->face),
                                     &limits, &p->server),
                     ST_OK);
    assert_int_equal(wire_connection_new(p->server, hooks, 1, &p->connection), ST_OK);
    if (stream_window == 0)
        return; /* HTTP/1.1 */
    uint8_t settings[6] = {0, H2_SETTING_INITIAL_WINDOW_SIZE};
    h2_put32(settings + 2, stream_window);
    wire_connection_feed(p->connection, H2_PREFACE, 1);
    peer_feed_frame(p, H2_SETTINGS, 0, 0, slice_of(settings, sizeof(settings)));
    peer_open_window(p, 0, 1 << 30);
}

/* Answers under way are dropped first; the engine completes what it still has. */
static void peer_fini(struct peer *p)
{
    wire_connection_free(p->connection);
    assert_int_equal(etcd_face_busy(p->face), fake_waiting(p->engine) > 0);
    while (fake_step(p->engine))
        ;
    assert_int_equal(fake_open(p->engine), 0);
    wire_server_free(p->server);
    etcd_face_free(p->face);
    engine_shard_free(p->shard);
    fake_free(p->engine);
    hpack_decoder_fini(&p->hpack);
    for (size_t i = 0; i < PEER_STREAMS; i++)
        buf_fini(&p->streams[i].body);
    buf_fini(&p->in);
    arena_fini(&p->arena);
}

/* -- Frames from the server -- */

static void note_trailers(struct peer *p, struct peer_stream *stream, struct slice block, bool last)
{
    struct hpack_limits limits = {.list_bytes = 16384, .fields_max = 100};
    struct h2_headers *headers;
    struct slice value;
    assert_int_equal(hpack_decode(&p->hpack, block, true, &limits, &headers), ST_OK);
    if (h2_headers_get(headers, SLICE_LITERAL("grpc-status"), &value))
        stream->code = atoi((const char *)memcpy((char[8]){0}, value.ptr, value.len));
    if (h2_headers_get(headers, SLICE_LITERAL("grpc-message"), &value)) {
        assert_true(value.len < sizeof(stream->text));
        memcpy(stream->text, value.ptr, value.len);
    }
    stream->ended |= last;
    h2_headers_unref(headers);
}

static void note_frame(struct peer *p, struct h2_frame frame, struct slice payload)
{
    if (frame.stream_id == 0) {
        assert_int_not_equal(frame.type, H2_GOAWAY);
        return;
    }
    struct peer_stream *stream = peer_stream(p, frame.stream_id);
    assert_false(stream->ended);
    bool last = frame.flags & H2_FLAG_END_STREAM;
    if (frame.type == H2_HEADERS)
        note_trailers(p, stream, payload, last);
    else if (frame.type == H2_DATA)
        assert_int_equal(buf_append(&stream->body, payload), ST_OK);
    else if (frame.type == H2_RST_STREAM)
        stream->ended = true;
}

/* Takes everything the server has to send. */
static void peer_pump(struct peer *p)
{
    uint8_t bytes[PEER_FILL_BYTES];
    while (wire_connection_wants_write(p->connection)) {
        size_t n = wire_connection_fill(p->connection, bytes, sizeof(bytes), 1);
        if (n == 0)
            break;
        assert_int_equal(buf_append(&p->in, slice_of(bytes, n)), ST_OK);
        while (p->in.len >= H2_FRAME_HEAD_BYTES) {
            struct h2_frame frame = h2_frame_get(p->in.ptr);
            if (p->in.len < H2_FRAME_HEAD_BYTES + frame.len)
                break;
            note_frame(p, frame, slice_of(p->in.ptr + H2_FRAME_HEAD_BYTES, frame.len));
            buf_consume(&p->in, H2_FRAME_HEAD_BYTES + frame.len);
        }
    }
}

/* -- Requests -- */

static uint32_t peer_call_bytes(struct peer *p, const char *path, struct slice version,
                                struct slice message)
{
    struct slice fields[][2] = {
        {SLICE_LITERAL(":method"), SLICE_LITERAL("POST")},
        {SLICE_LITERAL(":scheme"), SLICE_LITERAL("http")},
        {SLICE_LITERAL(":path"), slice_from_text(path)},
        {SLICE_LITERAL(":authority"), SLICE_LITERAL("x")},
        {SLICE_LITERAL("content-type"), SLICE_LITERAL("application/grpc")},
        {SLICE_LITERAL("te"), SLICE_LITERAL("trailers")},
        {SLICE_LITERAL("client-api-version"), version},
    };
    uint8_t block[1024], *end = block;
    for (size_t i = 0; i < COUNT_OF(fields); i++)
        end = hpack_put_literal(end, fields[i][0], fields[i][1]);
    uint32_t id = p->next_id;
    p->next_id += 2;
    *peer_stream(p, id) = (struct peer_stream){.code = -1};
    peer_feed_frame(p, H2_HEADERS, H2_FLAG_END_HEADERS, id, slice_of(block, (size_t)(end - block)));

    uint8_t *framed = arena_alloc(&p->arena, GRPC_PREFIX_BYTES + message.len);
    grpc_prefix_write(framed, (uint32_t)message.len);
    slice_copy(framed + GRPC_PREFIX_BYTES, message);
    size_t len = GRPC_PREFIX_BYTES + message.len;
    for (size_t at = 0, n; at < len; at += n) {
        n = size_min(len - at, H2_FRAME_BYTES_MAX);
        peer_feed_frame(p, H2_DATA, at + n == len ? H2_FLAG_END_STREAM : 0, id,
                        slice_of(framed + at, n));
        if (at + n < len)
            peer_pump(p); /* for the window it gives back */
    }
    return id;
}

static uint32_t peer_call(struct peer *p, const char *path, const struct pb_message *type,
                          const void *message)
{
    size_t size = pb_size(type, message);
    uint8_t *bytes = arena_alloc(&p->arena, size);
    pb_encode(type, message, bytes, size);
    return peer_call_bytes(p, path, SLICE_LITERAL("3.7"), slice_of(bytes, size));
}

static void peer_reset(struct peer *p, uint32_t id)
{
    uint8_t payload[4];
    h2_put32(payload, H2_CANCEL);
    peer_feed_frame(p, H2_RST_STREAM, 0, id, slice_of(payload, 4));
    peer_stream(p, id)->ended = true;
}

/* The messages of an answer one after the other; false at its end. */
static bool next_message(struct peer *p, uint32_t id, size_t *at, const struct pb_message *type,
                         void *ret_message)
{
    struct buf *body = &peer_stream(p, id)->body;
    if (*at == body->len)
        return false;
    assert_true(body->len - *at >= GRPC_PREFIX_BYTES);
    size_t len = h2_get32(body->ptr + *at + 1);
    assert_true(body->len - *at - GRPC_PREFIX_BYTES >= len);
    struct slice message = slice_of(body->ptr + *at + GRPC_PREFIX_BYTES, len);
    assert_int_equal(pb_decode(type, message, &p->arena, ret_message), ST_OK);
    *at += GRPC_PREFIX_BYTES + len;
    return true;
}

static void assert_fails(struct peer *p, uint32_t id, enum grpc_code code, const char *text)
{
    peer_pump(p);
    assert_true(peer_stream(p, id)->ended);
    assert_int_equal(peer_stream(p, id)->body.len, 0);
    assert_string_equal(peer_stream(p, id)->text, text);
    assert_int_equal(peer_stream(p, id)->code, code);
}

/* The one message of an answer with status OK. */
static void assert_answers(struct peer *p, uint32_t id, const struct pb_message *type,
                           void *ret_message)
{
    size_t at = 0;
    peer_pump(p);
    assert_string_equal(peer_stream(p, id)->text, "");
    assert_int_equal(peer_stream(p, id)->code, GRPC_OK);
    assert_true(next_message(p, id, &at, type, ret_message));
    assert_int_equal(at, peer_stream(p, id)->body.len);
}

/* -- Shorthands -- */

static const struct slice urls[] = {{(const uint8_t *)"http://localhost:2379", 21}};

static const struct etcd_config config = {
    .version = "3.7.0",
    .cluster_version = "3.7.0",
    .txn_ops_max = ETCD_TXN_OPS_MAX_DEFAULT,
    .request_bytes_max = 64 * 1024,
    .member_name = "default",
    .peer_urls = urls,
    .peer_url_count = 1,
    .client_urls = urls,
    .client_url_count = 1,
};

static struct peer *inline_peer(void)
{
    struct peer *p = malloc(sizeof(*p));
    assert_non_null(p);
    struct fake_options options = {.seed = 1,
                                   .inline_percent = 100,
                                   .identity = {.cluster_id = 7, .member_id = 9, .raft_term = 2}};
    peer_init(p, &config, &options, 1 << 30);
    return p;
}

static struct peer *late_peer(unsigned inline_percent, uint64_t seed, uint32_t window)
{
    struct peer *p = malloc(sizeof(*p));
    assert_non_null(p);
    peer_init(p, &config, &(struct fake_options){.seed = seed, .inline_percent = inline_percent},
              window);
    return p;
}

static void peer_free(struct peer *p)
{
    peer_fini(p);
    free(p);
}

static uint32_t start_put(struct peer *p, struct slice key, struct slice value)
{
    struct pb_put_request request = {.key = key, .value = value, .prev_kv = true};
    return peer_call(p, PB_KV_PUT_PATH, &pb_put_request_table, &request);
}

static void ignore_done(struct engine_op *op)
{
    assert_int_equal(op->status, ST_OK);
}

static void put_all(struct peer *p, unsigned keys, size_t value_bytes)
{
    uint8_t *value = arena_calloc(&p->arena, 1, value_bytes);
    for (unsigned i = 0; i < keys; i++) {
        char key[16];
        snprintf(key, sizeof(key), "key-%06u", i);
        struct engine_write write = {.op = {.done = ignore_done, .arena = &p->arena}};
        struct pb_put_request request = {.key = slice_from_text(key),
                                         .value = slice_of(value, value_bytes)};
        engine_put(p->shard, &write, &request);
        while (fake_step(p->engine))
            ;
        engine_write_close(&write);
    }
}

static uint32_t start_list(struct peer *p, const char *path)
{
    struct pb_range_request request = {.key = SLICE_LITERAL("\0"),
                                       .range_end = SLICE_LITERAL("\0")};
    return peer_call(p, path, &pb_range_request_table, &request);
}

/* -- Tests -- */

static void put_get_and_delete_answer_like_etcd(void **state)
{
    (void)state;
    struct peer *p = inline_peer();
    struct pb_put_response put;
    assert_answers(p, start_put(p, SLICE_LITERAL("a"), SLICE_LITERAL("1")), &pb_put_response_table,
                   &put);
    assert_int_equal(put.header->revision, 2);
    assert_int_equal(put.header->cluster_id, 7);
    assert_int_equal(put.header->member_id, 9);
    assert_int_equal(put.header->raft_term, 2);
    assert_null(put.prev_kv);
    assert_answers(p, start_put(p, SLICE_LITERAL("a"), SLICE_LITERAL("2")), &pb_put_response_table,
                   &put);
    assert_true(slice_equal(put.prev_kv->value, SLICE_LITERAL("1")));

    struct pb_range_response range;
    assert_answers(p, start_list(p, PB_KV_RANGE_PATH), &pb_range_response_table, &range);
    assert_int_equal(range.header->revision, 3);
    assert_int_equal(range.count, 1);
    assert_int_equal(range.kvs_count, 1);
    assert_int_equal(range.kvs[0].version, 2);

    struct pb_delete_range_request request = {.key = SLICE_LITERAL("a"), .prev_kv = true};
    struct pb_delete_range_response deleted;
    assert_answers(p,
                   peer_call(p, PB_KV_DELETE_RANGE_PATH, &pb_delete_range_request_table, &request),
                   &pb_delete_range_response_table, &deleted);
    assert_int_equal(deleted.deleted, 1);
    assert_true(slice_equal(deleted.prev_kvs[0].value, SLICE_LITERAL("2")));
    peer_free(p);
}

static void txn_answers_the_branch_taken(void **state)
{
    (void)state;
    struct peer *p = inline_peer();
    struct pb_put_request put = {.key = SLICE_LITERAL("k"), .value = SLICE_LITERAL("v")};
    struct pb_range_request get = {.key = SLICE_LITERAL("k")};
    struct pb_compare absent = {.key = SLICE_LITERAL("k"), .target = PB_COMPARE_TARGET_MOD};
    struct pb_request_op then[2] = {
        {.request_case = PB_REQUEST_OP_REQUEST_PUT, .request_put = &put},
        {.request_case = PB_REQUEST_OP_REQUEST_RANGE, .request_range = &get},
    };
    struct pb_txn_request txn = {.compare = &absent,
                                 .compare_count = 1,
                                 .success = then,
                                 .success_count = 2,
                                 .failure = &then[1],
                                 .failure_count = 1};
    struct pb_txn_response response;
    assert_answers(p, peer_call(p, PB_KV_TXN_PATH, &pb_txn_request_table, &txn),
                   &pb_txn_response_table, &response);
    assert_true(response.succeeded);
    assert_int_equal(response.header->revision, 2);
    assert_int_equal(response.responses_count, 2);
    assert_int_equal(response.responses[1].response_range->kvs_count, 1);
    assert_int_equal(response.responses[1].response_range->header->revision, 2);
    assert_int_equal(response.responses[1].response_range->header->cluster_id, 0);
    assert_answers(p, peer_call(p, PB_KV_TXN_PATH, &pb_txn_request_table, &txn),
                   &pb_txn_response_table, &response);
    assert_false(response.succeeded);
    assert_int_equal(response.responses_count, 1);
    peer_free(p);
}

static void errors_carry_etcds_code_and_text(void **state)
{
    (void)state;
    struct peer *p = inline_peer();
    assert_fails(p, start_put(p, SLICE_EMPTY, SLICE_EMPTY), GRPC_INVALID_ARGUMENT,
                 "etcdserver: key is not provided");
    struct pb_range_request future = {.key = SLICE_LITERAL("a"), .revision = 9};
    assert_fails(p, peer_call(p, PB_KV_RANGE_PATH, &pb_range_request_table, &future),
                 GRPC_OUT_OF_RANGE, "etcdserver: mvcc: required revision is a future revision");
    struct pb_range_request sorted = {.key = SLICE_LITERAL("a"), .sort_order = 2};
    assert_fails(p, peer_call(p, PB_KV_RANGE_STREAM_PATH, &pb_range_request_table, &sorted),
                 GRPC_UNIMPLEMENTED, "RangeStream does not support custom sort orders");
    struct pb_compaction_request compaction = {.revision = 5};
    assert_fails(p, peer_call(p, PB_KV_COMPACT_PATH, &pb_compaction_request_table, &compaction),
                 GRPC_OUT_OF_RANGE, "etcdserver: mvcc: required revision is a future revision");
    fake_fail_next(p->engine, ST_UNHEALTHY, SLICE_LITERAL("the upstream's words"));
    assert_fails(p, start_put(p, SLICE_LITERAL("a"), SLICE_EMPTY), GRPC_UNAVAILABLE,
                 "the upstream's words");
    peer_free(p);
}

static void bytes_that_are_no_request_are_refused(void **state)
{
    (void)state;
    struct peer *p = inline_peer();
    struct slice bad = SLICE_LITERAL("\x0a\xff");
    uint32_t id = peer_call_bytes(p, PB_KV_PUT_PATH, SLICE_LITERAL("3.7"), bad);
    assert_fails(p, id, GRPC_INTERNAL,
                 "grpc: error unmarshalling request: proto: cannot parse invalid wire-format data");
    id =
        peer_call_bytes(p, PB_KV_RANGE_PATH, SLICE_LITERAL("\xff\xfe"), SLICE_LITERAL("\x0a\x01k"));
    assert_fails(p, id, GRPC_INVALID_ARGUMENT, "etcdserver: invalid client api version");
    peer_free(p);
}

static void request_size_is_counted_as_etcd_logs_it(void **state)
{
    (void)state;
    struct peer *p = inline_peer();
    /* message: 0a 01 k 12 len3 value; log: 1 + len3 + message + header of 4 + varint(id) */
    size_t log_header = 2 + 1 + 1 + 8; /* member 9: 4 bits above 48 */
    size_t fits = config.request_bytes_max - log_header - 1 - 3;
    uint8_t *value = arena_calloc(&p->arena, 1, fits);
    size_t value_bytes = fits - 3 - 1 - 3;
    assert_fails(p, start_put(p, SLICE_LITERAL("k"), slice_of(value, value_bytes + 1 - 2)),
                 GRPC_INVALID_ARGUMENT, "etcdserver: request is too large");
    struct pb_put_response put;
    assert_answers(p, start_put(p, SLICE_LITERAL("k"), slice_of(value, value_bytes - 2)),
                   &pb_put_response_table, &put);
    peer_free(p);
}

static void long_list_is_pulled_as_the_window_opens(void **state)
{
    (void)state;
    enum { KEYS = 400, VALUE = 1000, WINDOW = 5000 };
    struct peer *p = late_peer(100, 1, WINDOW);
    put_all(p, KEYS, VALUE);
    uint32_t id = start_list(p, PB_KV_RANGE_PATH);
    peer_pump(p);
    assert_int_equal(peer_stream(p, id)->body.len, WINDOW);
    assert_int_equal(fake_open(p->engine), 1);
    while (!peer_stream(p, id)->ended) {
        peer_open_window(p, id, 777);
        peer_pump(p);
    }
    struct pb_range_response range;
    assert_answers(p, id, &pb_range_response_table, &range);
    assert_int_equal(range.kvs_count, KEYS);
    assert_int_equal(range.count, KEYS);
    assert_int_equal(fake_open(p->engine), 0);
    peer_free(p);
}

static void list_whose_reader_leaves_is_closed(void **state)
{
    (void)state;
    struct peer *p = late_peer(100, 1, 5000);
    put_all(p, 100, 1000);
    uint32_t id = start_list(p, PB_KV_RANGE_PATH);
    uint32_t stream_id = start_list(p, PB_KV_RANGE_STREAM_PATH);
    peer_pump(p);
    assert_int_equal(fake_open(p->engine), 2);
    peer_reset(p, id);
    peer_reset(p, stream_id);
    assert_int_equal(fake_open(p->engine), 0);
    peer_free(p);
}

static void long_answer_of_a_write_is_pulled_too(void **state)
{
    (void)state;
    enum { KEYS = 100, VALUE = 1000, WINDOW = 5000 };
    struct peer *p = late_peer(100, 1, WINDOW);
    put_all(p, KEYS, VALUE);
    struct pb_range_request all = {.key = SLICE_LITERAL("\0"), .range_end = SLICE_LITERAL("\0")};
    struct pb_request_op op = {.request_case = PB_REQUEST_OP_REQUEST_RANGE, .request_range = &all};
    struct pb_txn_request txn = {.success = &op, .success_count = 1};
    struct pb_delete_range_request request = {
        .key = SLICE_LITERAL("\0"), .range_end = SLICE_LITERAL("\0"), .prev_kv = true};
    uint32_t read = peer_call(p, PB_KV_TXN_PATH, &pb_txn_request_table, &txn);
    uint32_t left = peer_call(p, PB_KV_TXN_PATH, &pb_txn_request_table, &txn);
    uint32_t removed =
        peer_call(p, PB_KV_DELETE_RANGE_PATH, &pb_delete_range_request_table, &request);
    peer_pump(p);
    assert_int_equal(peer_stream(p, removed)->body.len, WINDOW);
    assert_int_equal(fake_open(p->engine), 3);
    peer_reset(p, left);
    assert_int_equal(fake_open(p->engine), 2);
    while (!peer_stream(p, read)->ended || !peer_stream(p, removed)->ended) {
        if (!peer_stream(p, read)->ended)
            peer_open_window(p, read, 777);
        if (!peer_stream(p, removed)->ended)
            peer_open_window(p, removed, 3);
        peer_pump(p);
        if (peer_stream(p, read)->ended && !peer_stream(p, removed)->ended)
            peer_open_window(p, removed, 5000);
    }
    assert_int_equal(fake_open(p->engine), 0);
    struct pb_delete_range_response deleted;
    assert_answers(p, removed, &pb_delete_range_response_table, &deleted);
    assert_int_equal(deleted.deleted, KEYS);
    assert_int_equal(deleted.prev_kvs_count, KEYS);
    struct pb_txn_response response;
    assert_answers(p, read, &pb_txn_response_table, &response);
    assert_int_equal(response.responses[0].response_range->kvs_count, KEYS);
    peer_free(p);
}

static void range_stream_is_cut_as_etcd_cuts_it(void **state)
{
    (void)state;
    /* 64 KiB of target: 10, 20, 40 keys of about 1 KB; 40 is between half and twice. */
    static const size_t expected[] = {10, 20, 40, 40, 40};
    struct peer *p = inline_peer();
    put_all(p, 150, 1000);
    uint32_t id = start_list(p, PB_KV_RANGE_STREAM_PATH);
    peer_pump(p);
    assert_int_equal(peer_stream(p, id)->code, GRPC_OK);
    size_t at = 0, keys = 0, i = 0;
    struct pb_range_stream_response message;
    for (; next_message(p, id, &at, &pb_range_stream_response_table, &message); i++) {
        const struct pb_range_response *part = message.range_response;
        bool last = i + 1 == COUNT_OF(expected);
        assert_int_equal(part->kvs_count, expected[i]);
        assert_int_equal(part->header != NULL, last);
        assert_int_equal(part->count, last ? 150 : 0);
        keys += part->kvs_count;
    }
    assert_int_equal(i, COUNT_OF(expected));
    assert_int_equal(keys, 150);
    peer_free(p);
}

static void range_stream_with_a_limit_says_there_is_more(void **state)
{
    (void)state;
    struct peer *p = inline_peer();
    put_all(p, 30, 10);
    struct pb_range_request request = {
        .key = SLICE_LITERAL("a"), .range_end = SLICE_LITERAL("z"), .limit = 12};
    uint32_t id = peer_call(p, PB_KV_RANGE_STREAM_PATH, &pb_range_request_table, &request);
    peer_pump(p);
    size_t at = 0;
    struct pb_range_stream_response message;
    assert_true(next_message(p, id, &at, &pb_range_stream_response_table, &message));
    assert_int_equal(message.range_response->kvs_count, 10);
    assert_false(message.range_response->more);
    assert_true(next_message(p, id, &at, &pb_range_stream_response_table, &message));
    assert_int_equal(message.range_response->kvs_count, 2);
    assert_true(message.range_response->more);
    assert_int_equal(message.range_response->count, 30);
    assert_false(next_message(p, id, &at, &pb_range_stream_response_table, &message));
    peer_free(p);
}

static void empty_range_stream_is_one_message(void **state)
{
    (void)state;
    struct peer *p = inline_peer();
    struct pb_range_stream_response message;
    assert_answers(p, start_list(p, PB_KV_RANGE_STREAM_PATH), &pb_range_stream_response_table,
                   &message);
    assert_int_equal(message.range_response->header->revision, 1);
    assert_int_equal(message.range_response->count, 0);
    peer_free(p);
}

static void answer_after_the_peer_left_is_dropped(void **state)
{
    (void)state;
    struct peer *p = late_peer(0, 5, 1 << 20);
    uint32_t ids[4] = {
        start_put(p, SLICE_LITERAL("a"), SLICE_EMPTY),
        start_list(p, PB_KV_RANGE_PATH),
        peer_call(p, PB_KV_COMPACT_PATH, &pb_compaction_request_table,
                  &(struct pb_compaction_request){.revision = 1}),
        peer_call(p, PB_MAINTENANCE_HASH_KV_PATH, &pb_hash_kv_request_table,
                  &(struct pb_hash_kv_request){0}),
    };
    assert_int_equal(fake_waiting(p->engine), 4);
    for (size_t i = 0; i < 4; i++)
        peer_reset(p, ids[i]);
    while (fake_step(p->engine))
        ;
    assert_int_equal(fake_open(p->engine), 0);
    /* The write took effect all the same. */
    struct engine_status status;
    engine_status_get(p->shard, &status);
    assert_int_equal(status.revision, 2);
    peer_free(p);
}

static void connection_may_end_with_operations_under_way(void **state)
{
    (void)state;
    struct peer *p = late_peer(0, 6, 1 << 20);
    for (unsigned i = 0; i < 50; i++) {
        start_put(p, SLICE_LITERAL("a"), SLICE_LITERAL("v"));
        start_list(p, PB_KV_RANGE_PATH);
    }
    peer_pump(p);
    peer_free(p); /* frees the connection first */
}

static void many_calls_at_once_get_their_own_answers(void **state)
{
    (void)state;
    enum { CALLS = 1500 };
    struct peer *p = late_peer(30, 11, 1 << 20);
    struct random random;
    random_init(&random, 12);
    static uint32_t ids[CALLS];
    for (unsigned i = 0; i < CALLS; i++) {
        char key[16];
        snprintf(key, sizeof(key), "k%u", i);
        ids[i] = start_put(p, slice_from_text(key), slice_from_text(key));
        for (uint64_t n = random_below(&random, 3); n > 0; n--)
            fake_step(p->engine);
        if (random_chance(&random, 1, 10) && !peer_stream(p, ids[i])->ended)
            peer_reset(p, ids[i]);
        if (random_chance(&random, 1, 5))
            peer_pump(p);
    }
    while (fake_step(p->engine))
        ;
    peer_pump(p);
    bool seen[CALLS + 2] = {false};
    for (unsigned i = 0; i < CALLS; i++) {
        if (peer_stream(p, ids[i])->code == -1)
            continue; /* reset */
        struct pb_put_response put;
        assert_answers(p, ids[i], &pb_put_response_table, &put);
        assert_in_range(put.header->revision, 2, CALLS + 1);
        assert_false(seen[put.header->revision]);
        seen[put.header->revision] = true;
    }
    peer_free(p);
}

static void status_and_members_say_who_serves(void **state)
{
    (void)state;
    struct peer *p = inline_peer();
    struct pb_status_response status;
    assert_answers(p,
                   peer_call(p, PB_MAINTENANCE_STATUS_PATH, &pb_status_request_table,
                             &(struct pb_status_request){0}),
                   &pb_status_response_table, &status);
    assert_true(slice_equal(status.version, SLICE_LITERAL("3.7.0")));
    assert_true(slice_equal(status.storage_version, SLICE_LITERAL("3.7.0")));
    assert_int_equal(status.leader, 9);
    assert_int_equal(status.raft_term, 2);
    assert_int_equal(status.header->revision, 1);
    assert_non_null(status.downgrade_info);
    struct pb_member_list_response members;
    assert_answers(p,
                   peer_call(p, PB_CLUSTER_MEMBER_LIST_PATH, &pb_member_list_request_table,
                             &(struct pb_member_list_request){.linearizable = true}),
                   &pb_member_list_response_table, &members);
    assert_int_equal(members.members_count, 1);
    assert_int_equal(members.members[0].id, 9);
    assert_true(slice_equal(members.members[0].name, SLICE_LITERAL("default")));
    assert_true(slice_equal(members.members[0].client_urls[0], urls[0]));
    struct pb_alarm_response alarms;
    assert_answers(p,
                   peer_call(p, PB_MAINTENANCE_ALARM_PATH, &pb_alarm_request_table,
                             &(struct pb_alarm_request){0}),
                   &pb_alarm_response_table, &alarms);
    assert_int_equal(alarms.alarms_count, 0);
    assert_fails(p,
                 peer_call(p, PB_MAINTENANCE_MOVE_LEADER_PATH, &pb_move_leader_request_table,
                           &(struct pb_move_leader_request){.target_id = 8}),
                 GRPC_FAILED_PRECONDITION, "etcdserver: bad leader transferee");
    peer_free(p);
}

static void hashes_are_the_engines(void **state)
{
    (void)state;
    struct peer *p = inline_peer();
    put_all(p, 3, 3);
    struct pb_hash_kv_response of_kv;
    struct pb_hash_response whole;
    assert_answers(p,
                   peer_call(p, PB_MAINTENANCE_HASH_KV_PATH, &pb_hash_kv_request_table,
                             &(struct pb_hash_kv_request){.revision = 4}),
                   &pb_hash_kv_response_table, &of_kv);
    assert_int_equal(of_kv.hash_revision, 4);
    assert_int_equal(of_kv.compact_revision, -1);
    assert_answers(p,
                   peer_call(p, PB_MAINTENANCE_HASH_PATH, &pb_hash_request_table,
                             &(struct pb_hash_request){0}),
                   &pb_hash_response_table, &whole);
    assert_int_equal(of_kv.hash, whole.hash);
    peer_free(p);
}

static void health_is_checked_and_watched(void **state)
{
    (void)state;
    struct peer *p = inline_peer();
    struct pb_health_check_request whole = {0}, other = {.service = SLICE_LITERAL("x")};
    struct pb_health_check_response response;
    assert_answers(p, peer_call(p, PB_HEALTH_CHECK_PATH, &pb_health_check_request_table, &whole),
                   &pb_health_check_response_table, &response);
    assert_int_equal(response.status, PB_SERVING_STATUS_SERVING);
    assert_fails(p, peer_call(p, PB_HEALTH_CHECK_PATH, &pb_health_check_request_table, &other),
                 GRPC_NOT_FOUND, "unknown service");
    uint32_t watch = peer_call(p, PB_HEALTH_WATCH_PATH, &pb_health_check_request_table, &whole);
    peer_pump(p);
    size_t at = 0;
    assert_true(next_message(p, watch, &at, &pb_health_check_response_table, &response));
    assert_int_equal(response.status, PB_SERVING_STATUS_SERVING);
    assert_false(peer_stream(p, watch)->ended);
    peer_reset(p, watch);
    peer_free(p);
}

static void what_is_not_built_is_unimplemented(void **state)
{
    (void)state;
    struct peer *p = inline_peer();
    assert_fails(
        p, peer_call_bytes(p, "/etcdserverpb.Lease/LeaseGrant", SLICE_LITERAL("3.7"), SLICE_EMPTY),
        GRPC_UNIMPLEMENTED, "unknown service etcdserverpb.Lease");
    assert_fails(
        p,
        peer_call_bytes(p, "/etcdserverpb.Maintenance/Snapshot", SLICE_LITERAL("3.7"), SLICE_EMPTY),
        GRPC_UNIMPLEMENTED, "unknown method Snapshot for service etcdserverpb.Maintenance");
    peer_free(p);
}

#define TEST(name) cmocka_unit_test(name)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(put_get_and_delete_answer_like_etcd),
        TEST(txn_answers_the_branch_taken),
        TEST(errors_carry_etcds_code_and_text),
        TEST(bytes_that_are_no_request_are_refused),
        TEST(request_size_is_counted_as_etcd_logs_it),
        TEST(long_list_is_pulled_as_the_window_opens),
        TEST(list_whose_reader_leaves_is_closed),
        TEST(long_answer_of_a_write_is_pulled_too),
        TEST(range_stream_is_cut_as_etcd_cuts_it),
        TEST(range_stream_with_a_limit_says_there_is_more),
        TEST(empty_range_stream_is_one_message),
        TEST(answer_after_the_peer_left_is_dropped),
        TEST(connection_may_end_with_operations_under_way),
        TEST(many_calls_at_once_get_their_own_answers),
        TEST(status_and_members_say_who_serves),
        TEST(hashes_are_the_engines),
        TEST(health_is_checked_and_watched),
        TEST(what_is_not_built_is_unimplemented),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
