/* Damaged records of every type, at every position: a reader gets each revision or an error for it,
 * and no error for damage that does not concern keys. */
#include "engine/local/shard/history.h"
#include "store/fixture_test.h"
#include "store/record/change.h"

enum { RECORDS_MAX = 64 };

struct bed {
    struct fixture *f;
    struct revision_notice notice;
    struct local_history *h;
    struct watch_history *history;
    unsigned told;
    struct log_record records[RECORDS_MAX];
    size_t count;
    int64_t last;
};

static void on_damage(void *ctx, enum status status)
{
    struct bed *bed = ctx;
    assert_int_equal(status, ST_DAMAGED);
    bed->told++;
}

/* p: a put. r: a row, such as a lease. c: a compaction to one revision more than the last one. */
static void write_all(struct bed *bed, const char *what)
{
    struct applier *applier = store_applier(bed->f->store);
    int64_t compacted = 1;
    struct row row = {.table = ROW_LEASE, .key = SLICE_LITERAL("12345678")};
    for (; *what; what++) {
        if (*what == 'p')
            bed->last = fixture_put(bed->f, "key", "value");
        else if (*what == 'r')
            assert_int_equal(applier_rows(applier, &row, 1, NULL, 0, NULL), ST_OK);
        else
            assert_int_equal(applier_compact(applier, ++compacted), ST_OK);
    }
    fixture_commit(bed->f);
    struct log_reader reader;
    log_reader_init(&reader, store_log(bed->f->store), 1);
    uint64_t last_index = log_last_index(store_log(bed->f->store));
    bed->count = 0;
    while (log_reader_next(&reader, last_index, &bed->records[bed->count]) == ST_OK)
        assert_true(++bed->count < RECORDS_MAX);
}

static int setup(void **state)
{
    struct bed *bed = calloc(1, sizeof(*bed));
    assert_non_null(bed);
    assert_int_equal(fixture_setup((void **)&bed->f), 0);
    bed->h = local_history_new(&(struct local_history_options){
        .store = bed->f->store,
        .slot = epoch_slot_add(store_epoch(bed->f->store)),
        .notice = &bed->notice,
        .on_damage = on_damage,
        .ctx = bed,
    });
    bed->history = local_history_base(bed->h);
    *state = bed;
    return 0;
}

static int teardown(void **state)
{
    struct bed *bed = *state;
    local_history_flushed(bed->h);
    local_history_free(bed->h);
    fixture_teardown((void **)&bed->f);
    free(bed);
    return 0;
}

/* Reads everything from a revision on, with hints or by a search for each revision. Returns the
 * lost one. */
static int64_t read_all(struct bed *bed, struct watch_place place, bool hints)
{
    int64_t lost = 0;
    local_history_turn_begin(bed->h);
    while (place.revision <= bed->last) {
        struct watch_batch batch;
        int64_t wanted = place.revision;
        enum status status = bed->history->ops->next(bed->history, &place, bed->last, &batch);
        assert_int_equal(place.revision, wanted + 1);
        if (status == ST_DAMAGED) {
            assert_int_equal(lost, 0);
            lost = wanted;
        } else {
            assert_int_equal(status, ST_OK);
            assert_int_equal(batch.revision, wanted);
        }
        if (!hints)
            place = (struct watch_place){.revision = place.revision};
    }
    local_history_flushed(bed->h);
    return lost;
}

/* Damages one record and reads from every revision. */
static void check_hit(struct bed *bed, const struct log_record *hit, int64_t distance)
{
    int64_t compacted = store_view(bed->f->store)->compact_revision;
    fixture_flip(bed->f, hit->body_loc, distance);
    for (int64_t from = compacted > 1 ? compacted : 2; from <= bed->last; from++) {
        int64_t loses = hit->type == LOG_RECORD_KV && hit->revision >= from ? hit->revision : 0;
        for (int hints = 0; hints < 2; hints++) {
            bed->told = 0;
            assert_int_equal(read_all(bed, (struct watch_place){.revision = from}, hints), loses);
            assert_int_equal(bed->told, loses ? 1 : 0);
        }
    }
    fixture_flip(bed->f, hit->body_loc, distance);
}

static void check_hits(struct bed *bed, const char *what)
{
    write_all(bed, what);
    for (size_t i = 0; i < bed->count; i++) {
        check_hit(bed, &bed->records[i], -24); /* the index in its head */
        check_hit(bed, &bed->records[i], 1);   /* its body */
    }
}

static void damage_among_puts(void **state)
{
    check_hits(*state, "pppppppp");
}

static void damage_before_and_after_leases(void **state)
{
    check_hits(*state, "prprrpprprrrppr");
}

static void damage_before_and_after_compactions(void **state)
{
    check_hits(*state, "ppcpcpppcrppcprpccpp");
}

/* A reader has its position before the record that is damaged then. */
static void damage_at_the_position_of_a_reader(void **state)
{
    struct bed *bed = *state;
    write_all(bed, "pprrpcrpp");
    for (size_t i = 0; i < bed->count; i++) {
        const struct log_record *hit = &bed->records[i];
        for (int64_t stand = 2; stand < bed->last; stand++) {
            struct watch_place place = {.revision = stand};
            struct watch_batch batch;
            local_history_turn_begin(bed->h);
            assert_int_equal(bed->history->ops->next(bed->history, &place, bed->last, &batch),
                             ST_OK);
            local_history_flushed(bed->h);
            int64_t loses = hit->type == LOG_RECORD_KV && hit->revision > stand ? hit->revision : 0;
            fixture_flip(bed->f, hit->body_loc, -24);
            assert_int_equal(read_all(bed, place, true), loses);
            fixture_flip(bed->f, hit->body_loc, -24);
        }
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(damage_among_puts),
        TEST(damage_before_and_after_leases),
        TEST(damage_before_and_after_compactions),
        TEST(damage_at_the_position_of_a_reader),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
