#include "kube/server/discovery.h"

#include "codec/json/writer.h"
#include "kube/call/format.h"
#include "kube/call/shape.h"
#include "kube/write/subresource.h"

#include <stdio.h>

enum { STEPS_MAX = 3 };

static const char *const all_verbs[] = {"create", "delete", "deletecollection", "get",
                                        "list",   "patch",  "update",           "watch"};
static const char *const part_verbs[] = {"get", "patch", "update"};
static const char *const create_verb[] = {"create"};
static const char *const update_verb[] = {"update"};
/* Namespaces cannot be deleted all at once. */
static const char *const namespace_verbs[] = {"create", "delete", "get",  "list",
                                              "patch",  "update", "watch"};

/* -- Rows -- */

static void member(struct json_writer *w, const char *key, const char *value)
{
    json_key(w, key);
    json_text(w, value);
}

static void write_names(struct json_writer *w, const char *key, const char *const *names,
                        size_t count)
{
    if (!count)
        return;
    json_key(w, key);
    json_begin_array(w);
    for (size_t i = 0; i < count; i++)
        json_text(w, names[i]);
    json_end_array(w);
}

static void write_verbs(struct json_writer *w, const struct kube_kind *kind)
{
    bool question = kind->flags & KUBE_CREATE_ONLY;
    if (kube_is_namespaces(kind))
        write_names(w, "verbs", namespace_verbs, COUNT_OF(namespace_verbs));
    else
        write_names(w, "verbs", all_verbs, question ? 1 : COUNT_OF(all_verbs));
}

static const struct {
    unsigned flag;    /* of kinds that have it; 0: */
    const char *core; /* this one has */
    const char *name, *group, *version, *kind;
    const char *const *verbs;
    size_t verb_count;
} parts[] = {
    {0, "pods", "binding", NULL, NULL, "Binding", create_verb, 1},
    {0, "pods", "eviction", "policy", "v1", "Eviction", create_verb, 1},
    {0, "namespaces", "finalize", NULL, NULL, NULL, update_verb, 1},
    {KUBE_HAS_SCALE, NULL, "scale", "autoscaling", "v1", "Scale", part_verbs, 3},
    {KUBE_HAS_STATUS, NULL, "status", NULL, NULL, NULL, part_verbs, 3}, /* the kind itself */
};

static bool has_part(const struct kube_kind *kind, size_t part)
{
    if (parts[part].flag)
        return kind->flags & parts[part].flag;
    return !kind->group[0] && strcmp(kind->plural, parts[part].core) == 0;
}

static void write_resource(struct json_writer *w, const struct kube_kind *kind)
{
    json_begin_object(w);
    member(w, "name", kind->plural);
    member(w, "singularName", kind->singular);
    json_key(w, "namespaced");
    json_bool(w, kind->flags & KUBE_NAMESPACED);
    member(w, "kind", kind->kind);
    write_verbs(w, kind);
    write_names(w, "shortNames", kind->short_names.names, kind->short_names.count);
    write_names(w, "categories", kind->categories.names, kind->categories.count);
    json_end_object(w);
}

static void write_part(struct json_writer *w, const struct kube_kind *kind, size_t part)
{
    char name[128];
    snprintf(name, sizeof(name), "%s/%s", kind->plural, parts[part].name);
    json_begin_object(w);
    member(w, "name", name);
    member(w, "singularName", "");
    json_key(w, "namespaced");
    json_bool(w, kind->flags & KUBE_NAMESPACED);
    if (parts[part].group)
        member(w, "group", parts[part].group);
    if (parts[part].version)
        member(w, "version", parts[part].version);
    member(w, "kind", parts[part].kind ? parts[part].kind : kind->kind);
    write_names(w, "verbs", parts[part].verbs, parts[part].verb_count);
    json_end_object(w);
}

/* -- Groups: runs of the table, which is ordered -- */

struct discovery_writer {
    const struct kube_kind *const *at, *const *end;
};

static struct discovery_writer all_kinds(const struct kube_kinds *kinds)
{
    size_t count;
    const struct kube_kind *const *rows = kube_kinds_rows(kinds, &count);
    return (struct discovery_writer){rows, rows + count};
}

/* Removes the kinds of the first group from the rest and returns them. */
static struct discovery_writer take_group(struct discovery_writer *rest)
{
    struct discovery_writer group = {rest->at, rest->at};
    while (group.end < rest->end && strcmp((*group.end)->group, (*group.at)->group) == 0)
        group.end++;
    rest->at = group.end;
    return group;
}

static struct discovery_writer take_version(struct discovery_writer *rest)
{
    struct discovery_writer version = {rest->at, rest->at};
    while (version.end < rest->end && strcmp((*version.end)->version, (*version.at)->version) == 0)
        version.end++;
    rest->at = version.end;
    return version;
}

/* The versions of a group, the preferred one first. Returns their number. */
enum { VERSIONS_MAX = 64 };
static size_t versions_of(struct discovery_writer group,
                          struct discovery_writer versions[VERSIONS_MAX])
{
    size_t count = 0;
    while (group.at < group.end && count < VERSIONS_MAX) {
        struct discovery_writer version = take_version(&group);
        size_t at = count++;
        for (;
             at > 0 && kube_version_before((*version.at)->version, (*versions[at - 1].at)->version);
             at--)
            versions[at] = versions[at - 1];
        versions[at] = version;
    }
    return count;
}

static void write_version(struct json_writer *w, const struct kube_kind *kind)
{
    char text[KUBE_API_VERSION_BYTES];
    json_begin_object(w);
    member(w, "groupVersion", kube_api_version(kind, text));
    member(w, "version", kind->version);
    json_end_object(w);
}

static void write_group(struct json_writer *w, struct discovery_writer group)
{
    struct discovery_writer versions[VERSIONS_MAX];
    size_t count = versions_of(group, versions);
    member(w, "name", (*group.at)->group);
    json_key(w, "versions");
    json_begin_array(w);
    for (size_t i = 0; i < count; i++)
        write_version(w, *versions[i].at);
    json_end_array(w);
    json_key(w, "preferredVersion");
    write_version(w, *versions[0].at);
}

/* -- Documents: the old ones -- */

static void write_api_versions(struct json_writer *w, struct slice host)
{
    member(w, "kind", "APIVersions");
    json_key(w, "versions");
    json_begin_array(w);
    json_text(w, "v1");
    json_end_array(w);
    json_key(w, "serverAddressByClientCIDRs");
    json_begin_array(w);
    json_begin_object(w);
    member(w, "clientCIDR", "0.0.0.0/0");
    json_key(w, "serverAddress");
    json_string(w, host);
    json_end_object(w);
    json_end_array(w);
}

static void write_group_list(struct json_writer *w, const struct kube_kinds *kinds)
{
    struct discovery_writer rest = all_kinds(kinds);
    member(w, "kind", "APIGroupList");
    member(w, "apiVersion", "v1");
    json_key(w, "groups");
    json_begin_array(w);
    while (rest.at < rest.end) {
        struct discovery_writer group = take_group(&rest);
        if (!(*group.at)->group[0])
            continue;
        json_begin_object(w);
        write_group(w, group);
        json_end_object(w);
    }
    json_end_array(w);
}

static bool write_one_group(struct json_writer *w, const struct kube_kinds *kinds,
                            struct slice name)
{
    struct discovery_writer rest = all_kinds(kinds);
    while (rest.at < rest.end) {
        struct discovery_writer group = take_group(&rest);
        if (!slice_equal(slice_from_text((*group.at)->group), name))
            continue;
        member(w, "kind", "APIGroup");
        member(w, "apiVersion", "v1");
        write_group(w, group);
        return true;
    }
    return false;
}

static bool write_resources(struct json_writer *w, const struct kube_kinds *kinds,
                            struct slice group, struct slice version)
{
    struct discovery_writer run = all_kinds(kinds);
    char text[KUBE_API_VERSION_BYTES];
    bool found = false;
    for (; run.at < run.end; run.at++) {
        const struct kube_kind *kind = *run.at;
        if (!slice_equal(slice_from_text(kind->group), group) ||
            !slice_equal(slice_from_text(kind->version), version))
            continue;
        if (!found) {
            member(w, "kind", "APIResourceList");
            member(w, "apiVersion", "v1");
            member(w, "groupVersion", kube_api_version(kind, text));
            json_key(w, "resources");
            json_begin_array(w);
        }
        found = true;
        write_resource(w, kind);
        for (size_t i = 0; i < COUNT_OF(parts); i++)
            if (has_part(kind, i))
                write_part(w, kind, i);
    }
    if (found)
        json_end_array(w);
    return found;
}

/* -- The new one: everything at once -- */

static void write_response_kind(struct json_writer *w, const char *group, const char *version,
                                const char *kind)
{
    json_key(w, "responseKind");
    json_begin_object(w);
    member(w, "group", group);
    member(w, "version", version);
    member(w, "kind", kind);
    json_end_object(w);
}

static void write_parts_v2(struct json_writer *w, const struct kube_kind *kind)
{
    if (!(kind->flags & (KUBE_HAS_STATUS | KUBE_HAS_SCALE)))
        return;
    json_key(w, "subresources");
    json_begin_array(w);
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        if (!has_part(kind, i))
            continue;
        json_begin_object(w);
        member(w, "subresource", parts[i].name);
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
    member(w, "resource", kind->plural);
    write_response_kind(w, kind->group, kind->version, kind->kind);
    member(w, "scope", kind->flags & KUBE_NAMESPACED ? "Namespaced" : "Cluster");
    member(w, "singularResource", kind->singular);
    write_verbs(w, kind);
    write_names(w, "shortNames", kind->short_names.names, kind->short_names.count);
    write_names(w, "categories", kind->categories.names, kind->categories.count);
    write_parts_v2(w, kind);
    json_end_object(w);
}

static void write_version_v2(struct json_writer *w, struct discovery_writer version)
{
    json_begin_object(w);
    member(w, "version", (*version.at)->version);
    json_key(w, "resources");
    json_begin_array(w);
    for (; version.at < version.end; version.at++)
        write_resource_v2(w, *version.at);
    json_end_array(w);
    member(w, "freshness", "Current");
    json_end_object(w);
}

static void write_group_v2(struct json_writer *w, struct discovery_writer group)
{
    struct discovery_writer versions[VERSIONS_MAX];
    size_t count = versions_of(group, versions);
    json_begin_object(w);
    json_key(w, "metadata");
    json_begin_object(w);
    if ((*group.at)->group[0])
        member(w, "name", (*group.at)->group);
    json_key(w, "creationTimestamp");
    json_null(w);
    json_end_object(w);
    json_key(w, "versions");
    json_begin_array(w);
    for (size_t i = 0; i < count; i++)
        write_version_v2(w, versions[i]);
    json_end_array(w);
    json_end_object(w);
}

static void write_all_v2(struct json_writer *w, const struct kube_kinds *kinds, bool core)
{
    struct discovery_writer rest = all_kinds(kinds);
    member(w, "kind", "APIGroupDiscoveryList");
    member(w, "apiVersion", "apidiscovery.k8s.io/v2");
    json_key(w, "metadata");
    json_begin_object(w);
    json_end_object(w);
    json_key(w, "items");
    json_begin_array(w);
    while (rest.at < rest.end) {
        struct discovery_writer group = take_group(&rest);
        if (core == !(*group.at)->group[0])
            write_group_v2(w, group);
    }
    json_end_array(w);
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

/* False: there is no such group or version. */
static bool write_document(struct json_writer *w, const struct kube_kinds *kinds,
                           const struct http_request *request, const struct slice *steps,
                           size_t count, bool v2)
{
    bool core = slice_equal(steps[0], SLICE_LITERAL("api"));
    bool found = true;
    json_begin_object(w);
    if (count == 1 && v2)
        write_all_v2(w, kinds, core);
    else if (count == 1 && core)
        write_api_versions(w, request->host);
    else if (count == 1)
        write_group_list(w, kinds);
    else if (core)
        found = write_resources(w, kinds, SLICE_EMPTY, steps[1]);
    else if (count == 2)
        found = write_one_group(w, kinds, steps[1]);
    else
        found = write_resources(w, kinds, steps[1], steps[2]);
    json_end_object(w);
    return found;
}

static enum status respond(struct http_exchange *x, const struct kube_accept *accept,
                           struct slice json)
{
    AUTO(buf_fini) struct buf text = {0};
    AUTO(buf_fini) struct buf type = {0};
    TRY(kube_format_write(accept->format, json, &text));
    TRY(buf_append(&type, kube_format_type(accept->format)));
    if (accept->discovery_v2)
        TRY(buf_append_text(&type, ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"));
    http_respond(x, 200, buf_slice(&type), buf_slice(&text));
    return ST_OK;
}

static void not_found(struct http_exchange *x)
{
    http_respond(x, 404, SLICE_LITERAL("text/plain; charset=utf-8"),
                 SLICE_LITERAL("404 page not found\n"));
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

static bool is_document(const struct http_request *request, const struct slice *steps, size_t count)
{
    bool core = count && slice_equal(steps[0], SLICE_LITERAL("api"));
    return count > 0 && count <= (core ? 2 : 3) &&
           slice_equal(request->method, SLICE_LITERAL("GET"));
}

bool kube_is_discovery(const struct http_request *request)
{
    struct slice steps[STEPS_MAX + 1];
    return is_document(request, steps, split(request->path, steps));
}

bool kube_discovery(struct http_exchange *x, const struct http_request *request,
                    const struct kube_kinds *kinds)
{
    struct slice steps[STEPS_MAX + 1];
    size_t count = split(request->path, steps);
    if (!is_document(request, steps, count))
        return false;
    struct kube_accept accept = accept_of(request, count == 1);
    AUTO(buf_fini) struct buf text = {0};
    struct json_writer w;
    json_writer_init(&w, &text);
    bool found = write_document(&w, kinds, request, steps, count, accept.discovery_v2);
    if (json_writer_finish(&w) != ST_OK)
        http_abort(x);
    else if (!found)
        not_found(x);
    else if (respond(x, &accept, buf_slice(&text)) != ST_OK)
        http_abort(x);
    return true;
}
