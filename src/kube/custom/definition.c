#include "kube/custom/definition.h"

#include "base/xalloc.h"
#include "kube/custom/conversion_review.h"
#include "kube/types/go_text.h"
#include "kube/webhook/target.h"

#include <stdio.h>
#include <stdlib.h>

/* Builds a definition from a tree that is freed afterwards. */
struct definition_builder {
    struct kube_definition *definition;
    struct schema_pool *pool;
    struct arena *scratch; /* holds the tree */
    bool no_memory;
};

/* -- Helpers -- */

static void *make(struct definition_builder *m, size_t count, size_t bytes_each)
{
    void *made = count ? arena_calloc(&m->definition->arena, count, bytes_each) : NULL;
    m->no_memory |= count && !made;
    return made;
}

static const char *make_text(struct definition_builder *m, struct slice text)
{
    char *copy = make(m, text.len + 1, 1);
    if (copy)
        slice_copy(copy, text);
    return copy ? copy : "";
}

/* Returns "" if there is no text. */
static const char *get_text(struct definition_builder *m, const struct json_node *node,
                            const char *key)
{
    struct slice text = SLICE_EMPTY;
    m->no_memory |= json_node_text(json_node_named(node, key), m->scratch, &text) != ST_OK;
    return make_text(m, text);
}

static const char *get_optional(struct definition_builder *m, const struct json_node *node,
                                const char *key)
{
    const char *text = get_text(m, node, key);
    return text[0] ? text : NULL;
}

static bool get_bool(const struct json_node *node, const char *key)
{
    const struct json_node *member = json_node_named(node, key);
    return member && member->type == JSON_TYPE_BOOL && member->truth;
}

static const struct json_node *get_array(const struct json_node *node, const char *key)
{
    const struct json_node *member = json_node_named(node, key);
    return member && member->type == JSON_TYPE_ARRAY ? member : NULL;
}

static struct kube_names get_names(struct definition_builder *m, const struct json_node *node,
                                   const char *key)
{
    const struct json_node *list = get_array(node, key);
    size_t count = 0, all = list ? size_min(list->count, KUBE_NAMES_MAX) : 0;
    const char **names = make(m, all, sizeof(*names));
    const struct json_node *item = all ? list->first : NULL;
    for (; names && count < all; item = item->next) {
        struct slice text;
        m->no_memory |= json_node_text(item, m->scratch, &text) != ST_OK;
        names[count++] = make_text(m, text);
    }
    return (struct kube_names){names, count};
}

static bool has_condition(const struct json_node *object, const char *type)
{
    const struct json_node *list = get_array(json_node_named(object, "status"), "conditions");
    for (const struct json_node *item = list ? list->first : NULL; item; item = item->next)
        if (json_node_is_text(json_node_named(item, "type"), type))
            return json_node_is_text(json_node_named(item, "status"), "True");
    return false;
}

/* -- Versions -- */

static int digits_of(const char **at)
{
    int number = 0;
    while (**at >= '0' && **at <= '9' && number < 100000000)
        number = number * 10 + *(*at)++ - '0';
    return number;
}

/* False: the text has none of the forms v1, v1beta1, v1alpha1. */
static bool version_parse(const char *text, struct kube_version_rank *rank)
{
    const char *at = text;
    if (*at++ != 'v' || *at < '1' || *at > '9')
        return false;
    rank->major = digits_of(&at);
    rank->stage = 3;
    rank->minor = 0;
    if (!*at)
        return true;
    rank->stage = strncmp(at, "beta", 4) == 0 ? 2 : strncmp(at, "alpha", 5) == 0 ? 1 : 0;
    at += rank->stage == 2 ? 4 : 5;
    if (!rank->stage || *at < '1' || *at > '9')
        return false;
    rank->minor = digits_of(&at);
    return !*at;
}

struct kube_version_rank kube_version_rank(const char *version)
{
    struct kube_version_rank rank = {.text = version};
    if (!version_parse(version, &rank))
        rank.stage = 0;
    return rank;
}

int kube_version_rank_compare(const struct kube_version_rank *a, const struct kube_version_rank *b)
{
    if (a->stage != b->stage)
        return a->stage > b->stage ? -1 : 1;
    if (!a->stage)
        return strcmp(a->text, b->text);
    if (a->major != b->major)
        return a->major > b->major ? -1 : 1;
    return (a->minor < b->minor) - (a->minor > b->minor);
}

bool kube_version_before(const char *a, const char *b)
{
    struct kube_version_rank x = kube_version_rank(a), y = kube_version_rank(b);
    return kube_version_rank_compare(&x, &y) < 0;
}

static int version_order(const void *a, const void *b)
{
    const char *x = ((const struct kube_custom *)a)->kind.version;
    const char *y = ((const struct kube_custom *)b)->kind.version;
    return kube_version_before(x, y) ? -1 : kube_version_before(y, x);
}

static const char *column_description(struct definition_builder *m, const char *path)
{
    char text[512];
    snprintf(text, sizeof(text), "Custom resource definition column (in JSONPath format): %s",
             path);
    return make_text(m, slice_from_text(text));
}

/* The default column of definitions without columns. */
static void set_age(struct definition_builder *m, struct kube_custom_column *column)
{
    static const char path[] = ".metadata.creationTimestamp";
    *column = (struct kube_custom_column){.name = "Age", .type = "date", .format = ""};
    column->description = column_description(m, path);
    m->no_memory |=
        jsonpath_parse(&m->definition->arena, slice_from_text(path), &column->path) == ST_NOMEM;
}

static void set_columns(struct definition_builder *m, struct kube_custom *custom,
                        const struct json_node *version)
{
    const struct json_node *list = get_array(version, "additionalPrinterColumns");
    size_t count = list ? size_min(list->count, KUBE_COLUMNS_MAX) : 0;
    const struct json_node *item = list ? list->first : NULL;
    custom->columns = make(m, count ? count : 1, sizeof(*custom->columns));
    if (!count && custom->columns)
        set_age(m, &custom->columns[custom->column_count++]);
    for (size_t i = 0; custom->columns && i < count; i++, item = item->next) {
        struct kube_custom_column *column = &custom->columns[custom->column_count++];
        const char *path = get_text(m, item, "jsonPath");
        column->name = get_text(m, item, "name");
        column->type = get_text(m, item, "type");
        column->format = get_text(m, item, "format");
        column->description = get_optional(m, item, "description");
        if (!json_node_int(json_node_named(item, "priority"), &column->priority))
            column->priority = 0;
        enum status status =
            jsonpath_parse(&m->definition->arena, slice_from_text(path), &column->path);
        m->no_memory |= status == ST_NOMEM;
        if (!column->description)
            column->description = column_description(m, path);
    }
}

/* A selectable field ".spec.color" is selected as "spec.color". */
static void set_fields(struct definition_builder *m, struct kube_custom *custom,
                       const struct json_node *version)
{
    const struct json_node *list = get_array(version, "selectableFields");
    size_t count = list ? size_min(list->count, KUBE_SELECTABLE_MAX) : 0;
    const char **names = make(m, count, sizeof(*names));
    const struct json_node *item = list ? list->first : NULL;
    for (size_t i = 0; names && i < count; i++, item = item->next) {
        names[i] = get_text(m, item, "jsonPath");
        names[i] += names[i][0] == '.';
    }
    custom->kind.fields = (struct kube_names){names, names ? count : 0};
}

static const char *scale_path(struct definition_builder *m, const struct json_node *scale,
                              const char *key)
{
    const char *path = get_optional(m, scale, key);
    return path && path[0] == '.' ? path + 1 : path;
}

static void set_subresources(struct definition_builder *m, struct kube_custom *custom,
                             const struct json_node *version)
{
    const struct json_node *all = json_node_named(version, "subresources");
    const struct json_node *status = json_node_named(all, "status");
    const struct json_node *scale = json_node_named(all, "scale");
    if (status && status->type == JSON_TYPE_OBJECT)
        custom->kind.flags |= KUBE_HAS_STATUS;
    if (!scale || scale->type != JSON_TYPE_OBJECT)
        return;
    custom->kind.flags |= KUBE_HAS_SCALE;
    custom->replicas_path = scale_path(m, scale, "specReplicasPath");
    custom->status_replicas_path = scale_path(m, scale, "statusReplicasPath");
    custom->selector_path = scale_path(m, scale, "labelSelectorPath");
}

/* The best version that is served instead of a deprecated one; "": there is none. */
static const char *better_version(struct definition_builder *m, const struct json_node *versions,
                                  const char *deprecated)
{
    const char *best = "";
    for (const struct json_node *v = versions->first; v; v = v->next) {
        const char *name = get_text(m, v, "name");
        if (get_bool(v, "served") && !get_bool(v, "deprecated") &&
            kube_version_before(name, best[0] ? best : deprecated))
            best = name;
    }
    return best;
}

static void set_warning(struct definition_builder *m, struct kube_custom *custom,
                        const struct json_node *versions, const struct json_node *version)
{
    const struct kube_definition *d = m->definition;
    char text[1024];
    if (!get_bool(version, "deprecated"))
        return;
    custom->warning = get_optional(m, version, "deprecationWarning");
    if (custom->warning)
        return;
    const char *better = better_version(m, versions, custom->kind.version);
    int len = snprintf(text, sizeof(text), "%.253s/%.64s %.64s is deprecated", d->group,
                       custom->kind.version, d->names.kind);
    if (better[0])
        snprintf(text + len, sizeof(text) - (size_t)len, "; use %.253s/%.64s %.64s", d->group,
                 better, d->names.kind);
    custom->warning = make_text(m, slice_from_text(text));
}

/* Removes the schema from the version, so that the rest can be stored without it. */
static void set_schema(struct definition_builder *m, struct kube_custom *custom,
                       struct json_node *version)
{
    AUTO(buf_fini) struct buf text = {0};
    struct json_node *parent = json_node_named(version, "schema");
    struct json_node *schema = json_node_named(parent, "openAPIV3Schema");
    if (schema)
        m->no_memory |= json_tree_write(schema, &text) != ST_OK;
    custom->schema = schema_pool_get(m->pool, buf_slice(&text));
    if (schema)
        json_node_remove(parent, schema);
}

static void set_version(struct definition_builder *m, struct kube_custom *custom,
                        const struct json_node *versions, struct json_node *version)
{
    struct kube_definition *d = m->definition;
    char prefix[1024];
    snprintf(prefix, sizeof(prefix), "/registry/%.400s/%.400s/", d->group, d->names.plural);
    custom->definition = d;
    custom->served = get_bool(version, "served");
    custom->kind = (struct kube_kind){
        .group = d->group,
        .version = get_text(m, version, "name"),
        .kind = d->names.kind,
        .list_kind = d->names.list_kind,
        .plural = d->names.plural,
        .singular = d->names.singular,
        .storage_prefix = make_text(m, slice_from_text(prefix)),
        .flags = KUBE_CUSTOM | KUBE_HAS_GENERATION | (d->namespaced ? KUBE_NAMESPACED : 0),
        .short_names = d->names.short_names,
        .categories = d->names.categories,
    };
    set_columns(m, custom, version);
    set_fields(m, custom, version);
    set_subresources(m, custom, version);
    set_warning(m, custom, versions, version);
    set_schema(m, custom, version);
}

static enum status set_versions(struct definition_builder *m, struct json_node *spec)
{
    struct kube_definition *d = m->definition;
    struct json_node *list = json_node_named(spec, "versions");
    char text[512];
    if (!list || list->type != JSON_TYPE_ARRAY || !list->count)
        return ST_MALFORMED;
    if (list->count > KUBE_VERSIONS_MAX)
        return ST_LIMIT;
    d->versions = make(m, list->count, sizeof(*d->versions));
    struct json_node *item = d->versions ? json_node_first(list) : NULL;
    for (; item; item = json_node_next(item)) {
        struct kube_custom *custom = &d->versions[d->version_count++];
        set_version(m, custom, list, item);
        snprintf(text, sizeof(text), "%.400s/%.64s", d->group, custom->kind.version);
        if (get_bool(item, "storage"))
            d->api_version = make_text(m, slice_from_text(text));
    }
    if (!d->api_version)
        return ST_MALFORMED;
    qsort(d->versions, d->version_count, sizeof(*d->versions), version_order);
    d->storage = kube_definition_version(d, slice_from_text(d->api_version));
    return ST_OK;
}

/* A webhook whose configuration cannot be used makes conversions fail, and nothing else. */
static void set_webhook(struct definition_builder *m, const struct json_node *object)
{
    struct kube_definition *d = m->definition;
    const struct json_node *spec = json_node_named(object, "spec");
    const struct json_node *stored = json_node_items_at(object, "status.storedVersions");
    const struct json_node *webhook = json_node_path(spec, "conversion.webhook");
    d->webhook.converts =
        json_node_text_is(spec, "conversion.strategy", "Webhook") && d->version_count > 1;
    if (!d->webhook.converts)
        return;
    d->webhook.mixed =
        !stored || stored->next || !json_node_is_text(stored, d->storage->kind.version);
    const struct json_node *client = json_node_named(webhook, "clientConfig");
    struct kube_webhook_target *target =
        (struct kube_webhook_target *)(uintptr_t)kube_webhook_target_read(&d->arena, client);
    /* As in Kubernetes, authorities of white space alone count as absent. */
    if (target && !go_trim(target->ca_pem).len)
        target->ca_pem = SLICE_EMPTY;
    d->webhook.target = target;
    d->webhook.review_version =
        conversion_review_version(json_node_named(webhook, "conversionReviewVersions"));
}

/* -- The definition -- */

static bool is_builtin_group(const char *group)
{
    size_t count;
    const struct kube_kind *kinds = kube_builtin_kinds(&count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(kinds[i].group, group) == 0)
            return true;
    return false;
}

static void set_names(struct definition_builder *m, const struct json_node *object)
{
    struct kube_definition *d = m->definition;
    const struct json_node *spec = json_node_named(object, "spec");
    const struct json_node *requested = json_node_named(spec, "names");
    const struct json_node *accepted = json_node_path(object, "status.acceptedNames");
    d->group = get_text(m, spec, "group");
    d->names = (struct kube_definition_names){
        .plural = get_text(m, requested, "plural"),
        .singular = get_text(m, accepted, "singular"),
        .kind = get_text(m, accepted, "kind"),
        .list_kind = get_text(m, accepted, "listKind"),
        .short_names = get_names(m, accepted, "shortNames"),
        .categories = get_names(m, accepted, "categories"),
    };
    d->builtin_group = is_builtin_group(d->group);
    d->namespaced = json_node_is_text(json_node_named(spec, "scope"), "Namespaced");
    /* Conditions can be written by any client; deletionTimestamp is set only by a delete. */
    d->terminating = json_node_path(object, "metadata.deletionTimestamp");
    d->accepted = has_condition(object, "NamesAccepted");
    d->conversion_failing = has_condition(object, KUBE_CONVERSION_FAILING);
    d->established = has_condition(object, "Established") && d->names.kind[0];
}

static enum status fill(struct definition_builder *m, struct json_node *object)
{
    AUTO(buf_fini) struct buf rest = {0};
    struct kube_definition *d = m->definition;
    struct slice name = SLICE_EMPTY;
    TRY(json_node_text(json_node_path(object, "metadata.name"), m->scratch, &name));
    TRY(arena_dup(&d->arena, name, &d->name));
    set_names(m, object);
    if (!name.len || !d->group[0] || !d->names.plural[0])
        return ST_MALFORMED;
    TRY(set_versions(m, json_node_named(object, "spec")));
    set_webhook(m, object);
    TRY(json_tree_write(json_node_named(object, "spec"), &rest));
    TRY(arena_dup(&d->arena, buf_slice(&rest), &d->rest));
    return m->no_memory ? ST_LIMIT : ST_OK;
}

enum status kube_definition_new(struct schema_pool *pool, struct slice text, int64_t revision,
                                struct kube_definition **ret_definition)
{
    struct arena scratch;
    struct json_node *object;
    struct error error;
    struct kube_definition *d = xcalloc(1, sizeof(*d));
    d->refs = 1;
    d->revision = d->spec_revision = revision;
    arena_init(&d->arena, NULL, 0, KUBE_DEFINITION_BYTES_MAX);
    arena_init(&scratch, NULL, 0, SCHEMA_BYTES_MAX);
    struct definition_builder m = {.definition = d, .pool = pool, .scratch = &scratch};
    enum status status = json_tree_read(&scratch, text, &object, &error);
    if (status == ST_OK)
        status = fill(&m, object);
    arena_fini(&scratch);
    if (status == ST_OK)
        *ret_definition = d;
    else
        kube_definition_unref(d);
    return status;
}

struct kube_definition *kube_definition_ref(struct kube_definition *definition)
{
    definition->refs++;
    return definition;
}

void kube_definition_unref(struct kube_definition *definition)
{
    if (!definition || --definition->refs)
        return;
    for (size_t i = 0; i < definition->version_count; i++)
        pool_schema_unref(definition->versions[i].schema);
    arena_fini(&definition->arena);
    free(definition);
}

const struct schema *kube_custom_schema(struct kube_custom *custom)
{
    return pool_schema_compiled(custom->schema);
}

const struct kube_custom *kube_definition_version(const struct kube_definition *definition,
                                                  struct slice api_version)
{
    char text[KUBE_API_VERSION_BYTES];
    for (size_t i = 0; i < definition->version_count; i++)
        if (slice_is(api_version, kube_kind_api_version(&definition->versions[i].kind, text)))
            return &definition->versions[i];
    return NULL;
}

/*
 * The versions are ordered, and equal schema texts share one schema, so pointers can be compared.
 */
bool kube_definition_same_spec(const struct kube_definition *a, const struct kube_definition *b)
{
    bool same = slice_equal(a->rest, b->rest) && a->version_count == b->version_count;
    for (size_t i = 0; same && i < a->version_count; i++)
        same = a->versions[i].schema == b->versions[i].schema;
    return same;
}
