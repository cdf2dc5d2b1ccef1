/*
 * What the index, the log and the checkpoint cost by themselves: store_bench [DIR]. Not a test;
 * numbers to hold a change against. DIR is a directory on the disk to be measured; what it makes
 * there is removed. Without DIR, only the index is measured.
 */
#include "base/crc32c.h"
#include "base/random.h"
#include "store/backend/backend.h"
#include "store/index/index.h"
#include "store/log/log.h"
#include "store/log/reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { BODY_BYTES = 320, RECORDS = 1000000, KEYS = 1000000 };

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void must(enum status status, const char *what)
{
    if (status == ST_OK)
        return;
    fprintf(stderr, "%s: %s\n", what, status_name(status));
    exit(1);
}

static void measure_crc(void)
{
    static uint8_t bytes[1 << 20];
    memset(bytes, 7, sizeof(bytes));
    uint32_t crc = 0;
    double start = now_s();
    for (int i = 0; i < 1000; i++)
        crc = crc32c(crc, slice_of(bytes, sizeof(bytes)));
    double fast = now_s() - start;
    start = now_s();
    for (int i = 0; i < 200; i++)
        crc = crc32c_portable(crc, slice_of(bytes, sizeof(bytes)));
    double slow = now_s() - start;
    printf("crc32c             %.1f GB/s, tables %.1f GB/s (%08x)\n",
           1000.0 * sizeof(bytes) / fast / 1e9, 200.0 * sizeof(bytes) / slow / 1e9, crc);
}

static struct log *open_log(const char *dir, uint64_t after, const uint64_t *listed, size_t count,
                            log_replay_fn replay, void *ctx)
{
    struct log_options options = {
        .fs = fs_posix(),
        .dir = dir,
        .segment_bytes_first = 1 << 20,
        .segment_bytes_max = 64 << 20,
        .salt = 1,
    };
    struct log *log;
    struct error error;
    if (log_open(&options, after, listed, count, replay, ctx, &log, &error) != ST_OK) {
        fprintf(stderr, "%s\n", error.text);
        exit(1);
    }
    return log;
}

static enum status count_record(void *ctx, const struct log_record *record)
{
    *(uint64_t *)ctx += record->body.len;
    return ST_OK;
}

static log_loc append(struct log *log)
{
    log_loc loc;
    must(log_reserve(log, BODY_BYTES), "reserve");
    memset(log_append_begin(log, &loc), 'v', BODY_BYTES);
    uint64_t index = log_append_end(log, 1, (int64_t)log_last_index(log) + 1, BODY_BYTES);
    (void)index;
    return loc;
}

static void measure_groups(struct log *log, int group, int groups)
{
    double start = now_s();
    for (int i = 0; i < groups; i++) {
        for (int k = 0; k < group; k++)
            append(log);
        must(log_write(log), "write");
        must(log_sync(log), "sync");
        if (log_wants_prepare(log))
            must(log_prepare(log), "prepare");
    }
    double took = now_s() - start;
    printf("groups of %-5d     %.0f us a group, %.0f records/s\n", group, took / groups * 1e6,
           (double)group * groups / took);
}

static void measure_append(struct log *log, log_loc *locs)
{
    double prepared = 0, start = now_s();
    for (int i = 0; i < RECORDS; i++) {
        locs[i] = append(log);
        if (i % 500 == 0) {
            must(log_write(log), "write");
            double before = now_s();
            if (log_wants_prepare(log))
                must(log_prepare(log), "prepare");
            prepared += now_s() - before;
        }
    }
    must(log_write(log), "write");
    double took = now_s() - start - prepared;
    printf("append and write   %.0f ns a record; making segments beside it %.2f s\n",
           took / RECORDS * 1e9, prepared);
    start = now_s();
    must(log_sync(log), "sync");
    printf("sync of all that   %.3f s\n", now_s() - start);
}

static void measure_reading(struct log *log, const log_loc *locs)
{
    uint64_t sum = 0;
    double start = now_s();
    for (size_t i = 0, at = 0; i < RECORDS; i++, at = (at + 7919) % RECORDS)
        sum += log_rest_at(log, locs[at]).ptr[0];
    double shuffled = now_s() - start;
    start = now_s();
    for (size_t i = 0; i < RECORDS; i++)
        sum += (uintptr_t)log_rest_at(log, locs[i]).ptr;
    double lookup = now_s() - start;
    struct log_reader reader;
    struct log_record record;
    start = now_s();
    log_reader_init(&reader, log, 1);
    while (log_reader_next(&reader, UINT64_MAX, &record) == ST_OK)
        sum += record.body.len;
    double sequential = now_s() - start;
    start = now_s();
    for (int i = 1; i <= 100; i++)
        log_reader_seek_revision(&reader, log, (int64_t)RECORDS / 100 * i);
    double seek = now_s() - start;
    printf("log_rest_at        %.1f ns, with a shuffled byte %.0f ns; reader %.0f ns a record, "
           "seek %.0f us (%llu)\n",
           lookup / RECORDS * 1e9, shuffled / RECORDS * 1e9, sequential / RECORDS * 1e9,
           seek / 100 * 1e6, (unsigned long long)sum);
}

static void measure_log(const char *dir)
{
    uint64_t bytes = 0;
    log_loc *locs = malloc(RECORDS * sizeof(*locs));
    struct log *log = open_log(dir, 0, NULL, 0, count_record, &bytes);
    measure_groups(log, 1, 1000);
    measure_groups(log, 100, 500);
    measure_groups(log, 1000, 200);
    measure_append(log, locs);
    measure_reading(log, locs);
    struct log_segment_info infos[256];
    size_t count = log_segments(log, infos, 256);
    uint64_t listed[256], used = 0, last = log_durable_index(log);
    for (size_t i = 0; i < count; i++) {
        listed[i] = infos[i].id;
        used += infos[i].used_bytes;
    }
    log_close(log);

    double start = now_s();
    log = open_log(dir, 0, NULL, 0, count_record, &bytes);
    double took = now_s() - start;
    printf("open, replay all   %.3f s, %.2f GB/s\n", took, (double)used / took / 1e9);
    log_close(log);
    start = now_s();
    log = open_log(dir, last, listed, count, count_record, &bytes);
    printf("open, checkpointed %.3f s\n", now_s() - start);
    log_close(log);
    free(locs);
}

static enum status count_version(void *ctx, const struct backend_version *version)
{
    *(uint64_t *)ctx += version->key.len + version->loc % 2;
    return ST_OK;
}

static void measure_backend(const char *dir)
{
    struct backend *backend;
    struct error error;
    must(backend_lmdb_open(dir, (size_t)16 << 30, &backend, &error), "open");
    double start = now_s();
    for (int64_t i = 1; i <= KEYS; i++) {
        char key[64];
        snprintf(key, sizeof(key), "/registry/pods/default/pod-%07lld", (long long)i);
        struct backend_version version = {.id = {i, 0},
                                          .create_revision = i,
                                          .version = 1,
                                          .loc = (uint64_t)i * 328,
                                          .field_bytes = 310,
                                          .key = slice_from_text(key)};
        if (i % 50000 == 1)
            must(backend_begin(backend), "begin");
        must(backend_version_put(backend, &version), "put");
        if (i % 50000 == 0)
            must(backend_commit(backend), "commit");
    }
    printf("checkpoint         %d versions in %.3f s, commits of 50000\n", KEYS, now_s() - start);
    backend_close(backend);
    uint64_t sum = 0;
    start = now_s();
    must(backend_lmdb_open(dir, (size_t)16 << 30, &backend, &error), "open");
    must(backend_versions_scan(backend, (struct backend_version_id){0}, count_version, &sum),
         "scan");
    printf("open and scan      %.3f s (%llu)\n", now_s() - start, (unsigned long long)sum);
    start = now_s();
    must(backend_begin(backend), "begin");
    for (int64_t i = 1; i <= 50000; i++)
        must(backend_version_delete(backend, (struct backend_version_id){i, 0}), "delete");
    must(backend_commit(backend), "commit");
    printf("delete 50000       %.3f s\n", now_s() - start);
    backend_close(backend);
}

/* -- The index -- */

enum { KEY_BYTES = 16, GROUP = 400, PUTS = 2000000, ROUNDS = 20 };

static struct slice number_key(uint32_t number, uint8_t bytes[KEY_BYTES + 1])
{
    snprintf((char *)bytes, KEY_BYTES + 1, "key-%012u", number);
    return slice_of(bytes, KEY_BYTES);
}

static void publish(struct index *index, struct epoch *epoch)
{
    (void)index_publish(index);
    epoch_publish(epoch);
    (void)epoch_reclaim(epoch, SIZE_MAX);
}

/* Puts of random keys as the writer makes them: some at a time are fetched from memory before. */
static void put_group(struct index *index, uint32_t keys, struct random *random, int64_t revision)
{
    uint8_t bytes[INDEX_PREFETCH_MAX][KEY_BYTES + 1];
    struct slice some[INDEX_PREFETCH_MAX];
    for (int done = 0; done < GROUP; done += INDEX_PREFETCH_MAX) {
        for (size_t i = 0; i < INDEX_PREFETCH_MAX; i++)
            some[i] = number_key((uint32_t)random_below(random, keys), bytes[i]);
        struct index_root root = index_working_root(index);
        index_root_prefetch(&root, some, INDEX_PREFETCH_MAX);
        for (size_t i = 0; i < INDEX_PREFETCH_MAX; i++) {
            struct index_path path;
            const struct index_item *before = index_put_begin(index, some[i], &path);
            struct index_version version = {.mod_revision = revision + done,
                                            .create_revision = before->newest.create_revision,
                                            .version = before->newest.version + 1,
                                            .field_bytes = 300};
            index_put_end(index, some[i], &version, &path);
        }
    }
}

static void measure_index(uint32_t keys)
{
    AUTO(epoch_freep) struct epoch *epoch = epoch_new(1);
    AUTO(index_freep) struct index *index = index_new(epoch);
    struct random random;
    random_init(&random, 1);
    struct index_path last = {0};
    index_load_begin(index);
    for (uint32_t i = 0; i < keys; i++) {
        uint8_t bytes[KEY_BYTES + 1];
        struct index_version version = {
            .mod_revision = 2, .create_revision = 2, .version = 1, .field_bytes = 300};
        index_load_put(index, number_key(i, bytes), &version, &last);
    }
    index_load_end(index);
    publish(index, epoch);
    double least = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        double start = now_s();
        for (int at = 0; at < PUTS / ROUNDS; at += GROUP) {
            put_group(index, keys, &random, 3 + round * (PUTS / ROUNDS) + at);
            publish(index, epoch);
        }
        double ns = (now_s() - start) / (PUTS / ROUNDS) * 1e9;
        least = ns < least ? ns : least;
    }
    printf("index, %8u keys  %.0f ns to put a random one, %.1f bytes each\n", keys, least,
           (double)index_bytes_held(index) / (double)keys);
}

static void in_directory(const char *parent, const char *name, void (*measure)(const char *dir))
{
    char path[512], command[1100];
    snprintf(path, sizeof(path), "%s/%s", parent, name);
    must(fs_make_dir(fs_posix(), path), path);
    measure(path);
    snprintf(command, sizeof(command), "du -sh '%s'; rm -rf '%s'", path, path);
    if (system(command) != 0)
        exit(1);
}

int main(int count, char **args)
{
    if (count > 2) {
        fprintf(stderr, "store_bench [DIR]\n");
        return 2;
    }
    measure_index(100000);
    measure_index(10000000);
    if (count == 1)
        return 0;
    measure_crc();
    in_directory(args[1], "log", measure_log);
    in_directory(args[1], "checkpoint", measure_backend);
    return 0;
}
