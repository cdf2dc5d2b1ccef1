#include "watch/index/tag_index.h"

#include "base/random.h"
#include "base/xalloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { TAGS = 5, REVISIONS = TAG_INDEX_EVENTS, EVENTS = 4 };

/* The tags of each event of each revision, one bit per tag. */
struct model {
    uint8_t tags[REVISIONS][EVENTS];
};

static bool model_next(const struct model *model, int tag, int64_t last, int64_t *revision,
                       size_t *event)
{
    for (; *revision <= last; ++*revision, *event = 0)
        for (; *event < EVENTS; ++*event)
            if (model->tags[*revision][*event] & 1 << tag)
                return true;
    return false;
}

static void add_revision(struct tag_index *index, struct watch_range *tags, struct model *model,
                         struct random *random, int64_t revision)
{
    struct watch_place before = {.revision = revision};
    for (size_t i = 0; i < EVENTS; i++) {
        uint64_t some = random_u64(random);
        model->tags[revision][i] = (uint8_t)(some & random_u64(random));
        for (int tag = 0; tag < TAGS; tag++)
            if (model->tags[revision][i] & 1 << tag)
                for (int twice = 0; twice < 2; twice++)
                    tag_index_add(index, &tags[tag], &before, revision, i);
    }
}

struct walker {
    int64_t revision;
    size_t event;
    uint64_t hint;
};

/* Seeks some events of the tag, from the walker's place or from the begin of the index. */
static void walk(struct tag_index *index, const struct watch_range *tag, const struct model *model,
                 int which, struct walker *walker, int64_t last, uint64_t steps)
{
    if (walker->revision < index->from)
        *walker = (struct walker){.revision = index->from, .hint = walker->hint};
    for (; steps; steps--) {
        bool there = model_next(model, which, last, &walker->revision, &walker->event);
        const struct tag_event *mark =
            tag_index_seek(index, tag, walker->revision, walker->event, &walker->hint);
        assert_int_equal(mark != NULL, there);
        if (!there)
            return;
        assert_int_equal(mark->revision, walker->revision);
        assert_int_equal(mark->before.revision, walker->revision);
        assert_int_equal(mark->event, walker->event);
        walker->event++;
    }
}

static void each_tag_leads_to_its_own_events_and_misses_none(void **state)
{
    (void)state;
    struct model *model = xcalloc(1, sizeof(*model));
    struct watch_range tags[TAGS] = {0};
    struct walker walkers[TAGS] = {0};
    struct random random;
    struct tag_index index;
    unsigned overtaken = 0;
    random_init(&random, 1);
    tag_index_init(&index, 1);
    for (int64_t last = 1; last < REVISIONS; last++) {
        add_revision(&index, tags, model, &random, last);
        if (last == REVISIONS / 4)
            tag_index_drop(&index, last + 1);
        int which = (int)(random_u64(&random) % TAGS);
        struct walker *walker = &walkers[which];
        if (random_u64(&random) % 4 == 0)
            walker->hint = 0;
        /* The last one is slow. */
        if (index.from > last || (which == TAGS - 1 && random_u64(&random) % 100))
            continue;
        overtaken += walker->revision && walker->revision < index.from;
        walk(&index, &tags[which], model, which, walker, last, random_u64(&random) % 20);
    }
    assert_true(index.end > 2 * TAG_INDEX_EVENTS);
    assert_true(overtaken > 1);
    assert_true(index.end - index.first == TAG_INDEX_EVENTS);
    tag_index_fini(&index);
    free(model);
}

static void tag_without_watchers_for_a_while_begins_again(void **state)
{
    (void)state;
    struct watch_range tag = {0};
    struct tag_index index;
    uint64_t hint = 0;
    tag_index_init(&index, 1);
    tag_index_add(&index, &tag, &(struct watch_place){.revision = 1}, 1, 0);
    tag.tag_newest = 0;
    assert_null(tag_index_seek(&index, &tag, 1, 0, &hint));
    tag_index_add(&index, &tag, &(struct watch_place){.revision = 2}, 2, 3);
    const struct tag_event *mark = tag_index_seek(&index, &tag, 1, 0, &hint);
    assert_non_null(mark);
    assert_int_equal(mark->event, 3);
    assert_null(tag_index_seek(&index, &tag, 2, 4, &hint));
    tag_index_fini(&index);
}

/* All entries are of one tag: in the end the new entry replaces the one it follows. */
static void one_tag_alone_fills_the_index_and_continues(void **state)
{
    (void)state;
    struct watch_range rare = {0}, often = {0};
    struct tag_index index;
    tag_index_init(&index, 1);
    tag_index_add(&index, &rare, &(struct watch_place){.revision = 1}, 1, 0);
    for (int64_t i = 1; i < TAG_INDEX_EVENTS; i++)
        tag_index_add(&index, &often, &(struct watch_place){.revision = 2}, 2, (size_t)i);
    assert_int_equal(index.from, 1);
    tag_index_add(&index, &rare, &(struct watch_place){.revision = 3}, 3, 0);
    assert_int_equal(index.from, 2);
    uint64_t hint = 0;
    const struct tag_event *mark = tag_index_seek(&index, &rare, 2, 0, &hint);
    assert_non_null(mark);
    assert_int_equal(mark->revision, 3);
    assert_null(tag_index_seek(&index, &rare, 3, 1, &hint));
    tag_index_fini(&index);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_tag_leads_to_its_own_events_and_misses_none),
        cmocka_unit_test(tag_without_watchers_for_a_while_begins_again),
        cmocka_unit_test(one_tag_alone_fills_the_index_and_continues),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
