/* Leases on the local engine with its real threads: behaviour that depends on several threads. */
#include "codec/pb/rpc.pb.h"
#include "engine/engine.h"
#include "engine/local/fixture_test.h"

#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static int setup(void **state)
{
    *state = fixture_new((struct engine_local_options){.lease_ttl_min_s = 1, .member_id = 1});
    return 0;
}

/* -- Calls -- */

static void grant_many(struct fixture *f, int64_t first_id, size_t count, int64_t ttl_s)
{
    struct engine_lease *ops = calloc(count, sizeof(*ops));
    assert_non_null(ops);
    for (size_t i = 0; i < count; i++) {
        ops[i] = (struct engine_lease){
            .op = new_op(f), .id = first_id + (int64_t)i, .ttl_s = ttl_s + (int64_t)(count - i)};
        engine_lease_grant(f->shard, &ops[i]);
    }
    wait_for(f, 0);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(ops[i].op.status, ST_OK);
    free(ops);
}

static enum status renew(struct fixture *f, int64_t id, int64_t *ret_ttl_s)
{
    struct engine_renewal item = {.id = id};
    struct engine_renewals op = {.op = new_op(f), .items = &item, .count = 1};
    engine_lease_renew(f->shard, &op);
    wait_for(f, 0);
    *ret_ttl_s = item.ttl_s;
    return op.op.status;
}

static void put(struct fixture *f, const char *key, int64_t lease)
{
    struct pb_put_request request = {.key = slice_from_text(key), .lease = lease};
    struct engine_write write = {.op = new_op(f)};
    engine_put(f->shard, &write, &request);
    wait_for(f, 0);
    engine_write_close(&write);
    assert_int_equal(write.op.status, ST_OK);
}

static void set_alarm(struct fixture *f, int32_t action, int32_t type)
{
    struct pb_alarm_request request = {.action = action, .member_id = 1, .alarm = type};
    struct engine_alarm op = {.op = new_op(f)};
    engine_alarm(f->shard, &op, &request);
    wait_for(f, 0);
    assert_int_equal(op.op.status, ST_OK);
}

static size_t leases(struct fixture *f)
{
    struct engine_lease op = {.op = new_op(f)};
    engine_lease_list(f->shard, &op);
    wait_for(f, 0);
    assert_int_equal(op.op.status, ST_OK);
    return op.id_count;
}

static int64_t now_ns(void)
{
    return clock_mono_ns(clock_system());
}

/* Nothing runs meanwhile, but the loop's time is updated. */
static void sleep_ms(struct fixture *f, int64_t ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * NS_PER_MS}, NULL);
    loop_turn(f->loop, 0);
}

/* Serves clients meanwhile. */
static void serve_ms(struct fixture *f, int64_t ms)
{
    int64_t until_ns = now_ns() + ms * NS_PER_MS;
    for (int64_t left; (left = until_ns - now_ns()) > 0;)
        turn_shard(f->shard, f->loop, left);
}

/* -- Tests -- */

/* A client's renewal, in a socket that its shard has not read yet. */
struct unread_renewal {
    struct io_watch watch;
    int ends[2];
    struct fixture *f;
    struct engine_renewal item;
    struct engine_renewals renewals;
};

static void read_renewal(struct io_watch *watch, unsigned ready)
{
    struct unread_renewal *unread = CONTAINER_OF(watch, struct unread_renewal, watch);
    char byte;
    (void)ready;
    assert_int_equal(read(unread->ends[0], &byte, 1), 1);
    unread->renewals =
        (struct engine_renewals){.op = new_op(unread->f), .items = &unread->item, .count = 1};
    engine_lease_renew(unread->f->shard, &unread->renewals);
}

static void renewal_that_the_shard_was_too_busy_to_read_is_in_time(void **state)
{
    struct fixture *f = *state;
    struct unread_renewal unread = {.f = f, .item = {.id = 5}};
    grant_many(f, 5, 1, 0);
    put(f, "key", 5);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, unread.ends), 0);
    unread.watch = (struct io_watch){.handle = unread.ends[0], .fn = read_renewal};
    assert_int_equal(loop_watch(f->loop, &unread.watch, IO_READ), ST_OK);
    turn_shard(f->shard, f->loop, 0);
    assert_int_equal(write(unread.ends[1], "x", 1), 1);
    nanosleep(&(struct timespec){.tv_sec = 2, .tv_nsec = 500 * NS_PER_MS}, NULL); /* busy */
    turn_shard(f->shard, f->loop, 0);
    assert_int_equal(unread.renewals.count, 1);
    wait_for(f, 0);
    assert_int_equal(unread.renewals.op.status, ST_OK);
    assert_int_equal(unread.item.ttl_s, 1);
    assert_int_equal(leases(f), 1);
    /* Without another renewal the lease expires, as soon as the shard reports that there is none.
     */
    for (int i = 0; i < 100 && leases(f); i++)
        serve_ms(f, 100);
    assert_int_equal(leases(f), 0);
    loop_unwatch(f->loop, &unread.watch);
    close(unread.ends[0]);
    close(unread.ends[1]);
}

/* Nothing is deleted from a store that may be corrupt. */
static void a_late_renewal_revokes_nothing_while_the_store_may_be_corrupt(void **state)
{
    struct fixture *f = *state;
    int64_t ttl_s;
    grant_many(f, 5, 1, 0);
    put(f, "key", 5);
    set_alarm(f, PB_ALARM_ACTION_ACTIVATE, ENGINE_ALARM_CORRUPT);
    struct engine_status before, after;
    engine_status_get(f->shard, &before);
    enum status status = ST_OK;
    /* A lease that did not expire because the machine was stopped can be renewed. */
    for (int i = 0; i < 20 && status == ST_OK; i++) {
        serve_ms(f, 1100);
        status = renew(f, 5, &ttl_s);
    }
    assert_int_equal(status, ST_CORRUPT);
    engine_status_get(f->shard, &after);
    assert_int_equal(after.revision, before.revision);
    assert_int_equal(leases(f), 1);
    set_alarm(f, PB_ALARM_ACTION_DEACTIVATE, ENGINE_ALARM_CORRUPT);
    assert_int_equal(renew(f, 5, &ttl_s), ST_OK);
    assert_int_equal(ttl_s, 0);
    assert_int_equal(leases(f), 0);
}

/*
 * A renewal that arrived in time waits behind requests that keep the writer busy until the lease
 * has expired. Returns false if the machine was too slow for the renewal to arrive in time.
 */
static bool renew_behind_questions(struct fixture *f, int64_t id)
{
    enum { QUESTIONS = 60 };
    struct arena arena;
    struct engine_lease *lists = calloc(QUESTIONS, sizeof(*lists));
    arena_init(&arena, NULL, 0, SIZE_MAX);
    int64_t lives_until_ns = now_ns() + NS_PER_S;
    grant_many(f, id, 1, 0);
    sleep_ms(f, (lives_until_ns - now_ns()) / NS_PER_MS - 100);
    for (int i = 0; i < QUESTIONS; i++) {
        lists[i] = (struct engine_lease){.op = new_op(f)};
        lists[i].op.arena = &arena;
        engine_lease_list(f->shard, &lists[i]);
    }
    engine_shard_turn_end(f->shard);
    sleep_ms(f, 50);
    struct engine_renewal item = {.id = id};
    struct engine_renewals op = {.op = new_op(f), .items = &item, .count = 1};
    engine_lease_renew(f->shard, &op);
    engine_shard_turn_end(f->shard);
    bool in_time = now_ns() < lives_until_ns;
    wait_for(f, 0);
    if (in_time)
        assert_int_equal(item.ttl_s, 1);
    arena_fini(&arena);
    free(lists);
    return in_time;
}

static void a_renewal_in_time_counts_however_long_it_waits_for_the_writer(void **state)
{
    enum { LEASES = 70000 /* listing all of them takes one turn of the writer */ };
    struct fixture *f = *state;
    grant_many(f, 1000, LEASES, 1000);
    for (int64_t id = 1; id < 10 && !renew_behind_questions(f, id); id++)
        ;
}

static void leases_are_listed_in_order_of_expiry(void **state)
{
    enum { LEASES = 3000 };
    struct fixture *f = *state;
    struct engine_lease list = {.op = new_op(f)};
    engine_lease_list(f->shard, &list);
    wait_for(f, 0);
    assert_int_equal(list.id_count, 0);
    grant_many(f, 1, LEASES, 1000); /* each with a TTL one second shorter than the previous one */
    list.op = new_op(f);
    engine_lease_list(f->shard, &list);
    wait_for(f, 0);
    assert_int_equal(list.op.status, ST_OK);
    assert_int_equal(list.id_count, LEASES);
    for (int64_t i = 0; i < LEASES; i++)
        assert_int_equal(list.ids[i], LEASES - i);
}

static void show_keys(struct fixture *f, size_t count)
{
    struct engine_lease op = {.op = new_op(f), .id = 5, .want_keys = true};
    engine_lease_time_to_live(f->shard, &op);
    wait_for(f, 0);
    assert_int_equal(op.op.status, ST_OK);
    assert_int_equal(op.key_count, count);
    for (size_t i = 1; i < count; i++)
        assert_true(slice_compare(op.keys[i - 1], op.keys[i]) < 0);
}

static void keys_of_a_lease_are_shown_sorted_however_many(void **state)
{
    enum { FEW = 20, MANY = 3000 };
    static struct engine_write writes[MANY];
    static struct pb_put_request requests[MANY];
    static char names[MANY][24];
    struct fixture *f = *state;
    grant_many(f, 5, 1, 1000);
    show_keys(f, 0);
    for (int i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof(names[i]), "key/%05d", i * 7 % MANY);
        requests[i] = (struct pb_put_request){.key = slice_from_text(names[i]), .lease = 5};
        writes[i] = (struct engine_write){.op = new_op(f)};
        engine_put(f->shard, &writes[i], &requests[i]);
        if (i + 1 != FEW && i + 1 != MANY)
            continue;
        wait_for(f, 0);
        show_keys(f, (size_t)i + 1);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, fixture_free)
    const struct CMUnitTest tests[] = {
        TEST(renewal_that_the_shard_was_too_busy_to_read_is_in_time),
        TEST(a_late_renewal_revokes_nothing_while_the_store_may_be_corrupt),
        TEST(a_renewal_in_time_counts_however_long_it_waits_for_the_writer),
        TEST(leases_are_listed_in_order_of_expiry),
        TEST(keys_of_a_lease_are_shown_sorted_however_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
