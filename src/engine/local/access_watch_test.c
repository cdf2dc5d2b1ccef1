/* Watches are notified of changed permissions. */
#include "engine/local/access_fixture_test.h"
#include "watch/hub.h"
#include "watch/stream/stream.h"

/* A shard with a watch, on the same thread with its own loop. */
struct watching {
    struct loop *loop;
    struct engine_shard *shard;
    unsigned notices;          /* notices of changed rights */
    unsigned notices_of_other; /* notices of the other listener */
    int64_t hub_at_notice;     /* the revision of the hub at that time */
};

static void wake(void *ctx)
{
    (void)ctx;
}

static void on_change(void *ctx)
{
    struct watching *w = ctx;
    w->notices++;
    w->hub_at_notice = watch_hub_revision(engine_watch_hub(w->shard));
}

static void on_change_too(void *ctx)
{
    ((struct watching *)ctx)->notices_of_other++;
}

/* Runs until the shard was notified this often; the notification must wake it. */
static void watch_until_notices(struct watching *w, unsigned notices)
{
    while (w->notices < notices) {
        int64_t begun_ns = clock_mono_ns(clock_system());
        turn_shard(w->shard, w->loop, 60 * NS_PER_S);
        assert_true(clock_mono_ns(clock_system()) - begun_ns < 60 * NS_PER_S);
    }
    assert_int_equal(w->notices, notices);
}

/* The shard is notified before its watches get later revisions, and also without any. */
static void a_shard_with_watches_is_notified_when_rights_change(void **state)
{
    struct fixture *f = *state;
    struct watching w = {0};
    OK(loop_new(clock_system(), &w.loop));
    OK(engine_shard_new(f->engine, w.loop, &w.shard));
    struct watch_stream *stream =
        watch_stream_new(engine_watch_hub(w.shard), (struct watch_stream_owner){.wake = wake});
    OK(watch_stream_create(stream, &(struct watch_create){.key = SLICE_LITERAL("a/1")}));
    turn_shard(w.shard, w.loop, 0);
    struct engine_auth_listener first = {.changed = on_change, .ctx = &w};
    struct engine_auth_listener gone = first, second = {.changed = on_change_too, .ctx = &w};
    engine_auth_listen(w.shard, &gone);
    engine_auth_listen(w.shard, &first);
    engine_auth_listen(w.shard, &second);
    engine_auth_unlisten(w.shard, &gone);
    engine_auth_unlisten(w.shard, &gone);

    /* A change and a put in one group. */
    struct auth_principal root = as(f, "root");
    root.revision++;
    struct pb_put_request request = {.key = SLICE_LITERAL("a/1")};
    struct engine_auth revoke = {.op = op_of(f, root),
                                 .call = ENGINE_AUTH_USER_REVOKE_ROLE,
                                 .user = SLICE_LITERAL("ann"),
                                 .role = SLICE_LITERAL("a")};
    struct engine_write write = {.op = op_of(f, root)};
    engine_auth_start(f->shard, &revoke);
    engine_put(f->shard, &write, &request);
    wait_for(f, 0);
    OK(revoke.op.status);
    OK(write.op.status);
    engine_write_close(&write);
    watch_until_notices(&w, 1);
    assert_true(w.hub_at_notice < write.op.revision);
    struct auth_principal ann = as(f, "ann");
    DENIED(auth_rights_check(engine_auth_rights(w.shard), &ann, AUTH_READ, SLICE_LITERAL("a/1"),
                             SLICE_EMPTY));

    /* A change alone. */
    OK(change(f, ENGINE_AUTH_USER_GRANT_ROLE, "ann", "a"));
    watch_until_notices(&w, 2);
    assert_int_equal(w.notices_of_other, 2);
    engine_auth_unlisten(w.shard, &first);
    engine_auth_unlisten(w.shard, &second);
    watch_stream_free(stream);
    engine_shard_free(w.shard);
    loop_free(w.loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_shard_with_watches_is_notified_when_rights_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
