/* Snapshots of the local engine with its real threads: their contents, and concurrent work. */
#include "bolt/reader.h"
#include "bolt/schema.h"
#include "codec/pb/kv.pb.h"
#include "codec/pb/rpc.pb.h"
#include "engine/engine.h"
#include "engine/local/fixture_test.h"
#include "net/sha256.h"

#include <unistd.h>

enum { KEYS = 300, VALUE_BYTES = 3000, SEGMENT_BYTES = 64 << 10, WAIT_S = 60 };

/* -- A disk that can be full -- */

static _Atomic bool disk_is_full;

static enum status space(struct fs *fs, const char *path, uint64_t *ret_bytes)
{
    (void)fs;
    (void)path;
    *ret_bytes = atomic_load(&disk_is_full) ? 0 : UINT64_MAX / 2;
    return ST_OK;
}

static struct fs *disk(void)
{
    static struct fs_ops ops;
    static struct fs fs = {.ops = &ops};
    ops = *fs_posix()->ops;
    ops.space = space;
    return &fs;
}

/* -- The engine -- */

static int setup(void **state)
{
    atomic_store(&disk_is_full, false);
    *state = fixture_new((struct engine_local_options){
        .fs = disk(),
        .segment_bytes_first = SEGMENT_BYTES,
        .segment_bytes_max = SEGMENT_BYTES,
        .checkpoint_bytes = 256 << 10,
        .cluster_id = 11,
        .member_id = 12,
    });
    return 0;
}

static enum status put(struct fixture *f, const char *key, char letter, int64_t lease)
{
    static uint8_t value[VALUE_BYTES];
    memset(value, letter, sizeof(value));
    struct pb_put_request request = {
        .key = slice_from_text(key), .value = slice_of(value, sizeof(value)), .lease = lease};
    struct engine_write write = {.op = new_op(f)};
    engine_put(f->shard, &write, &request);
    wait_for(f, 0);
    engine_write_close(&write);
    return write.op.status;
}

/* Starts all puts at once, so that the disk is synced once or twice. */
static void put_all(struct fixture *f, char letter)
{
    static uint8_t value[VALUE_BYTES];
    static char keys[KEYS][16];
    static struct pb_put_request requests[KEYS];
    static struct engine_write writes[KEYS];
    memset(value, letter, sizeof(value));
    for (int i = 0; i < KEYS; i++) {
        snprintf(keys[i], sizeof(keys[i]), "key-%03d", i);
        requests[i] = (struct pb_put_request){.key = slice_from_text(keys[i]),
                                              .value = slice_of(value, sizeof(value))};
        writes[i] = (struct engine_write){.op = new_op(f)};
        engine_put(f->shard, &writes[i], &requests[i]);
    }
    wait_for(f, 0);
    for (int i = 0; i < KEYS; i++) {
        assert_int_equal(writes[i].op.status, ST_OK);
        engine_write_close(&writes[i]);
    }
}

static int64_t revision(struct fixture *f)
{
    struct engine_status status;
    engine_status_get(f->shard, &status);
    return status.revision;
}

static void compact(struct fixture *f, int64_t to)
{
    struct pb_compaction_request request = {.revision = to, .physical = true};
    struct engine_op op = new_op(f);
    engine_compact(f->shard, &op, &request);
    wait_for(f, 0);
    assert_int_equal(op.status, ST_OK);
}

static void defragment(struct fixture *f)
{
    struct engine_op op = new_op(f);
    engine_defragment(f->shard, &op);
    wait_for(f, 0);
    assert_int_equal(op.status, ST_OK);
}

static void grant(struct fixture *f, int64_t id, int64_t ttl_s)
{
    struct engine_lease op = {.op = new_op(f), .id = id, .ttl_s = ttl_s};
    engine_lease_grant(f->shard, &op);
    wait_for(f, 0);
    assert_int_equal(op.op.status, ST_OK);
}

static void revoke_lease(struct fixture *f, int64_t id)
{
    struct engine_lease op = {.op = new_op(f), .id = id};
    engine_lease_revoke(f->shard, &op);
    wait_for(f, 0);
    assert_int_equal(op.op.status, ST_OK);
}

static void raise_alarm(struct fixture *f, int32_t type)
{
    struct pb_alarm_request request = {
        .action = PB_ALARM_ACTION_ACTIVATE, .member_id = 12, .alarm = type};
    struct engine_alarm op = {.op = new_op(f)};
    engine_alarm(f->shard, &op, &request);
    wait_for(f, 0);
    assert_int_equal(op.op.status, ST_OK);
}

/* -- Snapshots -- */

static enum status start(struct fixture *f, struct engine_snapshot *snapshot)
{
    *snapshot = (struct engine_snapshot){
        .op = new_op(f),
        .about = {"3.6.0", "3.7.0", SLICE_LITERAL("{}")},
    };
    engine_snapshot_start(f->shard, snapshot);
    wait_for(f, 0);
    return snapshot->op.status;
}

static enum status read_piece(struct fixture *f, struct engine_snapshot *snapshot, struct buf *file)
{
    f->waiting++;
    engine_snapshot_read(snapshot);
    wait_for(f, 0);
    if (snapshot->op.status == ST_OK)
        assert_int_equal(buf_append(file, snapshot->piece), ST_OK);
    return snapshot->op.status;
}

/* Reads the rest and compares the digest. */
static void read_rest(struct fixture *f, struct engine_snapshot *snapshot, struct buf *file)
{
    while (file->len < snapshot->bytes)
        assert_int_equal(read_piece(f, snapshot, file), ST_OK);
    assert_int_equal(file->len, snapshot->bytes);
    uint8_t digest[SHA256_BYTES];
    AUTO(sha256_freep) struct sha256 *sum = sha256_new();
    sha256_add(sum, buf_slice(file));
    assert_int_equal(sha256_finish(sum, digest), ST_OK);
    assert_memory_equal(digest, snapshot->digest, sizeof(digest));
}

static struct buf take_whole(struct fixture *f)
{
    struct engine_snapshot snapshot;
    struct buf file = {0};
    assert_int_equal(start(f, &snapshot), ST_OK);
    assert_int_equal(snapshot.op.revision, revision(f));
    read_rest(f, &snapshot, &file);
    engine_snapshot_close(&snapshot);
    return file;
}

static enum status read_bytes(void *ctx, void *to, size_t len, uint64_t offset)
{
    const struct buf *file = ctx;
    memcpy(to, file->ptr + offset, len);
    return ST_OK;
}

/* Calls fn with each entry of a bucket; returns how many there are. */
static size_t for_each(struct buf *file, const char *bucket,
                       void (*fn)(void *ctx, const struct bolt_entry *entry), void *ctx)
{
    struct bolt_reader reader;
    struct bolt_cursor cursor;
    assert_int_equal(bolt_reader_init(&reader, (struct bolt_source){read_bytes, file, file->len}),
                     ST_OK);
    assert_int_equal(bolt_cursor_init_named(&cursor, &reader, slice_from_text(bucket)), ST_OK);
    size_t count = 0;
    struct bolt_entry entry;
    enum status status;
    while ((status = bolt_cursor_next(&cursor, &entry)) == ST_OK) {
        if (fn)
            fn(ctx, &entry);
        count++;
    }
    assert_int_equal(status, ST_END);
    bolt_cursor_fini(&cursor);
    return count;
}

struct looked_for {
    struct slice key;
    struct buf value;
};

static void look(void *ctx, const struct bolt_entry *entry)
{
    struct looked_for *looked = ctx;
    if (slice_equal(entry->key, looked->key))
        assert_int_equal(buf_append(&looked->value, entry->value), ST_OK);
}

static void expect_entry(struct buf *file, const char *bucket, struct slice key, struct slice value)
{
    struct looked_for looked = {.key = key};
    for_each(file, bucket, look, &looked);
    assert_true(slice_equal(buf_slice(&looked.value), value));
    buf_fini(&looked.value);
}

static void snapshot_contains_everything(void **state)
{
    struct fixture *f = *state;
    grant(f, 7, 600);
    grant(f, 8, 60);
    grant(f, 9, 60);
    put_all(f, 'a');
    assert_int_equal(put(f, "leased", 'x', 7), ST_OK);
    revoke_lease(f, 9);
    raise_alarm(f, ENGINE_ALARM_CORRUPT + 1);
    int64_t newest = revision(f);
    struct buf file = take_whole(f);
    assert_int_equal(for_each(&file, "key", NULL, NULL), KEYS + 1);
    assert_int_equal(for_each(&file, "lease", NULL, NULL), 2);
    expect_entry(&file, "lease", SLICE_LITERAL("\0\0\0\0\0\0\0\7"),
                 SLICE_LITERAL("\x08\x07\x10\xd8\x04"));
    expect_entry(&file, "alarm", SLICE_LITERAL("\x08\x0c\x10\x03"), SLICE_EMPTY);
    assert_int_equal(for_each(&file, "alarm", NULL, NULL), 1);
    expect_entry(&file, "meta", BOLT_META_STORAGE_VERSION, SLICE_LITERAL("3.6.0"));
    assert_int_equal(for_each(&file, "meta", NULL, NULL), 4);
    buf_fini(&file);

    compact(f, newest);
    file = take_whole(f);
    uint8_t compacted[BOLT_TOMBSTONE_BYTES];
    size_t bytes = bolt_revision_write((struct bolt_revision){.main = newest}, compacted);
    expect_entry(&file, "meta", BOLT_META_FINISHED_COMPACT, slice_of(compacted, bytes));
    expect_entry(&file, "meta", BOLT_META_SCHEDULED_COMPACT, slice_of(compacted, bytes));
    assert_int_equal(for_each(&file, "key", NULL, NULL), KEYS + 1);
    buf_fini(&file);
}

/* The reader is stopped: the store writes, compacts and cleans, and the file does not change.
 */
static void a_slow_reader_gets_the_state_of_the_start(void **state)
{
    struct fixture *f = *state;
    grant(f, 7, 600);
    put_all(f, 'a');
    put_all(f, 'b');
    struct buf expected = take_whole(f), file = {0};
    struct engine_snapshot slow;
    assert_int_equal(start(f, &slow), ST_OK);
    assert_int_equal(read_piece(f, &slow, &file), ST_OK);
    for (const char *letter = "cde"; *letter; letter++) {
        put_all(f, *letter);
        compact(f, revision(f));
        defragment(f);
    }
    revoke_lease(f, 7);
    read_rest(f, &slow, &file);
    engine_snapshot_close(&slow);
    assert_true(slice_equal(buf_slice(&file), buf_slice(&expected)));
    buf_fini(&file);
    file = take_whole(f);
    assert_true(file.len < expected.len);
    buf_fini(&file);
    buf_fini(&expected);
}

static void concurrent_snapshots_are_limited(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(put(f, "key", 'x', 0), ST_OK);
    struct engine_snapshot snapshots[ENGINE_SNAPSHOTS_MAX], more;
    for (int i = 0; i < ENGINE_SNAPSHOTS_MAX; i++)
        assert_int_equal(start(f, &snapshots[i]), ST_OK);
    assert_int_equal(start(f, &more), ST_REQUEST_TOO_MANY_REQUESTS);
    engine_snapshot_close(&more);
    for (int i = 0; i < ENGINE_SNAPSHOTS_MAX; i++) {
        struct buf file = {0};
        read_rest(f, &snapshots[i], &file);
        buf_fini(&file);
    }
    engine_snapshot_close(&snapshots[0]);
    /* Closing is asynchronous, so a place becomes free a little later. */
    int64_t until = clock_mono_ns(clock_system()) + WAIT_S * NS_PER_S;
    while (start(f, &more) != ST_OK)
        assert_true(clock_mono_ns(clock_system()) < until);
    engine_snapshot_close(&more);
    for (int i = 1; i < ENGINE_SNAPSHOTS_MAX; i++)
        engine_snapshot_close(&snapshots[i]);
}

static void canceled_snapshot_ends(void **state)
{
    struct fixture *f = *state;
    put_all(f, 'a');
    for (int i = 0; i < 20; i++) {
        struct engine_snapshot snapshot = {
            .op = new_op(f),
            .about = {"", "3.4.0", SLICE_LITERAL("{}")},
        };
        engine_snapshot_start(f->shard, &snapshot);
        engine_give_up(&snapshot.op);
        wait_for(f, 0);
        assert_true(snapshot.op.status == ST_CANCELED || snapshot.op.status == ST_OK);
        engine_snapshot_close(&snapshot);
    }
}

static void count_name(void *ctx, const char *name)
{
    (void)name;
    ++*(size_t *)ctx;
}

static size_t files(struct fixture *f)
{
    char path[128];
    size_t count = 0;
    snprintf(path, sizeof(path), "%s/log", f->dir);
    assert_int_equal(fs_list(fs_posix(), path, count_name, &count), ST_OK);
    return count;
}

/* Runs turns until there are fewer segments than this. */
static void wait_for_fewer_files(struct fixture *f, size_t than)
{
    int64_t until = clock_mono_ns(clock_system()) + WAIT_S * NS_PER_S;
    while (files(f) >= than) {
        assert_true(clock_mono_ns(clock_system()) < until);
        loop_turn(f->loop, NS_PER_S / 100);
    }
}

/* The disk is full, and cleaned segments are kept only for the reader: its snapshot is ended. */
static void full_disk_ends_snapshots_that_hold_space(void **state)
{
    struct fixture *f = *state;
    put_all(f, 'a');
    put_all(f, 'b');
    struct engine_snapshot slow;
    struct buf file = {0};
    assert_int_equal(start(f, &slow), ST_OK);
    assert_int_equal(read_piece(f, &slow, &file), ST_OK);
    compact(f, revision(f));
    defragment(f);
    size_t held = files(f);
    atomic_store(&disk_is_full, true);
    while (put(f, "more", 'x', 0) == ST_OK)
        ;
    wait_for_fewer_files(f, held);
    assert_int_equal(read_piece(f, &slow, &file), ST_DISK_FULL);
    assert_int_equal(read_piece(f, &slow, &file), ST_DISK_FULL);
    atomic_store(&disk_is_full, false);
    engine_snapshot_close(&slow);
    buf_fini(&file);
}

/* A snapshot that holds no needed segment continues. */
static void full_disk_can_be_backed_up(void **state)
{
    struct fixture *f = *state;
    put_all(f, 'a');
    atomic_store(&disk_is_full, true);
    while (put(f, "more", 'x', 0) == ST_OK)
        ;
    struct buf file = take_whole(f);
    assert_true(for_each(&file, "key", NULL, NULL) >= KEYS);
    buf_fini(&file);
    atomic_store(&disk_is_full, false);
}

static void closed_reader_gives_the_disk_back(void **state)
{
    struct fixture *f = *state;
    put_all(f, 'a');
    put_all(f, 'b');
    struct engine_snapshot slow;
    assert_int_equal(start(f, &slow), ST_OK);
    compact(f, revision(f));
    defragment(f);
    size_t held = files(f);
    engine_snapshot_close(&slow);
    wait_for_fewer_files(f, held);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, fixture_free)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(snapshot_contains_everything),
        TEST(a_slow_reader_gets_the_state_of_the_start),
        TEST(concurrent_snapshots_are_limited),
        TEST(canceled_snapshot_ends),
        TEST(full_disk_ends_snapshots_that_hold_space),
        TEST(full_disk_can_be_backed_up),
        TEST(closed_reader_gives_the_disk_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
