/* Permissions for leases depend on the permissions for their keys. */
#include "engine/local/access_fixture_test.h"

static void lease_operations_need_write_permission_for_its_keys(void **state)
{
    struct fixture *f = *state;
    OK(lease_as(f, as(f, "ann"), engine_lease_grant, 7, false));
    OK(lease_as(f, as(f, "ann"), engine_lease_grant, 8, false));
    OK(put_as(f, as(f, "ann"), "a/1", 7));
    OK(put_as(f, as(f, "root"), "b", 7));
    OK(put_as(f, as(f, "root"), "r/1", 8));
    DENIED(put_as(f, as(f, "ann"), "a/2", 7)); /* it could be deleted with b */
    DENIED(lease_as(f, as(f, "ann"), engine_lease_revoke, 7, false));
    OK(lease_as(f, as(f, "ann"), engine_lease_time_to_live, 7, false));
    DENIED(lease_as(f, as(f, "ann"), engine_lease_time_to_live, 7, true)); /* CVE-2023-32082 */
    OK(lease_as(f, as(f, "ann"), engine_lease_time_to_live, 8, true));
    DENIED(lease_as(f, as(f, "ann"), engine_lease_list, 0, false));
    OK(lease_as(f, as(f, "root"), engine_lease_list, 0, false));
    OK(lease_as(f, as(f, "root"), engine_lease_revoke, 7, false));
    OK(lease_as(f, as(f, "ann"), engine_lease_list, 0, false));
    assert_int_equal(lease_as(f, as(f, "ann"), engine_lease_revoke, 7, false), ST_LEASE_NOT_FOUND);
    DENIED(lease_as(f, as(f, "ann"), engine_lease_revoke, 8, false)); /* it may only read r/ */
}

/* A lease that was checked is not checked again until its keys or the rights change. */
static void a_lease_is_checked_again_when_its_keys_or_the_rights_change(void **state)
{
    struct fixture *f = *state;
    OK(lease_as(f, as(f, "ann"), engine_lease_grant, 7, false));
    OK(put_as(f, as(f, "ann"), "a/1", 7));
    OK(put_as(f, as(f, "ann"), "a/2", 7));
    OK(put_as(f, as(f, "ann"), "a/3", 7));
    OK(put_as(f, as(f, "root"), "b", 7));
    OK(put_as(f, as(f, "root"), "a/4", 7));
    DENIED(put_as(f, as(f, "ann"), "a/5", 7));
    OK(put_as(f, as(f, "root"), "b", 0)); /* not attached to a lease any more */
    OK(put_as(f, as(f, "ann"), "a/5", 7));
    OK(put_as(f, as(f, "ann"), "a/1", 7)); /* the key was attached before */
    OK(put_as(f, as(f, "ann"), "a/1", 7));

    /* Another lease with the same ID and as many keys. */
    OK(lease_as(f, as(f, "root"), engine_lease_revoke, 7, false));
    OK(lease_as(f, as(f, "root"), engine_lease_grant, 7, false));
    OK(put_as(f, as(f, "root"), "b", 7));
    for (int i = 0; i < 8; i++) {
        char key[16];
        snprintf(key, sizeof(key), "a/%d", i);
        OK(put_as(f, as(f, "root"), key, 7));
        DENIED(put_as(f, as(f, "ann"), "a/2", 7));
    }

    /* The same user gets other rights. */
    OK(lease_as(f, as(f, "root"), engine_lease_grant, 8, false));
    OK(change(f, ENGINE_AUTH_ROLE_ADD, "", "b"));
    OK(grant(f, "b", RW, "b", ""));
    OK(change(f, ENGINE_AUTH_USER_GRANT_ROLE, "ann", "b"));
    OK(put_as(f, as(f, "ann"), "b", 8));
    OK(put_as(f, as(f, "ann"), "a/1", 8));
    OK(put_as(f, as(f, "ann"), "a/2", 8));
    OK(change(f, ENGINE_AUTH_USER_REVOKE_ROLE, "ann", "b"));
    DENIED(put_as(f, as(f, "ann"), "a/2", 8));
    DENIED(lease_as(f, as(f, "ann"), engine_lease_revoke, 8, false));
}

static void renewals_before_a_refused_one_succeed(void **state)
{
    struct fixture *f = *state;
    for (int64_t id = 1; id <= 3; id++)
        OK(lease_as(f, as(f, "root"), engine_lease_grant, id, false));
    OK(put_as(f, as(f, "root"), "b", 3));
    struct engine_renewal items[] = {{.id = 1}, {.id = 99}, {.id = 3}, {.id = 2}};
    struct engine_renewals op = {.op = op_of(f, as(f, "ann")), .items = items, .count = 4};
    engine_lease_renew(f->shard, &op);
    wait_for(f, 0);
    DENIED(op.op.status);
    assert_int_equal(op.answered, 2);
    assert_int_equal(items[0].ttl_s, 100);
    assert_int_equal(items[1].ttl_s, 0);
    op = (struct engine_renewals){.op = op_of(f, as(f, "root")), .items = items, .count = 4};
    engine_lease_renew(f->shard, &op);
    wait_for(f, 0);
    OK(op.op.status);
    assert_int_equal(op.answered, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(lease_operations_need_write_permission_for_its_keys),
        TEST(a_lease_is_checked_again_when_its_keys_or_the_rights_change),
        TEST(renewals_before_a_refused_one_succeed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
