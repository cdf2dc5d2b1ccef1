/* The check of the store: what it counts when all is well, and that it finds every kind of damage.
 */
#include "store/check.h"

#include "store/change.h"
#include "store/fixture_test.h"

struct found {
    unsigned records, versions;
    char key[64]; /* of the last version told */
};

static void note(void *ctx, const struct store_check_damage *damage)
{
    struct found *found = ctx;
    assert_true(damage->segment_id > 0 && damage->offset >= 512);
    if (!damage->key.len) {
        found->records++;
        return;
    }
    found->versions++;
    snprintf(found->key, sizeof(found->key), "%.*s", SLICE_ARGS(damage->key));
}

/* In steps of so many bytes; the cleaner may come between them. */
static struct store_check_counts check(struct fixture *f, size_t bytes, struct found *found)
{
    *found = (struct found){0};
    AUTO(store_check_freep) struct store_check *pass = store_check_new(note, found);
    while (keeper_check_step(f->keeper, pass, bytes) == ST_AGAIN)
        ;
    return store_check_counts(pass);
}

static void fill(struct fixture *f, unsigned keys)
{
    char key[16];
    for (unsigned i = 0; i < 3 * keys; i++) {
        snprintf(key, sizeof(key), "key%03u", i % keys);
        fixture_put(f, key, "some value");
    }
    fixture_settle(f);
}

static void a_sound_store_has_nothing_to_tell(void **state)
{
    struct fixture *f = *state;
    struct found found;
    struct store_check_counts empty = check(f, SIZE_MAX, &found);
    assert_int_equal(empty.versions, 0);
    fill(f, 50);
    for (size_t bytes = 1; bytes <= 1 << 20; bytes *= 16) {
        struct store_check_counts counts = check(f, bytes, &found);
        assert_int_equal(counts.records - empty.records, 150);
        assert_int_equal(counts.versions, 150);
        assert_int_equal(counts.bad_records + counts.bad_versions, 0);
        assert_int_equal(found.records + found.versions, 0);
    }
}

/* Where the newest version of a key lies. */
static uint64_t loc_of(struct fixture *f, const char *key)
{
    return index_root_find(&store_view(f->store)->root, slice_from_text(key))->newest.loc;
}

static void flip(struct fixture *f, uint64_t loc, int64_t distance)
{
    uint64_t id, offset;
    log_loc_split(loc, &id, &offset);
    char path[64];
    snprintf(path, sizeof(path), "/data/log/%016llx.seg", (unsigned long long)id);
    AUTO(file_closep) struct file *file = NULL;
    assert_int_equal(fs_open(fs_sim_fs(f->sim), path, 0, &file), ST_OK);
    uint8_t byte = log_at(store_log(f->store), loc)[distance] ^ 0x20;
    assert_int_equal(file_pwrite(file, slice_of(&byte, 1), offset + (uint64_t)distance), ST_OK);
}

static void every_byte_of_a_record_is_checked(void **state)
{
    struct fixture *f = *state;
    struct found found;
    fill(f, 20);
    uint64_t loc = loc_of(f, "key007");
    const struct change_head *head;
    assert_int_equal(change_get(store_log(f->store), loc, &head), ST_OK);
    int64_t end = CHANGE_HEAD_BYTES + head->field_bytes;
    for (int64_t at = -40; at < end; at++) {
        flip(f, loc, at);
        struct store_check_counts counts = check(f, 4096, &found);
        assert_int_equal(counts.bad_records, 1);
        assert_int_equal(counts.bad_versions, at >= 0);
        assert_int_equal(found.records, 1);
        assert_true(at < 0 || strcmp(found.key, "key007") == 0);
        flip(f, loc, at); /* as it was */
    }
    assert_int_equal(check(f, 4096, &found).bad_records, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_sound_store_has_nothing_to_tell),
        TEST(every_byte_of_a_record_is_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
