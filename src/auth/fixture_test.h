/* A store for tests, with short functions for changes, which are applied row by row as in an
 * engine. */
#ifndef VIGIL_AUTH_FIXTURE_TEST_H
#define VIGIL_AUTH_FIXTURE_TEST_H

#include "auth/rights.h"
#include "auth/store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

struct world {
    struct auth_store *store;
    struct arena arena; /* memory of the last change */
    struct auth_change change;
};

static inline struct world *world_new(void)
{
    struct world *world = calloc(1, sizeof(*world));
    world->store = auth_store_new();
    arena_init(&world->arena, NULL, 0, 64 << 20);
    return world;
}

static inline void world_free(struct world *world)
{
    auth_store_check(world->store);
    auth_store_free(world->store);
    arena_fini(&world->arena);
    free(world);
}

static inline int world_set_up(void **state)
{
    *state = world_new();
    return 0;
}

static inline int world_tear_down(void **state)
{
    world_free(*state);
    return 0;
}

/* Frees the rows of the last change before the next one. */
static inline struct arena *world_arena(struct world *world)
{
    arena_fini(&world->arena);
    arena_init(&world->arena, NULL, 0, 64 << 20);
    world->change = (struct auth_change){0};
    return &world->arena;
}

static inline enum status world_apply(struct world *world, enum status status)
{
    for (size_t i = 0; status == ST_OK && i < world->change.row_count; i++)
        assert_int_equal(auth_store_apply(world->store, &world->change.rows[i]), ST_OK);
    return status;
}

#define TEXT(text) slice_from_text(text)

static inline enum status enable(struct world *w)
{
    return world_apply(w, auth_store_enable(w->store, world_arena(w), &w->change));
}
static inline enum status disable(struct world *w)
{
    return world_apply(w, auth_store_disable(w->store, world_arena(w), &w->change));
}
static inline enum status user_add(struct world *w, const char *name)
{
    return world_apply(w, auth_store_user_add(w->store, TEXT(name), TEXT("hash"), false,
                                              world_arena(w), &w->change));
}
static inline enum status user_delete(struct world *w, const char *name)
{
    return world_apply(w, auth_store_user_delete(w->store, TEXT(name), world_arena(w), &w->change));
}
static inline enum status user_password(struct world *w, const char *name, const char *hash)
{
    return world_apply(w, auth_store_user_change_password(w->store, TEXT(name), TEXT(hash),
                                                          world_arena(w), &w->change));
}
static inline enum status user_grant(struct world *w, const char *name, const char *role)
{
    return world_apply(w, auth_store_user_grant_role(w->store, TEXT(name), TEXT(role),
                                                     world_arena(w), &w->change));
}
static inline enum status user_revoke(struct world *w, const char *name, const char *role)
{
    return world_apply(w, auth_store_user_revoke_role(w->store, TEXT(name), TEXT(role),
                                                      world_arena(w), &w->change));
}
static inline enum status role_add(struct world *w, const char *name)
{
    return world_apply(w, auth_store_role_add(w->store, TEXT(name), world_arena(w), &w->change));
}
static inline enum status role_delete(struct world *w, const char *name)
{
    return world_apply(w, auth_store_role_delete(w->store, TEXT(name), world_arena(w), &w->change));
}

/* The end "*" stands for a zero byte, which means no end. */
static inline struct slice end_of(const char *end)
{
    return strcmp(end, "*") == 0 ? slice_of("", 1) : TEXT(end);
}

static inline enum status role_grant(struct world *w, const char *role, int32_t type,
                                     const char *key, const char *end)
{
    struct pb_permission permission = {
        .perm_type = type, .key = TEXT(key), .range_end = end_of(end)};
    return world_apply(
        w, auth_store_role_grant(w->store, TEXT(role), &permission, world_arena(w), &w->change));
}
static inline enum status role_revoke(struct world *w, const char *role, const char *key,
                                      const char *end)
{
    return world_apply(w, auth_store_role_revoke(w->store, TEXT(role), TEXT(key), end_of(end),
                                                 world_arena(w), &w->change));
}

#define OK(call) assert_int_equal(call, ST_OK)

/* Adds root and enables authentication. */
static inline void guard(struct world *w)
{
    OK(user_add(w, "root"));
    OK(user_grant(w, "root", "root"));
    OK(enable(w));
}

/* A user with a role of its own name that has this permission. */
static inline void user_with(struct world *w, const char *name, int32_t type, const char *key,
                             const char *end)
{
    OK(user_add(w, name));
    OK(role_add(w, name));
    OK(user_grant(w, name, name));
    OK(role_grant(w, name, type, key, end));
}

static inline struct auth_principal who(struct world *w, const char *user)
{
    return (struct auth_principal){.user = TEXT(user), .revision = auth_store_revision(w->store)};
}

#endif
