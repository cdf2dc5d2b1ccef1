/* Permissions on the local engine with its real threads. Past vulnerabilities of etcd are named. */
#include "engine/engine.h"
#include "engine/local/access_fixture_test.h"

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* -- Without a user -- */

/* CVE-2026-33413 among others: every operation without a user is refused. */
static void operations_without_a_user_are_refused(void **state)
{
    struct fixture *f = *state;
    struct pb_txn_request empty = {0};
    NOBODY(put_as(f, nobody, "a/1", 0));
    NOBODY(get_as(f, nobody, "a/1", ""));
    NOBODY(txn_as(f, nobody, &empty));
    NOBODY(lease_as(f, nobody, engine_lease_grant, 1, false));
    NOBODY(lease_as(f, nobody, engine_lease_revoke, 1, false));
    NOBODY(lease_as(f, nobody, engine_lease_time_to_live, 1, false));
    NOBODY(lease_as(f, nobody, engine_lease_time_to_live, 1, true));
    NOBODY(lease_as(f, nobody, engine_lease_list, 0, false));
    struct engine_renewal item = {.id = 1};
    struct engine_renewals renewals = {.op = op_of(f, nobody), .items = &item, .count = 1};
    engine_lease_renew(f->shard, &renewals);
    wait_for(f, 0);
    NOBODY(renewals.op.status);
    struct pb_delete_range_request removal = {.key = SLICE_LITERAL("a/1")};
    struct engine_write write = {.op = op_of(f, nobody)};
    engine_delete_range(f->shard, &write, &removal);
    wait_for(f, 0);
    NOBODY(write.op.status);
    engine_write_close(&write);
    for (int call = 0; call < ENGINE_AUTH_PASSWORD; call++) {
        struct engine_auth op = {.op = op_of(f, nobody), .call = (enum engine_auth_call)call};
        NOBODY(run_auth(f, &op));
    }
}

static enum status maintain(struct fixture *f, struct auth_principal who, int what)
{
    struct pb_compaction_request compaction = {.revision = 1};
    struct pb_alarm_request alarms = {.action = what == 1 ? PB_ALARM_ACTION_GET
                                                          : PB_ALARM_ACTION_DEACTIVATE};
    struct engine_op op = op_of(f, who);
    struct engine_alarm alarm = {.op = op};
    struct engine_hash hash = {.op = op};
    switch (what) {
    case 0:
        engine_compact(f->shard, &op, &compaction);
        break;
    case 1:
    case 2:
        engine_alarm(f->shard, &alarm, &alarms);
        break;
    case 3:
        engine_hash_kv(f->shard, &hash);
        break;
    case 4:
        engine_defragment(f->shard, &op);
        break;
    default:
        engine_downgrade(f->shard, &op, "3.6");
    }
    wait_for(f, 0);
    const enum status all[] = {op.status,      alarm.op.status, alarm.op.status,
                               hash.op.status, op.status,       op.status};
    return all[what];
}

static void maintenance_needs_root_and_listing_alarms_a_user(void **state)
{
    struct fixture *f = *state;
    for (int what = 0; what < 6; what++) {
        NOBODY(maintain(f, nobody, what));
        assert_int_equal(maintain(f, as(f, "ann"), what), what == 1 ? ST_OK : ST_PERMISSION_DENIED);
        OK(maintain(f, as(f, "root"), what));
    }
}

static void users_are_managed_by_root_and_can_read_themselves(void **state)
{
    struct fixture *f = *state;
    struct engine_auth op = {
        .op = op_of(f, as(f, "ann")), .call = ENGINE_AUTH_USER_GET, .user = SLICE_LITERAL("ann")};
    OK(run_auth(f, &op));
    assert_int_equal(op.name_count, 1);
    op = (struct engine_auth){
        .op = op_of(f, as(f, "ann")), .call = ENGINE_AUTH_ROLE_GET, .role = SLICE_LITERAL("a")};
    OK(run_auth(f, &op));
    assert_int_equal(op.permission_count, 2);
    for (int call = 0; call < ENGINE_AUTH_PASSWORD; call++) {
        op = (struct engine_auth){.op = op_of(f, as(f, "ann")),
                                  .call = (enum engine_auth_call)call,
                                  .user = SLICE_LITERAL("root"),
                                  .role = SLICE_LITERAL("root")};
        DENIED(run_auth(f, &op));
    }
}

static void operations_of_the_server_need_no_user(void **state)
{
    struct fixture *f = *state;
    OK(put_as(f, ENGINE_SERVER, "anything", 0));
    OK(get_as(f, ENGINE_SERVER, "anything", ""));
    OK(lease_as(f, ENGINE_SERVER, engine_lease_list, 0, false));
    OK(maintain(f, ENGINE_SERVER, 0));
}

/* -- Keys -- */

static void user_reads_and_writes_only_permitted_keys(void **state)
{
    struct fixture *f = *state;
    OK(put(f, "ann", "a/1"));
    DENIED(put(f, "ann", "r/1"));
    DENIED(put(f, "ann", "b"));
    OK(put(f, "root", "b"));
    OK(get_as(f, as(f, "ann"), "a/", "a0"));
    OK(get_as(f, as(f, "ann"), "r/1", ""));
    DENIED(get_as(f, as(f, "ann"), "a/", "b"));
    DENIED(get_as(f, as(f, "unknown"), "a/1", ""));
    OK(change(f, ENGINE_AUTH_DISABLE, "", ""));
    OK(put_as(f, nobody, "b", 0));
}

/* CVE-2026-33343, CVE-2026-44283: nested operations are checked, also in read-only transactions. */
static void all_parts_of_a_transaction_are_checked(void **state)
{
    struct fixture *f = *state;
    struct pb_put_request write = {.key = SLICE_LITERAL("b")};
    struct pb_range_request read = {.key = SLICE_LITERAL("b")};
    struct pb_request_op inner = {.request_case = PB_REQUEST_OP_REQUEST_PUT, .request_put = &write};
    struct pb_txn_request nested = {.failure = &inner, .failure_count = 1};
    struct pb_request_op outer = {.request_case = PB_REQUEST_OP_REQUEST_TXN,
                                  .request_txn = &nested};
    struct pb_txn_request txn = {.success = &outer, .success_count = 1};
    DENIED(txn_as(f, as(f, "ann"), &txn));
    OK(txn_as(f, as(f, "root"), &txn));
    inner =
        (struct pb_request_op){.request_case = PB_REQUEST_OP_REQUEST_RANGE, .request_range = &read};
    DENIED(txn_as(f, as(f, "ann"), &txn)); /* a read-only transaction, which the shard answers */
    write.key = SLICE_LITERAL("a/1");
    inner =
        (struct pb_request_op){.request_case = PB_REQUEST_OP_REQUEST_PUT, .request_put = &write};
    OK(txn_as(f, as(f, "ann"), &txn));
    struct pb_compare compare = {.key = SLICE_LITERAL("b")};
    txn.compare = &compare;
    txn.compare_count = 1;
    DENIED(txn_as(f, as(f, "ann"), &txn));
}

/* etcd PR 22386: an alarm disabled the checks. */
static void permissions_are_checked_before_the_quota(void **state)
{
    struct fixture *f = *state;
    struct pb_alarm_request request = {
        .action = PB_ALARM_ACTION_ACTIVATE, .alarm = ENGINE_ALARM_NOSPACE, .member_id = 1};
    struct engine_alarm alarm = {.op = op_of(f, as(f, "root"))};
    engine_alarm(f->shard, &alarm, &request);
    wait_for(f, 0);
    OK(alarm.op.status);
    NOBODY(put_as(f, nobody, "a/1", 0));
    DENIED(put(f, "ann", "b"));
    assert_int_equal(put(f, "ann", "a/1"), ST_NO_SPACE);
    DENIED(get_as(f, as(f, "ann"), "b", ""));
    NOBODY(lease_as(f, nobody, engine_lease_grant, 1, false));
}

/* -- Time -- */

/* A revoked permission affects everything that was sent after it, also in the same group. */
static void permission_revoked_before_a_write_is_applied_refuses_it(void **state)
{
    struct fixture *f = *state;
    struct auth_principal before = as(f, "ann"), after = before;
    after.revision++;
    struct pb_put_request request = {.key = SLICE_LITERAL("a/1")};
    struct engine_write first = {.op = op_of(f, before)}, second = {.op = op_of(f, before)},
                        third = {.op = op_of(f, after)};
    struct engine_auth revoke = {.op = op_of(f, as(f, "root")),
                                 .call = ENGINE_AUTH_USER_REVOKE_ROLE,
                                 .user = SLICE_LITERAL("ann"),
                                 .role = SLICE_LITERAL("a")};
    engine_put(f->shard, &first, &request);
    engine_auth_start(f->shard, &revoke);
    engine_put(f->shard, &second, &request);
    engine_put(f->shard, &third, &request);
    wait_for(f, 0);
    OK(first.op.status);
    OK(revoke.op.status);
    assert_int_equal(second.op.status, ST_AUTH_OLD_REVISION);
    DENIED(third.op.status);
    assert_int_equal(third.op.revision, first.op.revision);
    engine_write_close(&first);
    engine_write_close(&second);
    engine_write_close(&third);
    DENIED(get_as(f, as(f, "ann"), "a/1", ""));
    assert_int_equal(get_as(f, before, "a/1", ""), ST_AUTH_OLD_REVISION);
}

/* Disabling authentication affects everything that was sent after it in the same group. */
static void changes_see_the_changes_before_them(void **state)
{
    struct fixture *f = *state;
    struct pb_put_request request = {.key = SLICE_LITERAL("b")};
    struct engine_write refused = {.op = op_of(f, nobody)}, allowed = {.op = op_of(f, nobody)};
    struct engine_auth disable = {.op = op_of(f, as(f, "root")), .call = ENGINE_AUTH_DISABLE};
    struct engine_auth add = {
        .op = op_of(f, nobody), .call = ENGINE_AUTH_ROLE_ADD, .role = SLICE_LITERAL("new")};
    engine_put(f->shard, &refused, &request);
    engine_auth_start(f->shard, &disable);
    engine_put(f->shard, &allowed, &request);
    engine_auth_start(f->shard, &add);
    wait_for(f, 0);
    NOBODY(refused.op.status);
    OK(disable.op.status);
    OK(allowed.op.status);
    OK(add.op.status);
    assert_int_equal(add.auth_revision, engine_auth_revision(f->engine));
    engine_write_close(&refused);
    engine_write_close(&allowed);
}

/* -- Consistency of data and rights -- */

/* Reads in a loop on a separate thread and shard, always with the newest credentials.
 */
struct reading {
    struct fixture *f;
    struct engine_shard *shard;
    struct loop *loop;
    struct engine_range range;
    bool done;
    _Atomic unsigned allowed, denied, wrong;
    _Atomic bool stop;
};

static void read_done(struct engine_op *op)
{
    CONTAINER_OF(op, struct reading, range.op)->done = true;
}

static void read_once(struct reading *r, struct arena *arena)
{
    struct pb_range_request request = {.key = SLICE_LITERAL("a/1")};
    struct slice field = SLICE_EMPTY, open = SLICE_LITERAL("open");
    r->range.op = (struct engine_op){
        .done = read_done,
        .arena = arena,
        .principal = {.user = SLICE_LITERAL("ann"), .revision = UINT64_MAX},
    };
    r->done = false;
    engine_range_start(r->shard, &r->range, &request);
    assert(r->done); /* one key is answered at once */
    if (r->range.op.status == ST_PERMISSION_DENIED)
        atomic_fetch_add(&r->denied, 1);
    else if (r->range.op.status == ST_OK && engine_range_next(&r->range, &field) &&
             field.len > open.len &&
             memcmp(field.ptr + field.len - open.len, open.ptr, open.len) == 0)
        atomic_fetch_add(&r->allowed, 1);
    else
        atomic_fetch_add(&r->wrong, 1);
    engine_range_close(&r->range);
}

static void *read_main(void *arg)
{
    struct reading *r = arg;
    struct arena arena;
    arena_init(&arena, NULL, 0, 1 << 20);
    if (loop_new(clock_system(), &r->loop) != ST_OK ||
        engine_shard_new(r->f->engine, r->loop, &r->shard) != ST_OK)
        abort();
    while (!atomic_load(&r->stop)) {
        engine_shard_turn_begin(r->shard);
        for (int i = 0; i < 100; i++)
            read_once(r, &arena);
        engine_shard_turn_end(r->shard);
        engine_shard_flushed(r->shard);
        sched_yield();
    }
    engine_shard_free(r->shard);
    loop_free(r->loop);
    arena_fini(&arena);
    return NULL;
}

/* Begins one of the four steps of a round: revoke the right, put a secret, remove it, grant the
 * right. */
static void begin_step(struct fixture *f, int step, struct engine_auth *auth,
                       struct engine_write *write, struct pb_put_request *request)
{
    if (step == 0 || step == 3) {
        *auth = (struct engine_auth){.op = op_of(f, ENGINE_SERVER),
                                     .call = step ? ENGINE_AUTH_USER_GRANT_ROLE
                                                  : ENGINE_AUTH_USER_REVOKE_ROLE,
                                     .user = SLICE_LITERAL("ann"),
                                     .role = SLICE_LITERAL("a")};
        engine_auth_start(f->shard, auth);
        return;
    }
    *request = (struct pb_put_request){.key = SLICE_LITERAL("a/1"),
                                       .value = step == 1 ? SLICE_LITERAL("secret")
                                                          : SLICE_LITERAL("open")};
    *write = (struct engine_write){.op = op_of(f, ENGINE_SERVER)};
    engine_put(f->shard, write, request);
}

static void wait_until_above(const _Atomic unsigned *count, unsigned before)
{
    while (atomic_load(count) <= before)
        sched_yield();
}

static void a_reader_never_sees_what_was_written_while_it_had_no_permission(void **state)
{
    struct fixture *f = *state;
    struct reading r = {.f = f};
    struct engine_auth auth[4];
    struct engine_write writes[4];
    struct pb_put_request requests[4];
    pthread_t thread;
    begin_step(f, 2, &auth[2], &writes[2], &requests[2]);
    wait_for(f, 0);
    engine_write_close(&writes[2]);
    assert_int_equal(pthread_create(&thread, NULL, read_main, &r), 0);
    for (int round = 0; round < 100; round++) {
        for (int step = 0; step < 4; step++) {
            begin_step(f, step, &auth[step], &writes[step], &requests[step]);
            /* Each step in its own group, two in a group, or all in one. */
            if (round % 3 == 0 || (round % 3 == 1 && step == 1))
                wait_for(f, 0);
            if (round % 3 < 2 && step == 1) /* the secret exists in the store */
                wait_until_above(&r.denied, atomic_load(&r.denied));
        }
        wait_for(f, 0);
        engine_write_close(&writes[1]);
        engine_write_close(&writes[2]);
        wait_until_above(&r.allowed, atomic_load(&r.allowed));
    }
    atomic_store(&r.stop, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(r.wrong, 0);
}

/* -- Durability -- */

static void users_and_roles_survive_a_restart(void **state)
{
    struct fixture *f = *state;
    uint64_t revision = engine_auth_revision(f->engine);
    fixture_close(f);
    fixture_open(f, access_options);
    assert_int_equal(engine_auth_revision(f->engine), revision);
    assert_true(auth_rights_enabled(engine_auth_rights(f->shard)));
    OK(put(f, "ann", "a/1"));
    DENIED(put(f, "ann", "b"));
    NOBODY(put_as(f, nobody, "a/1", 0));
}

/* A separate process makes changes, reports each when it is done, and is killed in the middle. */
static void change_until_killed(struct fixture *f, int to)
{
    fixture_open(f, access_options);
    for (unsigned i = 0;; i++) {
        char role[32];
        snprintf(role, sizeof(role), "role-%u", i);
        if (change(f, ENGINE_AUTH_ROLE_ADD, "", role) != ST_OK ||
            write(to, &i, sizeof(i)) != sizeof(i))
            _exit(1);
    }
}

static void acknowledged_changes_survive_a_kill(void **state)
{
    struct fixture *f = *state;
    int ends[2];
    fixture_close(f); /* ends its threads before the fork */
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        change_until_killed(f, ends[1]);
    close(ends[1]);
    unsigned answered = 0;
    while (answered < 50)
        assert_int_equal(read(ends[0], &answered, sizeof(answered)), sizeof(answered));
    assert_int_equal(kill(child, SIGKILL), 0);
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFSIGNALED(how));
    while (read(ends[0], &answered, sizeof(answered)) == sizeof(answered))
        ;
    close(ends[0]);
    fixture_open(f, access_options);
    struct engine_auth op = {.op = op_of(f, as(f, "root")), .call = ENGINE_AUTH_ROLE_LIST};
    OK(run_auth(f, &op));
    /* At most one change was not acknowledged. */
    assert_in_range(op.name_count, 1 + answered + 1, 1 + answered + 2);
    assert_int_equal(engine_auth_revision(f->engine), op.auth_revision);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(operations_without_a_user_are_refused),
        TEST(maintenance_needs_root_and_listing_alarms_a_user),
        TEST(users_are_managed_by_root_and_can_read_themselves),
        TEST(operations_of_the_server_need_no_user),
        TEST(user_reads_and_writes_only_permitted_keys),
        TEST(all_parts_of_a_transaction_are_checked),
        TEST(permissions_are_checked_before_the_quota),
        TEST(permission_revoked_before_a_write_is_applied_refuses_it),
        TEST(changes_see_the_changes_before_them),
        TEST(a_reader_never_sees_what_was_written_while_it_had_no_permission),
        TEST(users_and_roles_survive_a_restart),
        TEST(acknowledged_changes_survive_a_kill),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
