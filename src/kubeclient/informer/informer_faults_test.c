/* Informers with servers, networks and memory that fail. */
#include "kubeclient/informer/follower_sim_test.h"

/* -- Everything at once -- */

static void do_something(struct random *random)
{
    switch (random_below(random, 12)) {
    case 0:
        collection_end_watches(&collection, (enum collection_end)random_below(random, 4));
        break;
    case 1:
        collection.forgotten = collection.revision;
        break;
    case 2:
        collection_bookmark(&collection);
        break;
    case 3:
        collection.throttles = (unsigned)random_below(random, 3);
        break;
    case 4:
        collection.ends = (unsigned)random_below(random, 3);
        break;
    case 5:
        collection.breaks = (unsigned)random_below(random, 3);
        break;
    case 6:
        collection.stale = random_chance(random, 1, 2);
        collection.forgets_as_event = random_chance(random, 1, 2);
        break;
    case 7:
        kube_server_stop(&world.server);
        change_some((int)random_below(random, 5));
        kube_world_run(&world, (int64_t)random_below(random, 5) * NS_PER_S);
        kube_server_start(&world.server);
        break;
    default:
        change_some((int)random_below(random, 10));
    }
}

static void torture(uint64_t seed)
{
    struct random random;
    struct sim_options options = SIM_OPTIONS_DEFAULT;
    vigil_kube_informer_options watched = options_of_pods();
    random_init(&random, seed);
    options.seed = seed;
    options.reset_per_million = random_chance(&random, 1, 2) ? 2000 : 0;
    begin_over((enum sim_protocol)random_below(&random, 2), &options);
    collection.no_streaming = random_chance(&random, 1, 3);
    collection.pages_max = (int)random_below(&random, 5);
    collection.pad_bytes = 1 + (int)random_below(&random, 2000);
    watched.no_streaming = random_chance(&random, 1, 4);
    watched.page_limit = 1 + (int64_t)random_below(&random, 5);
    assert_true(kube_world_start(&world));
    follow_with(watched);
    for (int i = 0; i < 60; i++) {
        do_something(&random);
        kube_world_run(&world, (int64_t)random_below(&random, 3000) * NS_PER_MS);
    }
    collection.throttles = collection.ends = collection.breaks = 0;
    collection.stale = false;
    run_until_complete();
    end();
}

/* Whatever happens, the copy converges on the server's state, its versions do not go back, and the
 * handler misses nothing that the server still had. */
static void informer_converges_whatever_happens(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++)
        torture(seed);
}

/* -- Faults of the network and of memory -- */

/* They are built when they are first read. */
static void read_own_indexes(vigil_kube_informer *informer)
{
    static const char *const names[] = {"namespace", "owner"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        vigil_kube_objects objects = {0};
        faulty_memory_begin();
        int code = vigil_kube_informer_find(informer, names[i], vigil_text("odd"), &objects);
        faulty_memory_end();
        assert_true(code == VIGIL_OK || code == VIGIL_ERROR_MEMORY);
        vigil_kube_objects_free(&objects);
    }
}

/* A life with a list, a watch, a gap and another list. The last part is without faults. */
static void live(bool lists)
{
    struct follower *f = &follower;
    vigil_kube_informer_options options = options_of_pods();
    vigil_kube_handler_options handles = handler_options(VIGIL_KUBE_HANDLER_CALLBACK, follow, f);
    options.no_streaming = lists;
    options.page_limit = 3;
    faulty_memory_begin();
    int code = vigil_kube_informer_new(world.kube, &options, &f->informer);
    if (code == VIGIL_OK)
        code = vigil_kube_informer_add_handler(f->informer, &handles, &f->handler);
    faulty_memory_end();
    if (code != VIGIL_OK) {
        assert_int_equal(code, VIGIL_ERROR_MEMORY);
        f->handler = NULL;
        return;
    }
    assert_int_equal(vigil_kube_informer_start(f->informer), VIGIL_OK);
    kube_world_run(&world, 2 * NS_PER_S);
    read_own_indexes(f->informer);
    change_some(4);
    kube_world_run(&world, 2 * NS_PER_S);
    collection_end_watches(&collection, COLLECTION_BREAKS);
    collection_delete(&collection, 2);
    collection_put(&collection, 9);
    collection.forgotten = collection.revision;
    kube_world_run(&world, 2 * NS_PER_S);
    collection_delete(&collection, 9);
    kube_world_run(&world, 2 * NS_PER_S);
}

static size_t faulty_memory_left; /* allocations that would still have succeeded */

static void live_with_failing_memory(size_t at, bool lists)
{
    begin_over(SIM_HTTP2, NULL);
    assert_true(kube_world_start(&world));
    faulty_memory_at = at;
    live(lists);
    faulty_memory_left = faulty_memory_at;
    faulty_memory_at = 0;
    if (follower.handler)
        run_until_complete();
    end();
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    for (int lists = 0; lists < 2; lists++) {
        live_with_failing_memory(1 << 20, lists);
        size_t total = (1 << 20) - faulty_memory_left;
        assert_in_range(total, 100, 3000);
        for (memory_fail_on = false;; memory_fail_on = true) {
            for (size_t at = 1; at <= total; at += memory_fail_on ? 7 : 1)
                live_with_failing_memory(at, lists);
            if (memory_fail_on)
                break;
        }
        memory_fail_on = false;
    }
}

static void live_with_fault(enum fault_kind kind, size_t at, enum sim_protocol protocol, bool lists)
{
    begin_over(protocol, NULL);
    assert_true(kube_world_start(&world));
    faults.kind = kind;
    faults.at = at;
    live(lists);
    faults.kind = FAULT_NONE;
    run_until_complete();
    end();
}

static void connection_may_fail_at_any_byte(void **state)
{
    (void)state;
    static const enum fault_kind kinds[] = {FAULT_LOST_READING, FAULT_LOST_WRITING, FAULT_RESET,
                                            FAULT_END,          FAULT_CALL,         FAULT_SILENCE};
    for (int variant = 0; variant < 4; variant++) {
        enum sim_protocol protocol = variant & 1 ? SIM_HTTP1 : SIM_HTTP2;
        live_with_fault(FAULT_NONE, 0, protocol, variant & 2);
        struct faults totals = faults;
        for (size_t k = 0; k < COUNT_OF(kinds); k++) {
            if (kinds[k] == FAULT_SILENCE && protocol == SIM_HTTP1)
                continue; /* only pings find such a connection before the watch's timeout */
            size_t places = fault_places(kinds[k], &totals);
            for (size_t at = 0; at < places; at += 1 + places / 40)
                live_with_fault(kinds[k], at, protocol, variant & 2);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(informer_converges_whatever_happens),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(connection_may_fail_at_any_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
