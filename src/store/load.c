#include "store/load.h"

#include "base/xalloc.h"

#include <stdlib.h>

/* Versions come in the order of revisions, the index wants them by key: they are sorted. */
struct loaded {
    struct slice key; /* in the backend */
    struct index_version version;
};

/* What is sorted: eight bytes of the key, which mostly decide, and who it is. */
struct place {
    uint64_t prefix;
    uint32_t at;
};

struct loading {
    struct loaded *versions;
    size_t count, capacity;
    size_t common_bytes; /* that all keys begin with */
};

static enum status take_version(void *ctx, const struct backend_version *version)
{
    struct loading *loading = ctx;
    if (loading->count == loading->capacity) {
        loading->capacity = loading->capacity ? loading->capacity * 2 : 1024;
        loading->versions =
            xrealloc(loading->versions, loading->capacity * sizeof(*loading->versions));
    }
    if (loading->count == UINT32_MAX)
        return ST_LIMIT;
    bool tombstone = version->create_revision == 0;
    loading->versions[loading->count++] = (struct loaded){
        .key = version->key,
        .version =
            {
                .mod_revision = version->id.revision,
                .create_revision = version->create_revision,
                .version = version->version,
                .lease = version->lease,
                .loc = version->loc,
                .field_bytes = tombstone ? 0 : version->field_bytes,
                .sub_revision = version->id.sub,
            },
    };
    return ST_OK;
}

static void find_common_bytes(struct loading *loading)
{
    struct slice first = loading->versions[0].key;
    size_t common = first.len;
    for (size_t i = 1; i < loading->count && common; i++) {
        struct slice key = loading->versions[i].key;
        common = size_min(common, key.len);
        while (common && memcmp(first.ptr, key.ptr, common) != 0)
            common--;
    }
    loading->common_bytes = common;
}

static uint64_t prefix_after(struct slice key, size_t skip)
{
    uint8_t bytes[8] = {0};
    memcpy(bytes, key.ptr + skip, size_min(sizeof(bytes), key.len - skip));
    uint64_t prefix;
    memcpy(&prefix, bytes, sizeof(prefix));
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    prefix = __builtin_bswap64(prefix);
#endif
    return prefix;
}

static int compare_places(const void *left, const void *right, void *ctx)
{
    const struct place *a = left, *b = right;
    const struct loading *loading = ctx;
    if (a->prefix != b->prefix)
        return a->prefix < b->prefix ? -1 : 1;
    int order = slice_compare(loading->versions[a->at].key, loading->versions[b->at].key);
    if (order)
        return order;
    return (a->at > b->at) - (a->at < b->at);
}

static struct place *sort_places(struct loading *loading)
{
    struct place *places = xmalloc(loading->count * sizeof(*places));
    bool sorted = true;
    for (size_t i = 0; i < loading->count; i++) {
        places[i] = (struct place){
            .prefix = prefix_after(loading->versions[i].key, loading->common_bytes),
            .at = (uint32_t)i,
        };
        sorted = sorted && (i == 0 || compare_places(&places[i - 1], &places[i], loading) < 0);
    }
    if (!sorted)
        qsort_r(places, loading->count, sizeof(*places), compare_places, loading);
    return places;
}

/* Hands the versions of one key, places [from, to), to the index. */
static void add_key(struct index *index, const struct loading *loading, const struct place *places,
                    size_t from, size_t to, uint64_t **older, size_t *older_capacity)
{
    size_t older_count = to - from - 1;
    if (older_count > *older_capacity) {
        *older_capacity = older_count * 2;
        *older = xrealloc(*older, *older_capacity * sizeof(**older));
    }
    for (size_t i = 0; i < older_count; i++)
        (*older)[i] = loading->versions[places[from + i].at].version.loc;
    const struct loaded *newest = &loading->versions[places[to - 1].at];
    index_load_add(index, &(struct index_load){
                              .key = newest->key,
                              .newest = newest->version,
                              .older = *older,
                              .older_count = (uint32_t)older_count,
                          });
}

static void add_all(struct index *index, struct loading *loading)
{
    find_common_bytes(loading);
    struct place *places = sort_places(loading);
    uint64_t *older = NULL;
    size_t older_capacity = 0;
    for (size_t from = 0, to; from < loading->count; from = to) {
        struct slice key = loading->versions[places[from].at].key;
        for (to = from + 1; to < loading->count; to++) {
            if (!slice_equal(loading->versions[places[to].at].key, key))
                break;
        }
        add_key(index, loading, places, from, to, &older, &older_capacity);
    }
    free(older);
    free(places);
}

enum status store_load_index(struct backend *backend, struct index *index)
{
    struct loading loading = {0};
    enum status status =
        backend_versions_scan(backend, (struct backend_version_id){0}, take_version, &loading);
    if (status == ST_OK) {
        index_load_begin(index);
        if (loading.count)
            add_all(index, &loading);
        index_load_end(index);
    }
    free(loading.versions);
    return status;
}
