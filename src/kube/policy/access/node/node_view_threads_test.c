#include "kube/policy/access/node/node_view_fixture_test.h"

#include "base/random.h"

enum { PODS = 5, NAMES = 3, STEPS = 300 };

/* -- Events that are gone -- */

static void all_are_read_again_if_events_were_compacted(void **state)
{
    (void)state;
    begin(1, 50);
    write_pod("a", "one", "old");
    write_pod("b", "one", "gone");
    assert_int_equal(load(0), ST_OK);
    write_pod("a", "one", "new");
    write_pod("b", NULL, NULL);
    write_pod("c", "two", "more");
    compact();
    turn(0);
    assert_false(kube_node_view_ready(f->views[0])); /* it does not answer from the old graph */
    run();
    assert_true(kube_node_view_ready(f->views[0]));
    assert_true(has_secret(0, "one", "new"));
    assert_true(has_secret(0, "two", "more"));
    assert_false(has_secret(0, "one", "old"));
    assert_false(has_secret(0, "one", "gone"));
    assert_int_equal(metric("pods"), 2);
    write_pod("c", "one", "more");
    run();
    assert_true(has_secret(0, "one", "more"));
    end();
}

/* The waits fail, and the next question reads again. */
static void a_reading_that_history_has_overtaken_fails(void **state)
{
    (void)state;
    begin(1, 100);
    write_many();
    const struct waiter *waiter = start_wait(0);
    /* Until pods were read, and the other kinds were not. */
    for (unsigned i = 0; i < 4; i++)
        turn(0);
    assert_int_equal(waiter->count, 0);
    write_pod("a", "one", "s");
    write_pod("a", "one", "t");
    write_text("/registry/configmaps/shop/m", "{}");
    compact();
    run();
    assert_int_equal(waiter->count, 1);
    assert_int_equal(waiter->status, ST_AGAIN);
    assert_int_equal(load(0), ST_OK);
    assert_true(has_secret(0, "one", "t"));
    assert_int_equal(metric("pods"), MANY + 1);
    end();
}

/* -- Two threads -- */

static void views_share_what_was_read(void **state)
{
    (void)state;
    for (unsigned turns = 0; turns < 24; turns++) {
        begin(turns, 50);
        write_pod("a", "one", "old");
        write_many();
        const struct waiter *waiters[] = {start_wait(0), &f->waiters[1]};
        for (unsigned i = 0; i < turns; i++) {
            turn(0);
            fake_step(f->engine);
        }
        start_wait(1);
        run();
        for (size_t i = 0; i < VIEWS; i++) {
            assert_int_equal(waiters[i]->count, 1);
            assert_int_equal(waiters[i]->status, ST_OK);
            assert_true(has_secret(i, "one", "old"));
        }
        assert_int_equal(metric("pods"), MANY + 1);
        /* The first one to look applies an event for both. */
        write_pod("a", "two", "new");
        run_thread(turns % VIEWS);
        for (size_t i = 0; i < VIEWS; i++) {
            assert_true(has_secret(i, "two", "new"));
            assert_false(has_secret(i, "one", "old"));
        }
        end();
    }
}

static void a_thread_that_is_behind_does_not_bring_back_what_was(void **state)
{
    (void)state;
    begin(1, 0);
    assert_int_equal(load(0), ST_OK);
    assert_int_equal(load(1), ST_OK);
    write_pod("a", "one", "s");
    write_many();
    write_pod("a", NULL, NULL);
    run_thread(0);
    assert_false(has_secret(0, "one", "s"));
    for (unsigned turns = 0; kube_node_view_revision(f->views[1]) < f->revision; turns++) {
        assert_in_range(turns, 0, 100);
        turn(1);
        assert_false(has_secret(0, "one", "s"));
    }
    assert_int_equal(metric("pods"), MANY);
    end();
}

static void another_view_reads_if_the_first_is_stopped(void **state)
{
    (void)state;
    for (unsigned turns = 0; turns < 12; turns++) {
        begin(turns, 0);
        write_pod("a", "one", "s");
        write_many();
        start_wait(0);
        const struct waiter *waiter = start_wait(1);
        for (unsigned i = 0; i < turns; i++) {
            turn(0);
            fake_step(f->engine);
        }
        kube_node_view_stop(f->views[0]);
        run();
        assert_int_equal(waiter->count, 1);
        assert_int_equal(waiter->status, ST_OK);
        assert_true(has_secret(1, "one", "s"));
        end();
    }
}

/* What one thread has lost another one has put into the graph: nothing is read again. */
static void a_view_that_has_lost_events_continues_where_the_graph_is(void **state)
{
    (void)state;
    begin(1, 0);
    write_pod("a", "one", "old");
    assert_int_equal(load(0), ST_OK);
    assert_int_equal(load(1), ST_OK);
    write_pod("a", "one", "newer");
    write_pod("a", "one", "new");
    run_thread(0);
    compact();
    turn(1);
    turn(1);
    assert_int_equal(fake_waiting(f->engine), 0);
    assert_int_equal(f->under_way, 0);
    assert_true(has_secret(1, "one", "new"));
    write_pod("a", "two", "new");
    run_thread(1);
    assert_true(has_secret(0, "two", "new"));
    end();
}

/* Another thread has read all objects again: the view follows the new graph from there. */
static void a_view_takes_the_graph_that_another_has_read(void **state)
{
    (void)state;
    begin(1, 0);
    write_pod("a", "one", "old");
    assert_int_equal(load(0), ST_OK);
    assert_int_equal(load(1), ST_OK);
    write_pod("a", "one", "newer");
    write_pod("a", "one", "new");
    compact();
    run_thread(0);
    assert_true(has_secret(0, "one", "new"));
    assert_true(has_secret(1, "one", "new"));
    assert_int_equal(f->under_way, 0);
    write_pod("a", "two", "newest");
    run_thread(1);
    assert_true(has_secret(0, "two", "newest"));
    end();
}

/* -- Everything at random -- */

struct model {
    int node[PODS], secret[PODS]; /* -1: there is no such pod; an unbound one */
};

static const char *const nodes[NAMES] = {"one", "two", "three"};
static const char *const secrets[NAMES] = {"red", "green", "blue"};

static void write_random(struct model *model, struct random *random)
{
    static const char *const pods[PODS] = {"p", "q", "r", "s", "t"};
    size_t at = random_below(random, PODS);
    model->secret[at] = (int)random_below(random, NAMES + 1) - 1;
    model->node[at] = (int)random_below(random, NAMES + 1) - 1;
    write_pod(pods[at], model->node[at] < 0 ? NULL : nodes[model->node[at]],
              model->secret[at] < 0 ? NULL : secrets[model->secret[at]]);
}

static void compare(const struct model *model, size_t thread)
{
    for (int node = 0; node < NAMES; node++)
        for (int secret = 0; secret < NAMES; secret++) {
            bool expected = false;
            for (size_t i = 0; i < PODS; i++)
                expected = expected || (model->node[i] == node && model->secret[i] == secret);
            assert_int_equal(has_secret(thread, nodes[node], secrets[secret]), expected);
        }
}

static void threads_that_lag_and_lose_events_agree_with_the_store(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct random random;
        struct model model;
        random_init(&random, seed);
        begin(seed, (unsigned)(seed % 3) * 50);
        for (size_t i = 0; i < PODS; i++)
            model.node[i] = model.secret[i] = -1;
        for (unsigned step = 0; step < STEPS; step++) {
            if (random_chance(&random, 1, 2))
                write_random(&model, &random);
            else if (random_chance(&random, 1, 8))
                compact();
            else if (random_chance(&random, 1, 4))
                clock_sim_advance(&f->clock, NS_PER_MS);
            else
                turn(random_below(&random, VIEWS));
            if (random_chance(&random, 1, 3))
                fake_step(f->engine);
            if (step % 20 != 19)
                continue;
            run();
            for (size_t i = 0; i < VIEWS; i++) {
                while (load(i) != ST_OK) /* history has overtaken it */
                    ;
                compare(&model, i);
            }
        }
        end();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_are_read_again_if_events_were_compacted),
        cmocka_unit_test(a_reading_that_history_has_overtaken_fails),
        cmocka_unit_test(views_share_what_was_read),
        cmocka_unit_test(a_thread_that_is_behind_does_not_bring_back_what_was),
        cmocka_unit_test(another_view_reads_if_the_first_is_stopped),
        cmocka_unit_test(a_view_that_has_lost_events_continues_where_the_graph_is),
        cmocka_unit_test(a_view_takes_the_graph_that_another_has_read),
        cmocka_unit_test(threads_that_lag_and_lose_events_agree_with_the_store),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
