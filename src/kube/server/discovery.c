#include "kube/server/discovery.h"

#include "codec/base64.h"
#include "codec/json/writer.h"
#include "kube/call/format.h"
#include "kube/call/shape.h"
#include "kube/custom/definition.h"
#include "kube/types/object/conversion.h"
#include "net/sha256.h"

#include <stdio.h>

enum {
    STEPS_MAX = 3,
    /* Limit on the size of a document that is made before it is sent. */
    SHORT_BYTES_MAX = 128 << 10,
    PIECE_BYTES = 4 << 10,
};

static const char *const all_verbs[] = {"create", "delete", "deletecollection", "get",
                                        "list",   "patch",  "update",           "watch"};
static const char *const part_verbs[] = {"get", "patch", "update"};
static const char *const create_verb[] = {"create"};
static const char *const update_verb[] = {"update"};
static const char *const get_verb[] = {"get"};
static const char *const read_verbs[] = {"get", "list"};
static const char *const stream_verbs[] = {"create", "get"};
static const char *const proxy_verbs[] = {"create", "delete", "get", "patch", "update"};
/* Namespaces cannot be deleted all at once. */
static const char *const namespace_verbs[] = {"create", "delete", "get",  "list",
                                              "patch",  "update", "watch"};

/* -- Rows -- */

static void write_names(struct json_writer *w, const char *key, const char *const *names,
                        size_t count)
{
    if (!count)
        return;
    json_member_array(w, key);
    for (size_t i = 0; i < count; i++)
        json_text(w, names[i]);
    json_end_array(w);
}

static void write_verbs(struct json_writer *w, const struct kube_kind *kind)
{
    bool question = kind->flags & KUBE_CREATE_ONLY;
    if (kind->flags & KUBE_COMPUTED)
        write_names(w, "verbs", read_verbs, COUNT_OF(read_verbs));
    else if (kube_kind_is(kind, "", "namespaces"))
        write_names(w, "verbs", namespace_verbs, COUNT_OF(namespace_verbs));
    else
        write_names(w, "verbs", all_verbs, question ? 1 : COUNT_OF(all_verbs));
}

static const struct {
    unsigned flag;      /* kinds with this flag have the subresource … */
    const char *plural; /* … or, if the flag is 0, this kind */
    const char *name, *group, *version, *kind;
    const char *const *verbs;
    size_t verb_count;
} parts[] = {
    {0, "certificatesigningrequests", "approval", NULL, NULL, NULL, part_verbs, 3},
    {0, "namespaces", "finalize", NULL, NULL, NULL, update_verb, 1},
    {0, "nodes", "proxy", NULL, NULL, "NodeProxyOptions", proxy_verbs, 5},
    {0, "pods", "attach", NULL, NULL, "PodAttachOptions", stream_verbs, 2},
    {0, "pods", "binding", NULL, NULL, "Binding", create_verb, 1},
    {0, "pods", "ephemeralcontainers", NULL, NULL, NULL, part_verbs, 3},
    {0, "pods", "eviction", "policy", "v1", "Eviction", create_verb, 1},
    {0, "pods", "exec", NULL, NULL, "PodExecOptions", stream_verbs, 2},
    {0, "pods", "log", NULL, NULL, NULL, get_verb, 1},
    {0, "pods", "portforward", NULL, NULL, "PodPortForwardOptions", stream_verbs, 2},
    {0, "pods", "proxy", NULL, NULL, "PodProxyOptions", proxy_verbs, 5},
    {0, "pods", "resize", NULL, NULL, NULL, part_verbs, 3},
    {0, "serviceaccounts", "token", "authentication.k8s.io", "v1", "TokenRequest", create_verb, 1},
    {0, "services", "proxy", NULL, NULL, "ServiceProxyOptions", proxy_verbs, 5},
    {KUBE_HAS_SCALE, NULL, "scale", "autoscaling", "v1", "Scale", part_verbs, 3},
    {KUBE_HAS_STATUS, NULL, "status", NULL, NULL, NULL, part_verbs, 3}, /* the kind itself */
};

static bool has_part(const struct kube_kind *kind, size_t part)
{
    if (parts[part].flag)
        return kind->flags & parts[part].flag;
    return !(kind->flags & KUBE_CUSTOM) && strcmp(kind->plural, parts[part].plural) == 0;
}

static bool has_parts(const struct kube_kind *kind)
{
    for (size_t i = 0; i < COUNT_OF(parts); i++)
        if (has_part(kind, i))
            return true;
    return false;
}

/*
 * A client compares this with the value of an earlier time to see whether objects are stored in
 * another version since then. It is made as in Kubernetes: base64 of the first eight bytes of the
 * SHA-256 of "group/version/Kind".
 */
static void write_storage_hash(struct json_writer *w, const struct kube_kind *kind)
{
    char own[KUBE_API_VERSION_BYTES];
    uint8_t digest[SHA256_BYTES];
    char text[12];
    const struct kube_custom *custom = kube_custom_of(kind);
    const char *stored = custom                                ? custom->definition->api_version
                         : kind->flags & KUBE_STORED_CONVERTED ? kube_converted_api_version(kind)
                                                               : kube_kind_api_version(kind, own);
    AUTO(sha256_freep) struct sha256 *sum = sha256_new();
    if (!sum) {
        w->status = ST_NOMEM;
        return;
    }
    /* The version of the core group has no slash, and its group is the empty text before one. */
    if (!strchr(stored, '/'))
        sha256_add(sum, SLICE_LITERAL("/"));
    sha256_add(sum, slice_from_text(stored));
    sha256_add(sum, SLICE_LITERAL("/"));
    sha256_add(sum, slice_from_text(kind->kind));
    if (sha256_finish(sum, digest) != ST_OK) {
        w->status = ST_NOMEM;
        return;
    }
    base64_encode(slice_of(digest, 8), (uint8_t *)text);
    json_member_string(w, "storageVersionHash", slice_of(text, sizeof(text)));
}

static void write_resource(struct json_writer *w, const struct kube_kind *kind)
{
    json_begin_object(w);
    json_member_text(w, "name", kind->plural);
    json_member_text(w, "singularName", kind->singular);
    json_member_bool(w, "namespaced", kind->flags & KUBE_NAMESPACED);
    json_member_text(w, "kind", kind->kind);
    write_verbs(w, kind);
    write_names(w, "shortNames", kind->short_names.names, kind->short_names.count);
    write_names(w, "categories", kind->categories.names, kind->categories.count);
    if (!(kind->flags & (KUBE_CREATE_ONLY | KUBE_COMPUTED)))
        write_storage_hash(w, kind);
    json_end_object(w);
}

static void write_part(struct json_writer *w, const struct kube_kind *kind, size_t part)
{
    char name[128];
    snprintf(name, sizeof(name), "%s/%s", kind->plural, parts[part].name);
    json_begin_object(w);
    json_member_text(w, "name", name);
    json_member_text(w, "singularName", "");
    json_member_bool(w, "namespaced", kind->flags & KUBE_NAMESPACED);
    if (parts[part].group)
        json_member_text(w, "group", parts[part].group);
    if (parts[part].version)
        json_member_text(w, "version", parts[part].version);
    json_member_text(w, "kind", parts[part].kind ? parts[part].kind : kind->kind);
    write_names(w, "verbs", parts[part].verbs, parts[part].verb_count);
    json_end_object(w);
}

/* -- Groups: runs of the table, which is ordered -- */

static bool same_group(const struct kube_kind *a, const struct kube_kind *b)
{
    return strcmp(a->group, b->group) == 0;
}

static bool same_version(const struct kube_kind *a, const struct kube_kind *b)
{
    return same_group(a, b) && strcmp(a->version, b->version) == 0;
}

static void write_version(struct json_writer *w, const struct kube_kind *kind)
{
    char text[KUBE_API_VERSION_BYTES];
    json_begin_object(w);
    json_member_text(w, "groupVersion", kube_kind_api_version(kind, text));
    json_member_text(w, "version", kind->version);
    json_end_object(w);
}

/* Writes the group of the first kind. Returns how many kinds it has. */
static size_t write_group(struct json_writer *w, const struct kube_kind *const *kinds, size_t count)
{
    size_t at = 0;
    json_member_text(w, "name", kinds[0]->group);
    json_member_array(w, "versions");
    for (; at < count && same_group(kinds[0], kinds[at]); at++)
        if (at == 0 || !same_version(kinds[at - 1], kinds[at]))
            write_version(w, kinds[at]);
    json_end_array(w);
    json_key(w, "preferredVersion");
    write_version(w, kinds[0]);
    return at;
}

/* -- Documents: made while they are sent, one kind or group after the other -- */

struct discovery_document {
    struct http_source source;
    struct kube_call *call;
    struct kube_kinds *kinds; /* a reference */
    const struct kube_kind *const *rows;
    size_t row_count, at;
    struct slice group, version; /* group and version in the path */
    bool core;                   /* /api, and not /apis */
    /* Writes what belongs to the next row, and advances. */
    void (*write_next)(struct discovery_document *d);
    void (*write_end)(struct discovery_document *d);
    const struct kube_kind *last; /* the last kind that was written, or NULL */
    bool done;
    struct json_writer writer;
    struct buf piece; /* which is being sent */
    size_t read;      /* bytes of it that were sent */
};

static void write_type_meta(struct json_writer *w, const char *kind, const char *api_version)
{
    json_member_text(w, "kind", kind);
    json_member_text(w, "apiVersion", api_version);
}

static void end_list(struct discovery_document *d)
{
    json_end_array(&d->writer);
}

/* -- /apis -- */

static void next_group(struct discovery_document *d)
{
    if (!d->rows[d->at]->group[0]) {
        d->at++;
        return;
    }
    json_begin_object(&d->writer);
    d->at += write_group(&d->writer, d->rows + d->at, d->row_count - d->at);
    json_end_object(&d->writer);
}

/* -- /apis/GROUP -- */

static void next_one_group(struct discovery_document *d)
{
    const struct kube_kind *kind = d->rows[d->at];
    if (!slice_is(d->group, kind->group)) {
        d->at++;
        return;
    }
    d->last = kind;
    write_type_meta(&d->writer, "APIGroup", "v1");
    (void)write_group(&d->writer, d->rows + d->at, d->row_count - d->at);
    d->at = d->row_count;
}

/* -- /api/v1, /apis/GROUP/VERSION -- */

static void next_resource(struct discovery_document *d)
{
    const struct kube_kind *kind = d->rows[d->at++];
    char text[KUBE_API_VERSION_BYTES];
    if (!slice_is(d->group, kind->group) || !slice_is(d->version, kind->version))
        return;
    if (!d->last) {
        write_type_meta(&d->writer, "APIResourceList", "v1");
        json_member_text(&d->writer, "groupVersion", kube_kind_api_version(kind, text));
        json_member_array(&d->writer, "resources");
    }
    d->last = kind;
    write_resource(&d->writer, kind);
    for (size_t i = 0; i < COUNT_OF(parts); i++)
        if (has_part(kind, i))
            write_part(&d->writer, kind, i);
}

static void end_resources(struct discovery_document *d)
{
    if (d->last)
        end_list(d);
}

/* -- Aggregated discovery: all groups in one document -- */

static void write_response_kind(struct json_writer *w, const char *group, const char *version,
                                const char *kind)
{
    json_member_object(w, "responseKind");
    json_member_text(w, "group", group);
    json_member_text(w, "version", version);
    json_member_text(w, "kind", kind);
    json_end_object(w);
}

static void write_parts_v2(struct json_writer *w, const struct kube_kind *kind)
{
    if (!has_parts(kind))
        return;
    json_member_array(w, "subresources");
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        if (!has_part(kind, i))
            continue;
        json_begin_object(w);
        json_member_text(w, "subresource", parts[i].name);
        write_response_kind(w, parts[i].group ? parts[i].group : kind->group,
                            parts[i].version ? parts[i].version : kind->version,
                            parts[i].kind ? parts[i].kind : kind->kind);
        write_names(w, "verbs", parts[i].verbs, parts[i].verb_count);
        json_end_object(w);
    }
    json_end_array(w);
}

static void write_resource_v2(struct json_writer *w, const struct kube_kind *kind)
{
    json_begin_object(w);
    json_member_text(w, "resource", kind->plural);
    write_response_kind(w, kind->group, kind->version, kind->kind);
    json_member_text(w, "scope", kind->flags & KUBE_NAMESPACED ? "Namespaced" : "Cluster");
    json_member_text(w, "singularResource", kind->singular);
    write_verbs(w, kind);
    write_names(w, "shortNames", kind->short_names.names, kind->short_names.count);
    write_names(w, "categories", kind->categories.names, kind->categories.count);
    write_parts_v2(w, kind);
    json_end_object(w);
}

static void end_version_v2(struct json_writer *w)
{
    json_end_array(w);
    json_member_text(w, "freshness", "Current");
    json_end_object(w);
}

static void end_group_v2(struct json_writer *w)
{
    json_end_array(w);
    json_end_object(w);
}

static void next_resource_v2(struct discovery_document *d)
{
    const struct kube_kind *kind = d->rows[d->at++], *last = d->last;
    struct json_writer *w = &d->writer;
    if (d->core != !kind->group[0])
        return;
    bool new_group = !last || !same_group(last, kind);
    bool new_version = !last || !same_version(last, kind);
    if (last && new_version)
        end_version_v2(w);
    if (last && new_group)
        end_group_v2(w);
    if (new_group) {
        json_begin_object(w);
        json_member_object(w, "metadata");
        if (kind->group[0])
            json_member_text(w, "name", kind->group);
        json_key(w, "creationTimestamp");
        json_null(w);
        json_end_object(w);
        json_member_array(w, "versions");
    }
    if (new_version) {
        json_begin_object(w);
        json_member_text(w, "version", kind->version);
        json_member_array(w, "resources");
    }
    write_resource_v2(w, kind);
    d->last = kind;
}

static void end_v2(struct discovery_document *d)
{
    if (d->last) {
        end_version_v2(&d->writer);
        end_group_v2(&d->writer);
    }
    end_list(d);
}

/* -- Requests -- */

static size_t split(struct slice path, struct slice steps[STEPS_MAX + 1])
{
    size_t count = 0;
    const uint8_t *at = path.ptr, *end = path.ptr + path.len;
    while (at < end && count <= STEPS_MAX) {
        const uint8_t *slash = memchr(at, '/', (size_t)(end - at));
        const uint8_t *stop = slash ? slash : end;
        if (stop > at)
            steps[count++] = slice_of(at, (size_t)(stop - at));
        at = stop + 1;
    }
    return count;
}

/* Copies what it needs of the request, which the document outlives. */
static enum status keep_path(struct discovery_document *d, const struct slice *steps, size_t count)
{
    d->core = slice_is(steps[0], "api");
    if (count > 1 && !d->core)
        TRY(arena_dup(&d->call->arena, steps[1], &d->group));
    return count > 1 ? arena_dup(&d->call->arena, steps[count - 1], &d->version) : ST_OK;
}

/* Prepares the document of the path; what precedes its rows is written at once. */
static void begin_document(struct discovery_document *d, const struct http_request *request,
                           size_t count, bool v2)
{
    json_begin_object(&d->writer);
    if (count == 1 && v2) {
        d->write_next = next_resource_v2;
        d->write_end = end_v2;
        write_type_meta(&d->writer, "APIGroupDiscoveryList", "apidiscovery.k8s.io/v2");
        json_member_object(&d->writer, "metadata");
        json_end_object(&d->writer);
        json_member_array(&d->writer, "items");
    } else if (count == 1 && d->core) {
        d->row_count = 0;
        json_member_text(&d->writer, "kind", "APIVersions");
        json_member_array(&d->writer, "versions");
        json_text(&d->writer, "v1");
        json_end_array(&d->writer);
        json_member_array(&d->writer, "serverAddressByClientCIDRs");
        json_begin_object(&d->writer);
        json_member_text(&d->writer, "clientCIDR", "0.0.0.0/0");
        json_member_string(&d->writer, "serverAddress", request->host);
        json_end_object(&d->writer);
        json_end_array(&d->writer);
    } else if (count == 1) {
        d->write_next = next_group;
        d->write_end = end_list;
        write_type_meta(&d->writer, "APIGroupList", "v1");
        json_member_array(&d->writer, "groups");
    } else if (count == 2 && !d->core) {
        d->write_next = next_one_group;
    } else {
        d->write_next = next_resource;
        d->write_end = end_resources;
    }
}

/* Adds rows to the piece until it has at least `bytes`. */
static enum status make_piece(struct discovery_document *d, size_t bytes)
{
    while (!d->done && d->piece.len < bytes) {
        if (d->at < d->row_count) {
            d->write_next(d);
            continue;
        }
        if (d->write_end)
            d->write_end(d);
        json_end_object(&d->writer);
        d->done = true;
        TRY(json_writer_finish(&d->writer));
    }
    return d->writer.status;
}

static enum http_fill fill(struct http_source *source, uint8_t *dst, size_t room, size_t *ret_len)
{
    struct discovery_document *d = CONTAINER_OF(source, struct discovery_document, source);
    size_t len = 0;
    while (len < room && (d->read < d->piece.len || !d->done)) {
        if (d->read == d->piece.len) {
            d->piece.len = d->read = 0;
            if (make_piece(d, PIECE_BYTES) != ST_OK) {
                http_abort(d->call->exchange);
                break;
            }
        }
        size_t n = size_min(room - len, d->piece.len - d->read);
        slice_copy(dst + len, slice_of(d->piece.ptr + d->read, n));
        d->read += n;
        len += n;
    }
    *ret_len = len;
    return len < room ? HTTP_FILL_DONE : HTTP_FILL_MORE;
}

/* A short document in the requested format; a long one as JSON, which every client accepts. */
static enum status respond(struct discovery_document *d, const struct kube_accept *accept)
{
    struct http_exchange *x = d->call->exchange;
    AUTO(buf_fini) struct buf text = {0};
    AUTO(buf_fini) struct buf type = {0};
    TRY(buf_append(&type, kube_format_type(d->done ? accept->format : KUBE_JSON)));
    if (accept->discovery_v2)
        TRY(buf_append_text(&type, ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"));
    if (d->done) {
        TRY(kube_format_write(accept->format, buf_slice(&d->piece), &text));
        http_respond(x, 200, buf_slice(&type), buf_slice(&text));
        return ST_OK;
    }
    http_make_bulk(x);
    http_begin(x, 200, buf_slice(&type));
    http_set_source(x, &d->source);
    return ST_OK;
}

/* A format that is not supported is answered in JSON; Kubernetes answers some with 406. */
static struct kube_accept accept_of(const struct http_request *request, bool root)
{
    struct slice field = SLICE_EMPTY;
    struct kube_accept accept;
    static const struct kube_offer offer = {
        .whole = 1u << KUBE_JSON | 1u << KUBE_YAML | 1u << KUBE_PROTOBUF, .discovery_v2 = true};
    (void)http_request_get(request, SLICE_LITERAL("accept"), &field);
    if (!kube_accept_parse(field, &offer, &accept))
        accept = (struct kube_accept){0};
    accept.discovery_v2 = accept.discovery_v2 && root;
    return accept;
}

bool kube_is_discovery(struct slice path)
{
    struct slice steps[STEPS_MAX + 1];
    size_t count = split(path, steps);
    bool core = count && slice_is(steps[0], "api");
    return count > 0 && count <= (core ? 2 : 3);
}

static void document_free(struct kube_call *call)
{
    struct discovery_document *d = call->handler.discovery;
    kube_kinds_unref(d->kinds);
    buf_fini(&d->piece);
}

static struct discovery_document *document_new(struct kube_call *call)
{
    struct discovery_document *d = arena_calloc(&call->arena, 1, sizeof(*d));
    if (!d)
        return NULL;
    d->source.fill = fill;
    d->call = call;
    d->kinds = kube_kinds_ref(kube_registry_kinds(call->api->registry));
    d->rows = kube_kinds_rows(d->kinds, &d->row_count);
    json_writer_init(&d->writer, &d->piece);
    call->handler.discovery = d;
    call->on_free = document_free;
    return d;
}

void kube_discovery(struct kube_call *call)
{
    const struct http_request *request = call->request;
    struct slice steps[STEPS_MAX + 1];
    size_t count = split(request->path, steps);
    struct kube_accept accept = accept_of(request, count == 1);
    struct discovery_document *d = document_new(call);
    if (!d) {
        http_abort(call->exchange);
        return;
    }
    enum status status = keep_path(d, steps, count);
    begin_document(d, request, count, accept.discovery_v2);
    if (status == ST_OK)
        status = make_piece(d, SHORT_BYTES_MAX);
    /* A document of a group or version that has no row: the server does not have it. */
    if (status == ST_OK && count > 1 && !d->last && d->done)
        http_respond(call->exchange, 404, SLICE_LITERAL("text/plain; charset=utf-8"),
                     SLICE_LITERAL("404 page not found\n"));
    else if (status != ST_OK || respond(d, &accept) != ST_OK)
        http_abort(call->exchange);
}
