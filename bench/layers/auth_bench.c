/* What access control costs in processor time: auth_bench [users] [permissions each]. */
#include "auth/check.h"
#include "auth/password.h"
#include "auth/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 2000000 };

static int64_t cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec * 1000000000 + now.tv_nsec;
}

static void apply(struct auth_store *store, enum status status, struct auth_change *change)
{
    for (size_t i = 0; status == ST_OK && i < change->row_count; i++)
        status = auth_store_apply(store, &change->rows[i]);
    if (status != ST_OK)
        abort();
}

static void fill(struct auth_store *store, unsigned users, unsigned permissions)
{
    struct arena arena;
    struct auth_change change;
    for (unsigned u = 0; u <= users; u++) {
        char name[32], key[64], end[64];
        snprintf(name, sizeof(name), u ? "user-%u" : "root", u);
        struct slice user = slice_from_text(name);
        arena_init(&arena, NULL, 0, SIZE_MAX);
        apply(store, auth_store_user_add(store, user, SLICE_EMPTY, true, &arena, &change), &change);
        if (u)
            apply(store, auth_store_role_add(store, user, &arena, &change), &change);
        apply(store, auth_store_user_grant_role(store, user, user, &arena, &change), &change);
        for (unsigned p = 0; u && p < permissions; p++) {
            snprintf(key, sizeof(key), "/registry/%s/%04u/", name, p);
            snprintf(end, sizeof(end), "/registry/%s/%04u0", name, p);
            struct pb_permission permission = {.perm_type = PB_PERMISSION_TYPE_READWRITE,
                                               .key = slice_from_text(key),
                                               .range_end = slice_from_text(end)};
            apply(store, auth_store_role_grant(store, user, &permission, &arena, &change), &change);
        }
        arena_fini(&arena);
    }
    arena_init(&arena, NULL, 0, SIZE_MAX);
    apply(store, auth_store_enable(store, &arena, &change), &change);
    arena_fini(&arena);
}

/* A change, and the picture after it. */
static void time_change(struct auth_store *store, const struct auth_rights *rights,
                        const char *what, enum status status, const struct auth_change *change)
{
    for (size_t i = 0; status == ST_OK && i < change->row_count; i++)
        status = auth_store_apply(store, &change->rows[i]);
    if (status != ST_OK)
        abort();
    int64_t start = cpu_ns();
    struct auth_rights *after = auth_rights_after(rights, store, change->rows, change->row_count);
    int64_t made = cpu_ns();
    auth_rights_unref(after);
    printf("rights after %s: %.3f ms to build, %.3f ms to free\n", what,
           (double)(made - start) / 1e6, (double)(cpu_ns() - made) / 1e6);
}

static void time_changes(struct auth_store *store, const struct auth_rights *rights)
{
    struct arena arena;
    struct auth_change change;
    struct pb_permission permission = {.perm_type = PB_PERMISSION_TYPE_READWRITE,
                                       .key = SLICE_LITERAL("new")};
    struct slice user = SLICE_LITERAL("new"), role = SLICE_LITERAL("user-1");
    arena_init(&arena, NULL, 0, SIZE_MAX);
    enum status status = auth_store_user_add(store, user, SLICE_EMPTY, true, &arena, &change);
    time_change(store, rights, "a new user", status, &change);
    status = auth_store_user_grant_role(store, user, role, &arena, &change);
    time_change(store, rights, "a role more of a user", status, &change);
    status = auth_store_role_grant(store, role, &permission, &arena, &change);
    time_change(store, rights, "a permission more of two users' role", status, &change);
    arena_fini(&arena);
}

int main(int argc, char **argv)
{
    unsigned users = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 100;
    unsigned permissions = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 10;
    AUTO(auth_store_freep) struct auth_store *store = auth_store_new();
    fill(store, users, permissions);

    int64_t start = cpu_ns();
    AUTO(auth_rights_unrefp) struct auth_rights *rights = auth_rights_new(store);
    printf("picture of %u users with %u permissions: %.2f ms, %zu bytes\n", users, permissions,
           (double)(cpu_ns() - start) / 1e6, auth_rights_bytes(rights));

    char name[32], key[64];
    snprintf(name, sizeof(name), "user-%u", users);
    snprintf(key, sizeof(key), "/registry/%s/%04u/some-key", name, permissions / 2);
    struct auth_asker asker = {
        .rights = rights,
        .principal = {.user = slice_from_text(name), .revision = auth_store_revision(store)}};
    struct pb_put_request put = {.key = slice_from_text(key)};
    unsigned allowed = 0;
    start = cpu_ns();
    for (unsigned i = 0; i < ROUNDS; i++)
        allowed += auth_check_put(&asker, &put) == ST_OK;
    printf("check of a put: %.1f ns (%u of %u allowed)\n", (double)(cpu_ns() - start) / ROUNDS,
           allowed, (unsigned)ROUNDS);

    time_changes(store, rights);

    uint8_t hash[AUTH_HASH_BYTES], salt[AUTH_SALT_BYTES] = {0};
    start = cpu_ns();
    if (auth_password_hash(SLICE_LITERAL("password"), salt, AUTH_BCRYPT_COST_DEFAULT, hash) !=
        ST_OK)
        return 1;
    printf("bcrypt at cost %d: %.1f ms\n", AUTH_BCRYPT_COST_DEFAULT,
           (double)(cpu_ns() - start) / 1e6);
    return 0;
}
