#include "kubeclient/discovery/discovery.h"

#include "base/lock.h"
#include "base/memory/arena.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <vigil/kube/json.h>

/* Texts are in the table's arena; short names are separated by commas. */
struct discovery_row {
    const char *group, *version, *resource, *singular, *kind, *short_names;
    bool namespaced;
    unsigned verbs;
};

struct discovery_table {
    struct arena arena;
    struct discovery_row *rows; /* owned */
    size_t count, capacity;
};

struct discovery {
    struct lock lock;
    struct discovery_table *table; /* owned; NULL: nothing is known */
};

/* -- Life -- */

enum status discovery_new(struct discovery **ret_discovery)
{
    struct discovery *discovery = calloc(1, sizeof(*discovery));
    if (!discovery)
        return ST_NOMEM;
    lock_init(&discovery->lock);
    *ret_discovery = discovery;
    return ST_OK;
}

void discovery_free(struct discovery *discovery)
{
    if (!discovery)
        return;
    discovery_table_free(discovery->table);
    lock_fini(&discovery->lock);
    free(discovery);
}

void discovery_publish(struct discovery *discovery, struct discovery_table *table)
{
    lock_take(&discovery->lock);
    struct discovery_table *old = discovery->table;
    discovery->table = table;
    lock_release(&discovery->lock);
    discovery_table_free(old);
}

enum status discovery_table_new(struct discovery_table **ret_table)
{
    struct discovery_table *table = calloc(1, sizeof(*table));
    if (!table)
        return ST_NOMEM;
    arena_init(&table->arena, NULL, 0, DISCOVERY_BYTES_MAX);
    *ret_table = table;
    return ST_OK;
}

void discovery_table_free(struct discovery_table *table)
{
    if (!table)
        return;
    arena_fini(&table->arena);
    free(table->rows);
    free(table);
}

size_t discovery_table_count(const struct discovery_table *table)
{
    return table->count;
}

/* -- Reading documents -- */

/* One document while it is read. */
struct reading {
    struct discovery_table *table;
    struct discovery_paths *paths;
    struct error *error;
};

/* There was no room for this many bytes: because of the limit, or because memory is exhausted. */
static enum status no_memory(struct reading *r, size_t bytes)
{
    if (r->table->arena.held_bytes + bytes + _Alignof(max_align_t) > DISCOVERY_BYTES_MAX)
        return error_set(r->error, ST_LIMIT, "the server's discovery has more than %d bytes",
                         DISCOVERY_BYTES_MAX);
    return error_no_memory(r->error);
}

/* The text at a path; "" if there is none. */
static enum status read_text(struct reading *r, vigil_bytes json, const char *path,
                             const char **ret_text)
{
    vigil_bytes value;
    size_t len;
    *ret_text = "";
    if (!vigil_json_find(json, path, &value) || vigil_json_type_of(value) != VIGIL_JSON_TEXT)
        return ST_OK;
    char *text = arena_alloc(&r->table->arena, value.size);
    if (!text)
        return no_memory(r, value.size);
    if (vigil_json_text(value, text, value.size, &len) && !memchr(text, 0, len))
        *ret_text = text;
    return ST_OK;
}

/* The texts of an array, separated by commas. */
static enum status read_texts(struct reading *r, vigil_bytes json, const char *path,
                              const char **ret_text)
{
    vigil_bytes array, value;
    size_t len, at = 0;
    *ret_text = "";
    if (!vigil_json_find(json, path, &array))
        return ST_OK;
    char *text = arena_alloc(&r->table->arena, array.size + 1);
    if (!text)
        return no_memory(r, array.size + 1);
    vigil_json_iterator iterator = vigil_json_iterate(array);
    while (vigil_json_next(&iterator, NULL, &value)) {
        if (!vigil_json_text(value, text + at, array.size - at, &len) || memchr(text + at, 0, len))
            continue;
        at += len;
        text[at++] = ',';
    }
    text[at ? at - 1 : 0] = 0;
    *ret_text = text;
    return ST_OK;
}

static unsigned read_verbs(vigil_bytes resource)
{
    static const struct {
        const char *name;
        unsigned bit;
    } rows[] = {
        {"get", VIGIL_KUBE_VERB_GET},       {"list", VIGIL_KUBE_VERB_LIST},
        {"watch", VIGIL_KUBE_VERB_WATCH},   {"create", VIGIL_KUBE_VERB_CREATE},
        {"update", VIGIL_KUBE_VERB_UPDATE}, {"patch", VIGIL_KUBE_VERB_PATCH},
        {"delete", VIGIL_KUBE_VERB_DELETE}, {"deletecollection", VIGIL_KUBE_VERB_DELETE_COLLECTION},
    };
    vigil_bytes array, verb;
    unsigned bits = 0;
    if (!vigil_json_find(resource, "verbs", &array))
        return 0;
    vigil_json_iterator iterator = vigil_json_iterate(array);
    while (vigil_json_next(&iterator, NULL, &verb))
        for (size_t i = 0; i < COUNT_OF(rows); i++)
            bits |= vigil_json_is(verb, rows[i].name) ? rows[i].bit : 0;
    return bits;
}

static enum status add_row(struct reading *r, const struct discovery_row *row)
{
    struct discovery_table *t = r->table;
    if (!*row->resource || strchr(row->resource, '/') || !*row->version)
        return ST_OK; /* a subresource, or not understood */
    if (t->count == DISCOVERY_RESOURCES_MAX)
        return error_set(r->error, ST_LIMIT, "the server has more than %d resources",
                         DISCOVERY_RESOURCES_MAX);
    if (t->count == t->capacity) {
        size_t capacity = t->capacity ? 2 * t->capacity : 64;
        struct discovery_row *rows = realloc(t->rows, capacity * sizeof(*rows));
        if (!rows)
            return error_no_memory(r->error);
        t->rows = rows;
        t->capacity = capacity;
    }
    t->rows[t->count++] = *row;
    return ST_OK;
}

/* Where a resource has its texts: in aggregated documents, and in those of one version. */
struct resource_paths {
    const char *resource, *singular, *kind;
    bool has_scope; /* otherwise it has "namespaced" */
};

static bool is_namespaced(vigil_bytes resource, const struct resource_paths *paths)
{
    vigil_bytes value;
    if (paths->has_scope)
        return vigil_json_find(resource, "scope", &value) && vigil_json_is(value, "Namespaced");
    return vigil_json_find(resource, "namespaced", &value) && vigil_json_is_true(value);
}

static enum status read_resources(struct reading *r, vigil_bytes list, const char *group,
                                  const char *version, const struct resource_paths *paths)
{
    vigil_bytes resources, item;
    if (!vigil_json_find(list, "resources", &resources))
        return ST_OK;
    vigil_json_iterator iterator = vigil_json_iterate(resources);
    while (vigil_json_next(&iterator, NULL, &item)) {
        struct discovery_row row = {.group = group, .version = version};
        TRY(read_text(r, item, paths->resource, &row.resource));
        TRY(read_text(r, item, paths->singular, &row.singular));
        TRY(read_text(r, item, paths->kind, &row.kind));
        TRY(read_texts(r, item, "shortNames", &row.short_names));
        row.namespaced = is_namespaced(item, paths);
        row.verbs = read_verbs(item);
        TRY(add_row(r, &row));
    }
    return ST_OK;
}

static enum status read_aggregated(struct reading *r, vigil_bytes document)
{
    static const struct resource_paths paths = {.resource = "resource",
                                                .singular = "singularResource",
                                                .kind = "responseKind.kind",
                                                .has_scope = true};
    vigil_bytes items, group, versions, version;
    const char *group_name, *version_name;
    if (!vigil_json_find(document, "items", &items))
        return ST_OK;
    vigil_json_iterator groups = vigil_json_iterate(items);
    while (vigil_json_next(&groups, NULL, &group)) {
        TRY(read_text(r, group, "metadata.name", &group_name));
        if (!vigil_json_find(group, "versions", &versions))
            continue;
        vigil_json_iterator iterator = vigil_json_iterate(versions);
        while (vigil_json_next(&iterator, NULL, &version)) {
            TRY(read_text(r, version, "version", &version_name));
            TRY(read_resources(r, version, group_name, version_name, &paths));
        }
    }
    return ST_OK;
}

/* "apps/v1", or "v1" for the core group. */
static enum status read_version(struct reading *r, vigil_bytes document)
{
    static const struct resource_paths paths = {
        .resource = "name", .singular = "singularName", .kind = "kind"};
    const char *group_version, *group = "";
    TRY(read_text(r, document, "groupVersion", &group_version));
    char *slash = strchr((char *)(uintptr_t)group_version, '/');
    if (slash) {
        *slash = 0;
        group = group_version;
        group_version = slash + 1;
    }
    return read_resources(r, document, group, group_version, &paths);
}

/* -- Paths of versions -- */

static enum status add_path(struct reading *r, const char *before, const char *group_version)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-./";
    /* What cannot be a part of a path is ignored, so that a server cannot make us request anything
     * else. */
    if (!*group_version || group_version[strspn(group_version, letters)] != 0)
        return ST_OK;
    if (r->paths->count == DISCOVERY_VERSIONS_MAX)
        return error_set(r->error, ST_LIMIT, "the server has more than %d versions of groups",
                         DISCOVERY_VERSIONS_MAX);
    if (buf_append_format(&r->paths->texts, "%s%s", before, group_version) != ST_OK ||
        buf_append(&r->paths->texts, slice_of("", 1)) != ST_OK)
        return error_no_memory(r->error);
    r->paths->count++;
    return ST_OK;
}

static enum status read_core_versions(struct reading *r, vigil_bytes document)
{
    vigil_bytes versions, value;
    const char *text;
    if (!vigil_json_find(document, "versions", &versions))
        return ST_OK;
    vigil_json_iterator iterator = vigil_json_iterate(versions);
    while (vigil_json_next(&iterator, NULL, &value)) {
        TRY(read_text(r, value, "", &text));
        TRY(add_path(r, "/api/", text));
    }
    return ST_OK;
}

static enum status read_group(struct reading *r, vigil_bytes group)
{
    vigil_bytes versions, value;
    const char *preferred, *text;
    TRY(read_text(r, group, "preferredVersion.groupVersion", &preferred));
    TRY(add_path(r, "/apis/", preferred));
    if (!vigil_json_find(group, "versions", &versions))
        return ST_OK;
    vigil_json_iterator iterator = vigil_json_iterate(versions);
    while (vigil_json_next(&iterator, NULL, &value)) {
        TRY(read_text(r, value, "groupVersion", &text));
        if (strcmp(text, preferred) != 0)
            TRY(add_path(r, "/apis/", text));
    }
    return ST_OK;
}

static enum status read_groups(struct reading *r, vigil_bytes document)
{
    vigil_bytes groups, group;
    if (!vigil_json_find(document, "groups", &groups))
        return ST_OK;
    vigil_json_iterator iterator = vigil_json_iterate(groups);
    while (vigil_json_next(&iterator, NULL, &group))
        TRY(read_group(r, group));
    return ST_OK;
}

enum status discovery_table_read(struct discovery_table *table, struct slice document,
                                 struct discovery_paths *paths, struct error *error)
{
    static const struct {
        const char *kind;
        enum status (*read)(struct reading *r, vigil_bytes document);
    } rows[] = {
        {"APIGroupDiscoveryList", read_aggregated},
        {"APIResourceList", read_version},
        {"APIVersions", read_core_versions},
        {"APIGroupList", read_groups},
    };
    struct reading r = {table, paths, error};
    vigil_bytes bytes = vigil_bytes_of(document.ptr, document.len), kind;
    if (vigil_json_find(bytes, "kind", &kind))
        for (size_t i = 0; i < COUNT_OF(rows); i++)
            if (vigil_json_is(kind, rows[i].kind))
                return rows[i].read(&r, bytes);
    return error_set(error, ST_MALFORMED, "the server's answer is not a discovery document");
}

/* -- Finding -- */

/* "name", "name.group" or "name.version.group"; for the core group also "name.version". */
struct wanted {
    struct slice name;
    struct slice rest;           /* after the first dot; its ptr is NULL: there is no dot */
    struct slice version, group; /* version and group in the rest */
};

static bool equal(struct slice a, const char *b)
{
    return a.len == strlen(b) && strncasecmp((const char *)a.ptr, b, a.len) == 0;
}

static bool is_short_name(struct slice name, const char *short_names)
{
    struct slice rest = slice_from_text(short_names);
    while (rest.len) {
        struct slice one = slice_cut(&rest, ',');
        if (one.len == name.len &&
            strncasecmp((const char *)one.ptr, (const char *)name.ptr, one.len) == 0)
            return true;
    }
    return false;
}

static bool has_name(const struct discovery_row *row, struct slice name, unsigned pass)
{
    switch (pass) {
    case 0:
        return equal(name, row->resource);
    case 1:
        return equal(name, row->singular);
    case 2:
        return is_short_name(name, row->short_names);
    default:
        return equal(name, row->kind);
    }
}

static bool is_in_group(const struct discovery_row *row, const struct wanted *wanted)
{
    if (!wanted->rest.ptr || equal(wanted->rest, row->group))
        return true;
    return equal(wanted->version, row->version) && equal(wanted->group, row->group);
}

/* A plural name has priority over a singular one, and so on; then the order of rows counts. */
static const struct discovery_row *find(const struct discovery_table *table, const char *name)
{
    struct wanted wanted = {.rest = slice_from_text(name)};
    bool has_dot = strchr(name, '.') != NULL;
    wanted.name = slice_cut(&wanted.rest, '.');
    wanted.group = wanted.rest;
    wanted.version = slice_cut(&wanted.group, '.');
    if (!has_dot)
        wanted.rest.ptr = NULL;
    for (unsigned pass = 0; wanted.name.len && pass < 4; pass++)
        for (size_t i = 0; i < table->count; i++)
            if (has_name(&table->rows[i], wanted.name, pass) &&
                is_in_group(&table->rows[i], &wanted))
                return &table->rows[i];
    return NULL;
}

int discovery_find(struct discovery *discovery, const char *name, vigil_kube_resource *ret_resource)
{
    LOCK_SCOPE(&discovery->lock);
    if (!discovery->table)
        return VIGIL_ERROR_UNAVAILABLE;
    const struct discovery_row *row = find(discovery->table, name);
    if (!row)
        return VIGIL_ERROR_SERVER;
    vigil_kube_resource *to = ret_resource;
    *to = (vigil_kube_resource){.namespaced = row->namespaced, .verbs = row->verbs};
    snprintf(to->group, sizeof(to->group), "%s", row->group);
    snprintf(to->version, sizeof(to->version), "%s", row->version);
    snprintf(to->resource, sizeof(to->resource), "%s", row->resource);
    snprintf(to->singular, sizeof(to->singular), "%s", row->singular);
    snprintf(to->kind, sizeof(to->kind), "%s", row->kind);
    snprintf(to->short_names, sizeof(to->short_names), "%s", row->short_names);
    return VIGIL_OK;
}
