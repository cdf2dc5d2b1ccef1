/* Pages that are longer than the client may receive, on a simulated network. */
#include "mirror/load/loader.h"

#include "base/temp_dir_test.h"
#include "mirror/link/member_test.h"

enum { KEYS = ETCD_PAIRS_MAX, RECEIVE_BYTES = 256 };

static struct {
    char directory[TEMP_DIR_BYTES];
    struct ranges ranges;
    struct load *load;
    struct loader *loader;
    unsigned done, pages, failures;
    struct loader_result result;
    int64_t revision; /* that is wanted */
} f;

static bool walk_next(void *ctx, struct slice *ret_key, int64_t *ret_mod_revision)
{
    (void)ctx;
    *ret_key = SLICE_EMPTY;
    *ret_mod_revision = 0;
    return false; /* the mirror is empty */
}

static void on_done(void *ctx, const struct loader_result *result)
{
    (void)ctx;
    f.done++;
    f.result = *result;
}

static void on_progress(void *ctx, const char *text)
{
    (void)ctx;
    f.pages += !text;
    f.failures += text != NULL;
}

static int set_up(void **state)
{
    (void)state;
    memset(&f, 0, sizeof(f));
    member_begin();
    temp_dir_make_fast("loader", f.directory);
    m.cluster.revision = 2;
    m.cluster.history[2] = (struct etcd_revision){.key = "k", .value = "value", .keys = KEYS};
    struct slice prefix = SLICE_LITERAL("k");
    ranges_init(&f.ranges, &prefix, 1);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    loader_free(f.loader);
    load_free(f.load);
    ranges_fini(&f.ranges);
    temp_dir_remove(f.directory);
    member_end();
    return 0;
}

static void load_all(size_t receive_bytes_max)
{
    static const struct loader_hooks hooks = {.done = on_done, .progress = on_progress};
    struct error error;
    member_connect(receive_bytes_max);
    struct load_walk walk = {.next = walk_next};
    assert_int_equal(load_new(f.directory, walk, 0, &f.load, &error), ST_OK);
    f.loader = loader_new(&(struct loader_options){.client = m.client,
                                                   .ranges = &f.ranges,
                                                   .load = f.load,
                                                   .revision = f.revision,
                                                   .hooks = &hooks});
    member_run(60 * NS_PER_S, &f.done);
    assert_int_equal(f.done, 1);
}

static void a_state_is_read_in_pages(void **state)
{
    (void)state;
    load_all(1 << 20);
    assert_int_equal(f.result.outcome, LOADER_COMPLETE);
    assert_int_equal(f.result.revision, 2);
    assert_int_equal(load_different(f.load), KEYS);
    assert_int_equal(f.failures, 0);
}

/* A page is requested again with half as many keys. */
static void pages_that_are_too_long_become_shorter(void **state)
{
    (void)state;
    load_all(RECEIVE_BYTES);
    assert_int_equal(f.result.outcome, LOADER_COMPLETE);
    assert_int_equal(load_different(f.load), KEYS);
    assert_true(f.pages > 1);
    assert_int_equal(f.failures, 0);
}

/* The mirror's own, to prove that the cluster has the same. */
static void a_state_of_an_older_revision_is_read(void **state)
{
    (void)state;
    m.cluster.revision = 3;
    m.cluster.history[3] = (struct etcd_revision){.key = "k-new", .value = "value", .keys = 1};
    f.revision = 2;
    load_all(1 << 20);
    assert_int_equal(f.result.outcome, LOADER_COMPLETE);
    assert_int_equal(f.result.revision, 2);
    assert_int_equal(load_different(f.load), KEYS);
}

/* The cluster has become another one since its revision was read. */
static void a_revision_that_is_gone_is_another_past(void **state)
{
    (void)state;
    f.revision = 7;
    load_all(1 << 20);
    assert_int_equal(f.result.outcome, LOADER_OTHER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_state_is_read_in_pages, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_state_of_an_older_revision_is_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_revision_that_is_gone_is_another_past, set_up, tear_down),
        cmocka_unit_test_setup_teardown(pages_that_are_too_long_become_shorter, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
