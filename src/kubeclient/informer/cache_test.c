#include "kubeclient/informer/cache.h"

#include "base/failing_memory_test.h"
#include "base/random.h"
#include "kubeclient/data/objects_test.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* What has changed, as "+a2 ~b3 -c1", with "?" for a state that may not be the last one. */
struct journal {
    char text[4096];
    size_t len;
};

static void note(void *ctx, const struct cache_change *change)
{
    struct journal *journal = ctx;
    const struct vigil_kube_object *about = change->now ? change->now : change->old;
    assert_int_equal(change->kind == CACHE_ADDED, !change->old);
    assert_int_equal(change->kind == CACHE_REMOVED, !change->now);
    if (journal->len + 64 > sizeof(journal->text))
        journal->len = 0;
    journal->len +=
        (size_t)snprintf(journal->text + journal->len, sizeof(journal->text) - journal->len,
                         "%c%.*s%.*s%s ", "+~-"[change->kind], SLICE_ARGS(object_key(about)),
                         SLICE_ARGS(object_version(about)), change -> state_unknown ? "?" : "");
}

static const char *changes(struct journal *journal)
{
    static char text[4096];
    snprintf(text, sizeof(text), "%.*s", (int)journal->len, journal->text);
    journal->len = 0;
    return text;
}

static void put(struct cache *cache, const char *name, int version)
{
    struct vigil_kube_object *made = test_object(name, version);
    assert_int_equal(cache_put(cache, made), ST_OK);
    vigil_kube_object_unref(made);
    cache_check(cache);
}

static void drop(struct cache *cache, const char *name, int version)
{
    struct vigil_kube_object *made = test_object(name, version);
    assert_int_equal(cache_remove(cache, made), ST_OK);
    vigil_kube_object_unref(made);
    cache_check(cache);
}

static void changes_are_reported(void **state)
{
    (void)state;
    struct journal journal = {.len = 0};
    struct cache cache;
    cache_init(&cache, 1, note, &journal);
    cache_begin_list(&cache, false);
    put(&cache, "a", 1);
    put(&cache, "b", 2);
    assert_int_equal(cache_end_list(&cache), ST_OK);
    assert_string_equal(changes(&journal), "+a1 +b2 ");
    put(&cache, "a", 3);
    drop(&cache, "b", 4);
    put(&cache, "c", 5);
    assert_string_equal(changes(&journal), "~a3 -b4 +c5 ");
    drop(&cache, "none", 6);
    assert_string_equal(changes(&journal), "");
    cache_fini(&cache);
}

static void second_list_finds_what_was_missed(void **state)
{
    (void)state;
    struct journal journal = {.len = 0};
    struct cache cache;
    cache_init(&cache, 1, note, &journal);
    cache_begin_list(&cache, false);
    put(&cache, "a", 1);
    put(&cache, "b", 2);
    put(&cache, "c", 3);
    assert_int_equal(cache_end_list(&cache), ST_OK);
    changes(&journal);
    cache_begin_list(&cache, false);
    put(&cache, "a", 1); /* as before */
    put(&cache, "c", 9);
    put(&cache, "d", 8);
    assert_string_equal(changes(&journal), "~c9 +d8 ");
    assert_int_equal(cache_end_list(&cache), ST_OK);
    assert_string_equal(changes(&journal), "-b2? ");
    cache_fini(&cache);
}

static void versions_never_go_back(void **state)
{
    (void)state;
    struct journal journal = {.len = 0};
    struct cache cache;
    cache_init(&cache, 1, note, &journal);
    put(&cache, "a", 10);
    changes(&journal);
    put(&cache, "a", 9);
    put(&cache, "a", 10);
    drop(&cache, "a", 8);
    cache_begin_list(&cache, false); /* a list of a server that is behind */
    put(&cache, "a", 7);
    assert_int_equal(cache_end_list(&cache), ST_OK);
    assert_string_equal(changes(&journal), "");
    cache_fini(&cache);
}

/* The server was restored from a backup. */
static void most_recent_state_is_believed(void **state)
{
    (void)state;
    struct journal journal = {.len = 0};
    struct cache cache;
    cache_init(&cache, 1, note, &journal);
    put(&cache, "a", 10);
    put(&cache, "b", 11);
    changes(&journal);
    cache_begin_list(&cache, true);
    put(&cache, "a", 4);
    assert_int_equal(cache_end_list(&cache), ST_OK);
    assert_string_equal(changes(&journal), "~a4 -b11? ");
    put(&cache, "a", 3); /* not in a list any more */
    assert_string_equal(changes(&journal), "");
    cache_fini(&cache);
}

static void list_that_fails_removes_nothing(void **state)
{
    (void)state;
    struct journal journal = {.len = 0};
    struct cache cache;
    cache_init(&cache, 1, note, &journal);
    put(&cache, "a", 1);
    cache_begin_list(&cache, false);
    put(&cache, "b", 2);
    cache_drop_list(&cache);
    assert_string_equal(changes(&journal), "+a1 +b2 ");
    cache_begin_list(&cache, false);
    put(&cache, "b", 2);
    assert_int_equal(cache_end_list(&cache), ST_OK);
    assert_string_equal(changes(&journal), "-a1? ");
    cache_fini(&cache);
}

static void bytes_are_limited(void **state)
{
    (void)state;
    struct journal journal = {.len = 0};
    struct cache cache;
    cache_init(&cache, 1, note, &journal);
    put(&cache, "a", 1);
    cache.bytes_max = cache.indexer.json_bytes + 10;
    struct vigil_kube_object *more = test_object("b", 2);
    assert_int_equal(cache_put(&cache, more), ST_LIMIT);
    vigil_kube_object_unref(more);
    put(&cache, "a", 2); /* takes the place of the old one */
    assert_string_equal(changes(&journal), "+a1 ~a2 ");
    cache_fini(&cache);
}

static void versions_are_numbers_of_any_length(void **state)
{
    (void)state;
    assert_true(version_compare(SLICE_LITERAL("9"), SLICE_LITERAL("10")) < 0);
    assert_true(version_compare(SLICE_LITERAL("010"), SLICE_LITERAL("10")) == 0);
    assert_true(version_compare(SLICE_LITERAL("99999999999999999999999"),
                                SLICE_LITERAL("99999999999999999999998")) > 0);
    assert_true(version_compare(SLICE_LITERAL("abc"), SLICE_LITERAL("10")) > 0);
    assert_true(version_compare(SLICE_LITERAL("10"), SLICE_LITERAL("abc")) > 0);
    assert_true(version_compare(SLICE_LITERAL("abd"), SLICE_LITERAL("abc")) > 0);
    assert_true(version_compare(SLICE_LITERAL("abc"), SLICE_LITERAL("abc")) == 0);
    assert_true(version_compare(SLICE_EMPTY, SLICE_LITERAL("1")) > 0);
    assert_true(version_compare(SLICE_EMPTY, SLICE_EMPTY) > 0);
}

/* Kubernetes calls versions opaque, and extension servers may leave them out. */
static void changes_without_a_numeric_version_are_not_lost(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{\"metadata\":{\"name\":\"a\"},\"n\":1}", "{\"metadata\":{\"name\":\"a\"},\"n\":2}",
        "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"x\"}}",
        "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"w\"}}",
        "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"3\"}}"};
    struct journal journal = {.len = 0};
    struct cache cache;
    cache_init(&cache, 1, note, &journal);
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        struct vigil_kube_object *made;
        assert_int_equal(object_new(slice_from_text(texts[i]), &made), ST_OK);
        assert_int_equal(cache_put(&cache, made), ST_OK);
        vigil_kube_object_unref(made);
    }
    assert_string_equal(changes(&journal), "+a ~a ~ax ~aw ~a3 ");
    cache_fini(&cache);
}

/* Otherwise a cache that is full could never follow a collection that was replaced in a gap. */
static void list_may_replace_all_that_a_full_cache_has(void **state)
{
    (void)state;
    struct journal journal = {.len = 0};
    struct cache cache;
    cache_init(&cache, 1, note, &journal);
    put(&cache, "a", 1);
    put(&cache, "b", 2);
    cache.bytes_max = cache.indexer.json_bytes;
    cache_begin_list(&cache, false);
    put(&cache, "c", 3);
    put(&cache, "d", 4);
    struct vigil_kube_object *more = test_object("e", 5);
    assert_int_equal(cache_put(&cache, more), ST_LIMIT);
    cache_check(&cache);
    put(&cache, "c", 6);
    drop(&cache, "d", 7);
    drop(&cache, "b", 7);
    cache_drop_list(&cache);
    cache_begin_list(&cache, false); /* again, with others: what is left counts twice at most */
    put(&cache, "x", 8);
    put(&cache, "y", 8);
    assert_int_equal(cache_put(&cache, more), ST_LIMIT);
    vigil_kube_object_unref(more);
    assert_int_equal(cache_end_list(&cache), ST_OK);
    cache_check(&cache);
    assert_int_equal(indexer_count(&cache.indexer), 2);
    assert_true(cache.indexer.json_bytes <= cache.bytes_max);
    cache_fini(&cache);
}

/* -- Random lists and changes of a collection, compared with it; some allocations fail -- */

enum { NAMES = 40 };

static void names_of(char text[8], uint64_t i)
{
    snprintf(text, 8, "%03d", (int)(i % 1000));
}

static bool put_or_fail(struct cache *cache, struct random *random, const char *name, int version)
{
    struct vigil_kube_object *made = test_object(name, version);
    memory_fail_at = random_chance(random, 1, 50) ? 1 : 0;
    enum status status = cache_put(cache, made);
    memory_fail_at = 0;
    vigil_kube_object_unref(made);
    return status == ST_OK;
}

static void ignore(void *ctx, const struct cache_change *change)
{
    (void)ctx;
    (void)change;
}

static void cache_becomes_what_a_whole_list_says(void **state)
{
    (void)state;
    struct random random;
    struct cache cache;
    int versions[NAMES] = {0}, revision = 0; /* 0: does not exist */
    random_init(&random, 7);
    cache_init(&cache, 3, ignore, NULL);
    for (int round = 0; round < 400; round++) {
        bool whole = true;
        char name[8];
        for (int i = 0; i < 5; i++) {
            uint64_t at = random_below(&random, NAMES);
            versions[at] = random_chance(&random, 1, 3) ? 0 : ++revision;
        }
        cache_begin_list(&cache, false);
        for (uint64_t i = 0; i < NAMES && whole; i++) {
            names_of(name, i);
            whole = !versions[i] || put_or_fail(&cache, &random, name, versions[i]);
        }
        if (!whole) {
            cache_drop_list(&cache);
            continue;
        }
        assert_int_equal(cache_end_list(&cache), ST_OK);
        cache_check(&cache);
        for (uint64_t i = 0; i < NAMES; i++) {
            names_of(name, i);
            const struct vigil_kube_object *found =
                indexer_get(&cache.indexer, slice_from_text(name));
            assert_int_equal(found != NULL, versions[i] != 0);
            if (found)
                assert_int_equal(strtol((const char *)object_version(found).ptr, NULL, 10),
                                 versions[i]);
        }
    }
    cache_fini(&cache);
}

/* -- Changes that could not be reported -- */

static size_t reservations_left;

static enum status reserve(void *ctx)
{
    (void)ctx;
    if (reservations_left == 0)
        return ST_NOMEM;
    reservations_left--;
    return ST_OK;
}

static void change_that_cannot_be_reported_is_not_made(void **state)
{
    (void)state;
    struct journal journal = {.len = 0};
    struct cache cache;
    struct vigil_kube_object *a2 = test_object("a", 2);
    cache_init(&cache, 1, note, &journal);
    cache_begin_list(&cache, false);
    put(&cache, "a", 1);
    put(&cache, "b", 1);
    put(&cache, "c", 1);
    assert_int_equal(cache_end_list(&cache), ST_OK);
    (void)changes(&journal);
    cache.reserve = reserve;
    reservations_left = 0;
    assert_int_equal(cache_put(&cache, a2), ST_NOMEM);
    assert_int_equal(cache_remove(&cache, a2), ST_NOMEM);
    cache_begin_list(&cache, false);
    reservations_left = 2;
    assert_int_equal(cache_end_list(&cache), ST_NOMEM);
    cache_check(&cache);
    assert_int_equal(indexer_count(&cache.indexer), 1); /* the next list removes it, too */
    assert_true(cache.in_list);
    reservations_left = 1;
    assert_int_equal(cache_end_list(&cache), ST_OK);
    assert_int_equal(indexer_count(&cache.indexer), 0);
    vigil_kube_object_unref(a2);
    cache_fini(&cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changes_are_reported),
        cmocka_unit_test(second_list_finds_what_was_missed),
        cmocka_unit_test(versions_never_go_back),
        cmocka_unit_test(most_recent_state_is_believed),
        cmocka_unit_test(list_that_fails_removes_nothing),
        cmocka_unit_test(bytes_are_limited),
        cmocka_unit_test(versions_are_numbers_of_any_length),
        cmocka_unit_test(changes_without_a_numeric_version_are_not_lost),
        cmocka_unit_test(list_may_replace_all_that_a_full_cache_has),
        cmocka_unit_test(cache_becomes_what_a_whole_list_says),
        cmocka_unit_test(change_that_cannot_be_reported_is_not_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
