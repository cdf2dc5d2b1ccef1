/* How much is in flight to the mirror, which the test replaces. */
#include "mirror/follow/apply_queue.h"

#include "base/xalloc.h"
#include "client/call/client.h"
#include "codec/pb/kv.pb.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { REVISIONS = 100 };

static struct {
    vigil_client *client;
    struct apply_queue *apply_queue;
    struct mirror_batch *applying[REVISIONS + 8];
    size_t given, applied; /* batches */
    int64_t visible;
    size_t done;
    enum status last;
} f;

void __wrap_local_mirror_apply(struct engine *engine, struct mirror_batch *batch);
void __wrap_local_mirror_apply(struct engine *engine, struct mirror_batch *batch)
{
    (void)engine;
    f.applying[f.given++] = batch;
}

static void on_visible(void *ctx, int64_t revision)
{
    (void)ctx;
    f.visible = revision;
}

static void on_done(void *ctx, enum status status)
{
    (void)ctx;
    f.done++;
    f.last = status;
}

static int set_up(void **state)
{
    (void)state;
    vigil_options options;
    memset(&f, 0, sizeof(f));
    vigil_options_init(&options);
    options.own_thread = 0;
    assert_int_equal(vigil_client_new(&options, &f.client, NULL), VIGIL_OK);
    f.apply_queue = apply_queue_new(&(struct apply_queue_options){
        .driver = &f.client->driver,
        .visible = on_visible,
        .done = on_done,
    });
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    vigil_client_free(f.client);
    apply_queue_free(f.apply_queue);
    return 0;
}

/* The mirror has applied the oldest batch. */
static void apply(enum status status)
{
    struct mirror_batch *batch = f.applying[f.applied++];
    batch->done(batch, status);
}

static void add(struct merge *merge, int64_t revision)
{
    struct pb_key_value kv = {.key = SLICE_LITERAL("k"), .mod_revision = revision};
    struct pb_event event = {.kv = &kv};
    assert_int_equal(merge_add(merge, 0, &event, 1, false), ST_OK);
}

static void pump(struct merge *merge)
{
    struct merge_taken taken;
    while (apply_queue_has_room(f.apply_queue) && merge_take(merge, 1, &taken))
        apply_queue_push(f.apply_queue, &taken);
}

static void only_some_batches_are_in_flight(void **state)
{
    (void)state;
    struct merge *merge = merge_new(1, 10, NULL, 0);
    for (int64_t i = 1; i <= REVISIONS; i++)
        add(merge, 10 + i);
    pump(merge);
    assert_int_equal(f.given, APPLY_QUEUE_BATCHES_MAX);
    while (f.applied < REVISIONS) {
        assert_true(apply_queue_bytes(f.apply_queue) > 0 && !apply_queue_is_idle(f.apply_queue));
        apply(ST_OK);
        assert_int_equal(f.visible, 10 + (int64_t)f.applied); /* at once, on the writer's thread */
        vigil_client_process(f.client);
        assert_int_equal(f.done, f.applied);
        pump(merge);
        assert_true(f.given - f.applied <= APPLY_QUEUE_BATCHES_MAX);
    }
    assert_true(apply_queue_is_idle(f.apply_queue));
    assert_int_equal(apply_queue_bytes(f.apply_queue), 0);
    merge_free(merge);
}

static void a_failed_batch_is_not_visible(void **state)
{
    (void)state;
    apply_queue_reach(f.apply_queue, 7);
    apply(ST_DISK_FULL);
    vigil_client_process(f.client);
    assert_int_equal(f.visible, 0);
    assert_int_equal(f.last, ST_DISK_FULL);
}

/* The state need not be read again because the disk was full. */
static void parts_that_did_not_fit_are_given_again(void **state)
{
    (void)state;
    struct mirror_revision *revisions = xcalloc(3, sizeof(*revisions));
    struct load_part part = {.revisions = revisions, .count = 3}, last = {.is_last = true};
    for (int i = 0; i < 3; i++)
        revisions[i].revision = 40 + i;
    apply_queue_push_part(f.apply_queue, &part, 50);
    apply_queue_push_part(f.apply_queue, &last, 50);
    f.applying[0]->applied = 2;
    apply(ST_DISK_FULL);
    apply(ST_DISK_FULL);
    vigil_client_process(f.client);
    assert_int_equal(f.done, 2);
    assert_true(apply_queue_has_refused(f.apply_queue) && apply_queue_is_idle(f.apply_queue));
    apply_queue_retry(f.apply_queue);
    assert_false(apply_queue_has_refused(f.apply_queue));
    assert_int_equal(f.given, 4);
    assert_int_equal(f.applying[2]->count, 1); /* the rest */
    assert_int_equal(f.applying[2]->revisions->revision, 42);
    assert_true(f.applying[2]->is_part && !f.applying[3]->is_part);
    apply(ST_OK);
    apply(ST_DISK_FULL);
    vigil_client_process(f.client);
    assert_int_equal(f.visible, 0);
    apply_queue_retry(f.apply_queue);
    apply(ST_OK);
    assert_int_equal(f.visible, 50);
    vigil_client_process(f.client);
    apply_queue_push_part(f.apply_queue, &last, 60);
    apply(ST_DISK_FULL); /* freed with the queue */
    vigil_client_process(f.client);
    apply_queue_push_part(f.apply_queue, &last, 60);
    apply(ST_INVALID); /* nothing can be done */
    vigil_client_process(f.client);
}

static void parts_of_a_state_are_visible_with_the_last(void **state)
{
    (void)state;
    struct load_part part = {0}, last = {.is_last = true};
    apply_queue_push_part(f.apply_queue, &part, 50);
    apply_queue_push_part(f.apply_queue, &last, 50);
    assert_true(f.applying[0]->is_part && !f.applying[1]->is_part);
    assert_true(f.applying[0]->compact == 50 && f.applying[1]->compact == 50);
    assert_int_equal(f.applying[1]->reach, 50);
    apply(ST_OK);
    assert_int_equal(f.visible, 0);
    apply(ST_OK);
    assert_int_equal(f.visible, 50);
    vigil_client_process(f.client);
}

/* Otherwise the mirror would be thrown away, as if the cluster had another history. */
static void part_is_given_again_if_a_file_cannot_be_made(void **state)
{
    (void)state;
    static const enum status failures[] = {ST_IO, ST_NOMEM};
    struct load_part last = {.is_last = true};
    for (size_t i = 0; i < COUNT_OF(failures); i++) {
        apply_queue_push_part(f.apply_queue, &last, 50);
        apply(failures[i]);
        vigil_client_process(f.client);
        assert_true(apply_queue_has_refused(f.apply_queue));
        apply_queue_retry(f.apply_queue);
        apply(ST_OK);
        vigil_client_process(f.client);
        assert_false(apply_queue_has_refused(f.apply_queue));
    }
    assert_int_equal(f.visible, 50);
}

/* -- How much may wait -- */

static void add_to(struct merge *merge, size_t watch, const char *key, int64_t revision)
{
    struct pb_key_value kv = {.key = slice_from_text(key), .mod_revision = revision};
    struct pb_event event = {.kv = &kv};
    assert_int_equal(merge_add(merge, watch, &event, 1, false), ST_OK);
}

static void the_watch_is_paused_while_too_much_waits(void **state)
{
    (void)state;
    struct merge *merge = merge_new(1, 10, NULL, 0);
    struct intake intake = intake_default();
    int64_t next = 11;
    assert_int_equal(intake.queued_max, INTAKE_QUEUED_BYTES_MAX);
    intake.queued_max = 4096;
    while (!intake_regulate(&intake, merge, f.apply_queue)) {
        assert_true(merge_bytes(merge) + apply_queue_bytes(f.apply_queue) <= intake.queued_max);
        add(merge, next++);
        pump(merge);
    }
    assert_true(intake.is_paused && next < REVISIONS);
    while (!intake_regulate(&intake, merge, f.apply_queue)) {
        assert_true(merge_bytes(merge) + apply_queue_bytes(f.apply_queue) > intake.queued_max / 2);
        apply(ST_OK);
        vigil_client_process(f.client);
        pump(merge);
    }
    assert_false(intake.is_paused);
    assert_true(merge_bytes(merge) + apply_queue_bytes(f.apply_queue) >
                0); /* before all is applied */
    while (f.applied < f.given) {
        apply(ST_OK);
        vigil_client_process(f.client);
        pump(merge);
    }
    merge_free(merge);
}

/* A pause would keep the other prefix from passing the revisions, so there is a limit instead. */
static void a_prefix_that_waits_for_another_has_a_limit(void **state)
{
    (void)state;
    struct slice prefixes[] = {SLICE_LITERAL("a"), SLICE_LITERAL("b")};
    struct merge *merge = merge_new(2, 10, prefixes, 2);
    struct intake intake = intake_default();
    assert_int_equal(intake.waiting_max, INTAKE_WAITING_BYTES_MAX);
    intake.queued_max = 64;
    intake.waiting_max = 4096;
    for (int64_t next = 11; merge_bytes(merge) <= intake.waiting_max; next++) {
        assert_false(intake_is_beyond(&intake, merge));
        add_to(merge, 0, "a1", next);
        pump(merge);
        assert_false(intake_regulate(&intake, merge, f.apply_queue));
    }
    assert_int_equal(f.given, 0);
    assert_true(intake_is_beyond(&intake, merge));
    merge_pass_all(merge, 1000); /* the other one has nothing */
    assert_false(intake_is_beyond(&intake, merge));
    merge_free(merge);
}

/* What the mirror finishes after the end is freed, and no function is called. */
static void batches_outlive_the_client(void **state)
{
    (void)state;
    apply_queue_reach(f.apply_queue, 7);
    apply_queue_compact(f.apply_queue, 7);
    vigil_client_free(f.client);
    f.client = NULL;
    apply(ST_OK);
    apply(ST_OK);
    assert_int_equal(f.done, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(only_some_batches_are_in_flight, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_failed_batch_is_not_visible, set_up, tear_down),
        cmocka_unit_test_setup_teardown(parts_that_did_not_fit_are_given_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(part_is_given_again_if_a_file_cannot_be_made, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(parts_of_a_state_are_visible_with_the_last, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(batches_outlive_the_client, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_watch_is_paused_while_too_much_waits, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_prefix_that_waits_for_another_has_a_limit, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
