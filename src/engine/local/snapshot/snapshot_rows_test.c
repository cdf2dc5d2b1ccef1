#include "engine/local/snapshot/snapshot_rows.h"

#include "store/record/row_values.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static const struct snapshot_origin origin = {
    .about = {.storage_version = "3.6.0",
              .cluster_version = "3.7.0",
              .member = {(const uint8_t *)"{}", 2}},
    .member_id = 0xabc,
    .term = 3,
    .index = 77,
};

static void take(struct snapshot_rows *rows, struct row row)
{
    assert_int_equal(snapshot_rows_take(rows, &row), ST_OK);
}

static void take_lease(struct snapshot_rows *rows, int64_t id, int64_t ttl_s)
{
    struct lease_row lease = {.id = id, .ttl_s = ttl_s};
    take(rows, lease_row_make(&lease, ttl_s == 0));
}

static void take_text(struct snapshot_rows *rows, enum row_table table, const char *key,
                      const char *value)
{
    take(rows, (struct row){
                   .table = table,
                   .deleted = !value,
                   .key = slice_from_text(key),
                   .value = value ? slice_from_text(value) : SLICE_EMPTY,
               });
}

/* The content of a bucket as "key=value key=value". Other bytes than letters are shown in hex. */
static const char *bucket_text(struct snapshot_rows *rows, enum bolt_etcd_bucket bucket,
                               int64_t compact_revision)
{
    static char text[4096];
    size_t at = 0;
    struct snapshot_entry entry;
    text[0] = '\0';
    for (size_t i = 0; rows->source.entry(&rows->source, bucket, i, compact_revision, &entry);
         i++) {
        struct slice parts[] = {entry.key, SLICE_LITERAL("="), entry.value, SLICE_LITERAL(" ")};
        for (size_t k = 0; k < COUNT_OF(parts); k++)
            for (size_t c = 0; c < parts[k].len; c++) {
                uint8_t byte = parts[k].ptr[c];
                bool shown = byte >= 32 && byte < 127;
                at += (size_t)snprintf(text + at, sizeof(text) - at, shown ? "%c" : "%02x", byte);
            }
    }
    if (at)
        text[at - 1] = '\0';
    return text;
}

static void later_rows_replace_earlier_ones(void **state)
{
    (void)state;
    struct snapshot_rows rows;
    snapshot_rows_init(&rows);
    take_text(&rows, ROW_USER, "bob", "1");
    take_text(&rows, ROW_USER, "alice", "1");
    take_text(&rows, ROW_ROLE, "bob", "role");
    take_text(&rows, ROW_USER, "carol", "1");
    take_text(&rows, ROW_USER, "bob", "2");
    take_text(&rows, ROW_USER, "alice", NULL);
    take_text(&rows, ROW_USER, "carol", NULL);
    take_text(&rows, ROW_USER, "carol", "3");
    take_text(&rows, ROW_USER, "nobody", NULL);
    take_text(&rows, ROW_AUTH, "authEnabled", "x");
    snapshot_rows_finish(&rows, &origin);
    assert_string_equal(bucket_text(&rows, BOLT_BUCKET_USERS, -1), "bob=2 carol=3");
    assert_string_equal(bucket_text(&rows, BOLT_BUCKET_ROLES, -1), "bob=role");
    assert_string_equal(bucket_text(&rows, BOLT_BUCKET_AUTH, -1), "authEnabled=x");
    assert_string_equal(bucket_text(&rows, BOLT_BUCKET_ALARM, -1), "");
    snapshot_rows_fini(&rows);
}

static void leases_have_the_format_of_etcd(void **state)
{
    (void)state;
    struct snapshot_rows rows;
    snapshot_rows_init(&rows);
    take_lease(&rows, -1, 9);
    take_lease(&rows, 300, 60);
    take_lease(&rows, 2, 5);
    take_lease(&rows, 7, 5);
    take_lease(&rows, 2, 0);
    take_lease(&rows, 300, 61);
    snapshot_rows_finish(&rows, &origin);
    assert_string_equal(bucket_text(&rows, BOLT_BUCKET_LEASE, -1),
                        "00000000000000"
                        "07=080710"
                        "05 "
                        "000000000000"
                        "01"
                        ",=08"
                        "ac02"
                        "10= "
                        "ffffffffffffffff=08ffffffffffffffffff0110"
                        "09");
    snapshot_rows_fini(&rows);
}

static void alarms_are_stored_in_the_key(void **state)
{
    (void)state;
    struct snapshot_rows rows;
    snapshot_rows_init(&rows);
    struct alarm_row_key keys[] = {alarm_row_key_make(2, 5), alarm_row_key_make(1, 5),
                                   alarm_row_key_make(1, 6), alarm_row_key_make(0, 0)};
    for (size_t i = 0; i < COUNT_OF(keys); i++)
        take(&rows, alarm_row_make(&keys[i], false));
    take(&rows, alarm_row_make(&keys[2], true));
    snapshot_rows_finish(&rows, &origin);
    assert_string_equal(bucket_text(&rows, BOLT_BUCKET_ALARM, -1), "08051001= 08051002=");
    snapshot_rows_fini(&rows);
}

static void the_file_contains_its_origin(void **state)
{
    (void)state;
    struct snapshot_rows rows;
    snapshot_rows_init(&rows);
    snapshot_rows_finish(&rows, &origin);
    assert_string_equal(bucket_text(&rows, BOLT_BUCKET_MEMBERS, -1), "0000000000000abc={}");
    assert_string_equal(bucket_text(&rows, BOLT_BUCKET_REMOVED, -1), "");
    assert_string_equal(bucket_text(&rows, BOLT_BUCKET_CLUSTER, -1), "clusterVersion=3.7.0");
    assert_string_equal(bucket_text(&rows, BOLT_BUCKET_META, -1),
                        "confState={\"voters\":[2748],\"auto_leave\":false} "
                        "consistent_index=00000000000000M storageVersion=3.6.0 "
                        "term=0000000000000003");
    assert_string_equal(bucket_text(&rows, BOLT_BUCKET_META, 65),
                        "confState={\"voters\":[2748],\"auto_leave\":false} "
                        "consistent_index=00000000000000M "
                        "finishedCompactRev=00000000000000A_0000000000000000 "
                        "scheduledCompactRev=00000000000000A_0000000000000000 "
                        "storageVersion=3.6.0 term=0000000000000003");
    snapshot_rows_fini(&rows);
}

static void invalid_rows_are_damage(void **state)
{
    (void)state;
    static const enum row_table tables[] = {ROW_LEASE, ROW_ALARM};
    for (size_t i = 0; i < COUNT_OF(tables); i++) {
        struct snapshot_rows rows;
        snapshot_rows_init(&rows);
        struct row row = {.table = tables[i], .key = SLICE_LITERAL("abc")};
        assert_int_equal(snapshot_rows_take(&rows, &row), ST_DAMAGED);
        snapshot_rows_fini(&rows);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(later_rows_replace_earlier_ones),
        cmocka_unit_test(leases_have_the_format_of_etcd),
        cmocka_unit_test(alarms_are_stored_in_the_key),
        cmocka_unit_test(the_file_contains_its_origin),
        cmocka_unit_test(invalid_rows_are_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
