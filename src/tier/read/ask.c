#include "tier/read/ask.h"

#include "codec/go_duration.h"
#include "kube/request/accept.h"
#include "kube/request/continue.h"

/* A kind about which nothing is known but its metadata. */
static const struct kube_kind unknown_kind = {
    .group = "", .version = "", .kind = "", .list_kind = "", .plural = "", .singular = ""};

static bool has_field(const struct http_request *request, const char *prefix)
{
    struct slice start = slice_from_text(prefix);
    for (size_t i = 0; i < request->field_count; i++) {
        struct slice name = request->fields[i].name;
        if (name.len >= start.len && http_name_equal(slice_sub(name, 0, start.len), start))
            return true;
    }
    return false;
}

/* -- Encodings -- */

/* Clients that people use by hand get indented JSON, which the kube-apiserver writes. */
static bool wants_pretty(const struct http_request *request, const struct tier_ask *ask,
                         const struct kube_accept *accept)
{
    static const char *const agents[] = {"curl", "Wget", "Mozilla/5.0"};
    struct slice agent = SLICE_EMPTY;
    if (ask->verb == TIER_WATCH)
        return false;
    if (accept->pretty)
        return true;
    if (ask->query.pretty_given)
        return ask->query.pretty;
    (void)http_request_get(request, SLICE_LITERAL("user-agent"), &agent);
    for (size_t i = 0; i < COUNT_OF(agents); i++)
        if (slice_has_prefix(agent, slice_from_text(agents[i])))
            return true;
    return false;
}

/* Our printers know built-in kinds. What rows need besides metadata is not in the mirror's bytes as
 * a Table shows it; bookmarks, which kubectl does not ask for, are rows there. */
static bool read_table(struct tier_ask *ask)
{
    const struct kube_query *query = &ask->query;
    if (!ask->is_builtin || ask->verb == TIER_GET || query->allow_bookmarks ||
        query->send_initial_events_given ||
        !(query->include_object.len == 0 || slice_is(query->include_object, "Metadata") ||
          slice_is(query->include_object, "None")))
        return false;
    ask->shaping = (struct kube_shaping){
        .kind = ask->kind, .shape = KUBE_TABLE, .include = kube_include_of(query->include_object)};
    return true;
}

/* A resource of which nothing is known may have no protobuf, so JSON is preferred for it. */
static bool read_accept(const struct http_request *request, struct tier_ask *ask)
{
    enum { JSON = 1 << KUBE_JSON, YAML = 1 << KUBE_YAML, PROTOBUF = 1 << KUBE_PROTOBUF };
    static const struct kube_offer all = {JSON | YAML | PROTOBUF, JSON, JSON | PROTOBUF, false};
    static const struct kube_offer json = {JSON, JSON, JSON | PROTOBUF, false};
    struct slice text = SLICE_EMPTY;
    struct kube_accept accept;
    (void)http_request_get(request, SLICE_LITERAL("accept"), &text);
    if (!kube_accept_routes(text) ||
        !kube_accept_parse(text, ask->is_builtin ? &all : &json, &accept))
        return false;
    bool partial = accept.shape == KUBE_PARTIAL;
    bool table = accept.shape == KUBE_TABLE;
    if (accept.format == KUBE_YAML || (table && !read_table(ask)) || accept.v1beta1 ||
        (partial && accept.list != (ask->verb == TIER_LIST)) || wants_pretty(request, ask, &accept))
        return false;
    bool protobuf = accept.format == KUBE_PROTOBUF;
    if (partial)
        ask->encoding = protobuf ? TIER_METADATA_PROTOBUF : TIER_METADATA_JSON;
    else
        ask->encoding = protobuf ? TIER_PROTOBUF : TIER_JSON;
    return true;
}

/* -- Versions -- */

/* Digits only, and not too large for the store, whose numbers are signed. */
static bool read_version(struct slice text, uint64_t *ret_version)
{
    int64_t version;
    if (kube_revision_parse(text, &version) || version == INT64_MAX)
        return false;
    *ret_version = (uint64_t)version;
    return true;
}

static bool read_continue(struct arena *arena, struct tier_ask *ask)
{
    struct kube_continue from;
    struct kube_status ignored;
    if (ask->query.resource_version.len || ask->query.match != KUBE_MATCH_UNSET ||
        !kube_continue_read(arena, ask->query.continue_token, &from, &ignored) ||
        from.revision <= 0)
        return false;
    ask->freshness = TIER_EXACT;
    ask->version = (uint64_t)from.revision;
    ask->start = from.suffix;
    return true;
}

static bool read_list(struct arena *arena, struct tier_ask *ask)
{
    const struct kube_query *query = &ask->query;
    bool given = query->resource_version.len > 0;
    ask->limit = query->limit;
    if (query->send_initial_events_given || query->match == KUBE_MATCH_OTHER)
        return false;
    if (query->continue_token.len)
        return read_continue(arena, ask);
    if (!given) {
        ask->freshness = TIER_CURRENT;
        return query->match == KUBE_MATCH_UNSET;
    }
    if (!ask->version) {
        /* As in Kubernetes: any version, and the limit is ignored. */
        ask->freshness = TIER_ANY;
        ask->limit = 0;
        return query->match != KUBE_MATCH_EXACT;
    }
    bool exact =
        query->match == KUBE_MATCH_EXACT || (query->match == KUBE_MATCH_UNSET && query->limit > 0);
    ask->freshness = exact ? TIER_EXACT : TIER_NOT_OLDER;
    return true;
}

static bool read_watch(struct tier_ask *ask)
{
    const struct kube_query *query = &ask->query;
    bool matches = query->match != KUBE_MATCH_UNSET, given = query->resource_version.len > 0;
    if (query->send_initial_events_given != matches ||
        (matches && query->match != KUBE_MATCH_NOT_OLDER) || query->continue_token.len ||
        query->timeout_s < 0)
        return false;
    ask->initial_events =
        query->send_initial_events_given ? query->send_initial_events : !ask->version;
    if (!ask->version)
        ask->freshness = given ? TIER_ANY : TIER_CURRENT;
    else
        ask->freshness = ask->initial_events ? TIER_NOT_OLDER : TIER_AFTER;
    return true;
}

static bool read_get(struct tier_ask *ask)
{
    if (!ask->query.resource_version.len)
        ask->freshness = TIER_CURRENT;
    else
        ask->freshness = ask->version ? TIER_NOT_OLDER : TIER_ANY;
    return true;
}

/* -- Options -- */

/* An option that a newer kube-apiserver may know changes what is read, and of one that is given
 * twice the first counts there. Go ignores pairs with a semicolon. */
static bool are_options_known(struct slice query)
{
    static const char *const known[] = {"labelSelector",
                                        "fieldSelector",
                                        "resourceVersion",
                                        "resourceVersionMatch",
                                        "limit",
                                        "continue",
                                        "watch",
                                        "allowWatchBookmarks",
                                        "sendInitialEvents",
                                        "timeoutSeconds",
                                        "timeout",
                                        "includeObject",
                                        "pretty"};
    unsigned given = 0;
    if (query.len && memchr(query.ptr, ';', query.len))
        return false;
    while (query.len) {
        struct slice pair = slice_cut(&query, '&');
        struct slice name = slice_cut(&pair, '=');
        size_t i = 0;
        while (i < COUNT_OF(known) && !slice_is(name, known[i]))
            i++;
        if (i == COUNT_OF(known) || given & 1u << i)
            return false;
        given |= 1u << i;
    }
    return true;
}

static bool is_timeout_valid(const struct kube_query *query)
{
    int64_t ignored;
    return !query->request_timeout.len || go_duration_read(query->request_timeout, &ignored);
}

/* -- Paths -- */

/* Paths with empty parts or encoded characters are read by the kube-apiserver's own rules. */
static bool is_plain(const struct http_request *request)
{
    struct slice rest = request->target, path = slice_cut(&rest, '?');
    return path.len && !memchr(path.ptr, '%', path.len) &&
           !memmem(request->path.ptr, request->path.len, "//", 2);
}

/* A group, version, resource or namespace as Kubernetes permits them: what the mirror reads has the
 * same name as what is reviewed. */
static bool is_part(struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.ptr[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (!is_letter && (i == 0 || (c != '-' && c != '.')))
            return false;
    }
    return text.len <= TIER_NAME_PART_BYTES_MAX;
}

static bool are_parts(const struct kube_path *path)
{
    return path->resource.len && path->version.len && is_part(path->group) &&
           is_part(path->version) && is_part(path->resource) && is_part(path->namespace) &&
           !slice_is(path->name, ".") && !slice_is(path->name, "..");
}

/* The kind is known for field selectors; metadata has no other fields than its own. */
static bool read_path(struct tier_ask *ask)
{
    const struct kube_path *path = &ask->path;
    const struct kube_kind *kind = kube_builtin_find(path->group, path->version, path->resource);
    bool namespaced = kind && kind->flags & KUBE_NAMESPACED;
    ask->is_builtin = kind;
    ask->is_cluster_scoped = kind && !namespaced;
    ask->namespace = path->namespace;
    ask->kind = kind ? kind : &unknown_kind;
    if (!are_parts(path) || path->subresource.len || (path->watch && path->name.len) ||
        (kind && kind->flags & (KUBE_CREATE_ONLY | KUBE_COMPUTED)))
        return false;
    if (kind && (path->namespace.len ? !namespaced : namespaced && path->name.len))
        return false;
    if (ask->path.watch || ask->query.watch)
        ask->verb = TIER_WATCH;
    else
        ask->verb = path->name.len ? TIER_GET : TIER_LIST;
    return ask->verb != TIER_WATCH || !path->name.len;
}

bool tier_ask_read(struct arena *arena, const struct http_request *request,
                   struct tier_ask *ret_ask)
{
    struct kube_status ignored;
    struct tier_ask *ask = ret_ask;
    *ask = (struct tier_ask){0};
    /* In the name of another user it is for the kube-apiserver to decide. */
    if (!slice_is(request->method, "GET") || has_field(request, "impersonate-") ||
        !is_plain(request) || !are_options_known(request->query) ||
        kube_path_parse(arena, request->path, &ask->path) != ST_OK ||
        !kube_query_parse(arena, request->query, &ask->query, &ignored) ||
        !is_timeout_valid(&ask->query) || !read_path(ask) || !read_accept(request, ask) ||
        !read_version(ask->query.resource_version, &ask->version))
        return false;
    if (tier_encoding_is_metadata(ask->encoding))
        ask->kind = &unknown_kind;
    ask->name = ask->path.name;
    if (ask->verb == TIER_GET)
        return read_get(ask);
    return ask->verb == TIER_LIST ? read_list(arena, ask) : read_watch(ask);
}

/* -- Keys -- */

/* Without a namespace in the path a name may be of several objects, unless the kind is known to
 * have no namespaces. */
void tier_ask_narrow(struct tier_ask *ask, const struct kube_selection *selection)
{
    struct slice name = SLICE_EMPTY, namespace = ask->namespace;
    if (ask->name.len || ask->start.len)
        return;
    if (!namespace.len && !ask->is_cluster_scoped)
        (void)!kube_selection_requires(selection, SLICE_LITERAL("metadata.namespace"), &namespace);
    (void)!kube_selection_requires(selection, SLICE_LITERAL("metadata.name"), &name);
    if (!name.len || !(namespace.len || ask->is_cluster_scoped))
        return;
    ask->namespace = namespace;
    ask->name = name;
}

/* The end of the range of all keys that begin with these bytes. The last one is never 0xff: it is a
 * slash, or of the prefix of a collection, whose numbers are small. */
static struct slice end_of(struct slice start, uint8_t *room)
{
    size_t len = start.len;
    slice_copy(room, start);
    while (room[len - 1] == 0xff)
        len--;
    room[len - 1]++;
    return slice_of(room, len);
}

enum status tier_ask_range(struct arena *arena, const struct tier_ask *ask,
                           struct slice collection_prefix, struct tier_range *ret_range)
{
    struct slice namespace = ask->namespace;
    size_t room = collection_prefix.len + namespace.len + 1 + ask->name.len + ask->start.len;
    uint8_t *key = arena_alloc(arena, room), *end = arena_alloc(arena, room);
    if (!key || !end)
        return ST_NOMEM;
    size_t len = collection_prefix.len;
    slice_copy(key, collection_prefix);
    if (namespace.len) {
        slice_copy(key + len, namespace);
        len += namespace.len;
        key[len++] = '/';
    }
    *ret_range = (struct tier_range){
        .prefix = slice_of(key + collection_prefix.len, len - collection_prefix.len)};
    struct slice start = ask->name.len ? ask->name : ask->start;
    if (!ask->name.len)
        ret_range->range_end = end_of(slice_of(key, len), end);
    slice_copy(key + len, start);
    ret_range->key = slice_of(key, len + start.len);
    return ST_OK;
}
