#include "engine/permission.h"

#include "auth/store.h"
#include "codec/pb/rpc.pb.h"
#include "engine/leases.h"
#include "engine/maintenance.h"

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

static enum status check(struct engine_op *op, enum engine_kind kind,
                         struct auth_principal principal, const void *request)
{
    AUTO(auth_rights_unrefp) struct auth_rights *rights = rights_new();
    op->principal = principal;
    op->kind = (uint8_t)kind;
    op->request = request;
    return permission_check(op, rights, NULL);
}

/* As if a caller passed it to an engine without engine_start. */
static void an_operation_that_was_not_started_is_refused(void **state)
{
    (void)state;
    struct engine_op op = {0};
    assert_int_equal(check(&op, ENGINE_NOT_STARTED, root, NULL), ST_PERMISSION_DENIED);
    assert_int_equal(check(&op, ENGINE_NOT_STARTED, ENGINE_SERVER, NULL), ST_OK);
}

static void each_kind_is_checked(void **state)
{
    (void)state;
    struct engine_op op = {0};
    struct pb_put_request put = {.key = SLICE_LITERAL("k")};
    struct pb_alarm_request alarm = {.action = PB_ALARM_ACTION_GET};
    struct pb_txn_request empty = {0};
    assert_int_equal(check(&op, ENGINE_PUT, ann, &put), ST_PERMISSION_DENIED);
    assert_int_equal(check(&op, ENGINE_PUT, root, &put), ST_OK);
    assert_int_equal(check(&op, ENGINE_TXN, ann, &empty), ST_OK);
    assert_int_equal(check(&op, ENGINE_LEASE_GRANT, ann, NULL), ST_OK);
    assert_int_equal(check(&op, ENGINE_COMPACT, ann, NULL), ST_PERMISSION_DENIED);
    assert_int_equal(check(&op, ENGINE_COMPACT, root, NULL), ST_OK);
    assert_int_equal(check(&op, ENGINE_ALARM, ann, &alarm), ST_OK);
    alarm.action = PB_ALARM_ACTION_DEACTIVATE;
    assert_int_equal(check(&op, ENGINE_ALARM, ann, &alarm), ST_PERMISSION_DENIED);
    alarm.action = 99;
    assert_int_equal(check(&op, ENGINE_ALARM, ann, &alarm), ST_PERMISSION_DENIED);
    struct engine_members members = {.call = ENGINE_MEMBER_LIST};
    assert_int_equal(check(&members.op, ENGINE_MEMBERS, ann, NULL), ST_OK);
    members.call = ENGINE_MEMBER_ADD;
    assert_int_equal(check(&members.op, ENGINE_MEMBERS, ann, NULL), ST_PERMISSION_DENIED);
    assert_int_equal(check(&members.op, ENGINE_MEMBERS, root, NULL), ST_OK);
}

/* Without a list of the attached keys. */
static void a_lease_with_unknown_keys_is_refused(void **state)
{
    (void)state;
    struct engine_lease lease = {.id = 7, .want_keys = true};
    assert_int_equal(check(&lease.op, ENGINE_LEASE_REVOKE, ann, NULL), ST_PERMISSION_DENIED);
    assert_int_equal(check(&lease.op, ENGINE_LEASE_TIME_TO_LIVE, ann, NULL), ST_PERMISSION_DENIED);
    assert_int_equal(check(&lease.op, ENGINE_LEASE_LIST, ann, NULL), ST_PERMISSION_DENIED);
    assert_int_equal(check(&lease.op, ENGINE_LEASE_REVOKE, root, NULL), ST_OK);
    lease.want_keys = false;
    assert_int_equal(check(&lease.op, ENGINE_LEASE_TIME_TO_LIVE, ann, NULL), ST_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_operation_that_was_not_started_is_refused),
        cmocka_unit_test(each_kind_is_checked),
        cmocka_unit_test(a_lease_with_unknown_keys_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
