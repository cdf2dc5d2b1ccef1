/* The local engine with users: root, and ann who may write under "a/" and read under "r/". */
#ifndef VIGIL_ENGINE_LOCAL_ACCESS_FIXTURE_TEST_H
#define VIGIL_ENGINE_LOCAL_ACCESS_FIXTURE_TEST_H

#include "engine/engine.h"
#include "engine/local/fixture_test.h"

static const struct auth_principal nobody;

static const struct engine_local_options access_options = {
    .shards_max = 3, .member_id = 1, .quota_bytes = 1 << 20};

/* The principal of a user at the newest revision of the store, as in the API. */
static inline struct auth_principal as(struct fixture *f, const char *user)
{
    return (struct auth_principal){.user = slice_from_text(user),
                                   .revision = engine_auth_revision(f->engine)};
}

static inline struct engine_op op_of(struct fixture *f, struct auth_principal principal)
{
    struct engine_op op = new_op(f);
    op.principal = principal;
    return op;
}

static inline enum status run_auth(struct fixture *f, struct engine_auth *op)
{
    engine_auth_start(f->shard, op);
    wait_for(f, 0);
    return op->op.status;
}

static inline enum status change(struct fixture *f, enum engine_auth_call call, const char *user,
                                 const char *role)
{
    struct engine_auth op = {.op = op_of(f, as(f, "root")),
                             .call = call,
                             .user = slice_from_text(user),
                             .role = slice_from_text(role),
                             .hash = SLICE_LITERAL("hash")};
    return run_auth(f, &op);
}

static inline enum status grant(struct fixture *f, const char *role, int32_t type, const char *key,
                                const char *end)
{
    struct pb_permission permission = {
        .perm_type = type, .key = slice_from_text(key), .range_end = slice_from_text(end)};
    struct engine_auth op = {.op = op_of(f, as(f, "root")),
                             .call = ENGINE_AUTH_ROLE_GRANT,
                             .role = slice_from_text(role),
                             .permission = &permission};
    return run_auth(f, &op);
}

static inline enum status put_as(struct fixture *f, struct auth_principal who, const char *key,
                                 int64_t lease)
{
    struct pb_put_request request = {.key = slice_from_text(key), .lease = lease};
    struct engine_write write = {.op = op_of(f, who)};
    engine_put(f->shard, &write, &request);
    wait_for(f, 0);
    engine_write_close(&write);
    return write.op.status;
}

static inline enum status put(struct fixture *f, const char *user, const char *key)
{
    return put_as(f, as(f, user), key, 0);
}

static inline enum status get_as(struct fixture *f, struct auth_principal who, const char *key,
                                 const char *end)
{
    struct pb_range_request request = {.key = slice_from_text(key),
                                       .range_end = slice_from_text(end)};
    struct engine_range range = {.op = op_of(f, who)};
    engine_range_start(f->shard, &range, &request);
    wait_for(f, 0);
    engine_range_close(&range);
    return range.op.status;
}

static inline enum status txn_as(struct fixture *f, struct auth_principal who,
                                 const struct pb_txn_request *request)
{
    struct engine_write write = {.op = op_of(f, who)};
    engine_txn(f->shard, &write, request);
    wait_for(f, 0);
    engine_write_close(&write);
    return write.op.status;
}

static inline enum status lease_as(struct fixture *f, struct auth_principal who,
                                   void (*start)(struct engine_shard *, struct engine_lease *),
                                   int64_t id, bool keys)
{
    struct engine_lease op = {.op = op_of(f, who), .id = id, .ttl_s = 100, .want_keys = keys};
    start(f->shard, &op);
    wait_for(f, 0);
    return op.op.status;
}

#define OK(call) assert_int_equal(call, ST_OK)
#define DENIED(call) assert_int_equal(call, ST_PERMISSION_DENIED)
#define NOBODY(call) assert_int_equal(call, ST_USER_EMPTY)

enum { READ = PB_PERMISSION_TYPE_READ, RW = PB_PERMISSION_TYPE_READWRITE };

static inline void fill(struct fixture *f)
{
    OK(change(f, ENGINE_AUTH_USER_ADD, "root", ""));
    OK(change(f, ENGINE_AUTH_USER_GRANT_ROLE, "root", "root"));
    OK(change(f, ENGINE_AUTH_USER_ADD, "ann", ""));
    OK(change(f, ENGINE_AUTH_ROLE_ADD, "", "a"));
    OK(change(f, ENGINE_AUTH_USER_GRANT_ROLE, "ann", "a"));
    OK(grant(f, "a", RW, "a/", "a0"));
    OK(grant(f, "a", READ, "r/", "r0"));
    OK(change(f, ENGINE_AUTH_ENABLE, "", ""));
}

static inline int set_up(void **state)
{
    *state = fixture_new(access_options);
    fill(*state);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, fixture_free)

#endif
