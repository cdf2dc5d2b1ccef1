/* Each past hole of etcd's access control is a test here, named for what must hold. */
#include "auth/check.h"

#include "auth/fixture_test.h"

enum {
    READ = PB_PERMISSION_TYPE_READ,
    WRITE = PB_PERMISSION_TYPE_WRITE,
    RW = PB_PERMISSION_TYPE_READWRITE
};

/* Lease 7 has the keys mine/1 and other/1, lease 8 mine/2; no other exists. */
static enum status each_key(void *ctx, int64_t lease, uint64_t whose, auth_key_fn visit,
                            void *visit_ctx)
{
    (void)ctx;
    (void)whose;
    if (lease == 7) {
        TRY(visit(visit_ctx, TEXT("mine/1")));
        return visit(visit_ctx, TEXT("other/1"));
    }
    return lease == 8 ? visit(visit_ctx, TEXT("mine/2")) : ST_OK;
}

struct scene {
    struct world *w;
    struct auth_rights *rights;
    struct auth_asker asker;
};

/* Users: rw, r, w have mine/ to read and write, to read, to write; one has only the key mine/1. */
static int set_up(void **state)
{
    struct scene *scene = calloc(1, sizeof(*scene));
    scene->w = world_new();
    guard(scene->w);
    user_with(scene->w, "rw", RW, "mine/", "mine0");
    user_with(scene->w, "r", READ, "mine/", "mine0");
    user_with(scene->w, "w", WRITE, "mine/", "mine0");
    user_with(scene->w, "one", RW, "mine/1", "");
    scene->rights = auth_rights_new(scene->w->store);
    scene->asker = (struct auth_asker){.rights = scene->rights, .leases = {NULL, each_key}};
    *state = scene;
    return 0;
}

static int tear_down(void **state)
{
    struct scene *scene = *state;
    auth_rights_unref(scene->rights);
    world_free(scene->w);
    free(scene);
    return 0;
}

static const struct auth_asker *as(struct scene *scene, const char *user)
{
    scene->asker.principal = who(scene->w, user);
    return &scene->asker;
}

static struct pb_request_op op_put(struct pb_put_request *put)
{
    return (struct pb_request_op){.request_case = PB_REQUEST_OP_REQUEST_PUT, .request_put = put};
}

static struct pb_request_op op_txn(struct pb_txn_request *txn)
{
    return (struct pb_request_op){.request_case = PB_REQUEST_OP_REQUEST_TXN, .request_txn = txn};
}

#define DENIED(call) assert_int_equal(call, ST_PERMISSION_DENIED)

static void put_needs_write_permission_and_read_for_the_previous_value(void **state)
{
    struct scene *s = *state;
    struct pb_put_request put = {.key = TEXT("mine/1")};
    OK(auth_check_put(as(s, "rw"), &put));
    OK(auth_check_put(as(s, "w"), &put));
    DENIED(auth_check_put(as(s, "r"), &put));
    put.prev_kv = true;
    OK(auth_check_put(as(s, "rw"), &put));
    DENIED(auth_check_put(as(s, "w"), &put));
    put.key = TEXT("other/1");
    DENIED(auth_check_put(as(s, "rw"), &put));
    OK(auth_check_put(as(s, "root"), &put));
}

static void a_put_with_a_lease_needs_the_right_to_write_all_its_keys(void **state)
{
    struct scene *s = *state;
    struct pb_put_request put = {.key = TEXT("mine/1"), .lease = 8};
    OK(auth_check_put(as(s, "rw"), &put));
    put.lease = 7;
    DENIED(auth_check_put(as(s, "rw"), &put));
    OK(auth_check_put(as(s, "root"), &put));
    put.lease = 99; /* a missing lease is an error of the engine */
    OK(auth_check_put(as(s, "rw"), &put));
}

static void delete_needs_write_permission_and_read_for_previous_values(void **state)
{
    struct scene *s = *state;
    struct pb_delete_range_request request = {.key = TEXT("mine/"), .range_end = TEXT("mine0")};
    OK(auth_check_delete_range(as(s, "w"), &request));
    DENIED(auth_check_delete_range(as(s, "r"), &request));
    DENIED(auth_check_delete_range(as(s, "one"), &request));
    request.prev_kv = true;
    DENIED(auth_check_delete_range(as(s, "w"), &request));
    OK(auth_check_delete_range(as(s, "rw"), &request));
}

static void range_needs_read_permission_for_all_its_keys(void **state)
{
    struct scene *s = *state;
    struct pb_range_request range = {.key = TEXT("mine/"), .range_end = TEXT("mine0")};
    OK(auth_check_range(as(s, "r"), &range));
    DENIED(auth_check_range(as(s, "w"), &range));
    range.count_only = true; /* counting needs read permission, too */
    DENIED(auth_check_range(as(s, "w"), &range));
    DENIED(auth_check_range(as(s, "one"), &range));
    assert_int_equal(auth_check_range(as(s, "rw"), &range), ST_OK);
}

/* CVE-2026-33343 */
static void nested_transactions_are_checked_at_any_depth(void **state)
{
    struct scene *s = *state;
    struct pb_put_request put = {.key = TEXT("other/1")};
    struct pb_txn_request txns[60];
    struct pb_request_op ops[60];
    for (int i = 0; i < 60; i++) {
        ops[i] = i ? op_txn(&txns[i - 1]) : op_put(&put);
        txns[i] = (struct pb_txn_request){0};
        if (i % 2) {
            txns[i].success = &ops[i];
            txns[i].success_count = 1;
        } else {
            txns[i].failure = &ops[i];
            txns[i].failure_count = 1;
        }
        DENIED(auth_check_txn(as(s, "rw"), &txns[i]));
        OK(auth_check_txn(as(s, "root"), &txns[i]));
    }
    put.key = TEXT("mine/1");
    OK(auth_check_txn(as(s, "rw"), &txns[59]));
}

/* CVE-2026-44283 */
static void previous_values_and_leases_are_checked_inside_a_transaction(void **state)
{
    struct scene *s = *state;
    struct pb_put_request put = {.key = TEXT("mine/1"), .prev_kv = true};
    struct pb_request_op op = op_put(&put);
    struct pb_txn_request txn = {.success = &op, .success_count = 1};
    DENIED(auth_check_txn(as(s, "w"), &txn));
    put.prev_kv = false;
    OK(auth_check_txn(as(s, "w"), &txn));
    put.lease = 7;
    DENIED(auth_check_txn(as(s, "w"), &txn));
    struct pb_delete_range_request del = {.key = TEXT("mine/1"), .prev_kv = true};
    op = (struct pb_request_op){.request_case = PB_REQUEST_OP_REQUEST_DELETE_RANGE,
                                .request_delete_range = &del};
    DENIED(auth_check_txn(as(s, "w"), &txn));
    OK(auth_check_txn(as(s, "rw"), &txn));
}

static void compare_needs_read_permission(void **state)
{
    struct scene *s = *state;
    struct pb_compare compare = {.key = TEXT("mine/1")};
    struct pb_txn_request txn = {.compare = &compare, .compare_count = 1};
    OK(auth_check_txn(as(s, "r"), &txn));
    DENIED(auth_check_txn(as(s, "w"), &txn));
    compare.range_end = end_of("*");
    DENIED(auth_check_txn(as(s, "r"), &txn));
    compare.range_end = TEXT("mine0");
    OK(auth_check_txn(as(s, "r"), &txn));
    struct pb_request_op op = op_txn(&txn);
    struct pb_txn_request outer = {.failure = &op, .failure_count = 1};
    DENIED(auth_check_txn(as(s, "w"), &outer));
}

static void both_branches_of_a_transaction_need_permission(void **state)
{
    struct scene *s = *state;
    struct pb_put_request mine = {.key = TEXT("mine/1")}, other = {.key = TEXT("other/1")};
    struct pb_request_op good = op_put(&mine), bad = op_put(&other);
    struct pb_txn_request txn = {
        .success = &good, .success_count = 1, .failure = &bad, .failure_count = 1};
    DENIED(auth_check_txn(as(s, "rw"), &txn));
}

static void an_empty_txn_without_a_user_is_refused(void **state)
{
    struct scene *s = *state;
    struct pb_txn_request txn = {0};
    struct pb_request_op none = {0};
    OK(auth_check_txn(as(s, "r"), &txn));
    s->asker.principal = (struct auth_principal){0};
    assert_int_equal(auth_check_txn(&s->asker, &txn), ST_USER_EMPTY);
    OK(auth_check_txn(as(s, "r"), &txn));
    s->asker.principal.revision--;
    assert_int_equal(auth_check_txn(&s->asker, &txn), ST_AUTH_OLD_REVISION);
    txn.success = &none;
    txn.success_count = 1;
    DENIED(auth_check_txn(as(s, "rw"), &txn));
}

/* GHSA-xg4h-6gfc-h4m8 */
static void watch_without_end_needs_permission_for_all_later_keys(void **state)
{
    struct scene *s = *state;
    struct pb_watch_create_request watch = {.key = TEXT("mine/1")};
    OK(auth_check_watch(as(s, "one"), &watch));
    watch.range_end = end_of("*");
    DENIED(auth_check_watch(as(s, "one"), &watch));
    DENIED(auth_check_watch(as(s, "rw"), &watch));
    OK(auth_check_watch(as(s, "root"), &watch));
    watch.range_end = TEXT("mine0");
    OK(auth_check_watch(as(s, "r"), &watch));
    DENIED(auth_check_watch(as(s, "w"), &watch));
    watch = (struct pb_watch_create_request){0}; /* everything */
    DENIED(auth_check_watch(as(s, "rw"), &watch));
    watch.range_end = end_of("*");
    DENIED(auth_check_watch(as(s, "rw"), &watch));
    OK(auth_check_watch(as(s, "root"), &watch));
}

/* CVE-2023-32082 */
static void reading_the_keys_of_a_lease_needs_the_right_to_all_of_them(void **state)
{
    struct scene *s = *state;
    OK(auth_check_lease_read(as(s, "r"), 8));
    DENIED(auth_check_lease_read(as(s, "w"), 8));
    DENIED(auth_check_lease_read(as(s, "rw"), 7));
    OK(auth_check_lease_read(as(s, "root"), 7));
}

static void revoking_and_renewing_need_the_right_to_write_all_keys(void **state)
{
    struct scene *s = *state;
    OK(auth_check_lease_write(as(s, "w"), 8));
    DENIED(auth_check_lease_write(as(s, "r"), 8));
    DENIED(auth_check_lease_write(as(s, "rw"), 7));
    OK(auth_check_lease_write(as(s, "root"), 7));
    OK(auth_check_lease_write(as(s, "r"), 99));
    s->asker.principal = (struct auth_principal){0};
    assert_int_equal(auth_check_lease_write(&s->asker, 99), ST_USER_EMPTY);
    DENIED(auth_check_lease_write(as(s, "unknown"), 99));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(put_needs_write_permission_and_read_for_the_previous_value),
        TEST(a_put_with_a_lease_needs_the_right_to_write_all_its_keys),
        TEST(delete_needs_write_permission_and_read_for_previous_values),
        TEST(range_needs_read_permission_for_all_its_keys),
        TEST(nested_transactions_are_checked_at_any_depth),
        TEST(previous_values_and_leases_are_checked_inside_a_transaction),
        TEST(compare_needs_read_permission),
        TEST(both_branches_of_a_transaction_need_permission),
        TEST(an_empty_txn_without_a_user_is_refused),
        TEST(watch_without_end_needs_permission_for_all_later_keys),
        TEST(reading_the_keys_of_a_lease_needs_the_right_to_all_of_them),
        TEST(revoking_and_renewing_need_the_right_to_write_all_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
