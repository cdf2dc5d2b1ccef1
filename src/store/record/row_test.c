/* Rows: in a body, in the checkpoint and across restarts, alone and with keys. */
#include "store/record/row.h"

#include "store/fixture_test.h"
#include "store/record/change.h"
#include "store/upkeep/cleaner.h"

/* The rows reported at the last start, as "table:key=value " in order of arrival. */
struct seen_rows {
    char text[1024];
};

static enum status note(void *ctx, const struct row *row)
{
    struct seen_rows *seen = ctx;
    size_t used = strlen(seen->text);
    snprintf(seen->text + used, sizeof(seen->text) - used, "%d:%.*s%s%.*s ", row->table,
             (int)row->key.len, (const char *)row->key.ptr, row->deleted ? "!" : "=",
             (int)row->value.len, (const char *)row->value.ptr);
    return ST_OK;
}

static void restart(struct fixture *f, struct seen_rows *seen)
{
    *seen = (struct seen_rows){0};
    f->row_seen = note;
    f->row_ctx = seen;
    fixture_restart(f);
}

static struct row row_of(enum row_table table, const char *key, const char *value)
{
    struct row row = {.table = table, .key = slice_from_text(key), .deleted = !value};
    if (value)
        row.value = slice_from_text(value);
    return row;
}

static int64_t write_row(struct fixture *f, enum row_table table, const char *key,
                         const char *value)
{
    struct row row = row_of(table, key, value);
    int64_t revision;
    assert_int_equal(applier_rows(store_applier(f->store), &row, 1, NULL, 0, &revision), ST_OK);
    return revision;
}

static void a_row_alone_takes_no_revision_and_survives_a_restart(void **state)
{
    struct fixture *f = *state;
    struct seen_rows seen;
    assert_int_equal(fixture_put(f, "a", "1"), 2);
    assert_int_equal(write_row(f, ROW_LEASE, "7", "sixty"), 2);
    assert_int_equal(fixture_put(f, "a", "2"), 3);
    restart(f, &seen);
    assert_string_equal(seen.text, "1:7=sixty ");
    assert_int_equal(store_view(f->store)->revision, 3);
}

static void rows_are_loaded_from_the_checkpoint_then_from_the_log(void **state)
{
    struct fixture *f = *state;
    struct seen_rows seen;
    write_row(f, ROW_ALARM, "nospace", "");
    write_row(f, ROW_LEASE, "b", "2");
    write_row(f, ROW_LEASE, "a", "1");
    write_row(f, ROW_LEASE, "c", "3");
    write_row(f, ROW_LEASE, "c", NULL);
    fixture_settle(f);
    write_row(f, ROW_LEASE, "b", "22");
    write_row(f, ROW_LEASE, "a", NULL);
    restart(f, &seen);
    assert_string_equal(seen.text, "1:a=1 1:b=2 2:nospace= 1:b=22 1:a! ");
    fixture_settle(f);
    restart(f, &seen);
    assert_string_equal(seen.text, "1:b=22 2:nospace= ");
}

static void keys_and_rows_of_one_record_are_applied_together(void **state)
{
    struct fixture *f = *state;
    struct seen_rows seen;
    fixture_put(f, "a", "1");
    fixture_put(f, "b", "1");
    write_row(f, ROW_LEASE, "7", "x");
    struct row row = row_of(ROW_LEASE, "7", NULL);
    struct slice keys[] = {SLICE_LITERAL("a"), SLICE_LITERAL("absent"), SLICE_LITERAL("b")};
    int64_t revision;
    assert_int_equal(applier_rows(store_applier(f->store), &row, 1, keys, 3, &revision), ST_OK);
    assert_int_equal(revision, 4);
    fixture_commit(f);
    assert_int_equal(store_view(f->store)->root.live_keys, 0);
    restart(f, &seen);
    assert_string_equal(seen.text, "1:7=x 1:7! ");
    assert_int_equal(store_view(f->store)->root.live_keys, 0);
    assert_int_equal(store_view(f->store)->revision, 4);
}

/* Segments of rows that were overwritten are dead, whatever the rows contain. */
static void segments_of_old_rows_are_cleaned_and_the_rows_stay(void **state)
{
    struct fixture *f = *state;
    struct seen_rows seen;
    fixture_put(f, "kept", "1");
    for (int i = 0; i < 2000; i++) {
        char value[16];
        snprintf(value, sizeof(value), "%d", i);
        write_row(f, ROW_LEASE, i % 2 ? "odd" : "even", value);
        fixture_commit(f);
        assert_int_equal(upkeep_prepare(f->upkeep), ST_OK);
    }
    fixture_settle(f);
    assert_true(fixture_clean_all(f, 100) > 2);
    restart(f, &seen);
    assert_string_equal(seen.text, "1:even=1998 1:odd=1999 ");
    assert_int_equal(store_view(f->store)->root.live_keys, 1);
}

static void a_row_whose_key_the_checkpoint_cannot_hold_is_refused(void **state)
{
    struct fixture *f = *state;
    char key[ROW_KEY_BYTES_MAX + 2];
    memset(key, 'k', sizeof(key));
    struct row row = {.table = ROW_USER, .key = slice_of(key, ROW_KEY_BYTES_MAX + 1)};
    assert_int_equal(applier_rows(store_applier(f->store), &row, 1, NULL, 0, NULL), ST_LIMIT);
    row.key.len = ROW_KEY_BYTES_MAX;
    assert_int_equal(applier_rows(store_applier(f->store), &row, 1, NULL, 0, NULL), ST_OK);
    fixture_settle(f);
}

/* Before there were rows, the word for their number was zero. */
static void a_body_in_the_format_without_rows_has_no_rows(void **state)
{
    (void)state;
    uint8_t body[CHANGE_BODY_HEAD_BYTES] = {0};
    struct row_walk walk;
    struct row row;
    assert_int_equal(row_walk_init(&walk, slice_of(body, sizeof(body))), ST_OK);
    assert_int_equal(row_walk_next(&walk, &row), ST_END);
    assert_int_equal(row_walk_init(&walk, slice_of(body, 7)), ST_DAMAGED);
}

/* Every truncation, and every byte of the head changed: damage, or rows within bounds. */
static void a_damaged_row_is_detected(void **state)
{
    (void)state;
    uint8_t body[64] = {[4] = 1};
    struct row row = row_of(ROW_LEASE, "key", "value"), got;
    size_t len = CHANGE_BODY_HEAD_BYTES + row_write(body + CHANGE_BODY_HEAD_BYTES, &row);
    struct row_walk walk;
    for (size_t cut = CHANGE_BODY_HEAD_BYTES; cut < CHANGE_BODY_HEAD_BYTES + 16 + 8; cut++) {
        assert_int_equal(row_walk_init(&walk, slice_of(body, cut)), ST_OK);
        assert_int_equal(row_walk_next(&walk, &got), ST_DAMAGED);
    }
    for (size_t i = 0; i < 9; i++) {
        uint8_t was = body[CHANGE_BODY_HEAD_BYTES + i];
        body[CHANGE_BODY_HEAD_BYTES + i] = 0xff;
        assert_int_equal(row_walk_init(&walk, slice_of(body, len)), ST_OK);
        assert_int_equal(row_walk_next(&walk, &got), ST_DAMAGED);
        body[CHANGE_BODY_HEAD_BYTES + i] = was;
    }
    assert_int_equal(row_walk_init(&walk, slice_of(body, len)), ST_OK);
    assert_int_equal(row_walk_next(&walk, &got), ST_OK);
    assert_true(slice_equal(got.value, row.value));
    assert_int_equal(row_walk_next(&walk, &got), ST_END);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_row_alone_takes_no_revision_and_survives_a_restart,
                                        fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(rows_are_loaded_from_the_checkpoint_then_from_the_log,
                                        fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(keys_and_rows_of_one_record_are_applied_together,
                                        fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(segments_of_old_rows_are_cleaned_and_the_rows_stay,
                                        fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_row_whose_key_the_checkpoint_cannot_hold_is_refused,
                                        fixture_setup, fixture_teardown),
        cmocka_unit_test(a_body_in_the_format_without_rows_has_no_rows),
        cmocka_unit_test(a_damaged_row_is_detected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
