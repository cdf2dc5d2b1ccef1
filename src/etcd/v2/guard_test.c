/* Permissions of the v2 API, over HTTP/1.1 connections and the fake engine: timing, disconnecting
 * clients and failures. tests/live/v2_auth_test.py compares the answers with etcd's. */
#include "base/clock.h"
#include "base/memory/budget.h"
#include "codec/base64.h"
#include "codec/pb/rpc.pb.h"
#include "engine/hasher.h"
#include "etcd/api.h"
#include "etcd/v2/policy.h"
#include "fake/fake.h"
#include "wire/connection.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { CONNECTIONS = HASHER_QUEUE_MAX + 2 };

struct fixture {
    struct etcd_config config;
    struct engine *engine;
    struct engine_shard *shard;
    struct etcd_api *api;
    struct loop *loop;
    struct worker *hasher;
    bool hashing; /* the hasher's thread runs */
    struct wire_server *server;
    struct wire_connection *connections[CONNECTIONS];
    struct buf out[CONNECTIONS]; /* everything received since the latest request */
};

static void ignore(void *owner)
{
    (void)owner;
}

static void start_hasher(struct fixture *f)
{
    if (!f->hashing)
        assert_int_equal(worker_start(f->hasher), ST_OK);
    f->hashing = true;
}

static void fixture_init(struct fixture *f, unsigned inline_percent, uint64_t seed)
{
    struct wire_limits limits = WIRE_LIMITS_DEFAULT;
    memset(f, 0, sizeof(*f));
    f->hasher = hasher_new();
    f->config = (struct etcd_config){
        .version = "3.4.0",
        .cluster_version = "3.4.0",
        .txn_ops_max = ETCD_TXN_OPS_MAX_DEFAULT,
        .request_bytes_max = ETCD_REQUEST_BYTES_MAX_DEFAULT,
        .v2 = true,
        .hasher = f->hasher,
        .bcrypt_cost = AUTH_BCRYPT_COST_MIN,
    };
    f->engine = fake_new(&(struct fake_options){.seed = seed, .inline_percent = inline_percent});
    assert_int_equal(loop_new(clock_system(), &f->loop), ST_OK);
    assert_int_equal(engine_shard_new(f->engine, NULL, &f->shard), ST_OK);
    assert_int_equal(etcd_api_new(&f->config, f->engine, f->shard, &f->api), ST_OK);
    etcd_api_set_loop(f->api, f->loop);
    limits.http.body_bytes_max = 4 << 20;
    assert_int_equal(
        wire_server_new(etcd_api_services(f->api), etcd_api_routes(f->api), &limits, &f->server),
        ST_OK);
    struct wire_hooks hooks = {.on_output = ignore};
    for (size_t i = 0; i < CONNECTIONS; i++)
        assert_int_equal(wire_connection_new(f->server, hooks, 1, &f->connections[i]), ST_OK);
}

static void hang_up(struct fixture *f, size_t c)
{
    wire_connection_free(f->connections[c]);
    f->connections[c] = NULL;
}

static void flush(struct fixture *f, size_t c)
{
    uint8_t bytes[WIRE_FILL_ROOM_MIN];
    while (f->connections[c] && wire_connection_wants_write(f->connections[c])) {
        size_t n = wire_connection_fill(f->connections[c], bytes, sizeof(bytes), 1);
        if (n == 0)
            break;
        assert_int_equal(buf_append(&f->out[c], slice_of(bytes, n)), ST_OK);
    }
}

static void flush_all(struct fixture *f)
{
    for (size_t i = 0; i < CONNECTIONS; i++)
        flush(f, i);
}

/* Waits until the engine and the hasher's thread have answered everything. */
static void settle(struct fixture *f)
{
    flush_all(f);
    for (int i = 0; i < 60000 && etcd_api_busy(f->api); i++) {
        (void)fake_step(f->engine);
        loop_turn(f->loop, NS_PER_MS);
        flush_all(f);
    }
    assert_false(etcd_api_busy(f->api));
}

static void fixture_fini(struct fixture *f)
{
    for (size_t i = 0; i < CONNECTIONS; i++)
        hang_up(f, i);
    start_hasher(f);
    settle(f);
    assert_int_equal(fake_open(f->engine), 0);
    wire_server_free(f->server);
    etcd_api_free(f->api);
    engine_shard_free(f->shard);
    fake_free(f->engine);
    worker_free(f->hasher);
    loop_free(f->loop);
    for (size_t i = 0; i < CONNECTIONS; i++)
        buf_fini(&f->out[i]);
}

/* -- Stored users and roles -- */

static void put_done(struct engine_op *op)
{
    op->arena = NULL;
}

static void store(struct fixture *f, struct slice document)
{
    struct arena arena;
    arena_init(&arena, NULL, 0, 1 << 20);
    struct pb_put_request put = {.key = SLICE_LITERAL(V2_POLICY_KEY), .value = document};
    struct engine_write write = {.op = {.done = put_done, .arena = &arena}};
    engine_put(f->shard, &write, &put);
    while (write.op.arena)
        assert_true(fake_step(f->engine));
    assert_int_equal(write.op.status, ST_OK);
    engine_write_close(&write);
    arena_fini(&arena);
}

enum { LONG_NAME_BYTES = V2_POLICY_NAME_BYTES_MAX };

/* Creates root and a user with a long name, both with this password, and no guest permissions. */
static void guard_with(struct fixture *f, const char *password)
{
    static char document[LONG_NAME_BYTES + 1024];
    uint8_t salt[AUTH_SALT_BYTES] = {1}, hash[AUTH_HASH_BYTES];
    assert_int_equal(
        auth_password_hash(slice_from_text(password), salt, AUTH_BCRYPT_COST_MIN, hash), ST_OK);
    int len = snprintf(document, sizeof(document),
                       "{\"enabled\":true,\"users\":[{\"user\":\"%0*d\",\"hash\":\"%.*s\","
                       "\"roles\":[\"root\"]},{\"user\":\"root\",\"hash\":\"%.*s\",\"roles\":"
                       "null}],\"roles\":[{\"role\":\"guest\"}]}",
                       LONG_NAME_BYTES, 0, AUTH_HASH_BYTES, (const char *)hash, AUTH_HASH_BYTES,
                       (const char *)hash);
    store(f, slice_of(document, (size_t)len));
}

static void guard(struct fixture *f)
{
    guard_with(f, "p");
}

/* -- Requests -- */

/* Sends the head of a request, and as much of its body as is given. */
static void ask_in_part(struct fixture *f, size_t c, const char *method, const char *path,
                        const char *user, size_t length, const char *body)
{
    AUTO(buf_fini) struct buf request = {0};
    char shown[4096] = "";
    if (user) {
        memcpy(shown, "Authorization: Basic ", strlen("Authorization: Basic ") + 1);
        size_t at = strlen(shown), len = base64_encoded_len(strlen(user));
        assert_true(at + len + 3 <= sizeof(shown));
        base64_encode(slice_from_text(user), (uint8_t *)shown + at);
        memcpy(shown + at + len, "\r\n", 3);
    }
    assert_int_equal(buf_append_format(&request,
                                       "%s /v2/%s HTTP/1.1\r\nHost: x\r\n%sContent-Length: "
                                       "%zu\r\n\r\n%s",
                                       method, path, shown, length, body),
                     ST_OK);
    f->out[c].len = 0;
    wire_connection_feed(f->connections[c], buf_slice(&request), 1);
}

static void ask(struct fixture *f, size_t c, const char *method, const char *path, const char *user,
                const char *body)
{
    ask_in_part(f, c, method, path, user, strlen(body), body);
}

/* Everything received since the latest request. */
static const char *answer_of(struct fixture *f, size_t c)
{
    struct buf *out = &f->out[c];
    flush(f, c);
    assert_int_equal(buf_append(out, slice_of("", 1)), ST_OK);
    out->len--;
    return (const char *)out->ptr;
}

/* The status of the answer; 0: there is none. */
static int status_of(struct fixture *f, size_t c)
{
    const char *answer = answer_of(f, c);
    return *answer ? (int)strtol(answer + strlen("HTTP/1.1 "), NULL, 10) : 0;
}

static int asked(struct fixture *f, const char *method, const char *path, const char *user,
                 const char *body)
{
    ask(f, 0, method, path, user, body);
    settle(f);
    return status_of(f, 0);
}

/* -- Tests -- */

static void wrong_passwords_are_refused(void **state)
{
    (void)state;
    struct fixture f;
    char long_one[128];
    fixture_init(&f, 100, 1);
    start_hasher(&f);
    guard(&f);
    snprintf(long_one, sizeof(long_one), "root:%0*d", AUTH_PASSWORD_BYTES_MAX + 1, 0);
    static const char *const wrong[] = {"root:", "root:P", "root:pp", "root", "", ":p", "nobody:p"};
    assert_int_equal(asked(&f, "GET", "auth/users", "root:p", ""), 200);
    assert_int_equal(asked(&f, "GET", "keys/", "root:p", ""), 200);
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        assert_int_equal(asked(&f, "GET", "auth/users", wrong[i], ""), 401);
        assert_int_equal(asked(&f, "GET", "keys/", wrong[i], ""), 401);
    }
    assert_int_equal(asked(&f, "GET", "auth/users", long_one, ""), 401);
    assert_int_equal(asked(&f, "GET", "auth/users", NULL, ""), 401);
    assert_int_equal(asked(&f, "GET", "keys/", NULL, ""), 401);
    assert_int_equal(asked(&f, "GET", "auth/enable", NULL, ""), 200);
    fixture_fini(&f);
}

static void requests_are_refused_when_too_many_passwords_wait(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 100, 1);
    guard(&f);
    for (size_t i = 0; i < HASHER_QUEUE_MAX; i++) {
        ask(&f, i, "GET", "auth/enable", "root:p", ""); /* open to all: nothing is hashed */
        assert_int_equal(status_of(&f, i), 200);
        ask(&f, i, "GET", i % 2 ? "auth/users" : "keys/", "root:p", "");
        assert_int_equal(status_of(&f, i), 0);
    }
    ask(&f, HASHER_QUEUE_MAX, "GET", "keys/", "root:p", "");
    assert_int_equal(status_of(&f, HASHER_QUEUE_MAX), 500);
    ask(&f, HASHER_QUEUE_MAX + 1, "GET", "auth/users", "root:p", "");
    assert_int_equal(status_of(&f, HASHER_QUEUE_MAX + 1), 500);
    start_hasher(&f);
    settle(&f);
    for (size_t i = 0; i < HASHER_QUEUE_MAX; i++)
        assert_int_equal(status_of(&f, i), 200);
    fixture_fini(&f);
}

static void disconnect_during_hashing_leaks_nothing(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 100, 1);
    guard(&f);
    for (size_t i = 0; i < 16; i++)
        ask(&f, i, "GET", "keys/", "root:p", "");
    for (size_t i = 0; i < 16; i += 2)
        hang_up(&f, i);
    start_hasher(&f);
    settle(&f);
    for (size_t i = 1; i < 16; i += 2)
        assert_int_equal(status_of(&f, i), 200);
    fixture_fini(&f);
}

/* A change passes the guard, the hasher, a read and a write; the client disconnects after each. */
static void disconnect_at_any_step_leaks_nothing(void **state)
{
    (void)state;
    for (int steps = 0; steps < 16; steps++) {
        struct fixture f;
        fixture_init(&f, 0, 1);
        start_hasher(&f);
        guard(&f);
        ask(&f, 0, "PUT", "auth/users/a", "root:p", "{\"user\":\"a\",\"password\":\"x\"}");
        ask(&f, 1, "PUT", "auth/roles/r", "root:p", "{\"role\":\"r\"}");
        ask(&f, 2, "PUT", "keys/k", "root:p", "");
        ask(&f, 3, "GET", "keys/k", "root:p", "");
        ask(&f, 4, "POST", "members", "root:p", "{}");
        for (int i = 0; i < steps; i++) {
            for (int k = 0; k < 4; k++)
                (void)fake_step(f.engine);
            loop_turn(f.loop, NS_PER_MS);
            flush_all(&f);
        }
        fixture_fini(&f);
    }
}

static const struct body_row {
    const char *method, *path, *body;
    int status;
} body_rows[] = {
    {"PUT", "keys/k", "value=1", 201},
    {"POST", "members", "{\"peerURLs\":[\"http://x:1\"]}",
     415}, /* the test sends no content type */
    {"PUT", "auth/users/a", "{\"user\":\"a\",\"password\":\"x\"}", 201},
    {"PUT", "auth/roles/a", "{\"role\":\"a\"}", 201},
};

static void wrong_password_is_refused_before_the_body(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(body_rows); i++) {
        struct fixture f;
        fixture_init(&f, 100, 1);
        start_hasher(&f);
        guard(&f);
        ask_in_part(&f, 0, body_rows[i].method, body_rows[i].path, "root:P", 1000000, "");
        assert_int_equal(status_of(&f, 0), 0);
        settle(&f);
        assert_int_equal(status_of(&f, 0), 401);
        assert_non_null(strstr(answer_of(&f, 0), "\r\nConnection: close\r\n"));
        ask_in_part(&f, 1, body_rows[i].method, body_rows[i].path, NULL, 1000000, "");
        assert_int_equal(status_of(&f, 1), 401);
        fixture_fini(&f);
    }
}

/* Sends a request whose body arrives after its password was verified and, if it is not NULL, after
 * all passwords were changed. */
static void ask_slowly(struct fixture *f, const struct body_row *row, const char *new_password)
{
    ask_in_part(f, 0, row->method, row->path, "root:p", strlen(row->body), "");
    settle(f);
    assert_int_equal(status_of(f, 0), 0);
    if (new_password)
        guard_with(f, new_password);
    wire_connection_feed(f->connections[0], slice_from_text(row->body), 1);
}

static void changed_users_are_checked_again_after_the_body(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(body_rows); i++) {
        struct fixture f;
        fixture_init(&f, 100, 1);
        start_hasher(&f);
        guard(&f);
        ask_slowly(&f, &body_rows[i], "q");
        settle(&f);
        assert_int_equal(status_of(&f, 0), 401);
        fixture_fini(&f);
    }
}

/* The same password, stored again, is verified again. */
static void password_is_verified_once_while_users_stay_the_same(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 100, 1);
    start_hasher(&f);
    guard(&f);
    ask_slowly(&f, &body_rows[0], NULL);
    assert_int_equal(status_of(&f, 0), body_rows[0].status); /* the hasher could not answer yet */
    ask_slowly(&f, &body_rows[0], "p");
    assert_int_equal(status_of(&f, 0), 0);
    settle(&f);
    assert_int_equal(status_of(&f, 0), 200);
    for (size_t i = 1; i < COUNT_OF(body_rows); i++) {
        ask_slowly(&f, &body_rows[i], NULL);
        settle(&f);
        assert_int_equal(status_of(&f, 0), body_rows[i].status);
    }
    fixture_fini(&f);
}

static void concurrent_changes_are_all_kept(void **state)
{
    (void)state;
    enum { ROLES = 12 };
    for (uint64_t seed = 1; seed <= 8; seed++) {
        struct fixture f;
        fixture_init(&f, 20, seed);
        for (size_t i = 0; i < ROLES; i++) {
            char path[32], body[32];
            snprintf(path, sizeof(path), "auth/roles/r%zu", i);
            snprintf(body, sizeof(body), "{\"role\":\"r%zu\"}", i);
            ask(&f, i, "PUT", path, NULL, body);
        }
        settle(&f);
        for (size_t i = 0; i < ROLES; i++)
            assert_int_equal(status_of(&f, i), 201);
        for (size_t i = 0; i < ROLES; i++) {
            char path[32];
            snprintf(path, sizeof(path), "auth/roles/r%zu", i);
            assert_int_equal(asked(&f, "GET", path, NULL, ""), 200);
        }
        fixture_fini(&f);
    }
}

static void unreadable_policy_permits_nothing(void **state)
{
    (void)state;
    static const char *const paths[] = {"keys/", "auth/users", "auth/roles/r"};
    struct fixture f;
    fixture_init(&f, 100, 1);
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        assert_true(asked(&f, "GET", paths[i], NULL, "") != 401);
        fake_fail_next(f.engine, ST_NO_SPACE, SLICE_EMPTY);
        assert_int_equal(asked(&f, "GET", paths[i], NULL, ""), 500);
    }
    store(&f, SLICE_LITERAL("{\"enabled\":false}"));
    for (size_t i = 0; i < COUNT_OF(paths); i++)
        assert_int_equal(asked(&f, "GET", paths[i], NULL, ""), 500);
    fixture_fini(&f);
}

enum { STARVED_MIN = 4000, STARVED_MAX = 16000, STARVED_STEP = 16 };

/* The password is right, so no lack of memory may be reported as a wrong password. */
static void out_of_memory_is_not_reported_as_wrong_password(void **state)
{
    (void)state;
    unsigned served = 0, starved = 0;
    static char user[LONG_NAME_BYTES + 3];
    struct fixture f;
    snprintf(user, sizeof(user), "%0*d:p", LONG_NAME_BYTES, 0);
    fixture_init(&f, 100, 1);
    start_hasher(&f);
    guard(&f);
    for (size_t limit = STARVED_MIN; limit < STARVED_MAX; limit += STARVED_STEP) {
        struct budget *budget;
        struct account *account;
        assert_int_equal(budget_new(limit, &budget), ST_OK);
        assert_int_equal(account_new(budget, &account), ST_OK);
        struct wire_hooks hooks = {.on_output = ignore, .account = account};
        hang_up(&f, 0);
        assert_int_equal(wire_connection_new(f.server, hooks, 1, &f.connections[0]), ST_OK);
        int status = asked(&f, "GET", "keys/?recursive=true",
                           limit / STARVED_STEP % 2 ? user : "root:p", "");
        if (status != 0 && status != 200 && status != 429 && status != 500)
            fail_msg("%d with %zu bytes: %s", status, limit, answer_of(&f, 0));
        served += status == 200;
        starved += status != 200;
        hang_up(&f, 0);
        account_unref(account);
        budget_free(budget);
    }
    assert_true(served > 0 && starved > 0);
    fixture_fini(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_passwords_are_refused),
        cmocka_unit_test(requests_are_refused_when_too_many_passwords_wait),
        cmocka_unit_test(disconnect_during_hashing_leaks_nothing),
        cmocka_unit_test(disconnect_at_any_step_leaks_nothing),
        cmocka_unit_test(wrong_password_is_refused_before_the_body),
        cmocka_unit_test(changed_users_are_checked_again_after_the_body),
        cmocka_unit_test(password_is_verified_once_while_users_stay_the_same),
        cmocka_unit_test(concurrent_changes_are_all_kept),
        cmocka_unit_test(unreadable_policy_permits_nothing),
        cmocka_unit_test(out_of_memory_is_not_reported_as_wrong_password),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
