/* What the engine reads from calls that it passes on. */
#include "mirror/follow/follower.h"
#include "mirror/link/fake_upstream_test.h"
#include "mirror/shard.h"

static struct {
    struct mirror_shared shared;
    struct mirror_shard shard;
    struct engine_forward forward;
    unsigned messages, ends;
    int64_t written, heard; /* when the message came */
    enum grpc_code code;
    int64_t compacted;
} f;

void follower_note_compaction(struct follower *follower, int64_t revision)
{
    (void)follower;
    f.compacted = revision;
}

void upstream_pause(struct upstream_call *call, bool paused)
{
    (void)call;
    (void)paused;
}

static void on_message(struct engine_forward *forward, struct slice message)
{
    (void)forward;
    (void)message;
    f.messages++;
    f.written = atomic_load(&f.shared.state.written);
    f.heard = atomic_load(&f.shared.state.heard);
}

static void on_end(struct engine_forward *forward, enum grpc_code code, struct slice text)
{
    (void)forward;
    (void)text;
    f.ends++;
    f.code = code;
}

static const struct engine_forward_ops ops = {.on_message = on_message, .on_end = on_end};

static int set_up(void **state)
{
    (void)state;
    memset(&f, 0, sizeof(f));
    cluster_begin();
    f.shard.shared = &f.shared;
    return 0;
}

static void start(const char *path, bool reads, struct slice request)
{
    f.forward = (struct engine_forward){.ops = &ops,
                                        .path = slice_from_text(path),
                                        .principal.token = SLICE_LITERAL("anna.1"),
                                        .deadline_ns = 77,
                                        .reads = reads};
    mirror_forward_start(&f.shard.base, &f.forward);
    assert_int_equal(f.shard.in_progress, 1);
    assert_int_equal(mirror_forward_send(&f.forward, request), ST_OK);
    mirror_forward_half_close(&f.forward);
}

static void answer(int64_t revision)
{
    struct buf message = {0};
    struct pb_response_header header = {
        .cluster_id = UINT64_MAX, .member_id = 5, .revision = revision, .raft_term = 3};
    struct pb_put_response response = {.header = &header};
    assert_int_equal(pb_append(&pb_put_response_table, &response, &message), ST_OK);
    call_at(0)->ops->on_message(call_at(0), buf_slice(&message));
    buf_fini(&message);
}

static void revision_of_a_write_is_known_before_its_answer(void **state)
{
    (void)state;
    start(PB_KV_PUT_PATH, false, SLICE_LITERAL("x"));
    const struct upstream_request *request = &call_at(0)->request;
    assert_true(slice_is(request->caller.token, "anna.1"));
    assert_false(request->caller.is_self || request->reads || request->lasts);
    assert_int_equal(request->deadline_ns, 77);
    assert_true(call_at(0)->half_closed);
    answer(1234567);
    assert_int_equal(f.messages, 1);
    assert_int_equal(f.written, 1234567);
    call_end(call_at(0), GRPC_OK, "");
    assert_int_equal(f.ends, 1);
    assert_int_equal(f.shard.in_progress, 0);
    assert_int_equal(atomic_load(&f.shared.state.forwarded), 1);
    mirror_forward_cancel(&f.forward); /* no effect */
}

static void read_does_not_delay_other_reads(void **state)
{
    (void)state;
    start(PB_MAINTENANCE_STATUS_PATH, true, SLICE_EMPTY);
    answer(99);
    assert_int_equal(f.written, 0);
    assert_int_equal(f.heard, 99);
    mirror_forward_cancel(&f.forward);
    assert_int_equal(f.shard.in_progress, 0);
    assert_int_equal(f.ends, 0);
    assert_int_equal(cluster.count, 0);
}

static void follower_learns_of_compactions_that_succeeded(void **state)
{
    (void)state;
    struct slice request = SLICE_LITERAL("\x08\xac\x02\x10\x01"); /* 300, physical */
    start(PB_KV_COMPACT_PATH, false, request);
    call_end(call_at(0), GRPC_OUT_OF_RANGE, "compacted");
    assert_int_equal(f.compacted, 0);
    start(PB_KV_COMPACT_PATH, false, request);
    answer(400);
    call_end(call_at(0), GRPC_OK, "");
    assert_int_equal(f.compacted, 300);
    f.compacted = 0;
    start(PB_KV_PUT_PATH, false, request);
    call_end(call_at(0), GRPC_OK, "");
    assert_int_equal(f.compacted, 0);
}

/* etcd takes the last of several fields, and so must we: the first could end every watch. */
static void a_compaction_is_read_as_the_cluster_reads_it(void **state)
{
    (void)state;
    start(PB_KV_COMPACT_PATH, false,
          SLICE_LITERAL("\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x08\x05")); /* INT64_MAX, 5 */
    answer(400);
    call_end(call_at(0), GRPC_OK, "");
    assert_int_equal(f.compacted, 5);
    f.compacted = 0;
    start(PB_KV_COMPACT_PATH, false, SLICE_LITERAL("\x08\x91\x03")); /* 401, which does not exist */
    answer(400);
    call_end(call_at(0), GRPC_OK, "");
    assert_int_equal(f.compacted, 0);
}

static void changes_of_rights_are_counted(void **state)
{
    (void)state;
    static const char *const paths[] = {PB_AUTH_AUTH_ENABLE_PATH, PB_AUTH_USER_DELETE_PATH,
                                        PB_AUTH_AUTHENTICATE_PATH, PB_KV_PUT_PATH};
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        start(paths[i], false, SLICE_EMPTY);
        answer(1);
        call_end(call_at(0), GRPC_OK, "");
    }
    start(PB_AUTH_USER_LIST_PATH, true, SLICE_EMPTY);
    answer(1);
    call_end(call_at(0), GRPC_OK, "");
    assert_int_equal(atomic_load(&f.shared.state.rights_changes), 2);
}

/* Answers that are not what they should be are passed on, without a revision. */
static void malformed_answers_have_no_revision(void **state)
{
    (void)state;
    static const struct slice answers[] = {
        SLICE_LITERAL("\x0a"),
        SLICE_LITERAL("\x0a\x7f\x18\x05"),
        SLICE_LITERAL("\x0a\x02\x18"),
        SLICE_LITERAL("\x0a\x02\x18\xff"),
        SLICE_LITERAL("\x12\x02\x18\x05"),
        SLICE_LITERAL("\x0a\x03\x1a\x01x"),
        SLICE_LITERAL("\x0a\x05\x2a\x03\x18\x05"),
        SLICE_LITERAL("\x0a\x04\x2a\x03\x18\x05"),
        SLICE_LITERAL("\x0a\x02\x1f\x05"),
        SLICE_EMPTY,
    };
    for (size_t i = 0; i < COUNT_OF(answers); i++) {
        start(PB_KV_PUT_PATH, false, SLICE_EMPTY);
        /* Copied, so that a read behind its end is found. */
        struct buf message = {0};
        assert_int_equal(buf_append(&message, answers[i]), ST_OK);
        call_at(0)->ops->on_message(call_at(0), buf_slice(&message));
        buf_fini(&message);
        assert_int_equal(f.written, 0);
        mirror_forward_cancel(&f.forward);
    }
    assert_int_equal(f.messages, COUNT_OF(answers));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(revision_of_a_write_is_known_before_its_answer, set_up),
        cmocka_unit_test_setup(read_does_not_delay_other_reads, set_up),
        cmocka_unit_test_setup(follower_learns_of_compactions_that_succeeded, set_up),
        cmocka_unit_test_setup(a_compaction_is_read_as_the_cluster_reads_it, set_up),
        cmocka_unit_test_setup(changes_of_rights_are_counted, set_up),
        cmocka_unit_test_setup(malformed_answers_have_no_revision, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
