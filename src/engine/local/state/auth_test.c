/* Users, roles and rights of the local engine on a simulated disk, in one thread. */
#include "engine/local/state/auth.h"

#include "store/fixture_test.h"

struct bed {
    struct fixture f;
    struct local_auth auth;
};

static enum status take_row(void *ctx, const struct row *row)
{
    struct bed *bed = ctx;
    return local_auth_load_row(&bed->auth, row);
}

static void start(struct bed *bed)
{
    local_auth_init(&bed->auth);
    bed->f.row_seen = take_row;
    bed->f.row_ctx = bed;
    fixture_start(&bed->f);
    local_auth_open(&bed->auth, bed->f.store);
}

static void stop(struct bed *bed)
{
    auth_store_check(bed->auth.state.store);
    fixture_stop(&bed->f);
    local_auth_fini(&bed->auth);
}

static int set_up(void **state)
{
    struct bed *bed = calloc(1, sizeof(*bed));
    assert_non_null(bed);
    fixture_init(&bed->f);
    start(bed);
    *state = bed;
    return 0;
}

static int tear_down(void **state)
{
    struct bed *bed = *state;
    stop(bed);
    fixture_fini(&bed->f);
    free(bed);
    return 0;
}

/* -- Calls, as the server itself -- */

static enum status run(struct bed *bed, struct engine_auth *op)
{
    op->op.arena = &bed->f.arena;
    op->op.principal = ENGINE_SERVER;
    local_auth_execute(&bed->auth, op);
    return op->op.status;
}

static enum status change(struct bed *bed, enum engine_auth_call call, const char *user,
                          const char *role)
{
    struct engine_auth op = {.call = call,
                             .user = slice_from_text(user),
                             .role = slice_from_text(role),
                             .hash = SLICE_LITERAL("hash")};
    return run(bed, &op);
}

static enum status grant(struct bed *bed, const char *role, const char *key, const char *end)
{
    struct pb_permission permission = {.perm_type = PB_PERMISSION_TYPE_READWRITE,
                                       .key = slice_from_text(key),
                                       .range_end = slice_from_text(end)};
    struct engine_auth op = {
        .call = ENGINE_AUTH_ROLE_GRANT, .role = slice_from_text(role), .permission = &permission};
    return run(bed, &op);
}

#define OK(call) assert_int_equal(call, ST_OK)

/* Adds root, and ann, whose role permits a/, and enables authentication. */
static void fill(struct bed *bed)
{
    OK(change(bed, ENGINE_AUTH_USER_ADD, "root", ""));
    OK(change(bed, ENGINE_AUTH_USER_GRANT_ROLE, "root", "root"));
    OK(change(bed, ENGINE_AUTH_USER_ADD, "ann", ""));
    OK(change(bed, ENGINE_AUTH_ROLE_ADD, "", "writer"));
    OK(change(bed, ENGINE_AUTH_USER_GRANT_ROLE, "ann", "writer"));
    OK(grant(bed, "writer", "a/", "a0"));
    OK(change(bed, ENGINE_AUTH_ENABLE, "", ""));
}

/* What a reader of the newest state sees. Nothing else runs here, so that no pin is needed. */
static const struct auth_rights *published(struct bed *bed)
{
    return local_auth_of(store_view(bed->f.store));
}

static enum status ann_puts(const struct auth_rights *rights, const char *key)
{
    struct auth_principal ann = {.user = SLICE_LITERAL("ann"),
                                 .revision = auth_rights_revision(rights)};
    return auth_rights_check(rights, &ann, AUTH_WRITE, slice_from_text(key), SLICE_EMPTY);
}

static void check_filled(struct bed *bed)
{
    const struct auth_rights *rights = published(bed);
    assert_true(auth_rights_enabled(rights));
    assert_int_equal(auth_rights_revision(rights), 7);
    OK(ann_puts(rights, "a/1"));
    assert_int_equal(ann_puts(rights, "b"), ST_PERMISSION_DENIED);
    struct engine_auth op = {.call = ENGINE_AUTH_USER_LIST};
    OK(run(bed, &op));
    assert_int_equal(op.name_count, 2);
    assert_true(slice_is(op.names[0], "ann"));
    op = (struct engine_auth){.call = ENGINE_AUTH_PASSWORD, .user = SLICE_LITERAL("ann")};
    OK(run(bed, &op));
    assert_true(slice_is(op.password_hash, "hash"));
    assert_int_equal(op.auth_revision, 7);
}

static void rights_become_visible_with_their_state(void **state)
{
    struct bed *bed = *state;
    const struct auth_rights *before = published(bed);
    fill(bed);
    assert_ptr_equal(published(bed), before);
    assert_false(auth_rights_enabled(before));
    /* It affects later requests in the same group. */
    assert_true(auth_rights_enabled(bed->auth.state.rights));
    fixture_commit(&bed->f);
    assert_true(bed->auth.changed);
    assert_ptr_equal(published(bed), bed->auth.state.rights);
    check_filled(bed);
}

/* A watch uses the newest state, and new rights only if they have changed. */
static void a_reader_of_a_new_state_finds_that_its_rights_are_old(void **state)
{
    struct bed *bed = *state;
    fill(bed);
    fixture_commit(&bed->f);
    assert_ptr_equal(atomic_load(&bed->auth.newest), published(bed));
    assert_int_equal(atomic_load(&bed->auth.newest_revision), 7);
}

static void a_reader_keeps_the_rights_of_its_state(void **state)
{
    struct bed *bed = *state;
    struct epoch_slot *slot = epoch_slot_add(store_epoch(bed->f.store));
    fill(bed);
    fixture_commit(&bed->f);
    uint64_t pinned = epoch_pin(slot);
    const struct auth_rights *old = published(bed);
    OK(change(bed, ENGINE_AUTH_USER_REVOKE_ROLE, "ann", "writer"));
    for (int i = 0; i < 3; i++)
        fixture_commit(&bed->f);
    OK(ann_puts(old, "a/1"));
    assert_int_equal(ann_puts(published(bed), "a/1"), ST_PERMISSION_DENIED);
    epoch_unpin(slot, pinned);
    OK(store_trim_step(bed->f.store));
    assert_false(store_has_retired(bed->f.store)); /* a sanitizer would report later uses */
}

static void users_and_roles_come_back_from_log_and_checkpoint(void **state)
{
    struct bed *bed = *state;
    fill(bed);
    fixture_commit(&bed->f);
    stop(bed);
    start(bed);
    check_filled(bed);
    fixture_settle(&bed->f);
    stop(bed);
    start(bed);
    check_filled(bed);
    OK(change(bed, ENGINE_AUTH_ROLE_DELETE, "", "writer"));
    OK(change(bed, ENGINE_AUTH_USER_DELETE, "ann", ""));
    fixture_settle(&bed->f);
    stop(bed);
    start(bed);
    assert_int_equal(ann_puts(published(bed), "a/1"), ST_PERMISSION_DENIED);
    assert_int_equal(auth_rights_revision(published(bed)), 9);
    assert_int_equal(auth_store_user_count(bed->auth.state.store), 1);
    assert_int_equal(auth_store_role_count(bed->auth.state.store), 0);
}

/* The power fails after each number of changes, some of them not committed: a prefix remains. */
static void power_cut_loses_no_acknowledged_change(void **state)
{
    struct bed *bed = *state;
    fill(bed);
    fixture_commit(&bed->f);
    uint64_t expected = auth_store_revision(bed->auth.state.store);
    for (int round = 0; round < 20; round++) {
        uint64_t answered = expected;
        for (int i = 0; i < 3; i++) {
            /* A role and its deletion from every user that has it are one change of many rows. */
            OK(change(bed, ENGINE_AUTH_ROLE_ADD, "", "r"));
            OK(change(bed, ENGINE_AUTH_USER_GRANT_ROLE, "ann", "r"));
            OK(change(bed, ENGINE_AUTH_USER_GRANT_ROLE, "root", "r"));
            OK(change(bed, ENGINE_AUTH_ROLE_DELETE, "", "r"));
            if (i == round % 3) {
                fixture_commit(&bed->f);
                answered = auth_store_revision(bed->auth.state.store);
            }
        }
        uint64_t newest = auth_store_revision(bed->auth.state.store);
        fs_sim_crash(bed->f.sim);
        stop(bed);
        start(bed);
        expected = auth_store_revision(bed->auth.state.store);
        assert_in_range(expected, answered, newest);
        struct engine_auth op = {.call = ENGINE_AUTH_USER_GET, .user = SLICE_LITERAL("root")};
        OK(run(bed, &op));
        struct engine_auth role = {.call = ENGINE_AUTH_ROLE_GET, .role = SLICE_LITERAL("r")};
        bool there = run(bed, &role) == ST_OK;
        assert_true(op.name_count == 1 || there); /* no user has a deleted role */
        if (there)
            OK(change(bed, ENGINE_AUTH_ROLE_DELETE, "", "r"));
        fixture_commit(&bed->f);
        expected = auth_store_revision(bed->auth.state.store);
        OK(ann_puts(published(bed), "a/1"));
    }
}

static void a_change_that_could_not_be_written_has_not_happened(void **state)
{
    struct bed *bed = *state;
    fill(bed);
    fixture_commit(&bed->f);
    fs_sim_fail(bed->f.sim, FS_SIM_ANY, 1, ST_DISK_FULL, true);
    enum status status = ST_OK;
    uint64_t revision = 0;
    unsigned done = 0;
    for (; done < 1000 && status == ST_OK; done++) { /* the segment has some space left */
        revision = auth_store_revision(bed->auth.state.store);
        char key[32];
        snprintf(key, sizeof(key), "b/%u", done);
        status = grant(bed, "writer", key, "");
    }
    assert_int_equal(status, ST_DISK_FULL);
    assert_int_equal(auth_store_revision(bed->auth.state.store), revision);
    char key[32];
    snprintf(key, sizeof(key), "b/%u", done - 1);
    assert_int_equal(ann_puts(bed->auth.state.rights, key), ST_PERMISSION_DENIED);
    fs_sim_fail(bed->f.sim, FS_SIM_ANY, 0, ST_OK, false);
    fixture_commit(&bed->f);
    stop(bed);
    start(bed);
    assert_int_equal(auth_store_revision(bed->auth.state.store), revision);
    assert_int_equal(ann_puts(published(bed), key), ST_PERMISSION_DENIED);
}

static void without_memory_for_its_answer_nothing_is_changed(void **state)
{
    struct bed *bed = *state;
    fill(bed);
    uint64_t revision = auth_store_revision(bed->auth.state.store);
    struct arena none;
    arena_init(&none, NULL, 0, 0);
    struct engine_auth op = {.op = {.arena = &none, .principal = ENGINE_SERVER},
                             .call = ENGINE_AUTH_USER_DELETE,
                             .user = SLICE_LITERAL("ann")};
    local_auth_execute(&bed->auth, &op);
    assert_int_equal(op.op.status, ST_NOMEM);
    assert_int_equal(auth_store_revision(bed->auth.state.store), revision);
    OK(ann_puts(bed->auth.state.rights, "a/1"));
    arena_fini(&none);
}

static void changes_name_the_tokens_that_end(void **state)
{
    struct bed *bed = *state;
    fill(bed);
    struct engine_auth op = {.call = ENGINE_AUTH_USER_CHANGE_PASSWORD,
                             .user = SLICE_LITERAL("ann"),
                             .hash = SLICE_LITERAL("new")};
    OK(run(bed, &op));
    assert_true(slice_is(op.ends_tokens_of, "ann"));
    assert_int_equal(op.auth_revision, 8);
    op = (struct engine_auth){.call = ENGINE_AUTH_DISABLE};
    OK(run(bed, &op));
    assert_true(op.ends_all_tokens);
    assert_int_equal(op.ends_tokens_of.len, 0);
}

static void an_invalid_row_is_damage(void **state)
{
    struct bed *bed = *state;
    struct row row = {.table = ROW_USER, .key = SLICE_LITERAL("x"), .value = SLICE_LITERAL("\377")};
    assert_int_equal(local_auth_load_row(&bed->auth, &row), ST_DAMAGED);
    row = (struct row){.table = ROW_AUTH, .key = SLICE_LITERAL("x"), .value = SLICE_LITERAL("1")};
    assert_int_equal(local_auth_load_row(&bed->auth, &row), ST_DAMAGED);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(rights_become_visible_with_their_state),
        TEST(a_reader_of_a_new_state_finds_that_its_rights_are_old),
        TEST(a_reader_keeps_the_rights_of_its_state),
        TEST(users_and_roles_come_back_from_log_and_checkpoint),
        TEST(power_cut_loses_no_acknowledged_change),
        TEST(a_change_that_could_not_be_written_has_not_happened),
        TEST(without_memory_for_its_answer_nothing_is_changed),
        TEST(changes_name_the_tokens_that_end),
        TEST(an_invalid_row_is_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
