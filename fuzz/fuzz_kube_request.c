/*
 * Input: the parts of a Kubernetes request before its body, which are a path, a query and an Accept
 * header, separated by zero bytes. Every error can be written as a Status, and parts of a path are
 * never longer than the path.
 */
#include "cost.h"

#include "kube/request/accept.h"
#include "kube/request/request.h"

enum { ARENA_BYTES_MAX = 16 << 20 };

static void read_path(struct arena *arena, struct slice text)
{
    struct kube_path path = {0};
    enum status status = kube_path_parse(arena, text, &path);
    assert(status == ST_OK || status == ST_NOT_FOUND || status == ST_MALFORMED);
    if (status == ST_OK)
        assert(path.group.len + path.version.len + path.namespace.len + path.resource.len +
                   path.name.len + path.subresource.len <=
               text.len);
}

static void read_query(struct arena *arena, struct slice text)
{
    struct kube_query query;
    struct kube_status status = {0};
    AUTO(buf_fini) struct buf told = {0};
    int64_t revision = 0;
    if (!kube_query_parse(arena, text, &query, &status)) {
        assert(kube_status_code(&status) == 400);
        assert(kube_status_write(&status, &told) == ST_OK);
        return;
    }
    assert(query.limit >= 0 && query.label_selector.len + query.field_selector.len <= text.len);
    if (!kube_revision_parse(query.resource_version, &revision))
        assert(revision >= 0);
}

static void read_accept(struct slice text)
{
    static const struct kube_offer offers[] = {
        {.whole = 7}, {.whole = 1, .table = 3, .partial = 7}, {.whole = 1, .discovery_v2 = true}};
    for (size_t i = 0; i < COUNT_OF(offers); i++) {
        struct kube_accept accept;
        if (kube_accept_parse(text, &offers[i], &accept))
            assert(accept.shape != KUBE_TABLE || offers[i].table);
    }
    (void)kube_accept_routes(text);
}

FUZZ_INPUT(.memory_bytes = 2 * ARENA_BYTES_MAX)
{
    struct slice rest = slice_of(data, size);
    struct arena arena;
    arena_init(&arena, NULL, 0, ARENA_BYTES_MAX);
    read_path(&arena, slice_cut(&rest, '\0'));
    read_query(&arena, slice_cut(&rest, '\0'));
    read_accept(rest);
    arena_fini(&arena);
    return 0;
}
