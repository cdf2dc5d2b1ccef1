/*
 * A checkpoint in LMDB whose file a disk has changed: a bit is flipped at regular distances, and
 * every block of 512 and of 4096 bytes is set to zero. The file is refused, or it has the contents
 * of the newest or the previous commit, before and after the next commit; nothing else, and no
 * crash.
 */
#include "base/buf.h"
#include "base/crc32c.h"
#include "base/temp_dir_test.h"
#include "store/backend/backend_private.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

enum {
    MAP_BYTES = 1 << 28,
    VERSIONS = 400,
    FLIP_EVERY = 149,
    WRITE_EVERY = 32,
    LARGE_ROW_BYTES = 9000
};

struct bed {
    char dir[TEMP_DIR_BYTES], path[96];
    struct buf file;         /* undamaged */
    uint32_t newest, before; /* its contents: see contents() */
    unsigned refused, harmless;
};

/* -- Its contents -- */

static enum status add_version(void *ctx, const struct backend_version *version)
{
    struct buf encoded = {0};
    assert_int_equal(backend_version_encode(version, &encoded), ST_OK);
    uint32_t *crc = ctx;
    *crc = crc32c(*crc, slice_of(&version->id.revision, sizeof(version->id.revision)));
    *crc = crc32c(*crc, slice_of(&version->id.sub, sizeof(version->id.sub)));
    *crc = crc32c(*crc, buf_slice(&encoded));
    buf_fini(&encoded);
    return ST_OK;
}

static enum status add_row(void *ctx, const struct row *row)
{
    uint32_t *crc = ctx;
    *crc = crc32c(crc32c(*crc + (uint32_t)row->table, row->key), row->value);
    return ST_OK;
}

static enum status add_segment(void *ctx, const struct backend_segment *segment)
{
    uint32_t *crc = ctx;
    *crc = crc32c(*crc, slice_of(segment, sizeof(*segment)));
    return ST_OK;
}

static uint32_t contents(struct backend *backend)
{
    uint32_t crc = 0;
    assert_int_equal(
        backend_versions_scan(backend, (struct backend_version_id){0}, add_version, &crc), ST_OK);
    assert_int_equal(backend_rows_scan(backend, add_row, &crc), ST_OK);
    assert_int_equal(backend_segments_scan(backend, add_segment, &crc), ST_OK);
    for (unsigned i = 0; i < BACKEND_SUM_OF_ENTRIES; i++) {
        int64_t number = backend_meta_get(backend, (enum backend_meta)i, -7);
        crc = crc32c(crc, slice_of(&number, sizeof(number)));
    }
    return crc;
}

/* -- Making one -- */

static void put_version(struct backend *backend, int64_t revision, uint64_t loc)
{
    char key[32];
    snprintf(key, sizeof(key), "/key/%lld", (long long)revision % 50);
    assert_int_equal(backend_version_put(backend,
                                         &(struct backend_version){
                                             .id = {revision, 0},
                                             .create_revision = 2,
                                             .version = revision,
                                             .loc = loc,
                                             .field_bytes = 60,
                                             .key = slice_from_text(key),
                                         }),
                     ST_OK);
}

static void put_row(struct backend *backend, uint32_t number, size_t bytes)
{
    uint8_t *value = calloc(bytes, 1);
    memset(value, (int)number, bytes);
    assert_int_equal(backend_row_put(backend,
                                     &(struct row){
                                         .table = ROW_LEASE,
                                         .key = slice_of(&number, sizeof(number)),
                                         .value = slice_of(value, bytes),
                                     }),
                     ST_OK);
    free(value);
}

/*
 * Some entries of every kind, over several commits, so that there are free pages and values of many
 * pages.
 */
static void fill(struct backend *backend)
{
    for (int64_t round = 0; round < 4; round++) {
        assert_int_equal(backend_begin(backend), ST_OK);
        for (int64_t i = 0; i < VERSIONS / 4; i++)
            put_version(backend, round * VERSIONS / 4 + i + 2, (uint64_t)(i + 64) * 8);
        for (int64_t i = 0; round && i < VERSIONS / 8; i++)
            assert_int_equal(backend_version_delete(backend,
                                                    (struct backend_version_id){
                                                        (round - 1) * VERSIONS / 4 + i * 2 + 2, 0}),
                             ST_OK);
        put_row(backend, (uint32_t)round % 2, LARGE_ROW_BYTES);
        put_row(backend, (uint32_t)round + 10, 40);
        struct backend_segment segment = {.id = (uint64_t)round + 1, .used_bytes = 1 << 20};
        assert_int_equal(backend_segment_put(backend, &segment), ST_OK);
        assert_int_equal(backend_meta_put(backend, BACKEND_INDEX, round + 1), ST_OK);
        assert_int_equal(backend_commit(backend), ST_OK);
    }
}

/* A small change, as the next one after any state. */
static void change(struct backend *backend)
{
    int64_t term = backend_meta_get(backend, BACKEND_TERM, 0);
    assert_int_equal(backend_begin(backend), ST_OK);
    assert_int_equal(backend_meta_put(backend, BACKEND_TERM, term + 1), ST_OK);
    put_version(backend, 2000 + term, 8192);
    put_row(backend, 5, 5000);
    assert_int_equal(backend_commit(backend), ST_OK);
}

static enum status open_it(const struct bed *bed, struct backend **ret_backend)
{
    struct error error;
    struct backend *backend;
    TRY(backend_lmdb_open(bed->dir, MAP_BYTES, &backend, &error));
    enum status status = backend_verify(backend);
    if (status == ST_OK)
        *ret_backend = backend;
    else
        backend_close(backend);
    return status;
}

static struct backend *must_open(const struct bed *bed)
{
    struct backend *backend;
    assert_int_equal(open_it(bed, &backend), ST_OK);
    return backend;
}

static void write_file(const struct bed *bed, struct slice bytes)
{
    int fd = open(bed->path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes.ptr, bytes.len), (ssize_t)bytes.len);
    close(fd);
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

static int set_up(void **state)
{
    struct bed *bed = calloc(1, sizeof(*bed));
    temp_dir_make("damage", bed->dir);
    snprintf(bed->path, sizeof(bed->path), "%s/data.mdb", bed->dir);
    struct backend *backend = must_open(bed);
    fill(backend);
    bed->before = contents(backend);
    change(backend);
    bed->newest = contents(backend);
    backend_close(backend);
    read_file(bed);
    *state = bed;
    return 0;
}

static int tear_down(void **state)
{
    struct bed *bed = *state;
    temp_dir_remove(bed->dir);
    buf_fini(&bed->file);
    free(bed);
    return 0;
}

/* -- Damage -- */

/* If the file was not refused, the next commit must not lose anything. */
static void check_continues(struct bed *bed, struct backend *backend, size_t at)
{
    uint32_t held = contents(backend);
    if (held != bed->newest && held != bed->before)
        fail_msg("damage at %zu was believed", at);
    if (bed->harmless++ % WRITE_EVERY) { /* syncs take long */
        backend_close(backend);
        return;
    }
    change(backend);
    uint32_t changed = contents(backend);
    backend_close(backend);
    backend = must_open(bed);
    assert_int_equal(contents(backend), changed);
    backend_close(backend);
}

static void hit(struct bed *bed, size_t at, size_t bytes, uint8_t flip)
{
    uint8_t kept[4096];
    bytes = size_min(bytes, bed->file.len - at);
    memcpy(kept, bed->file.ptr + at, bytes);
    if (flip)
        bed->file.ptr[at] ^= flip;
    else
        memset(bed->file.ptr + at, 0, bytes);
    bool changed = memcmp(kept, bed->file.ptr + at, bytes) != 0;
    if (changed) {
        write_file(bed, buf_slice(&bed->file));
        struct backend *backend;
        if (open_it(bed, &backend) == ST_OK)
            check_continues(bed, backend, at);
        else
            bed->refused++;
    }
    memcpy(bed->file.ptr + at, kept, bytes);
}

static void flipped_bits_are_refused_or_harmless(void **state)
{
    struct bed *bed = *state;
    for (size_t at = 0; at < bed->file.len; at += FLIP_EVERY)
        hit(bed, at, 1, (uint8_t)(1u << at % 8));
    print_message("%u refused, %u harmless\n", bed->refused, bed->harmless);
    assert_true(bed->refused > bed->file.len / FLIP_EVERY / 5);
}

/* All numbers that lead from page to page. */
static void flipped_bits_in_page_headers_are_refused_or_harmless(void **state)
{
    struct bed *bed = *state;
    for (size_t page = 0; page < bed->file.len; page += 4096) {
        size_t end = page < 8192 ? 160 : 24;
        for (size_t at = page; at < page + end; at++)
            hit(bed, at, 1, (uint8_t)(1u << at * 5 % 8));
    }
    print_message("%u refused, %u harmless\n", bed->refused, bed->harmless);
    assert_true(bed->refused > 0);
}

static void zeroed_blocks_are_refused_or_harmless(void **state)
{
    struct bed *bed = *state;
    for (size_t at = 0; at < bed->file.len; at += 512)
        hit(bed, at, 512, 0);
    for (size_t at = 0; at < bed->file.len; at += 4096)
        hit(bed, at, 4096, 0);
    print_message("%u refused, %u harmless\n", bed->refused, bed->harmless);
    assert_true(bed->refused > bed->file.len / 4096 / 5);
}

/* A checkpoint that was made without sums is accepted as it is, and has them from then on. */
static void a_checkpoint_without_sums_gets_them(void **state)
{
    struct bed *bed = *state;
    struct backend *backend = must_open(bed);
    backend->numbers.present[BACKEND_SUM] = backend->numbers.present[BACKEND_SUM_OF_ENTRIES] =
        false;
    assert_int_equal(backend_verify(backend), ST_OK);
    change(backend);
    uint32_t held = contents(backend);
    backend_close(backend);
    backend = must_open(bed);
    assert_int_equal(contents(backend), held);
    assert_true(backend->numbers.present[BACKEND_SUM]);
    backend_close(backend);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(flipped_bits_are_refused_or_harmless),
        TEST(flipped_bits_in_page_headers_are_refused_or_harmless),
        TEST(zeroed_blocks_are_refused_or_harmless),
        TEST(a_checkpoint_without_sums_gets_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
