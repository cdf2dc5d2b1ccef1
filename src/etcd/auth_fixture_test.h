/* For tests: users and roles of a fake engine, and tokens for users without passwords. */
#ifndef VIGIL_ETCD_AUTH_FIXTURE_TEST_H
#define VIGIL_ETCD_AUTH_FIXTURE_TEST_H

#include "auth/token/issuer.h"
#include "base/clock.h"
#include "codec/pb/auth.pb.h"
#include "engine/engine.h"
#include "fake/fake.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { AUTH_TOKEN_ROOM = AUTH_TOKEN_TEXT_BYTES + 1 };

static inline void auth_changed_done(struct engine_op *op)
{
    op->arena = NULL;
}

/* Changes users and roles as the server itself. */
static inline void auth_change(struct engine *engine, struct engine_shard *shard,
                               struct engine_auth change)
{
    struct arena arena;
    arena_init(&arena, NULL, 0, 1 << 20);
    change.op =
        (struct engine_op){.done = auth_changed_done, .arena = &arena, .principal = ENGINE_SERVER};
    engine_auth_start(shard, &change);
    while (change.op.arena)
        assert_true(fake_step(engine));
    assert_int_equal(change.op.status, ST_OK);
    arena_fini(&arena);
}

static inline void auth_add_user(struct engine *engine, struct engine_shard *shard,
                                 const char *user, const char *role)
{
    struct slice name = slice_from_text(user);
    auth_change(
        engine, shard,
        (struct engine_auth){.call = ENGINE_AUTH_USER_ADD, .user = name, .no_password = true});
    auth_change(engine, shard,
                (struct engine_auth){.call = ENGINE_AUTH_USER_GRANT_ROLE,
                                     .user = name,
                                     .role = slice_from_text(role)});
}

/* end: "" means one key. */
static inline void auth_grant(struct engine *engine, struct engine_shard *shard, const char *role,
                              int32_t type, const char *key, const char *end)
{
    struct pb_permission permission = {
        .perm_type = type, .key = slice_from_text(key), .range_end = slice_from_text(end)};
    auth_change(engine, shard,
                (struct engine_auth){.call = ENGINE_AUTH_ROLE_GRANT,
                                     .role = slice_from_text(role),
                                     .permission = &permission});
}

/*
 * Enables authentication. The user root may do everything; anna, with the role writer, may read and
 * write from a/ to b, and read r.
 */
static inline void auth_begin(struct engine *engine, struct engine_shard *shard)
{
    auth_change(
        engine, shard,
        (struct engine_auth){.call = ENGINE_AUTH_ROLE_ADD, .role = SLICE_LITERAL("writer")});
    auth_grant(engine, shard, "writer", PB_PERMISSION_TYPE_READWRITE, "a/", "b");
    auth_grant(engine, shard, "writer", PB_PERMISSION_TYPE_READ, "r", "");
    auth_add_user(engine, shard, "root", "root");
    auth_add_user(engine, shard, "anna", "writer");
    auth_change(engine, shard, (struct engine_auth){.call = ENGINE_AUTH_ENABLE});
}

static inline uint64_t auth_any_revision(void *ctx)
{
    (void)ctx;
    return 1;
}

static inline void auth_token(struct auth_issuer *issuer, const char *user, int64_t now_ns,
                              char text[AUTH_TOKEN_ROOM])
{
    struct buf token = {0};
    struct auth_login login = {
        .principal = {.user = slice_from_text(user), .revision = 1},
        .now = {now_ns, 1},
        .revision = auth_any_revision,
    };
    assert_int_equal(auth_issuer_give(issuer, &login, &token), ST_OK);
    assert_true(token.len < AUTH_TOKEN_ROOM);
    memcpy(text, token.ptr, token.len);
    text[token.len] = 0;
    buf_fini(&token);
}

#endif
