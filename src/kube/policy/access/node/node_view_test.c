#include "kube/policy/access/node/node_view_fixture_test.h"

/* -- Following -- */

static void nothing_is_read_before_the_first_question(void **state)
{
    (void)state;
    begin(1, 0);
    write_pod("a", "one", "s");
    run();
    assert_false(kube_node_view_ready(f->views[0]));
    assert_true(kube_node_view_revision(f->views[0]) == INT64_MAX);
    assert_int_equal(metric("bytes"), 0);
    assert_false(fake_listens(f->engine));

    assert_int_equal(load(0), ST_OK);
    assert_true(fake_listens(f->engine));
    assert_int_equal(metric("pods"), 1);
    assert_true(metric("bytes") > 0);
    assert_false(kube_node_view_ready(f->views[1]));
    end();
}

static void the_graph_follows_objects_of_all_kinds(void **state)
{
    (void)state;
    begin(1, 50);
    write_pod("a", "one", "old");
    write_text("/registry/persistentvolumes/v",
               "{'spec':{'claimRef':{'namespace':'shop','name':'c'},"
               "'csi':{'nodeStageSecretRef':{'namespace':'bank','name':'s'}}}}");
    write_text("/registry/volumeattachments/t", "{'spec':{'nodeName':'one'}}");
    write_text("/registry/resourceslices/r", "{'spec':{'nodeName':'one'}}");
    assert_int_equal(load(0), ST_OK);
    assert_true(reaches("one", NODE_POD, "shop", "a"));
    assert_true(reaches("one", NODE_SECRET, "shop", "old"));
    assert_true(reaches("one", NODE_ATTACHMENT, "", "t"));
    assert_true(reaches("one", NODE_SLICE, "", "r"));
    assert_false(reaches("one", NODE_VOLUME, "", "v"));

    /* Created. */
    write_text("/registry/pods/shop/b",
               "{'spec':{'nodeName':'two','serviceAccountName':'account','volumes':[{'name':'d',"
               "'persistentVolumeClaim':{'claimName':'c'}}]}}");
    write_text("/registry/volumeattachments/u", "{'spec':{'nodeName':'two'}}");
    write_text("/registry/resourceslices/q", "{'spec':{'nodeName':'two'}}");
    run();
    assert_true(reaches("two", NODE_VOLUME, "", "v"));
    assert_true(reaches("two", NODE_SECRET, "bank", "s"));
    assert_true(reaches("two", NODE_ACCOUNT, "shop", "account"));
    assert_true(reaches("two", NODE_ATTACHMENT, "", "u"));
    assert_true(reaches("two", NODE_SLICE, "", "q"));
    assert_false(reaches("one", NODE_ATTACHMENT, "", "u"));

    /* Updated. */
    write_pod("a", "one", "new");
    write_text("/registry/persistentvolumes/v",
               "{'spec':{'claimRef':{'namespace':'shop','name':'other'}}}");
    write_text("/registry/volumeattachments/t", "{'spec':{'nodeName':'two'}}");
    run();
    assert_false(reaches("one", NODE_SECRET, "shop", "old"));
    assert_true(reaches("one", NODE_SECRET, "shop", "new"));
    assert_false(reaches("two", NODE_VOLUME, "", "v"));
    assert_false(reaches("two", NODE_SECRET, "bank", "s"));
    assert_true(reaches("two", NODE_CLAIM, "shop", "c"));
    assert_true(reaches("two", NODE_ATTACHMENT, "", "t"));
    assert_false(reaches("one", NODE_ATTACHMENT, "", "t"));

    /* Deleted. */
    write_pod("a", NULL, NULL);
    write_pod("b", NULL, NULL);
    write_text("/registry/persistentvolumes/v", "");
    for (const char *const *key =
             (const char *const[]){"volumeattachments/t", "volumeattachments/u", "resourceslices/r",
                                   "resourceslices/q", NULL};
         *key; key++) {
        char path[64];
        snprintf(path, sizeof(path), "/registry/%s", *key);
        write_text(path, "");
    }
    run();
    assert_false(reaches("one", NODE_POD, "shop", "a"));
    assert_false(reaches("two", NODE_CLAIM, "shop", "c"));
    assert_false(reaches("two", NODE_ATTACHMENT, "", "t"));
    assert_false(reaches("one", NODE_SLICE, "", "r"));
    assert_int_equal(metric("pods"), 0);
    assert_int_equal(metric("bytes"), 0);
    end();
}

/* Whether it is read with all others or arrives as an event. */
static void what_is_not_an_object_has_no_part_in_the_graph(void **state)
{
    static const struct {
        const char *key, *value;
    } rows[] = {
        {"/registry/pods/shop", "{'spec':{'nodeName':'one'}}"},
        {"/registry/pods//a", "{'spec':{'nodeName':'one'}}"},
        {"/registry/pods/shop/", "{'spec':{'nodeName':'one'}}"},
        {"/registry/pods/shop/a/b", "{'spec':{'nodeName':'one'}}"},
        {"/registry/pods/shop/cut", "{'spec':{'nodeName':'one'"},
        {"/registry/pods/shop/list", "[1]"},
        {"/registry/pods/shop/number", "{'spec':{'nodeName':7}}"},
        {"/registry/persistentvolumes/a/b",
         "{'spec':{'claimRef':{'namespace':'shop','name':'c'}}}"},
        {"/registry/volumeattachments/t", "{'spec':'nodeName'}"},
    };
    (void)state;
    for (int late = 0; late < 2; late++) {
        begin(1, 50);
        if (late)
            assert_int_equal(load(0), ST_OK);
        for (size_t i = 0; i < COUNT_OF(rows); i++)
            write_text(rows[i].key, rows[i].value);
        if (!late)
            assert_int_equal(load(0), ST_OK);
        run();
        assert_int_equal(metric("bytes"), 0);
        write_pod("a", "one", "s");
        run();
        assert_true(has_secret(0, "one", "s"));
        /* An object that cannot be read any more is forgotten. */
        write_text("/registry/pods/shop/a", "{");
        run();
        assert_false(has_secret(0, "one", "s"));
        end();
    }
}

static void the_revision_is_that_of_what_was_read(void **state)
{
    (void)state;
    begin(1, 50);
    write_pod("a", "one", "s");
    assert_int_equal(load(0), ST_OK);
    assert_true(kube_node_view_revision(f->views[0]) >= f->revision);
    write_pod("a", "one", "t");
    assert_true(kube_node_view_revision(f->views[0]) < f->revision);
    assert_true(has_secret(0, "one", "s"));
    run();
    assert_true(kube_node_view_revision(f->views[0]) >= f->revision);
    assert_false(has_secret(0, "one", "s"));
    /* Something of another kind: nothing is behind it. */
    write_text("/registry/configmaps/shop/m", "{}");
    run();
    assert_true(kube_node_view_revision(f->views[0]) >= f->revision);
    end();
}

/* -- Reading all -- */

static void what_changes_while_all_are_read_is_current(void **state)
{
    (void)state;
    for (unsigned turns = 0; turns < 24; turns++) {
        begin(turns, turns % 2 ? 0 : 50);
        write_pod("changes", "one", "old");
        write_pod("goes", "one", "gone");
        write_many();
        const struct waiter *waiter = start_wait(0);
        for (unsigned i = 0; i < turns; i++) {
            turn(0);
            fake_step(f->engine);
        }
        write_pod("changes", "two", "new");
        write_pod("goes", NULL, NULL);
        write_pod("comes", "one", "more");
        run();
        assert_int_equal(waiter->count, 1);
        assert_int_equal(waiter->status, ST_OK);
        assert_true(has_secret(0, "two", "new"));
        assert_true(has_secret(0, "one", "more"));
        assert_false(has_secret(0, "one", "old"));
        assert_false(has_secret(0, "one", "gone"));
        assert_int_equal(metric("pods"), MANY + 2);
        end();
    }
}

/* Neither reading all objects nor following many events takes a thread for itself. */
static void many_objects_take_several_turns(void **state)
{
    (void)state;
    begin(1, 100);
    write_many();
    const struct waiter *waiter = start_wait(0);
    unsigned turns = 0;
    for (; !waiter->count && turns < 1000; turns++) {
        if (turns == 5)
            write_many();
        turn(0);
    }
    assert_in_range(turns, 2 * MANY * LONG / (128 << 10), 100);
    assert_true(waiter->revision >= f->revision); /* it waits for what was written meanwhile */
    run();
    write_many();
    for (turns = 0; kube_node_view_revision(f->views[0]) < f->revision && turns < 1000; turns++)
        turn(0);
    assert_in_range(turns, MANY * LONG / (128 << 10), 100);
    end();
}

static void a_reading_that_fails_is_tried_again_by_the_next_question(void **state)
{
    (void)state;
    for (unsigned percent = 0; percent <= 100; percent += 100) {
        begin(1, percent);
        write_pod("a", "one", "s");
        fake_fail_next(f->engine, ST_NO_LEADER, SLICE_EMPTY);
        assert_int_equal(load(0), ST_NO_LEADER);
        assert_int_equal(metric("bytes"), 0);
        assert_int_equal(load(1), ST_OK);
        assert_int_equal(load(0), ST_OK);
        assert_true(has_secret(0, "one", "s"));
        end();
    }
}

static void a_wait_can_be_given_up(void **state)
{
    (void)state;
    begin(1, 0);
    struct waiter *waiter = start_wait(0);
    assert_int_equal(waiter->count, 0);
    kube_node_view_forget(&waiter->wait);
    run();
    assert_int_equal(waiter->count, 0);
    assert_int_equal(start_wait(0)->count, 1); /* it is ready */
    end();
}

static void a_stop_ends_the_waits(void **state)
{
    (void)state;
    for (unsigned turns = 0; turns < 24; turns++) {
        begin(turns, 0);
        write_many();
        const struct waiter *waiters[] = {start_wait(0), start_wait(1)};
        for (unsigned i = 0; i < turns; i++) {
            turn(0);
            fake_step(f->engine);
        }
        end();
        (void)waiters;
    }
    begin(1, 0);
    const struct waiter *waiter = start_wait(0);
    kube_node_view_stop(f->views[0]);
    run();
    assert_int_equal(waiter->count, 1);
    assert_int_equal(waiter->status, ST_STOPPED);
    assert_false(kube_node_view_ready(f->views[0]));
    assert_int_equal(start_wait(0)->count, 1);
    assert_int_equal(f->waiters[0].status, ST_STOPPED);
    end();
}

/* -- Limits -- */

static void what_has_no_room_is_left_out_and_counted(void **state)
{
    enum { ROOM = 2 << 10 };
    (void)state;
    begin_empty(1, 50);
    open_views(NULL, ROOM);
    write_pod("a", "one", "first");
    write_many();
    assert_int_equal(load(0), ST_OK);
    assert_true(has_secret(0, "one", "first"));
    assert_in_range(metric("bytes"), ROOM, ROOM + 512);
    assert_true(metric("pods") < MANY);
    assert_int_equal(metric("pods") + metric("left_out"), MANY + 1);
    write_pod("z", "two", "last");
    run();
    assert_false(has_secret(0, "two", "last"));
    /* There is room again for what is written from now on. */
    delete_many();
    write_pod("z", "two", "last");
    run();
    assert_true(has_secret(0, "two", "last"));
    end();
}

static void memory_is_charged_and_a_part_of_the_budget(void **state)
{
    (void)state;
    begin_empty(1, 50);
    const size_t limit = 16 << 10;
    assert_int_equal(budget_new(limit, &f->budget), ST_OK);
    open_views(f->budget, 0);
    write_many();
    assert_int_equal(load(0), ST_OK);
    uint64_t bytes = metric("bytes");
    assert_in_range(bytes, limit / NODE_GRAPH_BUDGET_PART, limit / NODE_GRAPH_BUDGET_PART + 512);
    assert_true(metric("left_out") > 0);
    assert_true(budget_stats(f->budget).held_bytes >= bytes);
    delete_many();
    run();
    assert_int_equal(metric("bytes"), 0);
    budget_check(f->budget);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_read_before_the_first_question),
        cmocka_unit_test(the_graph_follows_objects_of_all_kinds),
        cmocka_unit_test(what_is_not_an_object_has_no_part_in_the_graph),
        cmocka_unit_test(the_revision_is_that_of_what_was_read),
        cmocka_unit_test(what_changes_while_all_are_read_is_current),
        cmocka_unit_test(many_objects_take_several_turns),
        cmocka_unit_test(a_reading_that_fails_is_tried_again_by_the_next_question),
        cmocka_unit_test(a_wait_can_be_given_up),
        cmocka_unit_test(a_stop_ends_the_waits),
        cmocka_unit_test(what_has_no_room_is_left_out_and_counted),
        cmocka_unit_test(memory_is_charged_and_a_part_of_the_budget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
