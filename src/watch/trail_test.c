#include "watch/trail.h"

#include "base/random.h"
#include "base/xalloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { TAGS = 5, REVISIONS = WATCH_TRAIL_MARKS, EVENTS = 4 };

/* What each event of each revision has: a bit per tag. */
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

static void add_revision(struct watch_trail *trail, struct watch_range *tags, struct model *model,
                         struct random *random, int64_t revision)
{
    struct watch_place before = {.revision = revision};
    for (size_t i = 0; i < EVENTS; i++) {
        uint64_t some = random_u64(random);
        model->tags[revision][i] = (uint8_t)(some & random_u64(random));
        for (int tag = 0; tag < TAGS; tag++)
            if (model->tags[revision][i] & 1 << tag)
                for (int twice = 0; twice < 2; twice++)
                    trail_add(trail, &tags[tag], &before, revision, i);
    }
}

struct walker {
    int64_t revision;
    size_t event;
    uint64_t hint;
};

/* Some events of the tag, from where the walker stands, or from where the trail begins. */
static void walk(struct watch_trail *trail, const struct watch_range *tag,
                 const struct model *model, int which, struct walker *walker, int64_t last,
                 uint64_t steps)
{
    if (walker->revision < trail->from)
        *walker = (struct walker){.revision = trail->from, .hint = walker->hint};
    for (; steps; steps--) {
        bool there = model_next(model, which, last, &walker->revision, &walker->event);
        const struct trail_mark *mark =
            trail_seek(trail, tag, walker->revision, walker->event, &walker->hint);
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
    struct watch_trail trail;
    unsigned overtaken = 0;
    random_init(&random, 1);
    trail_init(&trail, 1);
    for (int64_t last = 1; last < REVISIONS; last++) {
        add_revision(&trail, tags, model, &random, last);
        if (last == REVISIONS / 4)
            trail_drop(&trail, last + 1);
        int which = (int)(random_u64(&random) % TAGS);
        struct walker *walker = &walkers[which];
        if (random_u64(&random) % 4 == 0)
            walker->hint = 0;
        /* The last one is slow. */
        if (trail.from > last || (which == TAGS - 1 && random_u64(&random) % 100))
            continue;
        overtaken += walker->revision && walker->revision < trail.from;
        walk(&trail, &tags[which], model, which, walker, last, random_u64(&random) % 20);
    }
    assert_true(trail.end > 2 * WATCH_TRAIL_MARKS);
    assert_true(overtaken > 1);
    assert_true(trail.end - trail.first == WATCH_TRAIL_MARKS);
    trail_fini(&trail);
    free(model);
}

static void a_tag_that_nobody_watched_meanwhile_begins_anew(void **state)
{
    (void)state;
    struct watch_range tag = {0};
    struct watch_trail trail;
    uint64_t hint = 0;
    trail_init(&trail, 1);
    trail_add(&trail, &tag, &(struct watch_place){.revision = 1}, 1, 0);
    tag.trail_last = 0;
    assert_null(trail_seek(&trail, &tag, 1, 0, &hint));
    trail_add(&trail, &tag, &(struct watch_place){.revision = 2}, 2, 3);
    const struct trail_mark *mark = trail_seek(&trail, &tag, 1, 0, &hint);
    assert_non_null(mark);
    assert_int_equal(mark->event, 3);
    assert_null(trail_seek(&trail, &tag, 2, 4, &hint));
    trail_fini(&trail);
}

/* All marks are of one tag: what is written over is what the new one follows at last. */
static void one_tag_alone_fills_it_and_goes_on(void **state)
{
    (void)state;
    struct watch_range rare = {0}, often = {0};
    struct watch_trail trail;
    trail_init(&trail, 1);
    trail_add(&trail, &rare, &(struct watch_place){.revision = 1}, 1, 0);
    for (int64_t i = 1; i < WATCH_TRAIL_MARKS; i++)
        trail_add(&trail, &often, &(struct watch_place){.revision = 2}, 2, (size_t)i);
    assert_int_equal(trail.from, 1);
    trail_add(&trail, &rare, &(struct watch_place){.revision = 3}, 3, 0);
    assert_int_equal(trail.from, 2);
    uint64_t hint = 0;
    const struct trail_mark *mark = trail_seek(&trail, &rare, 2, 0, &hint);
    assert_non_null(mark);
    assert_int_equal(mark->revision, 3);
    assert_null(trail_seek(&trail, &rare, 3, 1, &hint));
    trail_fini(&trail);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_tag_leads_to_its_own_events_and_misses_none),
        cmocka_unit_test(a_tag_that_nobody_watched_meanwhile_begins_anew),
        cmocka_unit_test(one_tag_alone_fills_it_and_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
