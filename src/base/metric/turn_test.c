#include "base/metric/turn.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct fixture {
    struct clock_sim clock;
    int64_t cpu_ns;
    struct turns *turns;
    struct turn *turn;
    unsigned reports, suppressed;
    struct turn_report last;
    char work[256], peer[64];
};

static int64_t cpu_of_test(void *ctx)
{
    return ((struct fixture *)ctx)->cpu_ns;
}

static void take_report(void *ctx, const struct turn_report *report)
{
    struct fixture *f = ctx;
    f->reports++;
    f->suppressed += (unsigned)report->suppressed;
    f->last = *report;
    snprintf(f->work, sizeof(f->work), "%s", report->work);
    snprintf(f->peer, sizeof(f->peer), "%s", report->peer);
}

static void fixture_init(struct fixture *f)
{
    *f = (struct fixture){0};
    clock_sim_init(&f->clock, 0);
    struct turns_options options = {
        .clock = &f->clock.clock, .cpu_ns = cpu_of_test, .on_long = take_report, .ctx = f};
    assert_int_equal(turns_new(&options, &f->turns), ST_OK);
    assert_int_equal(turns_join(f->turns, "io", &f->turn), ST_OK);
}

static void fixture_fini(struct fixture *f)
{
    turns_free(f->turns);
    assert_null(turn_here);
}

static void begin(struct fixture *f)
{
    turn_begin(f->turn, clock_mono_ns(&f->clock.clock));
}

static void end(struct fixture *f)
{
    turn_end(f->turn, clock_mono_ns(&f->clock.clock));
}

static void pass(struct fixture *f, int64_t ms)
{
    clock_sim_advance(&f->clock, ms * NS_PER_MS);
    f->cpu_ns += ms * NS_PER_MS;
}

static void long_turn_is_reported_with_its_longest_work(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    begin(&f);
    turn_phase("serving sockets");
    turn_work("calling", SLICE_LITERAL("/KV/Range"));
    pass(&f, 20);
    turn_work("calling", SLICE_LITERAL("/KV/Txn"));
    pass(&f, 90);
    turn_work("calling", SLICE_LITERAL("/KV/Put"));
    pass(&f, 5);
    assert_true(turn_work_done());
    turn_peer("192.0.2.7:4711");
    turn_work("calling", SLICE_LITERAL("/KV/Put"));
    assert_false(turn_work_done());
    turn_phase("sending");
    pass(&f, 1);
    end(&f);
    assert_int_equal(f.reports, 1);
    assert_string_equal(f.last.thread, "io");
    assert_string_equal(f.work, "calling /KV/Txn");
    assert_string_equal(f.peer, "192.0.2.7:4711");
    assert_int_equal(f.last.work_ns, 90 * NS_PER_MS);
    assert_int_equal(f.last.took_ns, 116 * NS_PER_MS);
    assert_int_equal(f.last.cpu_ns, 116 * NS_PER_MS);
    fixture_fini(&f);
}

static void turn_below_the_limit_is_only_counted(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    for (int i = 0; i < 3; i++) {
        begin(&f);
        turn_work("calling", SLICE_LITERAL("/KV/Txn"));
        clock_sim_advance(&f.clock, TURN_LONG_NS - 1);
        end(&f);
    }
    assert_int_equal(f.reports, 0);
    struct metric_page page = {0};
    turns_write(f.turns, &page);
    assert_int_equal(buf_append(&page.text, slice_of("", 1)), ST_OK);
    const char *text = (const char *)page.text.ptr;
    assert_non_null(
        strstr(text, "vigil_turn_duration_seconds_bucket{thread=\"io\",le=\"0.05\"} 0"));
    assert_non_null(strstr(text, "vigil_turn_duration_seconds_bucket{thread=\"io\",le=\"0.1\"} 3"));
    assert_non_null(strstr(text, "vigil_turn_duration_seconds_count{thread=\"io\"} 3"));
    metric_page_fini(&page);
    fixture_fini(&f);
}

/* Work that is not over when the turn ends counts too, and a temporary text is copied. */
static void last_work_of_a_turn_is_named_from_a_copy(void **state)
{
    (void)state;
    struct fixture f;
    char path[1000];
    memset(path, 'x', sizeof(path));
    fixture_init(&f);
    begin(&f);
    turn_work_copy("answering", SLICE_LITERAL("GET"), slice_of(path, sizeof(path)));
    memset(path, 'y', sizeof(path));
    pass(&f, 100);
    end(&f);
    assert_int_equal(f.reports, 1);
    assert_memory_equal(f.work, "answering GET xxxx", 18);
    assert_null(strchr(f.work, 'y'));
    assert_int_equal(strlen(f.work), strlen("answering ") + TURN_TEXT_BYTES);
    assert_string_equal(f.peer, "");
    fixture_fini(&f);
}

static void work_of_one_phase_is_not_charged_to_a_client_of_the_next(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    begin(&f);
    turn_phase("receiving messages");
    turn_work("answering", SLICE_LITERAL("a transaction"));
    pass(&f, 200);
    turn_phase("sending");
    assert_false(turn_work_done());
    end(&f);
    assert_string_equal(f.work, "answering a transaction");
    assert_string_equal(f.peer, "");
    fixture_fini(&f);
}

static void calls_of_one_method_in_a_row_are_one_piece_of_work(void **state)
{
    (void)state;
    struct fixture f;
    struct slice range = SLICE_LITERAL("/KV/Range"), put = SLICE_LITERAL("/KV/Put");
    fixture_init(&f);
    begin(&f);
    turn_phase("serving sockets");
    turn_work("calling", put);
    pass(&f, 40);
    for (int i = 0; i < 30; i++) {
        turn_work("calling", range);
        pass(&f, 2);
    }
    assert_true(turn_work_done());
    turn_work("calling", range); /* the work of another client */
    pass(&f, 20);
    assert_false(turn_work_done());
    end(&f);
    assert_string_equal(f.work, "calling /KV/Range");
    assert_int_equal(f.last.work_ns, 60 * NS_PER_MS);
    fixture_fini(&f);
}

/* After a named piece is over, work belongs to its phase while the phase lasts. */
static void work_without_a_name_has_the_name_of_its_phase(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    begin(&f);
    turn_phase("serving sockets");
    turn_work("calling", SLICE_LITERAL("/KV/Range"));
    pass(&f, 30);
    assert_false(turn_work_done());
    pass(&f, 150); /* such as reading frames that belong to no call */
    assert_true(turn_work_done());
    turn_phase("publishing");
    pass(&f, 170);
    turn_phase("sending");
    pass(&f, 20);
    end(&f);
    assert_string_equal(f.work, "publishing");
    assert_int_equal(f.last.work_ns, 170 * NS_PER_MS);
    begin(&f);
    turn_phase("serving sockets");
    assert_false(turn_work_done());
    pass(&f, 150);
    assert_true(turn_work_done());
    turn_phase("sending");
    end(&f);
    assert_string_equal(f.work, "serving sockets");
    fixture_fini(&f);
}

/* The machine was busy with other processes: the report shows that this thread did not run. */
static void time_without_the_processor_is_reported_separately(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    begin(&f);
    turn_work("calling", SLICE_LITERAL("/KV/Range"));
    pass(&f, 2);
    clock_sim_advance(&f.clock, 300 * NS_PER_MS);
    end(&f);
    assert_int_equal(f.last.took_ns, 302 * NS_PER_MS);
    assert_int_equal(f.last.cpu_ns, 2 * NS_PER_MS);
    fixture_fini(&f);
}

static void reports_are_limited_and_the_others_counted(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    for (int i = 0; i < 60; i++) { /* six seconds */
        begin(&f);
        pass(&f, 100);
        end(&f);
    }
    unsigned reports = f.reports;
    assert_in_range(reports, TURN_REPORTS_BURST, TURN_REPORTS_BURST + 6);
    clock_sim_advance(&f.clock, 5 * NS_PER_S);
    begin(&f);
    pass(&f, 100);
    end(&f);
    assert_int_equal(f.reports, reports + 1);
    assert_int_equal(f.reports + f.suppressed, 61);
    clock_sim_advance(&f.clock, 5 * NS_PER_S);
    begin(&f);
    pass(&f, 100);
    end(&f);
    assert_int_equal(f.last.suppressed, 0);
    fixture_fini(&f);
}

/* The name and the client belong to one turn only. */
static void each_turn_is_reported_with_its_own_work(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    begin(&f);
    turn_work("calling", SLICE_LITERAL("/KV/Txn"));
    pass(&f, 300);
    assert_true(turn_work_done());
    turn_peer("192.0.2.7:4711");
    end(&f);
    assert_string_equal(f.peer, "192.0.2.7:4711");
    begin(&f);
    turn_work("calling", SLICE_LITERAL("/KV/Put"));
    pass(&f, 200);
    end(&f);
    assert_string_equal(f.work, "calling /KV/Put");
    assert_int_equal(f.last.work_ns, 200 * NS_PER_MS);
    assert_string_equal(f.peer, "");
    begin(&f);
    for (int i = 0; i < 30; i++) {
        turn_work("calling", SLICE_LITERAL("/KV/Put"));
        pass(&f, 4);
        assert_false(turn_work_done()); /* the next one is of another client */
    }
    end(&f);
    assert_string_equal(f.work, "many pieces of work");
    assert_int_equal(f.last.work_ns, 0);
    assert_string_equal(f.peer, "");
    fixture_fini(&f);
}

/* Looking up the client takes time, so it is done only for work that made the turn long. */
static void client_is_looked_up_after_long_work_only(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    begin(&f);
    turn_phase("serving sockets");
    turn_work("calling", SLICE_LITERAL("/KV/Put"));
    pass(&f, 60);
    assert_true(turn_work_done());
    turn_peer("192.0.2.7:4711");
    turn_work("calling", SLICE_LITERAL("/KV/Range"));
    pass(&f, 59); /* long too, but not the longest */
    assert_false(turn_work_done());
    end(&f);
    assert_string_equal(f.work, "calling /KV/Put");
    assert_string_equal(f.peer, "192.0.2.7:4711");
    begin(&f);
    turn_work("calling", SLICE_LITERAL("/KV/Put"));
    pass(&f, 40);
    assert_false(turn_work_done());
    end(&f);
    fixture_fini(&f);
}

/* What precedes a piece of work in its phase, such as reading a request, is part of it. */
static void time_before_the_first_work_of_a_phase_counts_for_it(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    begin(&f);
    turn_phase("serving sockets");
    pass(&f, 30);
    turn_work("calling", SLICE_LITERAL("/KV/Txn"));
    pass(&f, 80);
    end(&f);
    assert_string_equal(f.work, "calling /KV/Txn");
    assert_int_equal(f.last.work_ns, 110 * NS_PER_MS);
    begin(&f);
    turn_phase("serving sockets");
    pass(&f, 110);
    end(&f);
    assert_string_equal(f.work, "serving sockets");
    fixture_fini(&f);
}

/* The reading at the beginning may be up to 10 ms old; the report never shows more than the turn.
 */
static void processor_time_is_that_of_the_turn(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    begin(&f);
    end(&f);
    pass(&f, 9);
    begin(&f);
    pass(&f, 100);
    end(&f);
    assert_int_equal(f.last.cpu_ns, 100 * NS_PER_MS);
    pass(&f, 50);
    begin(&f);
    clock_sim_advance(&f.clock, 100 * NS_PER_MS);
    end(&f);
    assert_int_equal(f.last.cpu_ns, 0);
    fixture_fini(&f);
}

static unsigned count_of(const char *page, const char *kind)
{
    char row[128];
    snprintf(row, sizeof(row), "\nvigil_turn_duration_seconds_count{thread=\"%s\"} ", kind);
    const char *at = strstr(page, row);
    assert_non_null(at);
    assert_null(strstr(at + 1, row));
    return (unsigned)strtoul(at + strlen(row), NULL, 10);
}

static void turn_that_was_not_begun_is_not_counted(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    pass(&f, 5000);
    end(&f); /* the thread's own function gave it the turn */
    assert_int_equal(f.reports, 0);
    struct metric_page page = {0};
    turns_write(f.turns, &page);
    assert_int_equal(buf_append(&page.text, slice_of("", 1)), ST_OK);
    assert_int_equal(count_of((const char *)page.text.ptr, "io"), 0);
    metric_page_fini(&page);
    begin(&f);
    pass(&f, 5000);
    end(&f);
    assert_int_equal(f.reports, 1);
    fixture_fini(&f);
}

static void threads_of_a_kind_are_counted_together(void **state)
{
    (void)state;
    struct fixture f;
    struct turn *second, *writer;
    fixture_init(&f);
    assert_int_equal(turns_join(f.turns, "io", &second), ST_OK);
    assert_int_equal(turns_join(f.turns, "writer", &writer), ST_OK);
    begin(&f);
    end(&f);
    turn_begin(second, 0);
    turn_end(second, 1);
    turn_begin(writer, 0);
    turn_end(writer, 1);
    struct metric_page page = {0};
    turns_write(f.turns, &page);
    assert_int_equal(buf_append(&page.text, slice_of("", 1)), ST_OK);
    assert_int_equal(count_of((const char *)page.text.ptr, "io"), 2);
    assert_int_equal(count_of((const char *)page.text.ptr, "writer"), 1);
    metric_page_fini(&page);
    fixture_fini(&f);
}

static void nothing_is_measured_without_turns(void **state)
{
    (void)state;
    struct turn *turn = (struct turn *)8;
    assert_int_equal(turns_join(NULL, "io", &turn), ST_OK);
    assert_null(turn);
    turn_begin(turn, 1);
    turn_phase("serving sockets");
    turn_work("calling", SLICE_LITERAL("/KV/Range"));
    assert_false(turn_work_done());
    turn_end(turn, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_turn_is_reported_with_its_longest_work),
        cmocka_unit_test(turn_below_the_limit_is_only_counted),
        cmocka_unit_test(last_work_of_a_turn_is_named_from_a_copy),
        cmocka_unit_test(work_of_one_phase_is_not_charged_to_a_client_of_the_next),
        cmocka_unit_test(calls_of_one_method_in_a_row_are_one_piece_of_work),
        cmocka_unit_test(work_without_a_name_has_the_name_of_its_phase),
        cmocka_unit_test(time_without_the_processor_is_reported_separately),
        cmocka_unit_test(reports_are_limited_and_the_others_counted),
        cmocka_unit_test(each_turn_is_reported_with_its_own_work),
        cmocka_unit_test(client_is_looked_up_after_long_work_only),
        cmocka_unit_test(time_before_the_first_work_of_a_phase_counts_for_it),
        cmocka_unit_test(processor_time_is_that_of_the_turn),
        cmocka_unit_test(turn_that_was_not_begun_is_not_counted),
        cmocka_unit_test(threads_of_a_kind_are_counted_together),
        cmocka_unit_test(nothing_is_measured_without_turns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
