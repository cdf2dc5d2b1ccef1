#include "engine/permission.h"

#include "auth/method.h"
#include "auth/store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

/* Authentication is enabled; the users are root, and ann without any role. */
static struct auth_rights *rights_new(void)
{
    AUTO(auth_store_freep) struct auth_store *store = auth_store_new();
    const char *names[] = {"root", "ann"};
    struct arena arena;
    struct auth_change change;
    arena_init(&arena, NULL, 0, 1 << 20);
    for (size_t step = 0; step < 4; step++) {
        struct slice root = SLICE_LITERAL("root");
        enum status status;
        if (step < 2)
            status = auth_store_user_add(store, slice_from_text(names[step]), SLICE_EMPTY, true,
                                         &arena, &change);
        else if (step == 2)
            status = auth_store_user_grant_role(store, root, root, &arena, &change);
        else
            status = auth_store_enable(store, &arena, &change);
        assert_int_equal(status, ST_OK);
        for (size_t i = 0; i < change.row_count; i++)
            assert_int_equal(auth_store_apply(store, &change.rows[i]), ST_OK);
    }
    arena_fini(&arena);
    return auth_rights_new(store);
}

static const struct auth_principal root = {.user = {(const uint8_t *)"root", 4},
                                           .revision = UINT64_MAX};
static const struct auth_principal ann = {.user = {(const uint8_t *)"ann", 3},
                                          .revision = UINT64_MAX};

static enum status check(struct engine_op *op, enum auth_need need, struct auth_principal principal,
                         const void *request)
{
    AUTO(auth_rights_unrefp) struct auth_rights *rights = rights_new();
    op->principal = principal;
    op->need = (uint8_t)need;
    op->request = request;
    return permission_check(op, rights, NULL);
}

/* As if a new call forgot to set its need. */
static void an_operation_without_a_need_is_refused(void **state)
{
    (void)state;
    struct engine_op op = {0};
    assert_int_equal(check(&op, AUTH_NEED_NOTHING, root, NULL), ST_PERMISSION_DENIED);
    assert_int_equal(check(&op, AUTH_NEED_OF_ITS_PARTS, root, NULL), ST_PERMISSION_DENIED);
    assert_int_equal(check(&op, AUTH_NEED_NOTHING, ENGINE_SERVER, NULL), ST_OK);
}

static void each_need_is_checked(void **state)
{
    (void)state;
    struct engine_op op = {0};
    struct pb_put_request put = {.key = SLICE_LITERAL("k")};
    struct pb_alarm_request alarm = {.action = PB_ALARM_ACTION_GET};
    struct pb_txn_request empty = {0};
    assert_int_equal(check(&op, AUTH_NEED_PUT, ann, &put), ST_PERMISSION_DENIED);
    assert_int_equal(check(&op, AUTH_NEED_PUT, root, &put), ST_OK);
    assert_int_equal(check(&op, AUTH_NEED_TXN, ann, &empty), ST_OK);
    assert_int_equal(check(&op, AUTH_NEED_USER, ann, NULL), ST_OK);
    assert_int_equal(check(&op, AUTH_NEED_ROOT, ann, NULL), ST_PERMISSION_DENIED);
    assert_int_equal(check(&op, AUTH_NEED_ROOT, root, NULL), ST_OK);
    assert_int_equal(check(&op, AUTH_NEED_ALARM, ann, &alarm), ST_OK);
    alarm.action = PB_ALARM_ACTION_DEACTIVATE;
    assert_int_equal(check(&op, AUTH_NEED_ALARM, ann, &alarm), ST_PERMISSION_DENIED);
    alarm.action = 99;
    assert_int_equal(check(&op, AUTH_NEED_ALARM, ann, &alarm), ST_PERMISSION_DENIED);
}

/* Without a list of the attached keys. */
static void a_lease_with_unknown_keys_is_refused(void **state)
{
    (void)state;
    struct engine_lease lease = {.id = 7, .want_keys = true};
    assert_int_equal(check(&lease.op, AUTH_NEED_LEASE_WRITE, ann, NULL), ST_PERMISSION_DENIED);
    assert_int_equal(check(&lease.op, AUTH_NEED_LEASE_READ, ann, NULL), ST_PERMISSION_DENIED);
    assert_int_equal(check(&lease.op, AUTH_NEED_LEASES_READ, ann, NULL), ST_PERMISSION_DENIED);
    assert_int_equal(check(&lease.op, AUTH_NEED_LEASE_WRITE, root, NULL), ST_OK);
    lease.want_keys = false;
    assert_int_equal(check(&lease.op, AUTH_NEED_LEASE_READ, ann, NULL), ST_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_operation_without_a_need_is_refused),
        cmocka_unit_test(each_need_is_checked),
        cmocka_unit_test(a_lease_with_unknown_keys_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
