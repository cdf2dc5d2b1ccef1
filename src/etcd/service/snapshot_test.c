/* Maintenance.Snapshot over a connection, with a fake engine that answers at once or late. */
#include "codec/pb/rpc.pb.h"
#include "etcd/peer_calls_test.h"

enum { BLOB_BYTES = 32 << 10 };

static struct etcd_config config;

static struct peer *snapshot_peer(unsigned inline_percent, uint32_t window, const char *version)
{
    struct peer *p = calloc(1, sizeof(*p));
    struct fake_options options = {.seed = 3, .inline_percent = inline_percent};
    config = peer_config;
    config.version = config.cluster_version = version;
    peer_init(p, &config, &options, window, 0);
    return p;
}

static uint32_t start(struct peer *p)
{
    return peer_call_bytes(p, PB_MAINTENANCE_SNAPSHOT_PATH, SLICE_LITERAL("3.7"), SLICE_EMPTY);
}

/* Expects the same messages that etcd would send. */
static void expect_whole(struct peer *p, uint32_t id, const char *version)
{
    struct pb_snapshot_response message;
    size_t at = 0;
    uint64_t seen = 0;
    while (seen < FAKE_SNAPSHOT_BYTES) {
        assert_true(next_message(p, id, &at, &pb_snapshot_response_table, &message));
        assert_int_equal(message.blob.len, size_min(BLOB_BYTES, FAKE_SNAPSHOT_BYTES - seen));
        for (size_t i = 0; i < message.blob.len; i++)
            assert_int_equal(message.blob.ptr[i], (seen + i) % FAKE_SNAPSHOT_CYCLE);
        seen += message.blob.len;
        assert_int_equal(message.remaining_bytes, FAKE_SNAPSHOT_BYTES - seen);
        assert_true(slice_is(message.version, version));
        assert_null(message.header);
    }
    assert_true(next_message(p, id, &at, &pb_snapshot_response_table, &message));
    assert_int_equal(message.blob.len, ENGINE_SNAPSHOT_DIGEST_BYTES);
    for (size_t i = 0; i < message.blob.len; i++)
        assert_int_equal(message.blob.ptr[i], 'd');
    assert_int_equal(message.remaining_bytes, 0);
    assert_true(slice_is(message.version, version));
    assert_false(next_message(p, id, &at, &pb_snapshot_response_table, &message));
    assert_true(peer_stream(p, id)->ended);
    assert_int_equal(peer_stream(p, id)->code, GRPC_OK);
}

static void file_is_cut_like_etcds(void **state)
{
    (void)state;
    for (unsigned percent = 0; percent <= 100; percent += 50) {
        struct peer *p = snapshot_peer(percent, PEER_WINDOW, "3.7.0");
        uint32_t id = start(p);
        answer_all(p);
        expect_whole(p, id, "3.7.0");
        assert_int_equal(fake_open(p->engine), 0);
        peer_free(p);
    }
}

static void no_version_is_sent_before_3_6(void **state)
{
    (void)state;
    static const char *const versions[] = {"3.4.0", "3.5.0"};
    for (size_t i = 0; i < COUNT_OF(versions); i++) {
        struct peer *p = snapshot_peer(100, PEER_WINDOW, versions[i]);
        uint32_t id = start(p);
        answer_all(p);
        expect_whole(p, id, "");
        peer_free(p);
    }
}

static void client_with_any_window_gets_everything(void **state)
{
    (void)state;
    static const uint32_t windows[] = {777, 4096, 40000};
    for (size_t i = 0; i < COUNT_OF(windows); i++) {
        struct peer *p = snapshot_peer(50, windows[i], "3.7.0");
        uint32_t id = start(p);
        answer_all(p);
        while (!peer_stream(p, id)->ended) {
            peer_open_window(p, id, windows[i]);
            answer_all(p);
        }
        expect_whole(p, id, "3.7.0");
        peer_free(p);
    }
}

/* When the client stops reading, no more pieces are requested from the engine. */
static void engine_is_read_only_as_the_client_reads(void **state)
{
    (void)state;
    struct peer *p = snapshot_peer(0, 1000, "3.7.0");
    uint32_t id = start(p);
    answer_all(p);
    assert_int_equal(fake_waiting(p->engine), 0);
    assert_int_equal(peer_stream(p, id)->body.len, 1000);
    assert_false(peer_stream(p, id)->ended);
    assert_int_equal(fake_open(p->engine), 1);
    peer_free(p);
}

static void disconnect_leaks_nothing(void **state)
{
    (void)state;
    /* During the start, during a read, and between them. */
    for (int steps = 0; steps < 5; steps++) {
        struct peer *p = snapshot_peer(0, PEER_WINDOW, "3.7.0");
        uint32_t id = start(p);
        for (int i = 0; i < steps; i++) {
            peer_pump(p);
            (void)fake_step(p->engine);
        }
        if (steps % 2)
            peer_pump(p);
        if (!peer_stream(p, id)->ended)
            peer_reset(p, id);
        while (fake_step(p->engine))
            ;
        assert_int_equal(fake_open(p->engine), 0);
        assert_false(etcd_api_busy(p->api));
        peer_free(p);
    }
}

static void failed_start_is_reported(void **state)
{
    (void)state;
    for (unsigned percent = 0; percent <= 100; percent += 100) {
        struct peer *p = snapshot_peer(percent, PEER_WINDOW, "3.7.0");
        fake_fail_next(p->engine, ST_REQUEST_TOO_MANY_REQUESTS, SLICE_EMPTY);
        uint32_t id = start(p);
        answer_all(p);
        assert_fails(p, id, status_code(ST_REQUEST_TOO_MANY_REQUESTS),
                     status_text(ST_REQUEST_TOO_MANY_REQUESTS));
        peer_free(p);
    }
}

/* There is no digest then, so clients do not take the file for complete. */
static void later_failure_ends_the_stream_with_its_reason(void **state)
{
    (void)state;
    for (unsigned percent = 0; percent <= 100; percent += 100) {
        struct peer *p = snapshot_peer(percent, 50000, "3.7.0");
        uint32_t id = start(p);
        answer_all(p);
        fake_fail_next(p->engine, ST_DISK_FULL, SLICE_EMPTY);
        peer_open_window(p, id, PEER_WINDOW);
        answer_all(p);
        assert_true(peer_stream(p, id)->ended);
        assert_int_equal(peer_stream(p, id)->code, status_code(ST_DISK_FULL));
        assert_string_equal(peer_stream(p, id)->text, status_text(ST_DISK_FULL));
        assert_true(peer_stream(p, id)->body.len < FAKE_SNAPSHOT_BYTES);
        assert_int_equal(fake_open(p->engine), 0);
        peer_free(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(file_is_cut_like_etcds),
        cmocka_unit_test(no_version_is_sent_before_3_6),
        cmocka_unit_test(client_with_any_window_gets_everything),
        cmocka_unit_test(engine_is_read_only_as_the_client_reads),
        cmocka_unit_test(disconnect_leaks_nothing),
        cmocka_unit_test(failed_start_is_reported),
        cmocka_unit_test(later_failure_ends_the_stream_with_its_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
