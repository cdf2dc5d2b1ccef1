#include "store/backend/backend.h"

#include "store/backend/backend_private.h"
#include "store/backend/sum.h"
#include "store/record/change.h"

#include <stdio.h>

void backend_close(struct backend *backend)
{
    if (!backend)
        return;
    backend_abort(backend);
    buf_fini(&backend->encoded);
    backend->ops->close(backend);
}

struct backend_version backend_version_of(const struct change_head *change, uint64_t loc)
{
    struct change_kv kv;
    change_read_kv(change, &kv);
    return (struct backend_version){
        .id = {change->revision, change->sub},
        .prev = {change->prev_revision, change->prev_sub},
        .create_revision = kv.create_revision,
        .version = kv.version,
        .lease = kv.lease,
        .loc = loc,
        .field_bytes = change->field_bytes,
        .key = kv.key,
    };
}

static const char *const meta_names[BACKEND_META_COUNT] = {
    [BACKEND_INDEX] = "index",
    [BACKEND_REVISION] = "revision",
    [BACKEND_COMPACT_REVISION] = "compact_revision",
    [BACKEND_TRIMMED] = "trimmed",
    [BACKEND_DB_BYTES] = "db_bytes",
    [BACKEND_DB_BYTES_IN_USE] = "db_bytes_in_use",
    [BACKEND_CLUSTER_ID] = "cluster_id",
    [BACKEND_MEMBER_ID] = "member_id",
    [BACKEND_TERM] = "term",
    [BACKEND_MOVED_FROM] = "moved_from",
    [BACKEND_MOVED_TO] = "moved_to",
    [BACKEND_SUM_OF_ENTRIES] = "sum_of_entries",
    [BACKEND_SUM] = "sum",
};

const char *backend_meta_name(enum backend_meta name)
{
    return meta_names[name];
}

int64_t backend_meta_get(struct backend *backend, enum backend_meta name, int64_t absent)
{
    assert((unsigned)name < BACKEND_META_COUNT);
    return backend->numbers.present[name] ? backend->numbers.values[name] : absent;
}

enum status backend_version_get(struct backend *backend, struct backend_version_id id,
                                struct backend_version *ret_version)
{
    return backend->ops->version_get(backend, id, ret_version);
}

enum status backend_versions_scan(struct backend *backend, struct backend_version_id from,
                                  backend_version_fn fn, void *ctx)
{
    enum status status = backend->ops->versions_scan(backend, from, fn, ctx);
    return status == ST_END ? ST_OK : status;
}

enum status backend_segments_scan(struct backend *backend, backend_segment_fn fn, void *ctx)
{
    enum status status = backend->ops->segments_scan(backend, fn, ctx);
    return status == ST_END ? ST_OK : status;
}

enum status backend_rows_scan(struct backend *backend, row_fn fn, void *ctx)
{
    enum status status = backend->ops->rows_scan(backend, fn, ctx);
    return status == ST_END ? ST_OK : status;
}

size_t backend_page_bytes(size_t key_bytes, int64_t distance)
{
    enum { PAGE_BYTES = 4096, VERSION_BYTES = 64 /* without its key */ };
    size_t version_bytes = size_min(VERSION_BYTES + key_bytes, PAGE_BYTES);
    size_t apart = distance < PAGE_BYTES ? (size_t)(distance > 0 ? distance : 1) : PAGE_BYTES;
    return size_min(apart * version_bytes, PAGE_BYTES);
}

enum status backend_begin(struct backend *backend)
{
    assert(!backend->changing);
    TRY(backend->ops->begin(backend));
    backend->committed = backend->numbers;
    backend->changing = true;
    return ST_OK;
}

enum status backend_meta_put(struct backend *backend, enum backend_meta name, int64_t value)
{
    assert(backend->changing);
    assert((unsigned)name < BACKEND_META_COUNT);
    TRY(backend->ops->meta_put(backend, name, value));
    backend->numbers.values[name] = value;
    backend->numbers.present[name] = true;
    return ST_OK;
}

/* -- Sums -- */

static void number_set(struct backend *backend, enum backend_meta name, uint64_t value)
{
    backend->numbers.values[name] = (int64_t)value;
    backend->numbers.present[name] = true;
}

static void sum_add(struct backend *backend, uint64_t more)
{
    uint64_t sum = (uint64_t)backend_meta_get(backend, BACKEND_SUM_OF_ENTRIES, 0);
    number_set(backend, BACKEND_SUM_OF_ENTRIES, sum + more);
}

static enum status version_sum(struct backend *backend, const struct backend_version *version,
                               uint64_t *ret_sum)
{
    backend->encoded.len = 0;
    TRY(backend_version_encode(version, &backend->encoded));
    *ret_sum = sum_of_version(version->id, buf_slice(&backend->encoded));
    return ST_OK;
}

/* Subtracts the version with that id, if there is one, from the sum. */
static enum status sum_without(struct backend *backend, struct backend_version_id id)
{
    struct backend_version version;
    enum status status = backend->ops->version_get(backend, id, &version);
    if (status != ST_OK)
        return status == ST_NOT_FOUND ? ST_OK : status;
    uint64_t sum;
    TRY(version_sum(backend, &version, &sum));
    /* The sum is taken modulo 2^64, so that entries can be subtracted in any order. */
    sum_add(backend, 0 - sum);
    return ST_OK;
}

static bool id_after(struct backend_version_id a, struct backend_version_id b)
{
    return a.revision != b.revision ? a.revision > b.revision : a.sub > b.sub;
}

/* Sums up the entries of a scan; segments are added together with the numbers. */
struct summing {
    struct backend *backend;
    backend_version_fn fn; /* is given the versions, too; may be NULL */
    void *ctx;
    uint64_t sum;
};

static enum status sum_version(void *ctx, const struct backend_version *version)
{
    struct summing *summing = ctx;
    uint64_t sum;
    TRY(version_sum(summing->backend, version, &sum));
    summing->sum += sum;
    return summing->fn ? summing->fn(summing->ctx, version) : ST_OK;
}

static enum status sum_row(void *ctx, const struct row *row)
{
    struct summing *summing = ctx;
    summing->sum += sum_of_row(row);
    return ST_OK;
}

static enum status sum_segment(void *ctx, const struct backend_segment *segment)
{
    struct summing *summing = ctx;
    summing->sum += sum_of_segment(segment);
    return ST_OK;
}

static enum status sum_of_all(struct backend *backend, uint64_t *ret_sum)
{
    struct summing summing = {.sum = sum_of_numbers(&backend->numbers)};
    TRY(backend_segments_scan(backend, sum_segment, &summing));
    *ret_sum = summing.sum;
    return ST_OK;
}

enum status backend_verify(struct backend *backend)
{
    return backend_verify_and_scan(backend, NULL, NULL);
}

enum status backend_verify_and_scan(struct backend *backend, backend_version_fn fn, void *ctx)
{
    assert(!backend->changing);
    struct summing entries = {.backend = backend, .fn = fn, .ctx = ctx};
    TRY(backend_versions_scan(backend, (struct backend_version_id){0}, sum_version, &entries));
    TRY(backend_rows_scan(backend, sum_row, &entries));
    if (!backend->numbers.present[BACKEND_SUM]) { /* written by a version without sums */
        number_set(backend, BACKEND_SUM_OF_ENTRIES, entries.sum);
        return ST_OK;
    }
    uint64_t all;
    TRY(sum_of_all(backend, &all));
    if (all == (uint64_t)backend->numbers.values[BACKEND_SUM] &&
        entries.sum == (uint64_t)backend_meta_get(backend, BACKEND_SUM_OF_ENTRIES, 0))
        return ST_OK;
    snprintf(backend->error_text, sizeof(backend->error_text),
             "the checkpoint is damaged: the contents of data.mdb differ from what was written; "
             "nothing was changed");
    return ST_DAMAGED;
}

/* -- Changing -- */

enum status backend_version_put(struct backend *backend, const struct backend_version *version)
{
    assert(backend->changing);
    assert(version->id.revision > 0);
    uint64_t sum;
    /* Most versions are newer than all others and replace nothing, which saves reading the page. */
    if (!id_after(version->id, backend->ops->version_bound(backend)))
        TRY(sum_without(backend, version->id));
    TRY(version_sum(backend, version, &sum));
    sum_add(backend, sum);
    return backend->ops->version_put(backend, version);
}

enum status backend_version_delete(struct backend *backend, struct backend_version_id id)
{
    assert(backend->changing);
    TRY(sum_without(backend, id));
    return backend->ops->version_delete(backend, id);
}

enum status backend_segment_put(struct backend *backend, const struct backend_segment *segment)
{
    assert(backend->changing);
    return backend->ops->segment_put(backend, segment);
}

enum status backend_segment_delete(struct backend *backend, uint64_t id)
{
    assert(backend->changing);
    return backend->ops->segment_delete(backend, id);
}

enum status backend_row_put(struct backend *backend, const struct row *row)
{
    assert(backend->changing);
    assert(row->key.len <= ROW_KEY_BYTES_MAX);
    struct row before = *row;
    enum status status = backend->ops->row_get(backend, row, &before.value);
    if (status == ST_OK)
        sum_add(backend, 0 - sum_of_row(&before));
    else if (status != ST_NOT_FOUND)
        return status;
    if (!row->deleted)
        sum_add(backend, sum_of_row(row));
    return backend->ops->row_put(backend, row);
}

static enum status sums_put(struct backend *backend)
{
    uint64_t sum;
    TRY(backend_meta_put(backend, BACKEND_SUM_OF_ENTRIES,
                         backend_meta_get(backend, BACKEND_SUM_OF_ENTRIES, 0)));
    TRY(sum_of_all(backend, &sum));
    return backend_meta_put(backend, BACKEND_SUM, (int64_t)sum);
}

enum status backend_commit(struct backend *backend)
{
    assert(backend->changing);
    enum status status = sums_put(backend);
    if (status == ST_OK)
        status = backend->ops->commit(backend);
    else
        backend->ops->abort(backend);
    backend->changing = false;
    /* The numbers in memory return to those of the last commit. */
    if (status != ST_OK)
        backend->numbers = backend->committed;
    return status;
}

void backend_abort(struct backend *backend)
{
    if (!backend->changing)
        return;
    backend->ops->abort(backend);
    backend->changing = false;
    backend->numbers = backend->committed;
}

const char *backend_error_text(const struct backend *backend)
{
    return backend->error_text;
}

/* -- The stored form of a version -- */

/*
 * flags | create distance, version | lease | previous distance, sub | loc | field_bytes | key
 *
 * A distance is the version's own revision minus the earlier one. Everything except flags and key
 * is a number of seven bits per byte, lowest first; the eighth bit says that more follow.
 */
enum { FLAG_TOMBSTONE = 1, FLAG_LEASE = 2, FLAG_PREV = 4, FLAGS_ALL = 7 };
enum { NUMBER_BYTES_MAX = 10, NUMBERS_MAX = 7 };

static uint8_t *put_number(uint8_t *to, uint64_t number)
{
    for (; number >= 0x80; number >>= 7)
        *to++ = (uint8_t)(number | 0x80);
    *to++ = (uint8_t)number;
    return to;
}

/* Removes a number from the front of rest; false at its end or when it has more than 64 bits. */
static bool take_number(struct slice *rest, uint64_t *ret_number)
{
    uint64_t number = 0;
    for (size_t i = 0; i < NUMBER_BYTES_MAX && i < rest->len; i++) {
        uint8_t byte = rest->ptr[i];
        /* The tenth byte has room for only one bit of 64. */
        if (i == NUMBER_BYTES_MAX - 1 && byte > 1)
            return false;
        number |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            *rest = slice_of(rest->ptr + i + 1, rest->len - i - 1);
            *ret_number = number;
            return true;
        }
    }
    return false;
}

static uint64_t distance(int64_t from, int64_t back_to)
{
    return (uint64_t)from - (uint64_t)back_to;
}

enum status backend_version_encode(const struct backend_version *version, struct buf *to)
{
    TRY(buf_reserve(to, 1 + NUMBERS_MAX * NUMBER_BYTES_MAX + version->key.len));
    int64_t revision = version->id.revision;
    bool tombstone = version->create_revision == 0;
    uint8_t *at = to->ptr + to->len;
    *at++ = (uint8_t)((tombstone ? FLAG_TOMBSTONE : 0) | (version->lease ? FLAG_LEASE : 0) |
                      (version->prev.revision ? FLAG_PREV : 0));
    if (!tombstone) {
        at = put_number(at, distance(revision, version->create_revision));
        at = put_number(at, (uint64_t)version->version);
    }
    if (version->lease)
        at = put_number(at, (uint64_t)version->lease);
    if (version->prev.revision) {
        at = put_number(at, distance(revision, version->prev.revision));
        at = put_number(at, version->prev.sub);
    }
    at = put_number(at, version->loc);
    at = put_number(at, version->field_bytes);
    slice_copy(at, version->key);
    to->len = (size_t)(at - to->ptr) + version->key.len;
    return ST_OK;
}

enum status backend_version_decode(struct backend_version_id id, struct slice bytes,
                                   struct backend_version *ret_version)
{
    if (!bytes.len || bytes.ptr[0] > FLAGS_ALL)
        return ST_DAMAGED;
    uint8_t flags = bytes.ptr[0];
    struct slice rest = slice_sub(bytes, 1, bytes.len - 1);
    uint64_t back = 0, version = 0, lease = 0, prev_back = 0, prev_sub = 0, loc, field_bytes;
    if (!(flags & FLAG_TOMBSTONE) && !(take_number(&rest, &back) && take_number(&rest, &version)))
        return ST_DAMAGED;
    if ((flags & FLAG_LEASE) && !take_number(&rest, &lease))
        return ST_DAMAGED;
    if ((flags & FLAG_PREV) && !(take_number(&rest, &prev_back) && take_number(&rest, &prev_sub)))
        return ST_DAMAGED;
    if (!take_number(&rest, &loc) || !take_number(&rest, &field_bytes) ||
        field_bytes > UINT32_MAX || prev_sub > UINT32_MAX)
        return ST_DAMAGED;

    *ret_version = (struct backend_version){
        .id = id,
        .version = (int64_t)version,
        .lease = (int64_t)lease,
        .loc = loc,
        .field_bytes = (uint32_t)field_bytes,
        .key = rest,
    };
    if (!(flags & FLAG_TOMBSTONE))
        ret_version->create_revision = (int64_t)((uint64_t)id.revision - back);
    if (flags & FLAG_PREV)
        ret_version->prev = (struct backend_version_id){
            .revision = (int64_t)((uint64_t)id.revision - prev_back), .sub = (uint32_t)prev_sub};
    return ST_OK;
}
