#include "store/backend/salvage.h"

#include "store/backend/backend_private.h"
#include "store/backend/lmdb_pages.h"
#include "store/backend/sum.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>

static const struct backend_version_id LAST_ID = {INT64_MAX, UINT32_MAX};

static int compare_ids(const void *a, const void *b)
{
    const struct backend_version_id *x = a, *y = b;
    if (x->revision != y->revision)
        return x->revision < y->revision ? -1 : 1;
    return (x->sub > y->sub) - (x->sub < y->sub);
}

/* -- Entries: their keys have a different form in each table -- */

enum { VERSION_KEY_BYTES = 12, SEGMENT_KEY_BYTES = 8, SEGMENT_BYTES = 32 };

static void see_broken(void *ctx)
{
    struct salvage *salvage = ctx;
    salvage->whole = false;
}

static enum status see_version(struct salvage *salvage, struct slice key, struct slice value)
{
    uint64_t revision;
    uint32_t sub;
    memcpy(&revision, key.ptr, sizeof(revision));
    memcpy(&sub, key.ptr + sizeof(revision), sizeof(sub));
    struct backend_version_id id = {(int64_t)be64toh(revision), be32toh(sub)};
    struct backend_version version;
    if (id.revision <= 0 || backend_version_decode(id, value, &version) != ST_OK) {
        see_broken(salvage);
        return ST_OK;
    }
    /* joined says that nothing between this version and the one before it was lost. */
    struct salvage_version found = {.version = version, .joined = salvage->whole};
    salvage->whole = true;
    return buf_append(&salvage->versions, slice_of(&found, sizeof(found)));
}

static enum status see_segment(struct salvage *salvage, struct slice key, struct slice value)
{
    uint64_t id, numbers[4];
    memcpy(&id, key.ptr, sizeof(id));
    memcpy(numbers, value.ptr, sizeof(numbers));
    struct backend_segment segment = {be64toh(id), numbers[0], numbers[1], numbers[2], numbers[3]};
    return buf_append(&salvage->segments, slice_of(&segment, sizeof(segment)));
}

static enum status see_number(struct salvage *salvage, struct slice key, struct slice value)
{
    for (size_t i = 0; i < BACKEND_META_COUNT; i++) {
        if (!slice_is(key, backend_meta_name((enum backend_meta)i)) ||
            value.len != sizeof(salvage->numbers[i]))
            continue;
        memcpy(&salvage->numbers[i], value.ptr, sizeof(salvage->numbers[i]));
        salvage->has_number[i] = true;
    }
    return ST_OK;
}

static enum status see_row(struct salvage *salvage, struct slice key, struct slice value)
{
    if (!key.len || key.ptr[0] == 0 || key.ptr[0] >= ROW_TABLES)
        return ST_OK;
    struct row row = {.table = key.ptr[0], .key = slice_sub(key, 1, key.len - 1), .value = value};
    return buf_append(&salvage->rows, slice_of(&row, sizeof(row)));
}

/* A leaf that was not found through a tree does not name its table. */
static enum salvage_table table_of(struct slice key)
{
    /* Keys of versions and segments begin with a big-endian number, whose first byte is 0 for every
     * real one. */
    if (key.len && key.ptr[0] == 0)
        return key.len == VERSION_KEY_BYTES ? SALVAGE_VERSIONS : SALVAGE_SEGMENTS;
    return key.len && key.ptr[0] < ROW_TABLES ? SALVAGE_ROWS : SALVAGE_NUMBERS;
}

static enum status see_entry(void *ctx, struct slice key, struct slice value)
{
    struct salvage *salvage = ctx;
    enum salvage_table table = salvage->table ? salvage->table : table_of(key);
    if (table == SALVAGE_VERSIONS && key.len == VERSION_KEY_BYTES)
        return see_version(salvage, key, value);
    see_broken(salvage); /* a version whose key is damaged does not look like one */
    if (table == SALVAGE_SEGMENTS && key.len == SEGMENT_KEY_BYTES && value.len == SEGMENT_BYTES)
        return see_segment(salvage, key, value);
    if (table == SALVAGE_ROWS)
        return see_row(salvage, key, value);
    return table == SALVAGE_NUMBERS ? see_number(salvage, key, value) : ST_OK;
}

static enum salvage_table table_named(struct slice name)
{
    if (slice_is(name, "versions"))
        return SALVAGE_VERSIONS;
    if (slice_is(name, "rows"))
        return SALVAGE_ROWS;
    if (slice_is(name, "segments"))
        return SALVAGE_SEGMENTS;
    return slice_is(name, "meta") ? SALVAGE_NUMBERS : SALVAGE_UNKNOWN;
}

static void see_table(void *ctx, struct slice name, uint64_t entries)
{
    struct salvage *salvage = ctx;
    salvage->table = table_named(name);
    salvage->whole = true;
    if (salvage->table == SALVAGE_ROWS)
        salvage->rows_expected = entries;
}

static void see_table_end(void *ctx)
{
    struct salvage *salvage = ctx;
    if (salvage->table == SALVAGE_VERSIONS) {
        salvage->ends |= salvage->whole;
        salvage->end = salvage_version_count(salvage);
    }
    salvage->table = SALVAGE_UNKNOWN;
    salvage->whole = false;
}

/* -- The file -- */

static enum status map_file(struct salvage *salvage, const char *dir)
{
    char path[4200];
    uint64_t bytes;
    const uint8_t *base;
    snprintf(path, sizeof(path), "%s/data.mdb", dir);
    TRY(fs_open(fs_posix(), path, FILE_READ_ONLY | FILE_PATCHED, &salvage->opened));
    TRY(file_size(salvage->opened, &bytes));
    if (!bytes)
        return ST_NOT_FOUND;
    TRY(file_map(salvage->opened, bytes, &base));
    salvage->file = slice_of(base, bytes);
    return ST_OK;
}

enum status salvage_open(struct salvage *salvage, const char *dir, unsigned rank)
{
    *salvage = (struct salvage){0};
    TRY(map_file(salvage, dir));
    const struct lmdb_salvage to = {
        .ctx = salvage,
        .begin = see_table,
        .end = see_table_end,
        .entry = see_entry,
        .broken = see_broken,
    };
    return lmdb_pages_salvage(salvage->file, rank, &to);
}

void salvage_close(struct salvage *salvage)
{
    if (salvage->file.len)
        file_unmap(salvage->opened, salvage->file.ptr, salvage->file.len);
    file_close(salvage->opened);
    buf_fini(&salvage->versions);
    buf_fini(&salvage->rows);
    buf_fini(&salvage->segments);
    buf_fini(&salvage->spans);
    *salvage = (struct salvage){0};
}

/* -- Looking it up -- */

/* Compares the first field. */
_Static_assert(offsetof(struct salvage_version, version.id) == 0, "its id");
_Static_assert(offsetof(struct salvage_span, from) == 0, "where it begins");

static enum status span_add(struct salvage *salvage, struct backend_version_id from,
                            struct backend_version_id to)
{
    struct salvage_span span = {from, to};
    return buf_append(&salvage->spans, slice_of(&span, sizeof(span)));
}

/* From version to version, in the order in which they were found, which is that of the table. */
static enum status spans_make(struct salvage *salvage)
{
    const struct salvage_version *versions = salvage_versions(salvage);
    size_t count = salvage_version_count(salvage);
    struct backend_version_id reached = {0};
    bool whole = true;
    for (size_t i = 0; i < count; i++) {
        struct backend_version_id id = versions[i].version.id;
        whole = whole && versions[i].joined && !versions[i].bad && compare_ids(&reached, &id) <= 0;
        if (!versions[i].bad)
            TRY(span_add(salvage, whole ? reached : id, id));
        reached = id;
        whole = !versions[i].bad;
        if (salvage->ends && whole && i + 1 == salvage->end)
            TRY(span_add(salvage, id, LAST_ID));
    }
    return ST_OK; /* an empty table proves nothing: it may be that of a new file */
}

/* Spans that overlap or touch are joined, so that the last one before an id decides. */
static void spans_sort(struct salvage *salvage)
{
    struct salvage_span *spans = (void *)salvage->spans.ptr;
    size_t count = salvage->spans.len / sizeof(*spans), kept = 0;
    if (count)
        qsort(spans, count, sizeof(*spans), compare_ids);
    for (size_t i = 0; i < count; i++) {
        struct salvage_span *last = kept ? &spans[kept - 1] : NULL;
        if (!last || compare_ids(&last->to, &spans[i].from) < 0)
            spans[kept++] = spans[i];
        else if (compare_ids(&last->to, &spans[i].to) < 0)
            last->to = spans[i].to;
    }
    salvage->spans.len = kept * sizeof(*spans);
}

enum status salvage_settle(struct salvage *salvage)
{
    TRY(spans_make(salvage));
    spans_sort(salvage);
    struct salvage_version *versions = salvage_versions(salvage);
    size_t count = 0;
    for (size_t i = 0; i < salvage_version_count(salvage); i++) {
        if (!versions[i].bad)
            versions[count++] = versions[i];
    }
    if (count)
        qsort(versions, count, sizeof(*versions), compare_ids);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (!kept || compare_ids(&versions[kept - 1], &versions[i]) != 0)
            versions[kept++] = versions[i];
    }
    salvage->versions.len = kept * sizeof(*versions);
    return ST_OK;
}

bool salvage_has(const struct salvage *salvage, struct backend_version_id id)
{
    size_t count = salvage_version_count(salvage);
    return count &&
           bsearch(&id, salvage->versions.ptr, count, sizeof(struct salvage_version), compare_ids);
}

bool salvage_lacks(const struct salvage *salvage, struct backend_version_id id)
{
    const struct salvage_span *spans = (const void *)salvage->spans.ptr;
    size_t low = 0, high = salvage->spans.len / sizeof(*spans);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_ids(&spans[middle].from, &id) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low && compare_ids(&id, &spans[low - 1].to) <= 0 && !salvage_has(salvage, id);
}

/* -- Sums -- */

static enum status entries_sum(const struct salvage *salvage, uint64_t *ret_sum)
{
    struct buf encoded = {0};
    enum status status = ST_OK;
    uint64_t sum = 0;
    size_t count = salvage_version_count(salvage);
    for (size_t i = 0; i < count && status == ST_OK; i++) {
        const struct backend_version *version = &salvage_versions(salvage)[i].version;
        encoded.len = 0;
        status = backend_version_encode(version, &encoded);
        if (status == ST_OK)
            sum += sum_of_version(version->id, buf_slice(&encoded));
    }
    buf_fini(&encoded);
    const struct row *rows = (const void *)salvage->rows.ptr;
    for (size_t i = 0; i < salvage->rows.len / sizeof(*rows); i++)
        sum += sum_of_row(&rows[i]);
    *ret_sum = sum;
    return status;
}

enum status salvage_sums(const struct salvage *salvage, bool *ret_numbers, bool *ret_entries)
{
    struct backend_numbers numbers;
    memcpy(numbers.values, salvage->numbers, sizeof(numbers.values));
    memcpy(numbers.present, salvage->has_number, sizeof(numbers.present));
    uint64_t all = sum_of_numbers(&numbers), entries;
    const struct backend_segment *segments = (const void *)salvage->segments.ptr;
    for (size_t i = 0; i < salvage->segments.len / sizeof(*segments); i++)
        all += sum_of_segment(&segments[i]);
    TRY(entries_sum(salvage, &entries));
    *ret_numbers = numbers.present[BACKEND_SUM] && all == (uint64_t)salvage->numbers[BACKEND_SUM];
    *ret_entries = numbers.present[BACKEND_SUM_OF_ENTRIES] &&
                   entries == (uint64_t)salvage->numbers[BACKEND_SUM_OF_ENTRIES];
    return ST_OK;
}
