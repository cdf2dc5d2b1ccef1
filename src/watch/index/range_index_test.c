#include "watch/index/range_index.h"

#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { WATCHERS = 600, STREAMS = 20, KEYS = 9 };

/* Only their addresses are used. */
static char streams[STREAMS];

struct entry {
    struct watcher watcher;
    char key[8], end[8];
    size_t key_len, end_len;
    bool inside;
    unsigned seen;
};

static struct entry entries[WATCHERS];

static void draw(struct random *random, struct entry *entry)
{
    unsigned number = (unsigned)random_below(random, KEYS);
    entry->key_len = (size_t)sprintf(entry->key, "k%u", number % KEYS);
    entry->end_len = 0;
    if (random_chance(random, 1, 3)) {
        entry->end_len = (size_t)sprintf(entry->end, "k%uz", number % KEYS);
    } else if (random_chance(random, 1, 6)) {
        entry->end[0] = 0;
        entry->end_len = 1;
    }
    entry->watcher = (struct watcher){
        .stream = (struct watch_stream *)(void *)&streams[random_below(random, STREAMS)],
        .state = random_chance(random, 1, 2) ? WATCHER_LIVE : WATCHER_CATCHING_UP,
    };
}

static void see_range(void *ctx, struct watch_range *range)
{
    (void)ctx;
    for (uint32_t i = 0; i < range->count; i++) {
        struct watcher *first = watch_range_streams(range)[i], *watcher = first;
        assert_ptr_equal(watch_range_first(range, first->stream), first);
        do {
            CONTAINER_OF(watcher, struct entry, watcher)->seen++;
            watcher = watcher->next;
        } while (watcher != first);
    }
}

static void visit_matches_list(const struct range_index *index, struct slice key)
{
    range_index_visit(index, key, see_range, NULL);
    for (size_t i = 0; i < WATCHERS; i++) {
        struct entry *entry = &entries[i];
        bool has = entry->inside && watch_range_covers(slice_of(entry->key, entry->key_len),
                                                       slice_of(entry->end, entry->end_len), key);
        assert_int_equal(entry->seen, has);
        entry->seen = 0;
    }
}

static void random_watchers_match_a_list(void **state)
{
    (void)state;
    struct random random;
    random_init(&random, 8);
    struct pool *pool = pool_new();
    struct range_index index;
    range_index_init(&index, pool, 7);
    size_t inside = 0;
    for (unsigned step = 0; step < 20000; step++) {
        struct entry *entry = &entries[random_below(&random, WATCHERS)];
        if (!entry->inside) {
            draw(&random, entry);
            range_index_add(&index, &entry->watcher, slice_of(entry->key, entry->key_len),
                            slice_of(entry->end, entry->end_len));
            entry->inside = true;
            inside++;
        } else if (entry->watcher.state == WATCHER_CATCHING_UP && random_chance(&random, 1, 2)) {
            entry->watcher.state = WATCHER_LIVE;
            range_index_promote(&entry->watcher);
        } else {
            bool gone = range_index_remove(&index, &entry->watcher);
            (void)gone;
            entry->inside = false;
            inside--;
        }
        if (step % 50)
            continue;
        char key[16];
        size_t len = (size_t)sprintf(key, "k%u%s", (unsigned)random_below(&random, KEYS),
                                     random_chance(&random, 1, 2) ? "a" : "");
        visit_matches_list(&index, slice_of(key, len));
        assert_int_equal(range_index_check(&index), inside);
    }
    for (size_t i = 0; i < WATCHERS; i++) {
        if (!entries[i].inside)
            continue;
        range_index_remove(&index, &entries[i].watcher);
        assert_int_equal(range_index_check(&index), --inside);
    }
    assert_int_equal(inside, 0);
    assert_int_equal(pool_objects(pool), 0);
    range_index_fini(&index);
    pool_free(pool);
}

static void count_range(void *ctx, struct watch_range *range)
{
    (void)range;
    ++*(unsigned *)ctx;
}

/* If there are very many keys, those that are looked up next are fetched in advance, even if they
 * have no watcher or an empty bucket. */
static void keys_are_found_after_they_were_fetched(void **state)
{
    (void)state;
    enum { MANY = 20000 };
    struct pool *pool = pool_new();
    struct range_index index;
    range_index_init(&index, pool, 3);
    struct watcher *watchers = calloc(MANY, sizeof(watchers[0]));
    assert_non_null(watchers);
    char name[16];
    for (unsigned i = 0; i < 2 * MANY; i++) {
        struct slice key = slice_of(name, (size_t)sprintf(name, "key%u", i / 2 + i % 2 * MANY));
        range_index_fetch_bucket(&index, key);
        range_index_fetch(&index, key);
        unsigned found = 0;
        range_index_visit(&index, key, count_range, &found);
        assert_int_equal(found, 0);
        if (i % 2)
            continue;
        struct watcher *watcher = &watchers[i / 2];
        watcher->stream = (struct watch_stream *)(void *)&streams[0];
        watcher->state = WATCHER_LIVE;
        range_index_add(&index, watcher, key, SLICE_EMPTY);
        range_index_fetch_bucket(&index, key);
        range_index_fetch(&index, key);
        range_index_visit(&index, key, count_range, &found);
        assert_int_equal(found, 1);
    }
    for (size_t i = 0; i < MANY; i++)
        assert_true(range_index_remove(&index, &watchers[i]));
    free(watchers);
    range_index_fini(&index);
    pool_free(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_watchers_match_a_list),
        cmocka_unit_test(keys_are_found_after_they_were_fetched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
