/*
 * A data directory on a real disk in which any byte or block of any file is damaged, or a file is
 * missing: store_salvage makes a new directory that starts, in which every key is as it was or was
 * reported as lost, no deleted key exists, and nothing is damaged. The damaged directory stays as
 * it is. There are two kinds: a log that was never cleaned, and one that was.
 */
#include "store/salvage.h"

#include "base/temp_dir_test.h"
#include "store/fixture_test.h"
#include "store/log/mend.h"
#include "store/record/row_values.h"
#include "store/repair.h"
#include "store/upkeep/check.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { KEYS = 90, LEASES = 3, MAP_BYTES = 1 << 28, STEP_BYTES = 1 << 20, FILES_MAX = 64 };

struct bed {
    char dir[TEMP_DIR_BYTES], to[96];
    struct fixture f;     /* while a store is open */
    int64_t mod[KEYS];    /* revision of each key; 0: deleted */
    int64_t before[KEYS]; /* the same at the checkpoint */
    int64_t revision;
    char files[FILES_MAX][64]; /* relative paths */
    size_t file_count;
    bool lost[KEYS]; /* reported */
    unsigned lost_versions, gaps, leases;
    unsigned whole, in_part, with_loss; /* hits by result */
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

static void open_store(struct bed *bed, const char *dir)
{
    struct error error;
    bed->leases = 0;
    enum status status = store_open(
        &(struct store_options){
            .fs = fs_posix(),
            .dir = dir,
            .segment_bytes_first = 8192,
            .segment_bytes_max = 8192,
            .checkpoint_map_bytes = MAP_BYTES,
            .readers_max = 2,
            .cluster_id = 11,
            .member_id = 12,
            .salt = 77,
            .row_seen = see_row,
            .row_ctx = bed,
        },
        &bed->f.store, &error);
    if (status != ST_OK)
        fail_msg("%s", error.text);
    bed->f.upkeep = upkeep_new(bed->f.store);
    upkeep_join(bed->f.upkeep);
}

/* The value says to which key and revision it belongs. */
static void put(struct bed *bed, int key)
{
    char name[32], value[128];
    key_text(name, key);
    int64_t revision = store_applier(bed->f.store)->revision + 1;
    snprintf(value, sizeof(value), "value of key %d at revision %lld, and more to fill a segment",
             key, (long long)revision);
    bed->mod[key] = fixture_put(&bed->f, name, value);
    assert_int_equal(bed->mod[key], revision);
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

static void fill(struct bed *bed, bool cleans)
{
    for (int64_t id = 1; id <= LEASES; id++) {
        struct lease_row lease = {.id = id, .ttl_s = 100 + id};
        struct row row = lease_row_make(&lease, false);
        assert_int_equal(applier_rows(store_applier(bed->f.store), &row, 1, NULL, 0, NULL), ST_OK);
    }
    for (int key = 0; key < KEYS; key++)
        put(bed, key);
    fixture_settle(&bed->f);
    for (int key = 0; key < KEYS; key += 3)
        remove_key(bed, key);
    for (int key = 1; key < KEYS / 2; key += 3)
        put(bed, key);
    if (cleans) {
        fixture_compact(&bed->f, bed->mod[1] + 1);
        put(bed, 2);
        put(bed, 2);
        fixture_compact(&bed->f, bed->mod[2]);
        fixture_settle(&bed->f);
        fixture_clean_all(&bed->f, SIZE_MAX);
    }
    fixture_settle(&bed->f);
    memcpy(bed->before, bed->mod, sizeof(bed->before));
    for (int key = 4; key < 10; key++)
        put(bed, key);
    remove_key(bed, 4);
    put(bed, 11);
    bed->revision = bed->mod[11];
}

/* -- Files -- */

static void path_of(const struct bed *bed, const char *name, char path[static 256])
{
    snprintf(path, 256, "%s/%s", bed->dir, name);
}

static void list_files(struct bed *bed, const char *sub)
{
    char path[256];
    path_of(bed, sub, path);
    DIR *dir = opendir(path);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (entry->d_type != DT_REG || strcmp(entry->d_name, "LOCK") == 0 ||
            strcmp(entry->d_name, "lock.mdb") == 0)
            continue;
        assert_true(bed->file_count < FILES_MAX);
        snprintf(bed->files[bed->file_count++], sizeof(bed->files[0]), "%.16s%s%.40s", sub,
                 *sub ? "/" : "", entry->d_name);
    }
    closedir(dir);
}

static struct buf read_file(const char *path)
{
    struct buf file = {0};
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    size_t bytes = (size_t)lseek(fd, 0, SEEK_END);
    assert_int_equal(buf_reserve(&file, bytes + 1), ST_OK);
    assert_int_equal(pread(fd, file.ptr, bytes, 0), (ssize_t)bytes);
    file.len = bytes;
    close(fd);
    return file;
}

static void write_file(const char *path, const struct buf *file)
{
    int fd = open(path, O_WRONLY | O_TRUNC | O_CREAT, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, file->ptr, file->len), (ssize_t)file->len);
    close(fd);
}

static void set_up(struct bed *bed, bool cleans)
{
    *bed = (struct bed){0};
    temp_dir_make_fast("salvage", bed->dir); /* hundreds of stores are made, each with its syncs */
    snprintf(bed->to, sizeof(bed->to), "%s.new", bed->dir);
    arena_init(&bed->f.arena, NULL, 0, 64 << 20);
    open_store(bed, bed->dir);
    fill(bed, cleans);
    assert_int_equal(upkeep_mark(bed->f.upkeep), ST_OK);
    fixture_stop(&bed->f);
    list_files(bed, "");
    list_files(bed, "log");
    list_files(bed, "meta");
}

static void tear_down(struct bed *bed)
{
    temp_dir_remove(bed->dir);
    arena_fini(&bed->f.arena);
}

/* -- Salvaging, and comparing the result with what was stored -- */

static void see_lost(void *ctx, const struct store_lost *lost)
{
    static const char prefix[] = "/key/";
    struct bed *bed = ctx;
    char text[32] = {0}, *end;
    bed->lost_versions++;
    if (lost->key.len >= sizeof(text) || lost->older)
        return;
    slice_copy((uint8_t *)text, lost->key);
    if (strncmp(text, prefix, strlen(prefix)) != 0)
        return;
    long key = strtol(text + strlen(prefix), &end, 10);
    if (*end == 0 && key >= 0 && key < KEYS)
        bed->lost[key] = true;
}

static void see_gap(void *ctx, const struct store_gap *gap)
{
    struct bed *bed = ctx;
    assert_true(gap->from_index > 0 && gap->from_index <= gap->to_index);
    bed->gaps++;
}

static enum status salvage(struct bed *bed, struct store_salvage *ret_found,
                           struct error *ret_error)
{
    memset(bed->lost, 0, sizeof(bed->lost));
    bed->lost_versions = bed->gaps = 0;
    temp_dir_remove(bed->to);
    return store_salvage(
        &(struct store_salvage_options){
            .fs = fs_posix(),
            .dir = bed->dir,
            .to = bed->to,
            .checkpoint_map_bytes = MAP_BYTES,
            .salt = 5,
            .lost = see_lost,
            .gap = see_gap,
            .ctx = bed,
        },
        ret_found, ret_error);
}

static void see_damage(void *ctx, const struct store_check_damage *damage)
{
    (void)ctx;
    fail_msg("%s: segment %llu, offset %llu", damage->what, (unsigned long long)damage->segment_id,
             (unsigned long long)damage->offset);
}

static void check_value(struct bed *bed, int key, const struct index_item *item, const char *where)
{
    char expected[64];
    const struct change_head *change;
    struct change_kv kv;
    assert_int_equal(change_get(store_log(bed->f.store), item->newest.loc, &change), ST_OK);
    change_read_kv(change, &kv);
    snprintf(expected, sizeof(expected), "value of key %d at revision %lld,", key,
             (long long)item->newest.mod_revision);
    if (!slice_has_prefix(kv.value, slice_from_text(expected)))
        fail_msg("%s: key %d has the value %.*s", where, key, SLICE_ARGS(kv.value));
}

static void check_keys(struct bed *bed, const char *where)
{
    const struct store_view *view = store_view(bed->f.store);
    for (int key = 0; key < KEYS; key++) {
        char name[32];
        key_text(name, key);
        const struct index_item *item = index_root_find(&view->root, slice_from_text(name));
        int64_t mod = item && index_item_live(item) ? item->newest.mod_revision : 0;
        if (mod)
            check_value(bed, key, item, where);
        /* Some records after the checkpoint are lost. */
        bool before = bed->gaps && mod >= bed->before[key] && bed->mod[key] != bed->before[key];
        if (mod != bed->mod[key] && !(mod == 0 && bed->lost[key]) && !before)
            fail_msg("%s: %s has revision %lld instead of %lld%s", where, name, (long long)mod,
                     (long long)bed->mod[key], bed->lost[key] ? ", lost" : "");
    }
}

/* It starts, has the expected keys and nothing else, and accepts puts. */
static void check_result(struct bed *bed, const struct store_salvage *found, const char *where)
{
    open_store(bed, bed->to);
    const struct store_view *view = store_view(bed->f.store);
    check_keys(bed, where);
    AUTO(store_check_freep) struct store_check *check = store_check_new(see_damage, NULL);
    while (store_check_step(check, view, store_log(bed->f.store), STEP_BYTES) == ST_AGAIN)
        ;
    if (!bed->gaps)
        assert_true(view->revision >= bed->revision);
    assert_int_equal(view->revision, found->revision);
    assert_int_equal(found->lost_versions, bed->lost_versions);
    assert_int_equal(found->gaps, bed->gaps);
    if (found->checkpoint.how != REBUILT_IN_PART && !bed->gaps)
        assert_int_equal(bed->leases, LEASES);
    assert_true(fixture_put(&bed->f, "/other", "value") > view->revision);
    fixture_settle(&bed->f);
    fixture_stop(&bed->f);
}

static void salvage_and_check(struct bed *bed, const char *where, struct store_salvage *ret_found)
{
    struct error error = {0};
    if (salvage(bed, ret_found, &error) != ST_OK)
        fail_msg("%s: %s", where, error.text);
    check_result(bed, ret_found, where);
    bed->with_loss += bed->lost_versions || bed->gaps;
    bed->whole += ret_found->has_history;
    bed->in_part += ret_found->checkpoint.how == REBUILT_IN_PART;
}

/* Damages that many bytes: zeroed or, if it is one, flipped. */
static void hit(struct bed *bed, const char *name, struct buf *file, size_t at, size_t bytes,
                uint8_t flip)
{
    char path[256], where[256];
    uint8_t kept[4096];
    bytes = size_min(bytes, file->len - at);
    memcpy(kept, file->ptr + at, bytes);
    if (flip)
        file->ptr[at] ^= flip;
    else
        memset(file->ptr + at, 0, bytes);
    if (memcmp(kept, file->ptr + at, bytes) != 0) {
        struct store_salvage found;
        path_of(bed, name, path);
        snprintf(where, sizeof(where), "%s, %zu bytes at %zu", name, bytes, at);
        write_file(path, file);
        salvage_and_check(bed, where, &found);
        struct buf after = read_file(path);
        assert_memory_equal(after.ptr, file->ptr, file->len); /* it was only read */
        buf_fini(&after);
    }
    memcpy(file->ptr + at, kept, bytes);
}

static bool is_segment(const char *name)
{
    return strstr(name, ".seg") != NULL;
}

/* The byte makes it a text that another version of this program would write. */
static bool names_another_version(const char *name, size_t at)
{
    return strcmp(name, "FORMAT") == 0 && at == strlen("vigil data directory, format ");
}

static void damage_everywhere(struct bed *bed)
{
    for (size_t i = 0; i < bed->file_count; i++) {
        const char *name = bed->files[i];
        char path[256];
        path_of(bed, name, path);
        struct buf file = read_file(path);
        /* Heads and seals are at the beginning; then come records, of which a few are hit often. */
        size_t dense = is_segment(name) ? 700 : strcmp(name, "FORMAT") == 0 ? 46 : 0;
        size_t step = strcmp(name, "meta/data.mdb") == 0 ? every(997) : every(173);
        for (size_t at = 0; at < file.len; at += at < dense ? every(7) : step) {
            if (!names_another_version(name, at))
                hit(bed, name, &file, at, 1, (uint8_t)(1u << at % 8));
        }
        for (size_t at = 0; at < file.len; at += 4096)
            hit(bed, name, &file, at, 4096, 0);
        write_file(path, &file);
        buf_fini(&file);
    }
}

static void anything_of_a_whole_log_may_be_damaged(void **state)
{
    (void)state;
    struct bed bed;
    set_up(&bed, false);
    damage_everywhere(&bed);
    print_message("%u with history, %u with loss, %u in part\n", bed.whole, bed.with_loss,
                  bed.in_part);
    assert_true(bed.whole > 0 && bed.with_loss > 0);
    tear_down(&bed);
}

static void anything_of_a_cleaned_log_may_be_damaged(void **state)
{
    (void)state;
    struct bed bed;
    set_up(&bed, true);
    damage_everywhere(&bed);
    print_message("%u with history, %u with loss, %u in part\n", bed.whole, bed.with_loss,
                  bed.in_part);
    assert_true(bed.whole > 0 && bed.with_loss > 0 && bed.in_part > 0);
    tear_down(&bed);
}

static void any_file_may_be_missing_or_short(void **state)
{
    (void)state;
    struct bed bed;
    for (int cleans = 0; cleans < 2; cleans++) {
        set_up(&bed, cleans);
        for (size_t i = 0; i < bed.file_count; i++) {
            char path[256];
            struct store_salvage found;
            path_of(&bed, bed.files[i], path);
            struct buf file = read_file(path), half = {0};
            assert_int_equal(unlink(path), 0);
            salvage_and_check(&bed, bed.files[i], &found);
            assert_int_equal(buf_append(&half, slice_of(file.ptr, file.len / 2)), ST_OK);
            write_file(path, &half);
            salvage_and_check(&bed, bed.files[i], &found);
            write_file(path, &file);
            buf_fini(&file);
            buf_fini(&half);
        }
        tear_down(&bed);
    }
}

/* Every record is intact, so nothing is lost, although no segment has a head. */
static void heads_and_format_are_made_again(void **state)
{
    (void)state;
    struct bed bed;
    struct store_salvage found;
    char path[256];
    for (int cleans = 0; cleans < 2; cleans++) {
        unsigned heads = 0;
        set_up(&bed, cleans);
        for (size_t i = 0; i < bed.file_count; i++) {
            path_of(&bed, bed.files[i], path);
            struct buf file = read_file(path);
            if (is_segment(bed.files[i])) {
                memset(file.ptr, 0xff, sizeof(struct segment_head));
                heads++;
            } else if (strcmp(bed.files[i], "FORMAT") == 0) {
                memset(file.ptr, 'x', file.len);
            }
            write_file(path, &file);
            buf_fini(&file);
        }
        salvage_and_check(&bed, "all heads", &found);
        assert_int_equal(found.lost_versions, 0);
        assert_int_equal(found.gaps, 0);
        assert_int_equal(found.heads_mended, heads);
        assert_int_equal(found.format, DATADIR_FORMAT_DAMAGED);
        assert_true(found.has_history);
        tear_down(&bed);
    }
}

/* -- Repairs, which put the new store into the place of the damaged one -- */

static enum status repair(struct bed *bed)
{
    struct store_repair found;
    struct error error;
    memset(bed->lost, 0, sizeof(bed->lost));
    bed->lost_versions = bed->gaps = 0;
    return store_repair(
        &(struct store_repair_options){
            .fs = fs_posix(),
            .dir = bed->dir,
            .checkpoint_map_bytes = MAP_BYTES,
            .accept = true,
            .lost = see_lost,
            .ctx = bed,
        },
        &found, &error);
}

/* Every newest value of one segment is damaged; returns how many. */
static unsigned damage_values(const struct bed *bed)
{
    unsigned damaged = 0;
    for (size_t i = 0; i < bed->file_count && !damaged; i++) {
        char path[256];
        path_of(bed, bed->files[i], path);
        if (!is_segment(bed->files[i]))
            continue;
        struct buf file = read_file(path);
        for (size_t at = 0; at + 20 < file.len; at++) {
            if (memcmp(file.ptr + at, "value of key 2", 14) != 0)
                continue;
            file.ptr[at] ^= 1;
            damaged++;
        }
        write_file(path, &file);
        buf_fini(&file);
    }
    return damaged;
}

static void run(const char *format, const char *a, const char *b)
{
    char command[1024];
    snprintf(command, sizeof(command), format, a, b);
    assert_int_equal(system(command), 0);
}

/* Whenever it is killed, the next repair has the same result, and the server never starts with less
 * than that. */
static void a_repair_that_is_killed_can_be_repeated(void **state)
{
    (void)state;
    struct bed bed;
    char kept[96];
    set_up(&bed, true);
    assert_true(damage_values(&bed) > 0);
    snprintf(kept, sizeof(kept), "%s.kept", bed.dir);
    run("cp -a %s %s", bed.dir, kept);
    bool finished = false;
    for (useconds_t delay_us = 500; !finished; delay_us += delay_us / 3) {
        temp_dir_remove(bed.dir);
        run("cp -a %s %s", kept, bed.dir);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            _exit(repair(&bed) == ST_OK ? 0 : 1);
        usleep(delay_us);
        int result;
        kill(child, SIGKILL);
        assert_int_equal(waitpid(child, &result, 0), child);
        finished = WIFEXITED(result);
        assert_int_equal(repair(&bed), ST_OK);
        for (int key = 2; key < 30; key = key == 2 ? 20 : key + 1)
            bed.lost[key] = true; /* a repair that had finished before reports nothing */
        open_store(&bed, bed.dir);
        check_keys(&bed, "repaired");
        fixture_stop(&bed.f);
    }
    temp_dir_remove(kept);
    tear_down(&bed);
}

/* After each of its renames. */
static void an_interrupted_exchange_is_finished(void **state)
{
    (void)state;
    static const char *const steps[] = {
        "mv %s/new %s/repaired",           "rm %s/FORMAT%.0s",        "mv %s/log %s/log.lost",
        "mv %s/repaired/log %s/log",       "mv %s/meta %s/meta.lost", "mv %s/repaired/meta %s/meta",
        "mv %s/repaired/FORMAT %s/FORMAT",
    };
    for (size_t made = 1; made <= COUNT_OF(steps); made++) {
        struct bed bed;
        struct store_salvage found;
        struct error error;
        set_up(&bed, true);
        assert_int_equal(salvage(&bed, &found, &error), ST_OK);
        run("mv %s %s/new", bed.to, bed.dir);
        for (size_t i = 0; i < made; i++)
            run(steps[i], bed.dir, bed.dir);
        struct datadir dir;
        assert_int_equal(datadir_open(&dir, fs_posix(), bed.dir, false, &error), ST_WRONG_FORMAT);
        assert_non_null(strstr(error.text, "a repair that was not finished"));
        assert_int_equal(repair(&bed), ST_OK);
        run("test ! -e %s/repaired && test -d %s/log.lost", bed.dir, bed.dir);
        open_store(&bed, bed.dir);
        check_keys(&bed, "repaired");
        fixture_stop(&bed.f);
        tear_down(&bed);
    }
}

static void the_salt_is_found_in_any_record(void **state)
{
    (void)state;
    uint8_t record[4096];
    for (uint32_t i = 0; i < 1000; i++) {
        uint32_t salt = i * 2654435761u, found;
        size_t len = RECORD_HEAD_BYTES + i * 3;
        for (size_t k = 0; k < sizeof(record); k++)
            record[k] = (uint8_t)(k * i);
        struct record_head head = {.len = (uint32_t)len, .index = i + 1, .type = 1};
        memcpy(record, &head, sizeof(head));
        memset(record + len, 0, align_up(len, RECORD_ALIGN) - len);
        record_finish(record, salt);
        assert_true(record_find_salt(slice_of(record, sizeof(record)), &found));
        assert_int_equal(found, salt);
        record[i % len] ^= 1;
        bool finds = record_find_salt(slice_of(record, sizeof(record)), &found);
        assert_true(!finds || found != salt);
    }
}

static void other_directories_are_refused(void **state)
{
    (void)state;
    struct bed bed;
    struct store_salvage found;
    struct error error = {0};
    set_up(&bed, false);
    char path[256];
    static const struct {
        const char *text;
        const char *error;
    } rows[] = {
        {"vigil data directory, format 9, little endian\n", "another format"},
        {"vigil data directory, format 3, big endian\n", "another format"},
        {"vigil mirror of a cluster, format 3, little endian\n", "the mirror of an etcd cluster"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct buf text = {0};
        assert_int_equal(buf_append(&text, slice_from_text(rows[i].text)), ST_OK);
        path_of(&bed, "FORMAT", path);
        write_file(path, &text);
        buf_fini(&text);
        assert_int_equal(salvage(&bed, &found, &error), ST_WRONG_FORMAT);
        assert_non_null(strstr(error.text, rows[i].error));
    }
    snprintf(bed.dir + strlen(bed.dir), 8, "/meta");
    assert_int_equal(salvage(&bed, &found, &error), ST_WRONG_FORMAT);
    bed.dir[strlen(bed.dir) - strlen("/meta")] = 0;
    tear_down(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_salt_is_found_in_any_record),
        cmocka_unit_test(heads_and_format_are_made_again),
        cmocka_unit_test(any_file_may_be_missing_or_short),
        cmocka_unit_test(anything_of_a_whole_log_may_be_damaged),
        cmocka_unit_test(anything_of_a_cleaned_log_may_be_damaged),
        cmocka_unit_test(other_directories_are_refused),
        cmocka_unit_test(a_repair_that_is_killed_can_be_repeated),
        cmocka_unit_test(an_interrupted_exchange_is_finished),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
