/*
 * The log with the threads of a server: a writer, its syncs, a keeper and readers. Meant for the
 * thread sanitizer; without it the results are checked all the same.
 */
#include "base/temp_dir_test.h"
#include "store/log/log.h"
#include "store/log/reader.h"
#include "store/log/rewrite.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

enum { RECORDS = 20000, BODY_BYTES = 64, READERS = 2 };

struct shared {
    struct log *log;
    log_loc locs[RECORDS + 1];
    /* stored with release after the write, like the engine's published tail */
    _Atomic uint64_t published;
    atomic_bool done;
    _Atomic uint64_t rewritten;
};

static void check_body(const uint8_t *body, uint64_t index)
{
    for (size_t i = 0; i < BODY_BYTES; i++) {
        if (body[i] != (uint8_t)(index * 7 + i))
            abort();
    }
}

static void must(enum status status)
{
    if (status != ST_OK)
        abort();
}

static void *sync_thread(void *arg)
{
    struct shared *shared = arg;
    while (!atomic_load(&shared->done))
        must(log_sync(shared->log));
    return NULL;
}

/* False: the writer has only just left it, and the seal is not durable yet. */
static bool rewrite_one(struct shared *shared, const struct log_segment_info *info)
{
    struct log_rewrite *rewrite;
    enum status status = log_rewrite_begin(shared->log, info->id, &rewrite);
    if (status == ST_AGAIN)
        return false;
    must(status);
    struct log_reader reader;
    struct log_record record;
    log_loc loc;
    log_reader_init(&reader, shared->log, info->first_index);
    while (log_reader_next(&reader, info->last_index, &record) == ST_OK) {
        must(log_rewrite_record(rewrite, &record, record.body.len, &loc));
        must(log_rewrite_piece(rewrite, record.body));
    }
    uint64_t new_id;
    must(log_rewrite_commit(rewrite, &new_id));
    /* not forgotten, because these readers have no epoch */
    atomic_fetch_add(&shared->rewritten, 1);
    return true;
}

static void *upkeep_thread(void *arg)
{
    struct shared *shared = arg;
    size_t next = 0;
    while (!atomic_load(&shared->done)) {
        if (log_wants_prepare(shared->log))
            must(log_prepare(shared->log));
        struct log_segment_info infos[256];
        size_t count = log_segments(shared->log, infos, 256);
        if (next < count && infos[next].full && rewrite_one(shared, &infos[next]))
            next++;
    }
    return NULL;
}

static void *reader_thread(void *arg)
{
    struct shared *shared = arg;
    uint64_t at = 1;
    while (!atomic_load(&shared->done)) {
        uint64_t tail = atomic_load_explicit(&shared->published, memory_order_acquire);
        for (; at <= tail; at++)
            check_body(log_rest_at(shared->log, shared->locs[at]).ptr, at);
        if (!tail)
            continue;
        struct log_reader reader;
        struct log_record record;
        uint64_t from = tail > 300 ? tail - 300 : 1, index = from;
        log_reader_init(&reader, shared->log, from);
        while (log_reader_next(&reader, tail, &record) == ST_OK) {
            if (record.index != index)
                abort();
            check_body(record.body.ptr, index++);
        }
        if (index != tail + 1)
            abort();
    }
    return NULL;
}

static void write_all(struct shared *shared)
{
    for (uint64_t index = 1; index <= RECORDS; index++) {
        must(log_reserve(shared->log, BODY_BYTES));
        uint8_t *body = log_append_begin(shared->log, &shared->locs[index]);
        for (size_t i = 0; i < BODY_BYTES; i++)
            body[i] = (uint8_t)(index * 7 + i);
        log_append_end(shared->log, 1, (int64_t)index, BODY_BYTES);
        if (index > 1)
            check_body(log_rest_at(shared->log, shared->locs[index - 1]).ptr, index - 1);
        if (index % 50 == 0) {
            must(log_write(shared->log));
            atomic_store_explicit(&shared->published, index, memory_order_release);
        }
    }
    must(log_write(shared->log));
}

static enum status no_record(void *ctx, const struct log_record *record)
{
    (void)ctx, (void)record;
    return ST_OK;
}

static void writer_syncs_keeper_and_readers_run_concurrently(void **state)
{
    (void)state;
    char dir[TEMP_DIR_BYTES];
    temp_dir_make("log-threads", dir);
    static struct shared shared;
    struct log_options options = {
        .fs = fs_posix(),
        .dir = dir,
        .segment_bytes_first = 16 << 10,
        .segment_bytes_max = 64 << 10,
    };
    struct error error;
    assert_int_equal(log_open(&options, 0, NULL, 0, no_record, NULL, &shared.log, &error), ST_OK);
    pthread_t threads[2 + READERS];
    pthread_create(&threads[0], NULL, sync_thread, &shared);
    pthread_create(&threads[1], NULL, upkeep_thread, &shared);
    for (int i = 0; i < READERS; i++)
        pthread_create(&threads[2 + i], NULL, reader_thread, &shared);
    write_all(&shared);
    /* On a busy machine the writer may end before the keeper has run at all. */
    while (!atomic_load(&shared.rewritten))
        sched_yield();
    atomic_store(&shared.done, true);
    for (int i = 0; i < 2 + READERS; i++)
        pthread_join(threads[i], NULL);
    must(log_sync(shared.log));
    assert_int_equal(log_durable_index(shared.log), RECORDS);
    for (uint64_t index = 1; index <= RECORDS; index++)
        check_body(log_rest_at(shared.log, shared.locs[index]).ptr, index);
    log_close(shared.log);
    temp_dir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writer_syncs_keeper_and_readers_run_concurrently),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
