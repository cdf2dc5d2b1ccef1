/* A store on a simulated disk, with short functions for tests. */
#ifndef VIGIL_STORE_FIXTURE_TEST_H
#define VIGIL_STORE_FIXTURE_TEST_H

#include "codec/pb/kv.pb.h"
#include "codec/pb/rpc.pb.h"
#include "simulated/file_sim.h"
#include "store/backend/backend_memory.h"
#include "store/clean_test.h"
#include "store/log/damage.h"
#include "store/mvcc/range.h"
#include "store/store.h"
#include "store/upkeep.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

struct fixture {
    struct fs_sim *sim;
    struct backend_disk *disk;
    struct store *store;
    struct upkeep *upkeep;
    struct arena arena; /* for answers */
    row_fn row_seen;    /* for the next start; NULL unless a test needs the rows */
    void *row_ctx;
};

/* The lease that exists. */
enum { FIXTURE_LEASE = 77 };

static inline bool fixture_lease_exists(void *ctx, int64_t lease)
{
    (void)ctx;
    return lease == FIXTURE_LEASE;
}

static inline void fixture_start(struct fixture *f)
{
    struct error error;
    enum status status = store_open(
        &(struct store_options){
            .fs = fs_sim_fs(f->sim),
            .dir = "/data",
            .segment_bytes_first = 4096,
            .segment_bytes_max = 16 << 10,
            .readers_max = 2, /* the keeper and one for the test */
            .row_seen = f->row_seen,
            .row_ctx = f->row_ctx,
            .backend = backend_memory_open(f->disk),
        },
        &f->store, &error);
    if (status != ST_OK)
        fail_msg("%s", error.text);
    store_applier(f->store)->lease_exists = fixture_lease_exists;
    f->upkeep = upkeep_new(f->store);
    upkeep_join(f->upkeep);
}

static inline void fixture_stop(struct fixture *f)
{
    upkeep_free(f->upkeep);
    store_close(f->store);
}

/* Creates empty disks before the first start; they are freed after the last stop. */
static inline void fixture_init(struct fixture *f)
{
    f->sim = fs_sim_new(1);
    f->disk = backend_disk_new();
    arena_init(&f->arena, NULL, 0, 64 << 20);
}

static inline void fixture_fini(struct fixture *f)
{
    fs_sim_free(f->sim);
    backend_disk_free(f->disk);
    arena_fini(&f->arena);
}

static inline int fixture_setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    assert_non_null(f);
    fixture_init(f);
    fixture_start(f);
    *state = f;
    return 0;
}

static inline int fixture_teardown(void **state)
{
    struct fixture *f = *state;
    fixture_stop(f);
    fixture_fini(f);
    free(f);
    return 0;
}

static inline void fixture_commit(struct fixture *f)
{
    assert_int_equal(store_commit(f->store), ST_OK);
}

/* Restarts the process: records that are not in the checkpoint are replayed. */
static inline void fixture_restart(struct fixture *f)
{
    fixture_commit(f);
    fixture_stop(f);
    fixture_start(f);
}

/* Trims all that compaction has left, and writes a checkpoint. */
static inline void fixture_settle(struct fixture *f)
{
    fixture_commit(f);
    while (store_is_trimming(f->store))
        assert_int_equal(store_trim_step(f->store), ST_OK);
    assert_int_equal(upkeep_checkpoint(f->upkeep), ST_OK);
}

/* -- Requests; each returns the revision of its answer -- */

static inline int64_t fixture_put(struct fixture *f, const char *key, const char *value)
{
    struct pb_put_request request = {.key = slice_from_text(key), .value = slice_from_text(value)};
    struct kv_answer answer;
    assert_int_equal(applier_put(store_applier(f->store), &request, &f->arena, &answer), ST_OK);
    return answer.revision;
}

static inline int64_t fixture_delete(struct fixture *f, const char *key, const char *end)
{
    struct pb_delete_range_request request = {.key = slice_from_text(key),
                                              .range_end = slice_from_text(end)};
    struct kv_answer answer;
    assert_int_equal(applier_delete_range(store_applier(f->store), &request, &f->arena, &answer),
                     ST_OK);
    return answer.revision;
}

static inline void fixture_compact(struct fixture *f, int64_t revision)
{
    assert_int_equal(applier_compact(store_applier(f->store), revision), ST_OK);
}

static inline struct pb_request_op fixture_op_put(struct pb_put_request *request)
{
    return (struct pb_request_op){.request_case = PB_REQUEST_OP_REQUEST_PUT,
                                  .request_put = request};
}

static inline struct pb_request_op fixture_op_delete(struct pb_delete_range_request *request)
{
    return (struct pb_request_op){.request_case = PB_REQUEST_OP_REQUEST_DELETE_RANGE,
                                  .request_delete_range = request};
}

static inline struct pb_request_op fixture_op_range(struct pb_range_request *request)
{
    return (struct pb_request_op){.request_case = PB_REQUEST_OP_REQUEST_RANGE,
                                  .request_range = request};
}

static inline struct pb_request_op fixture_op_txn(struct pb_txn_request *request)
{
    return (struct pb_request_op){.request_case = PB_REQUEST_OP_REQUEST_TXN,
                                  .request_txn = request};
}

/* -- Reading -- */

/* The newest committed state. Nothing else reads or writes meanwhile, so no pin is needed. */
static inline struct range_state fixture_state(struct fixture *f)
{
    fixture_commit(f);
    return range_state_of(store_view(f->store), store_log(f->store));
}

/* Key-values as "key=value@create.mod.version", a lease as "+lease", with spaces between. */
static inline const char *fixture_text(struct fixture *f, struct slice fields)
{
    struct pb_range_response response;
    assert_int_equal(pb_decode(&pb_range_response_table, fields, &f->arena, &response), ST_OK);
    struct buf text = {0};
    for (size_t i = 0; i < response.kvs_count; i++) {
        const struct pb_key_value *kv = &response.kvs[i];
        assert_int_equal(buf_append_format(&text, "%s%.*s=%.*s@%lld.%lld.%lld", i ? " " : "",
                                           (int)kv->key.len, (const char *)kv->key.ptr,
                                           (int)kv->value.len, (const char *)kv->value.ptr,
                                           (long long)kv->create_revision,
                                           (long long)kv->mod_revision, (long long)kv->version),
                         ST_OK);
        if (kv->lease)
            assert_int_equal(buf_append_format(&text, "+%lld", (long long)kv->lease), ST_OK);
    }
    struct slice copy;
    assert_int_equal(buf_append(&text, slice_of("", 1)), ST_OK);
    assert_int_equal(arena_dup(&f->arena, buf_slice(&text), &copy), ST_OK);
    buf_fini(&text);
    return (const char *)copy.ptr;
}

/* -- Damage -- */

/* Overwrites bytes of a segment at an offset from a location, as damage. */
static inline void fixture_write(struct fixture *f, uint64_t loc, int64_t distance,
                                 const void *bytes, size_t len)
{
    uint64_t id, offset;
    log_loc_split(loc, &id, &offset);
    char path[64];
    snprintf(path, sizeof(path), "/data/log/%016llx.seg", (unsigned long long)id);
    AUTO(file_closep) struct file *file = NULL;
    assert_int_equal(fs_open(fs_sim_fs(f->sim), path, 0, &file), ST_OK);
    assert_int_equal(file_pwrite(file, slice_of(bytes, len), offset + (uint64_t)distance), ST_OK);
}

/* Changes one byte; a second call restores it. */
static inline void fixture_flip(struct fixture *f, uint64_t loc, int64_t distance)
{
    uint8_t byte = log_rest_at(store_log(f->store), loc).ptr[distance] ^ 0x20;
    fixture_write(f, loc, distance, &byte, 1);
}

/* -- Cleaning -- */

/* Finishes a cleaning that the keeper has begun, with this many moves at a time. */
static inline void fixture_clean(struct fixture *f, struct relocation *relocation, size_t max)
{
    uint64_t old = relocation->old_segment;
    clean_to_end(f->store, f->upkeep, relocation, max);
    store_forget_segment(f->store, old);
    fixture_commit(f);
}

/* Cleans every segment that is less than half live, like the engine. Returns how many. */
static inline size_t fixture_clean_all(struct fixture *f, size_t max)
{
    struct relocation *relocation;
    for (size_t cleaned = 0;; cleaned++) {
        assert_int_equal(upkeep_clean_begin(f->upkeep, &relocation), ST_OK);
        if (!relocation)
            return cleaned;
        fixture_clean(f, relocation, max);
    }
}

/* Defragments the segments with ids below end. Returns how many were copied. */
static inline size_t fixture_defragment(struct fixture *f, uint64_t end)
{
    struct relocation *relocation;
    for (size_t copied = 0;; copied++) {
        assert_int_equal(upkeep_defragment_next(f->upkeep, end, &relocation), ST_OK);
        if (!relocation)
            return copied;
        assert_true(relocation->old_segment < end);
        fixture_clean(f, relocation, SIZE_MAX);
    }
}

#endif
