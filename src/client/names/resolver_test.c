#include "client/names/resolver.h"

#include "base/failing_memory_test.h"
#include "client/names/dns_table_test.h"
#include "io/loop.h"
#include "io/socket.h"

#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

static const struct dns_row rows[] = {
    {"one.test", "10.0.0.1"},
    {"two.test", "10.0.0.2 ::2"},
    {"_etcd-client._tcp.test", "5 0 2379 last.test; 0 10 2380 first.test"},
    {NULL, NULL},
};

/* What one lookup led to. */
struct answer {
    struct fixture *f;
    struct lookup *lookup; /* NULL once it is done */
    unsigned done;
    enum status status;
    char reason[128], addresses[256], targets[256];
    bool frees; /* done frees the resolver */
};

struct fixture {
    struct loop *loop;
    struct resolver *resolver;
    struct dns_table table;
    struct resolver_backend backend;
};

static void init_over(struct fixture *f, struct resolver_backend backend)
{
    f->backend = backend;
    assert_int_equal(network_loop_new(network_posix(), &f->loop), ST_OK);
    assert_int_equal(resolver_new(f->loop, &f->backend, 1, &f->resolver), ST_OK);
}

static void init(struct fixture *f)
{
    *f = (struct fixture){.table.rows = rows};
    init_over(f, dns_table_backend(&f->table));
}

static void fini(struct fixture *f)
{
    if (f->resolver)
        resolver_check(f->resolver);
    resolver_free(f->resolver);
    loop_free(f->loop);
}

static void on_done(void *owner, const struct lookup_result *result)
{
    struct answer *a = owner;
    a->lookup = NULL;
    a->done++;
    a->status = result->status;
    if (result->status != ST_OK)
        snprintf(a->reason, sizeof(a->reason), "%s", result->reason);
    for (size_t i = 0; i < result->address_count; i++) {
        char text[ADDRESS_TEXT_BYTES];
        address_format(&result->addresses[i], text);
        size_t used = strlen(a->addresses);
        snprintf(a->addresses + used, sizeof(a->addresses) - used, "%s%s", i ? " " : "", text);
    }
    for (size_t i = 0; i < result->target_count; i++) {
        size_t used = strlen(a->targets);
        snprintf(a->targets + used, sizeof(a->targets) - used, "%s%s:%u", i ? " " : "",
                 result->targets[i].host, result->targets[i].port);
    }
    if (a->frees) {
        resolver_free(a->f->resolver);
        a->f->resolver = NULL;
    }
}

static enum status try_host(struct fixture *f, struct answer *a, const char *host)
{
    a->f = f;
    return resolver_lookup_host(f->resolver, slice_from_text(host), 2379,
                                (struct lookup_hooks){on_done, a}, &a->lookup);
}

static void start_host(struct fixture *f, struct answer *a, const char *host)
{
    assert_int_equal(try_host(f, a, host), ST_OK);
    assert_int_equal(a->done, 0); /* never from within start */
    resolver_check(f->resolver);
}

/* A deadline with tenfold slack for a busy machine; the condition itself ends the wait. */
static void wait_for(struct fixture *f, const struct answer *a)
{
    for (int i = 0; i < 1000 && !a->done; i++)
        loop_turn(f->loop, 50 * NS_PER_MS);
    assert_int_equal(a->done, 1);
}

static void turn(struct fixture *f)
{
    loop_turn(f->loop, 0);
    loop_turn(f->loop, 0);
}

static void numbers_and_this_machine_need_no_thread(void **state)
{
    (void)state;
    static const struct {
        const char *host, *addresses;
    } cases[] = {
        {"127.0.0.1", "127.0.0.1:2379"},
        {"::1", "[::1]:2379"},
        {"localhost", "127.0.0.1:2379 [::1]:2379"},
        {"", "127.0.0.1:2379 [::1]:2379"},
    };
    struct fixture f = {0};
    init_over(&f, resolver_system);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct answer a = {0};
        start_host(&f, &a, cases[i].host);
        assert_int_equal(resolver_threads(f.resolver), 0);
        turn(&f);
        assert_int_equal(a.done, 1);
        assert_string_equal(a.addresses, cases[i].addresses);
    }
    fini(&f);
}

static void system_answers_on_a_helper_thread(void **state)
{
    (void)state;
    struct fixture f = {0};
    init_over(&f, resolver_system);
    struct answer a = {0};
    start_host(&f, &a, "127.1"); /* not a number for us, but one for getaddrinfo, without DNS */
    wait_for(&f, &a);
    assert_int_equal(a.status, ST_OK);
    assert_string_equal(a.addresses, "127.0.0.1:2379");
    fini(&f);
}

static void names_come_from_the_table(void **state)
{
    (void)state;
    struct fixture f;
    init(&f);
    struct answer two = {0}, none = {0};
    start_host(&f, &two, "two.test");
    start_host(&f, &none, "none.test");
    turn(&f);
    assert_string_equal(two.addresses, "10.0.0.2:2379 [::2]:2379");
    assert_int_equal(none.status, ST_NOT_FOUND);
    assert_string_equal(none.reason, "lookup none.test: no such host");
    assert_int_equal(f.table.lookups, 2);
    fini(&f);
}

static void names_that_cannot_exist_are_invalid(void **state)
{
    (void)state;
    struct fixture f;
    init(&f);
    struct answer a = {0};
    char long_name[SRV_HOST_BYTES + 1];
    memset(long_name, 'a', sizeof(long_name));
    long_name[SRV_HOST_BYTES] = 0;
    assert_int_equal(try_host(&f, &a, long_name), ST_INVALID);
    assert_int_equal(resolver_lookup_host(f.resolver, slice_of("a\0b", 3), 1,
                                          (struct lookup_hooks){on_done, &a}, &a.lookup),
                     ST_INVALID);
    turn(&f);
    assert_int_equal(a.done, 0);
    fini(&f);
}

static void targets_of_srv_records_are_found(void **state)
{
    (void)state;
    struct fixture f;
    init(&f);
    struct answer found = {.f = &f}, none = {.f = &f};
    struct lookup_hooks hooks = {on_done, &found};
    assert_int_equal(resolver_lookup_srv(f.resolver, SLICE_LITERAL("_etcd-client._tcp.test"), hooks,
                                         &found.lookup),
                     ST_OK);
    hooks.owner = &none;
    assert_int_equal(resolver_lookup_srv(f.resolver, SLICE_LITERAL("_etcd-client._tcp.none"), hooks,
                                         &none.lookup),
                     ST_OK);
    turn(&f);
    assert_string_equal(found.targets, "first.test:2380 last.test:2379");
    assert_int_equal(none.status, ST_NOT_FOUND);
    assert_string_equal(none.reason, "lookup _etcd-client._tcp.none: no such host");
    fini(&f);
}

static enum status damaged_srv(void *ctx, const char *name, uint8_t *answer, size_t *ret_len,
                               struct error *error)
{
    (void)ctx, (void)name, (void)error;
    memset(answer, 0xff, 20);
    *ret_len = 20;
    return ST_OK;
}

static void damaged_answer_is_reported(void **state)
{
    (void)state;
    struct fixture f = {0};
    init_over(&f, (struct resolver_backend){.srv = damaged_srv});
    struct answer a = {.f = &f};
    assert_int_equal(resolver_lookup_srv(f.resolver, SLICE_LITERAL("_x._tcp.test"),
                                         (struct lookup_hooks){on_done, &a}, &a.lookup),
                     ST_OK);
    turn(&f);
    assert_string_equal(a.reason, "lookup _x._tcp.test: server misbehaving");
    assert_int_equal(a.status, ST_AGAIN);
    fini(&f);
}

/* -- a resolver that does not answer -- */

struct stuck {
    sem_t go;           /* one post for each answer */
    atomic_uint inside; /* lookups that wait, or have answered */
    atomic_uint left;
};

static enum status stuck_host(void *ctx, const char *host, struct address *addresses,
                              size_t *ret_count, struct error *error)
{
    struct stuck *s = ctx;
    (void)host, (void)error;
    atomic_fetch_add(&s->inside, 1);
    while (sem_wait(&s->go) != 0)
        continue;
    if (address_from_host(SLICE_LITERAL("10.0.0.9"), 0, &addresses[0]) != ST_OK)
        abort();
    *ret_count = 1;
    atomic_fetch_add(&s->left, 1);
    return ST_OK;
}

static void init_stuck(struct fixture *f, struct stuck *s)
{
    *f = (struct fixture){0};
    memset(s, 0, sizeof(*s));
    sem_init(&s->go, 0, 0);
    init_over(f, (struct resolver_backend){.host = stuck_host, .ctx = s, .blocks = true});
}

static void wait_until(atomic_uint *count, unsigned at_least)
{
    for (int i = 0; i < 50000 && atomic_load(count) < at_least; i++)
        usleep(1000);
    assert_true(atomic_load(count) >= at_least);
}

static void wait_for_threads(struct fixture *f, unsigned count)
{
    for (int i = 0; i < 50000 && resolver_threads(f->resolver) != count; i++)
        usleep(1000);
    assert_int_equal(resolver_threads(f->resolver), count);
}

static void stuck_lookup_does_not_keep_the_resolver(void **state)
{
    (void)state;
    struct fixture f;
    static struct stuck s; /* outlives the resolver, as resolver_system does */
    init_stuck(&f, &s);
    struct answer a = {0};
    start_host(&f, &a, "stuck.test");
    wait_until(&s.inside, 1);
    lookup_cancel(a.lookup);
    fini(&f); /* returns although the thread is still inside */
    assert_int_equal(atomic_load(&s.left), 0);
    sem_post(&s.go);
    wait_until(&s.left, 1);
    assert_int_equal(a.done, 0);
}

static void lookups_beyond_the_threads_wait_and_all_complete(void **state)
{
    (void)state;
    struct fixture f;
    static struct stuck s;
    enum { COUNT = 3 * RESOLVER_THREADS_MAX };
    struct answer all[COUNT] = {{0}};
    init_stuck(&f, &s);
    for (int i = 0; i < COUNT; i++)
        start_host(&f, &all[i], "stuck.test");
    assert_int_equal(resolver_threads(f.resolver), RESOLVER_THREADS_MAX);
    wait_until(&s.inside, RESOLVER_THREADS_MAX);
    for (int i = 0; i < COUNT; i++)
        sem_post(&s.go);
    for (int i = 0; i < COUNT; i++) {
        wait_for(&f, &all[i]);
        assert_string_equal(all[i].addresses, "10.0.0.9:2379");
    }
    wait_for_threads(&f, 0); /* they end when there is nothing left */
    fini(&f);
}

static void lookup_may_be_cancelled_in_every_state(void **state)
{
    (void)state;
    struct fixture f;
    static struct stuck s;
    struct answer ready = {0}, queued = {0}, posted = {0}, running[RESOLVER_THREADS_MAX] = {{0}};
    init_stuck(&f, &s);
    start_host(&f, &ready, "127.0.0.1");
    lookup_cancel(ready.lookup);

    start_host(&f, &posted, "stuck.test");
    sem_post(&s.go);
    wait_for_threads(&f, 0); /* it is in the mailbox now */
    lookup_cancel(posted.lookup);

    for (int i = 0; i < RESOLVER_THREADS_MAX; i++)
        start_host(&f, &running[i], "stuck.test");
    wait_until(&s.inside, RESOLVER_THREADS_MAX + 1);
    start_host(&f, &queued, "stuck.test");
    lookup_cancel(queued.lookup);
    resolver_check(f.resolver);
    for (int i = 0; i < RESOLVER_THREADS_MAX; i++)
        lookup_cancel(running[i].lookup);
    lookup_cancel(NULL);
    turn(&f);
    for (int i = 0; i < RESOLVER_THREADS_MAX; i++)
        sem_post(&s.go);
    wait_for_threads(&f, 0);
    turn(&f);
    assert_int_equal(ready.done + queued.done + posted.done, 0);
    for (int i = 0; i < RESOLVER_THREADS_MAX; i++)
        assert_int_equal(running[i].done, 0);
    assert_int_equal(atomic_load(&s.inside),
                     RESOLVER_THREADS_MAX + 1); /* the queued one never ran */

    start_host(&f, &posted, "stuck.test"); /* and freed while it is in the mailbox */
    sem_post(&s.go);
    wait_for_threads(&f, 0);
    lookup_cancel(posted.lookup);
    fini(&f);
}

static void completion_may_free_the_resolver(void **state)
{
    (void)state;
    struct fixture f;
    static struct stuck s;
    init_stuck(&f, &s);
    struct answer a = {.frees = true};
    start_host(&f, &a, "stuck.test");
    sem_post(&s.go);
    wait_for(&f, &a);
    assert_null(f.resolver);
    fini(&f);

    init(&f);
    a = (struct answer){.frees = true};
    start_host(&f, &a, "127.0.0.1");
    turn(&f);
    assert_null(f.resolver);
    fini(&f);
}

/* -- memory -- */

static void live(struct fixture *f)
{
    struct answer hosts = {0}, name = {0}, srv = {.f = f};
    if (resolver_new(f->loop, &f->backend, 1, &f->resolver) != ST_OK)
        return;
    unsigned started = try_host(f, &hosts, "localhost") == ST_OK;
    started += try_host(f, &name, "one.test") == ST_OK;
    started += resolver_lookup_srv(f->resolver, SLICE_LITERAL("_etcd-client._tcp.test"),
                                   (struct lookup_hooks){on_done, &srv}, &srv.lookup) == ST_OK;
    turn(f);
    assert_int_equal(hosts.done + name.done + srv.done, started);
    const struct answer *all[] = {&hosts, &name, &srv};
    for (size_t i = 0; i < COUNT_OF(all); i++)
        if (all[i]->done && all[i]->status != ST_OK) {
            assert_int_equal(all[i]->status, ST_NOMEM);
            assert_non_null(strstr(all[i]->reason, "out of memory"));
        }
    resolver_free(f->resolver);
    f->resolver = NULL;
}

/* The table of the test needs memory, too; its own failure would abort. */
static enum status plenty_srv(void *ctx, const char *name, uint8_t *answer, size_t *ret_len,
                              struct error *error)
{
    size_t left = memory_fail_at;
    memory_fail_at = 0;
    enum status status = dns_table_srv(ctx, name, answer, ret_len, error);
    memory_fail_at = left;
    return status;
}

static void each_missing_allocation_is_reported(void **state)
{
    (void)state;
    struct fixture f;
    init(&f);
    resolver_free(f.resolver);
    f.resolver = NULL;
    f.backend.srv = plenty_srv;
    memory_allocations = 0;
    live(&f);
    size_t count = memory_allocations;
    assert_true(count >= 8);
    for (size_t i = 1; i <= count; i++) {
        memory_fail_at = i;
        live(&f);
        memory_fail_at = 0;
    }
    fini(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_and_this_machine_need_no_thread),
        cmocka_unit_test(system_answers_on_a_helper_thread),
        cmocka_unit_test(names_come_from_the_table),
        cmocka_unit_test(names_that_cannot_exist_are_invalid),
        cmocka_unit_test(targets_of_srv_records_are_found),
        cmocka_unit_test(damaged_answer_is_reported),
        cmocka_unit_test(stuck_lookup_does_not_keep_the_resolver),
        cmocka_unit_test(lookups_beyond_the_threads_wait_and_all_complete),
        cmocka_unit_test(lookup_may_be_cancelled_in_every_state),
        cmocka_unit_test(completion_may_free_the_resolver),
        cmocka_unit_test(each_missing_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
