/* Anonymous requests and watches that are under way when authentication is enabled, and when it is
 * disabled again. */
#include "kube/server/bed_test.h"

#include "engine/engine.h"

enum { WATCHES = 1200 }; /* more than are woken in one turn */

static void on_changed(struct engine_op *op)
{
    op->arena = NULL;
}

static struct engine_auth auth_change(enum engine_auth_call call, struct arena *arena)
{
    return (struct engine_auth){
        .op = {.done = on_changed, .arena = arena, .principal = ENGINE_SERVER},
        .call = call,
        .user = SLICE_LITERAL("root"),
        .role = SLICE_LITERAL("root"),
        .no_password = true,
    };
}

static void change(enum engine_auth_call call)
{
    struct arena arena;
    arena_init(&arena, NULL, 0, 1 << 20);
    struct engine_auth auth = auth_change(call, &arena);
    engine_auth_start(bed->shard, &auth);
    run();
    assert_null(auth.op.arena);
    assert_int_equal(auth.op.status, ST_OK);
    arena_fini(&arena);
}

static void add_root(void)
{
    change(ENGINE_AUTH_USER_ADD);
    change(ENGINE_AUTH_ROLE_ADD);
    change(ENGINE_AUTH_USER_GRANT_ROLE);
}

/* The gate has admitted the requests; the engine must refuse operations after the change. */
static void requests_admitted_earlier_are_refused_by_the_engine(void **state)
{
    (void)state;
    unsigned refused = 0, served = 0;
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct arena arena;
        arena_init(&arena, NULL, 0, 1 << 20);
        begin(seed, 0);
        struct peer *made = send_json("POST", CMS, "{\"metadata\":{\"name\":\"a\"}}");
        run();
        assert_answer(made, 201, NULL);
        add_root();
        struct peer *peers[] = {
            send_json("GET", CMS "/a", ""),
            send_json("POST", CMS, "{\"metadata\":{\"name\":\"b\"}}"),
            send_json("DELETE", CMS "/a", ""),
            send_json("GET", CMS, ""),
        };
        struct engine_auth enable = auth_change(ENGINE_AUTH_ENABLE, &arena);
        engine_auth_start(bed->shard, &enable);
        while (enable.op.arena)
            assert_true(fake_step(bed->engine));
        bool answered[COUNT_OF(peers)];
        for (size_t i = 0; i < COUNT_OF(peers); i++)
            answered[i] = peers[i]->code != 0;
        run();
        for (size_t i = 0; i < COUNT_OF(peers); i++) {
            assert_true(answered[i] || peers[i]->code == 401);
            refused += peers[i]->code == 401;
            served += peers[i]->code / 100 == 2;
        }
        change(ENGINE_AUTH_DISABLE);
        struct peer *after = send_json("GET", CMS, "");
        run();
        assert_answer(after, 200, NULL);
        end();
        arena_fini(&arena);
    }
    assert_true(refused && served); /* both orders occurred */
}

static void turn(void)
{
    engine_shard_turn_begin(bed->shard);
    engine_shard_turn_end(bed->shard);
    run();
}

/* Any number of watches, without a change of their objects. */
static void every_watch_ends_with_a_status_when_authentication_is_enabled(void **state)
{
    (void)state;
    static struct peer *watches[WATCHES];
    uint8_t bytes[1024];
    begin(1, 100);
    add_root();
    for (int i = 0; i < WATCHES; i++)
        watches[i] = send_json("GET", CMS "?watch=1&resourceVersion=1", "");
    turn();
    for (int i = 0; i < WATCHES; i++) {
        assert_int_equal(http_exchange_fill(&watches[i]->x, bytes, sizeof(bytes)), 0);
        assert_false(http_exchange_flows(&watches[i]->x));
    }
    change(ENGINE_AUTH_ENABLE);
    turn();
    for (int i = 0; i < WATCHES; i++) {
        assert_true(http_exchange_flows(&watches[i]->x)); /* it was woken */
        size_t n = http_exchange_fill(&watches[i]->x, bytes, sizeof(bytes));
        assert_non_null(memmem(bytes, n, "\"type\":\"ERROR\"", 14));
        assert_non_null(memmem(bytes, n, "--kube-token-file", 17));
        assert_true(http_exchange_complete(&watches[i]->x));
    }
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_admitted_earlier_are_refused_by_the_engine),
        cmocka_unit_test(every_watch_ends_with_a_status_when_authentication_is_enabled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
