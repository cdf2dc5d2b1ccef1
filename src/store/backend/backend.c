#include "store/backend/backend.h"

#include "store/backend/backend_impl.h"

void backend_close(struct backend *backend)
{
    if (!backend)
        return;
    backend_abort(backend);
    backend->ops->close(backend);
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

enum status backend_version_put(struct backend *backend, const struct backend_version *version)
{
    assert(backend->changing);
    assert(version->id.revision > 0);
    return backend->ops->version_put(backend, version);
}

enum status backend_version_delete(struct backend *backend, struct backend_version_id id)
{
    assert(backend->changing);
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
    return backend->ops->row_put(backend, row);
}

enum status backend_commit(struct backend *backend)
{
    assert(backend->changing);
    enum status status = backend->ops->commit(backend);
    backend->changing = false;
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
 *   flags | create distance, version | lease | previous distance, sub | loc | field_bytes | key
 *
 * A distance is how much earlier than the version's own revision. All but flags and key are
 * numbers of seven bits a byte, lowest first, the eighth bit saying that more follow.
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

/* Takes a number off the front of rest; false at its end or when it has more than 64 bits. */
static bool take_number(struct slice *rest, uint64_t *ret_number)
{
    uint64_t number = 0;
    for (size_t i = 0; i < NUMBER_BYTES_MAX && i < rest->len; i++) {
        uint8_t byte = rest->ptr[i];
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
