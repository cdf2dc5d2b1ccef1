/*
 * A data directory on a real disk whose checkpoint is damaged anywhere: store_repair with the loss
 * accepted leaves a directory that starts, in which every key is as it was or was reported as lost,
 * and no deleted key exists. There are two kinds: a log that was never cleaned, and one that was.
 */
#include "store/repair.h"

#include "base/temp_dir_test.h"
#include "store/fixture_test.h"
#include "store/record/row_values.h"
#include "store/upkeep/check.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { KEYS = 600, LEASES = 5, MAP_BYTES = 1 << 28, STEP_BYTES = 1 << 20 };

struct bed {
    char dir[TEMP_DIR_BYTES], whole[80], path[96];
    struct buf file;   /* the undamaged checkpoint */
    struct fixture f;  /* while it is open */
    int64_t mod[KEYS]; /* revision of each key; 0: deleted */
    int64_t revision;
    bool lost[KEYS]; /* reported by the repair */
    unsigned lost_keys;
    unsigned exact, from_log, in_part, leases;
};

/* VIGIL_TEST_DEPTH=10 damages that many times more places than the default. */
static size_t every(size_t bytes)
{
    const char *depth = getenv("VIGIL_TEST_DEPTH");
    size_t step = depth ? bytes / strtoull(depth, NULL, 10) : bytes;
    return step ? step : 1;
}

/* -- A store -- */

static void key_text(char to[static 32], int key)
{
    snprintf(to, 32, "/key/%04d", key);
}

static enum status see_row(void *ctx, const struct row *row)
{
    struct bed *bed = ctx;
    bed->leases += row->table == ROW_LEASE;
    return ST_OK;
}

static enum status open_store(struct bed *bed, struct error *ret_error)
{
    bed->leases = 0;
    TRY(store_open(
        &(struct store_options){
            .fs = fs_posix(),
            .dir = bed->dir,
            .segment_bytes_first = 8192,
            .segment_bytes_max = 8192,
            .checkpoint_map_bytes = MAP_BYTES,
            .readers_max = 2,
            .cluster_id = 11,
            .member_id = 12,
            .row_seen = see_row,
            .row_ctx = bed,
        },
        &bed->f.store, ret_error));
    bed->f.upkeep = upkeep_new(bed->f.store);
    upkeep_join(bed->f.upkeep);
    return ST_OK;
}

static void close_store(struct bed *bed)
{
    assert_int_equal(upkeep_mark(bed->f.upkeep), ST_OK);
    fixture_stop(&bed->f);
}

static void put(struct bed *bed, int key, const char *value)
{
    char name[32];
    key_text(name, key);
    bed->mod[key] = fixture_put(&bed->f, name, value);
    fixture_commit(&bed->f);
}

static void remove_key(struct bed *bed, int key)
{
    char name[32];
    key_text(name, key);
    (void)fixture_delete(&bed->f, name, "");
    fixture_commit(&bed->f);
    bed->mod[key] = 0;
}

static void add_leases(struct bed *bed)
{
    for (int64_t id = 1; id <= LEASES; id++) {
        struct lease_row lease = {.id = id, .ttl_s = 100 + id};
        struct row row = lease_row_make(&lease, false);
        assert_int_equal(applier_rows(store_applier(bed->f.store), &row, 1, NULL, 0, NULL), ST_OK);
    }
}

/*
 * Keys that are put and stay; keys that are put together with many that stay and deleted together
 * with many others: after cleaning, the log has the puts and no longer the deletions.
 */
static void fill(struct bed *bed, bool cleans)
{
    add_leases(bed);
    for (int key = 0; key < KEYS; key++)
        put(bed, key, "a value of some length, so that segments fill");
    fixture_settle(&bed->f);
    for (int key = 0; key < KEYS; key += 3)
        remove_key(bed, key);
    for (int round = 0; cleans && round < 3; round++) {
        for (int key = 1; key < KEYS / 4; key += 3)
            put(bed, key, "another value");
    }
    if (cleans) {
        fixture_compact(&bed->f, bed->mod[1] + 1);
        for (int i = 0; i < 2; i++)
            put(bed, 2, "the last one");
        fixture_compact(&bed->f, bed->mod[2]);
        fixture_settle(&bed->f);
        /* Dead versions stay in segments that are mostly live. */
        fixture_clean_all(&bed->f, SIZE_MAX);
    }
    fixture_settle(&bed->f);
    put(bed, 4, "after the checkpoint");
    bed->revision = bed->mod[4];
}

/* -- Files -- */

static void run(const char *format, const char *a, const char *b)
{
    char command[8192];
    snprintf(command, sizeof(command), format, a, b);
    assert_int_equal(system(command), 0);
}

static void read_file(struct bed *bed)
{
    int fd = open(bed->path, O_RDONLY);
    assert_true(fd >= 0);
    size_t bytes = (size_t)lseek(fd, 0, SEEK_END);
    assert_int_equal(buf_reserve(&bed->file, bytes), ST_OK);
    assert_int_equal(pread(fd, bed->file.ptr, bytes, 0), (ssize_t)bytes);
    bed->file.len = bytes;
    close(fd);
}

static void write_file(const struct bed *bed)
{
    int fd = open(bed->path, O_WRONLY | O_TRUNC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bed->file.ptr, bed->file.len), (ssize_t)bed->file.len);
    close(fd);
}

/* A page in the middle of the checkpoint is lost. */
static void damage_middle(struct bed *bed)
{
    memset(bed->file.ptr + bed->file.len / 2 / 4096 * 4096, 0, 4096);
    write_file(bed);
}

static void set_up(struct bed *bed, bool cleans)
{
    struct error error;
    *bed = (struct bed){0};
    temp_dir_make_fast("rebuild", bed->dir); /* hundreds of starts, each with its syncs */
    snprintf(bed->whole, sizeof(bed->whole), "%s.whole", bed->dir);
    snprintf(bed->path, sizeof(bed->path), "%s/meta/data.mdb", bed->dir);
    arena_init(&bed->f.arena, NULL, 0, 64 << 20);
    assert_int_equal(open_store(bed, &error), ST_OK);
    fill(bed, cleans);
    close_store(bed);
    read_file(bed);
    run("cp -a %s %s", bed->dir, bed->whole);
}

static void tear_down(struct bed *bed)
{
    temp_dir_remove(bed->dir);
    temp_dir_remove(bed->whole);
    arena_fini(&bed->f.arena);
    buf_fini(&bed->file);
}

static void restore(const struct bed *bed)
{
    temp_dir_remove(bed->dir);
    run("cp -a %s %s", bed->whole, bed->dir);
}

/* -- Repairing, and comparing the result with what was stored -- */

static void see_lost(void *ctx, const struct store_lost *lost)
{
    static const char prefix[] = "/key/";
    struct bed *bed = ctx;
    char text[32] = {0}, *end;
    assert_true(lost->key.len < sizeof(text));
    slice_copy((uint8_t *)text, lost->key);
    if (strncmp(text, prefix, strlen(prefix)) != 0)
        return;
    long key = strtol(text + strlen(prefix), &end, 10);
    if (*end == 0 && key >= 0 && key < KEYS) {
        bed->lost_keys += !bed->lost[key];
        bed->lost[key] = true;
    }
}

static enum status repair(struct bed *bed, bool accept, struct store_repair *ret_repair,
                          struct error *ret_error)
{
    memset(bed->lost, 0, sizeof(bed->lost));
    bed->lost_keys = 0;
    return store_repair(
        &(struct store_repair_options){
            .fs = fs_posix(),
            .dir = bed->dir,
            .checkpoint_map_bytes = MAP_BYTES,
            .accept = accept,
            .lost = see_lost,
            .ctx = bed,
        },
        ret_repair, ret_error);
}

static void see_damage(void *ctx, const struct store_check_damage *damage)
{
    (void)ctx;
    fail_msg("%s: segment %llu, offset %llu", damage->what, (unsigned long long)damage->segment_id,
             (unsigned long long)damage->offset);
}

static void check_store(struct bed *bed)
{
    AUTO(store_check_freep) struct store_check *check = store_check_new(see_damage, NULL);
    while (store_check_step(check, store_view(bed->f.store), store_log(bed->f.store), STEP_BYTES) ==
           ST_AGAIN)
        ;
}

static void check_keys(struct bed *bed, size_t at)
{
    struct index_root root = store_view(bed->f.store)->root;
    for (int key = 0; key < KEYS; key++) {
        char name[32];
        key_text(name, key);
        const struct index_item *item = index_root_find(&root, slice_from_text(name));
        int64_t mod = item && index_item_live(item) ? item->newest.mod_revision : 0;
        if (mod != bed->mod[key] && !(mod == 0 && bed->lost[key]))
            fail_msg("damage at %zu: %s has revision %lld instead of %lld%s", at, name,
                     (long long)mod, (long long)bed->mod[key], bed->lost[key] ? ", lost" : "");
    }
}

/* It starts twice, has the expected keys, and accepts puts. */
static void check_starts(struct bed *bed, size_t at, enum store_rebuilt how)
{
    for (int i = 0; i < 2; i++) {
        struct error error;
        if (open_store(bed, &error) != ST_OK)
            fail_msg("damage at %zu: %s", at, error.text);
        const struct store_view *view = store_view(bed->f.store);
        assert_true(view->revision >= bed->revision);
        check_keys(bed, at);
        check_store(bed);
        if (how != REBUILT_IN_PART)
            assert_int_equal(bed->leases, LEASES);
        if (i == 0) {
            assert_true(fixture_put(&bed->f, "/other", "value") > bed->revision);
            fixture_settle(&bed->f);
        }
        fixture_stop(&bed->f);
    }
}

static void count(struct bed *bed, const struct store_repair *found)
{
    enum store_rebuilt how = found->checkpoint.how;
    bed->exact += how == REBUILT_AS_IT_WAS;
    bed->from_log += how == REBUILT_FROM_LOG;
    bed->in_part += how == REBUILT_IN_PART;
    if (how != REBUILT_IN_PART)
        assert_int_equal(bed->lost_keys, 0);
}

/* Damages that many bytes: zeroed or, if it is one, flipped. Returns how many keys are lost. */
static unsigned hit(struct bed *bed, size_t at, size_t bytes, uint8_t flip)
{
    uint8_t kept[4096];
    bytes = size_min(bytes, bed->file.len - at);
    memcpy(kept, bed->file.ptr + at, bytes);
    if (flip)
        bed->file.ptr[at] ^= flip;
    else
        memset(bed->file.ptr + at, 0, bytes);
    unsigned lost = 0;
    if (memcmp(kept, bed->file.ptr + at, bytes) != 0) {
        restore(bed);
        write_file(bed);
        struct store_repair found;
        struct error error;
        enum status status = repair(bed, true, &found, &error);
        if (status != ST_OK)
            fail_msg("damage at %zu: %s", at, error.text);
        count(bed, &found);
        lost = bed->lost_keys;
        check_starts(bed, at, found.checkpoint.how);
    }
    memcpy(bed->file.ptr + at, kept, bytes);
    return lost;
}

static void a_damaged_checkpoint_of_a_whole_log_loses_nothing(void **state)
{
    (void)state;
    struct bed bed;
    set_up(&bed, false);
    unsigned lost = 0;
    for (size_t at = 16; at < bed.file.len; at += every(8191))
        lost += hit(&bed, at, 1, 0x10);
    for (size_t at = 0; at < bed.file.len; at += 3 * 4096)
        lost += hit(&bed, at, 4096, 0);
    print_message("%u as it was, %u from the log\n", bed.exact, bed.from_log);
    assert_int_equal(lost, 0);
    assert_true(bed.exact > 0 && bed.from_log > 0);
    assert_int_equal(bed.in_part, 0);
    tear_down(&bed);
}

static void a_flipped_bit_after_cleaning_loses_what_is_named(void **state)
{
    (void)state;
    struct bed bed;
    set_up(&bed, true);
    unsigned lost = 0;
    for (size_t at = 0; at < bed.file.len; at += every(1013))
        lost += hit(&bed, at, 1, (uint8_t)(1u << at % 8));
    /*
     * The first byte of a version's id, which distinguishes it from a row: 21 bytes before the key.
     */
    const uint8_t *end = bed.file.ptr + bed.file.len;
    for (const uint8_t *key = bed.file.ptr;
         (key = memmem(key, (size_t)(end - key), "/key/0190", strlen("/key/0190"))); key++)
        lost += hit(&bed, (size_t)(key - bed.file.ptr) - 21, 1, 1);
    print_message("%u as it was, %u in part, %u keys lost\n", bed.exact, bed.in_part, lost);
    assert_true(bed.exact > bed.in_part && bed.exact > 0);
    assert_int_equal(bed.from_log, 0);
    tear_down(&bed);
}

static void a_zeroed_block_after_cleaning_loses_what_is_named(void **state)
{
    (void)state;
    struct bed bed;
    set_up(&bed, true);
    unsigned lost = 0, hits = 0;
    for (size_t at = 0; at < bed.file.len; at += 4096, hits++)
        lost += hit(&bed, at, 4096, 0);
    for (size_t at = 512; at < bed.file.len; at += every(7 * 512), hits++)
        lost += hit(&bed, at, 512, 0);
    print_message("%u as it was, %u in part, %u keys lost\n", bed.exact, bed.in_part, lost);
    assert_true(bed.in_part > 0 && lost > 0);
    assert_true(lost < hits * KEYS / 8); /* what is intact is kept */
    tear_down(&bed);
}

/* -- Interrupted -- */

/* Repairs in a process that is killed after a while. True: it had finished. */
static bool repair_killed_after(struct bed *bed, useconds_t delay_us)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct store_repair found;
        struct error error;
        _exit(repair(bed, true, &found, &error) == ST_OK ? 0 : 1);
    }
    usleep(delay_us);
    int result;
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, &result, 0), child);
    return WIFEXITED(result);
}

/* Whatever is left of the first repair, the second one has the same result. */
static void repair_that_was_killed_can_be_repeated(void **state)
{
    (void)state;
    struct bed bed;
    struct store_repair found;
    struct error error;
    set_up(&bed, true);
    memset(bed.file.ptr + bed.file.len / 2 / 4096 * 4096, 0, 4096);
    bool finished = false, lost[KEYS];
    write_file(&bed);
    assert_int_equal(repair(&bed, false, &found, &error), ST_OK);
    enum store_rebuilt how = found.checkpoint.how;
    memcpy(lost, bed.lost, sizeof(lost));
    for (useconds_t delay_us = 500; !finished; delay_us += delay_us / 3) {
        restore(&bed);
        write_file(&bed);
        finished = repair_killed_after(&bed, delay_us);
        if (repair(&bed, true, &found, &error) != ST_OK)
            fail_msg("%s", error.text);
        memcpy(bed.lost, lost, sizeof(lost));
        check_starts(&bed, 0, how);
    }
    tear_down(&bed);
}

/* Killed while LMDB made the new file, which happens in a directory of its own. */
static void what_a_killed_repair_has_left_is_removed(void **state)
{
    (void)state;
    struct bed bed;
    struct store_repair found;
    struct error error;
    set_up(&bed, true);
    damage_middle(&bed);
    run("mkdir -p %s/meta/rebuilt/new && touch %s/meta/rebuilt/new/data.mdb", bed.dir, bed.dir);
    run("touch %s/meta/rebuilt/data.mdb %s/meta/rebuilt/lock.mdb", bed.dir, bed.dir);
    if (repair(&bed, true, &found, &error) != ST_OK)
        fail_msg("%s", error.text);
    run("test ! -e %s/meta/rebuilt%s", bed.dir, "");
    check_starts(&bed, 0, found.checkpoint.how);
    tear_down(&bed);
}

/* The first report names the same keys as the second one, and changes nothing. */
static void nothing_is_changed_before_the_loss_is_accepted(void **state)
{
    (void)state;
    struct bed bed;
    struct store_repair before, found;
    struct error error;
    set_up(&bed, true);
    damage_middle(&bed);
    temp_dir_remove(bed.whole);
    run("cp -a %s %s", bed.dir, bed.whole);
    assert_int_equal(repair(&bed, false, &before, &error), ST_OK);
    run("diff -r %s %s", bed.dir, bed.whole);
    bool lost[KEYS];
    memcpy(lost, bed.lost, sizeof(lost));
    assert_int_equal(repair(&bed, true, &found, &error), ST_OK);
    assert_memory_equal(lost, bed.lost, sizeof(lost));
    assert_memory_equal(&before.checkpoint, &found.checkpoint, sizeof(found.checkpoint));
    run("cmp %s %s/meta/data.mdb", found.checkpoint_saved, bed.whole);
    assert_int_equal(repair(&bed, true, &found, &error), ST_OK);
    assert_int_equal(found.checkpoint.how, REBUILT_NOT);
    tear_down(&bed);
}

/*
 * The log alone does not show what was deleted: all keys that may have been are lost, and the rest
 * stays.
 */
static void a_checkpoint_that_is_missing_is_rebuilt(void **state)
{
    (void)state;
    struct bed bed;
    struct store_repair found;
    struct error error;
    for (int empty = 0; empty < 2; empty++) {
        set_up(&bed, true);
        assert_int_equal(empty ? truncate(bed.path, 0) : unlink(bed.path), 0);
        assert_int_equal(open_store(&bed, &error), ST_DAMAGED);
        assert_int_equal(repair(&bed, true, &found, &error), ST_OK);
        assert_int_equal(found.checkpoint.how, REBUILT_IN_PART);
        assert_true(found.checkpoint.rows_unsure && found.checkpoint.identity_lost);
        assert_true(bed.lost_keys > 0 && found.checkpoint.kept_versions > 0);
        check_starts(&bed, 0, found.checkpoint.how);
        tear_down(&bed);
    }
}

/* Then it is unknown which value of a key is the newest. */
static void a_log_that_is_damaged_too_is_refused(void **state)
{
    (void)state;
    struct bed bed;
    struct store_repair found;
    struct error error;
    set_up(&bed, true);
    damage_middle(&bed);
    run("for f in %s/log/*.seg; do printf x | dd of=$f bs=1 seek=700 conv=notrunc 2>/dev/null; "
        "done%s",
        bed.dir, "");
    assert_int_equal(repair(&bed, true, &found, &error), ST_DAMAGED);
    assert_non_null(strstr(error.text, "the log is damaged, too"));
    assert_non_null(strstr(error.text, ".seg, offset "));
    char advice[128];
    snprintf(advice, sizeof(advice), "vigil salvage %s --to NEW", bed.dir);
    assert_non_null(strstr(error.text, advice));
    tear_down(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_damaged_checkpoint_of_a_whole_log_loses_nothing),
        cmocka_unit_test(a_flipped_bit_after_cleaning_loses_what_is_named),
        cmocka_unit_test(a_zeroed_block_after_cleaning_loses_what_is_named),
        cmocka_unit_test(repair_that_was_killed_can_be_repeated),
        cmocka_unit_test(what_a_killed_repair_has_left_is_removed),
        cmocka_unit_test(nothing_is_changed_before_the_loss_is_accepted),
        cmocka_unit_test(a_checkpoint_that_is_missing_is_rebuilt),
        cmocka_unit_test(a_log_that_is_damaged_too_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
