#include "auth/method.h"

#include "auth/fixture_test.h"
#include "codec/pb/rpc.pb.h"

static enum status ask(struct auth_rights *rights, const char *path,
                       struct auth_principal principal)
{
    return auth_method_check(TEXT(path), rights, &principal);
}

/* CVE-2026-33413: members, alarms, leases and compaction needed no permission. */
static void without_a_user_only_the_methods_for_logging_in_are_allowed(void **state)
{
    static const char *const open[] = {
        "/etcdserverpb.Auth/AuthStatus", "/etcdserverpb.Auth/Authenticate",
        "/etcdserverpb.Watch/Watch", /* each watch is checked separately */
        "/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch"};
    struct world *w = *state;
    guard(w);
    AUTO(auth_rights_unrefp) struct auth_rights *rights = auth_rights_new(w->store);
    size_t opened = 0;
    for (size_t i = 0; i < auth_method_count; i++) {
        bool is_open = false;
        for (size_t k = 0; k < COUNT_OF(open); k++)
            is_open |= strcmp(open[k], auth_methods[i].path) == 0;
        opened += is_open;
        assert_int_equal(ask(rights, auth_methods[i].path, (struct auth_principal){0}),
                         is_open ? ST_OK : ST_USER_EMPTY);
    }
    assert_int_equal(opened, COUNT_OF(open));
}

/* A user without any permission may call only the methods that check the contents of a request. */
static void methods_that_change_the_server_need_root(void **state)
{
    static const char *const for_users[] = {PB_CLUSTER_MEMBER_LIST_PATH,
                                            PB_MAINTENANCE_STATUS_PATH,
                                            PB_MAINTENANCE_ALARM_PATH,
                                            PB_LEASE_LEASE_GRANT_PATH,
                                            PB_LEASE_LEASE_REVOKE_PATH,
                                            PB_LEASE_LEASE_KEEP_ALIVE_PATH,
                                            PB_LEASE_LEASE_TIME_TO_LIVE_PATH,
                                            PB_LEASE_LEASE_LEASES_PATH,
                                            PB_KV_RANGE_PATH,
                                            PB_KV_RANGE_STREAM_PATH,
                                            PB_KV_PUT_PATH,
                                            PB_KV_DELETE_RANGE_PATH,
                                            PB_KV_TXN_PATH,
                                            PB_AUTH_USER_GET_PATH,
                                            PB_AUTH_ROLE_GET_PATH,
                                            "/v3lockpb.Lock/Lock",
                                            "/v3lockpb.Lock/Unlock",
                                            "/v3electionpb.Election/Campaign",
                                            "/v3electionpb.Election/Proclaim",
                                            "/v3electionpb.Election/Leader",
                                            "/v3electionpb.Election/Observe",
                                            "/v3electionpb.Election/Resign"};
    struct world *w = *state;
    guard(w);
    OK(user_add(w, "u"));
    AUTO(auth_rights_unrefp) struct auth_rights *rights = auth_rights_new(w->store);
    size_t found = 0;
    for (size_t i = 0; i < auth_method_count; i++) {
        enum auth_need need = auth_methods[i].need;
        bool is_users = need == AUTH_NEED_NOTHING || need == AUTH_NEED_WATCH;
        for (size_t k = 0; k < COUNT_OF(for_users); k++) {
            bool same = strcmp(for_users[k], auth_methods[i].path) == 0;
            found += same;
            is_users |= same;
        }
        assert_int_equal(ask(rights, auth_methods[i].path, who(w, "u")),
                         is_users ? ST_OK : ST_PERMISSION_DENIED);
        assert_int_equal(ask(rights, auth_methods[i].path, who(w, "root")), ST_OK);
    }
    assert_int_equal(found, COUNT_OF(for_users));
}

/* The check of the contents refuses it. */
static void an_unknown_user_may_call_user_get_and_role_get(void **state)
{
    struct world *w = *state;
    guard(w);
    AUTO(auth_rights_unrefp) struct auth_rights *rights = auth_rights_new(w->store);
    struct auth_principal gone = who(w, "gone");
    OK(ask(rights, PB_AUTH_USER_GET_PATH, gone));
    OK(ask(rights, PB_AUTH_ROLE_GET_PATH, gone));
    assert_int_equal(auth_rights_check_role_get(rights, &gone, TEXT("r")), ST_USER_NOT_FOUND);
    assert_int_equal(ask(rights, PB_AUTH_USER_LIST_PATH, gone), ST_USER_NOT_FOUND);
    assert_int_equal(ask(rights, PB_CLUSTER_MEMBER_LIST_PATH, gone), ST_PERMISSION_DENIED);
}

static void all_methods_are_allowed_while_authentication_is_disabled(void **state)
{
    struct world *w = *state;
    AUTO(auth_rights_unrefp) struct auth_rights *rights = auth_rights_new(w->store);
    for (size_t i = 0; i < auth_method_count; i++)
        OK(ask(rights, auth_methods[i].path, (struct auth_principal){0}));
}

static void a_method_that_is_not_in_the_table_is_refused_to_all(void **state)
{
    struct world *w = *state;
    AUTO(auth_rights_unrefp) struct auth_rights *rights = auth_rights_new(w->store);
    assert_null(auth_method_find(TEXT("/etcdserverpb.KV/New")));
    assert_int_equal(ask(rights, "/etcdserverpb.KV/New", (struct auth_principal){0}),
                     ST_PERMISSION_DENIED);
    assert_int_equal(ask(rights, "", (struct auth_principal){0}), ST_PERMISSION_DENIED);
    guard(w);
    AUTO(auth_rights_unrefp) struct auth_rights *guarded = auth_rights_new(w->store);
    assert_int_equal(ask(guarded, "/etcdserverpb.KV/New", who(w, "root")), ST_PERMISSION_DENIED);
}

static void paths_are_unique(void **state)
{
    (void)state;
    for (size_t i = 0; i < auth_method_count; i++)
        assert_ptr_equal(auth_method_find(TEXT(auth_methods[i].path)), &auth_methods[i]);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_set_up, world_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(without_a_user_only_the_methods_for_logging_in_are_allowed),
        TEST(methods_that_change_the_server_need_root),
        TEST(an_unknown_user_may_call_user_get_and_role_get),
        TEST(all_methods_are_allowed_while_authentication_is_disabled),
        TEST(a_method_that_is_not_in_the_table_is_refused_to_all),
        TEST(paths_are_unique),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
