#include "kube/custom/definition_rules.h"

#include "kube/custom/definition_webhook.h"
#include "kube/types/object/condition.h"

#include <stdio.h>

static bool no_memory(const struct kube_meta *meta)
{
    return kube_fail_engine(meta->status, ST_NOMEM);
}

static bool text_of(const struct kube_meta *meta, struct json_node *node, struct slice *ret_text)
{
    return json_node_text(node, meta->arena, ret_text) == ST_OK || no_memory(meta);
}

static bool set(const struct kube_meta *meta, struct json_node *object, const char *key,
                struct json_node *value)
{
    return (value && json_node_set(meta->arena, object, slice_from_text(key), value) == ST_OK) ||
           no_memory(meta);
}

static struct json_node *first_of(struct json_node *list)
{
    return list && list->type == JSON_TYPE_ARRAY ? json_node_first(list) : NULL;
}

/* -- Defaults -- */

static bool set_names(const struct kube_meta *meta, struct json_node *names)
{
    struct slice kind, singular, list;
    AUTO(buf_fini) struct buf text = {0};
    if (!text_of(meta, json_node_named(names, "kind"), &kind) ||
        !text_of(meta, json_node_named(names, "singular"), &singular) ||
        !text_of(meta, json_node_named(names, "listKind"), &list))
        return false;
    /* Without a kind there is nothing to derive names from; validation reports it. */
    if (!kind.len || buf_append(&text, kind) != ST_OK || buf_append_text(&text, "List") != ST_OK)
        return !kind.len || no_memory(meta);
    if (!list.len && !kube_meta_set_text(meta, names, "listKind", buf_slice(&text)))
        return false;
    for (size_t i = 0; i < kind.len; i++)
        if (text.ptr[i] >= 'A' && text.ptr[i] <= 'Z')
            text.ptr[i] |= 0x20;
    return singular.len ||
           kube_meta_set_text(meta, names, "singular", slice_of(text.ptr, kind.len));
}

bool kube_definition_set_defaults(const struct kube_meta *meta, struct json_node *object)
{
    struct json_node *spec, *names, *conversion;
    if (!kube_meta_object(meta, object, "spec", &spec) ||
        !kube_meta_object(meta, spec, "names", &names) || !set_names(meta, names))
        return false;
    /* Go omits it when it is false. */
    struct json_node *preserves = json_node_named(spec, "preserveUnknownFields");
    if (preserves && preserves->type == JSON_TYPE_BOOL && !preserves->truth)
        json_node_remove(spec, preserves);
    conversion = json_node_named(spec, "conversion");
    struct json_node *service = json_node_path(conversion, "webhook.clientConfig.service");
    if (service && service->type == JSON_TYPE_OBJECT &&
        !json_node_is_set(json_node_named(service, "port")) &&
        !set(meta, service, "port", json_node_new_int(meta->arena, 443)))
        return false;
    return (conversion && conversion->type == JSON_TYPE_OBJECT) ||
           (kube_meta_object(meta, spec, "conversion", &conversion) &&
            kube_meta_set_text(meta, conversion, "strategy", SLICE_LITERAL("None")));
}

/* -- Status -- */

static bool is_text(struct slice name, const char *text)
{
    return slice_equal(name, slice_from_text(text));
}

static bool is_among(struct slice name, const struct kube_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        if (is_text(name, names->names[i]))
            return true;
    return false;
}

/* Another definition of the group uses the name. Kinds and resources do not conflict. */
static bool is_used(const struct kube_kinds *kinds, struct slice own, struct slice group,
                    struct slice name, bool kind)
{
    size_t count;
    struct kube_definition *const *all = kube_kinds_definitions(kinds, &count);
    for (size_t i = 0; i < count; i++) {
        const struct kube_definition_names *names = &all[i]->names;
        /* A definition does not conflict with itself, nor with those of other groups. */
        if (slice_equal(all[i]->name, own) || !is_text(group, all[i]->group))
            continue;
        /* A plural is in use once it has been accepted; a kind has been accepted with it. */
        bool used = kind
                        ? is_text(name, names->kind) || is_text(name, names->list_kind)
                        : (names->kind[0] && is_text(name, names->plural)) ||
                              is_text(name, names->singular) || is_among(name, &names->short_names);
        if (used && name.len)
            return true;
    }
    return false;
}

struct naming {
    const struct kube_meta *meta;
    const struct kube_kinds *kinds;
    struct slice own, group;
    struct json_node *wanted, *accepted;
    const struct json_node *spec;
    const char *reason; /* reason of the conflict; NULL: there is none */
    char message[640];
};

static void conflict(struct naming *s, const char *reason, struct slice name)
{
    size_t len = s->reason && strcmp(s->reason, reason) == 0 ? strlen(s->message) : 0;
    s->reason = reason;
    snprintf(s->message + len, sizeof(s->message) - len, "%s\"%.*s\" is already in use",
             len ? ", " : "", (int)size_min(name.len, 64), (const char *)name.ptr);
}

static bool accept_name(struct naming *s, const char *key, bool kind, const char *reason)
{
    struct slice wanted, had;
    if (!text_of(s->meta, json_node_named(s->wanted, key), &wanted) ||
        !text_of(s->meta, json_node_named(s->accepted, key), &had))
        return false;
    if (!slice_equal(wanted, had) && is_used(s->kinds, s->own, s->group, wanted, kind)) {
        conflict(s, reason, wanted);
        /* A name that was accepted before stays, so that the resource is served under it. */
        return had.len || kube_meta_set_text(s->meta, s->accepted, key, SLICE_EMPTY);
    }
    return kube_meta_set_text(s->meta, s->accepted, key, wanted);
}

/* A list is accepted as a whole or not at all. */
static bool copy_list(struct naming *s, const char *key)
{
    struct json_node *list = json_node_named(s->wanted, key);
    struct json_node *had = json_node_named(s->accepted, key);
    if (list)
        return set(s->meta, s->accepted, key, json_node_copy(s->meta->arena, list));
    if (had)
        json_node_remove(s->accepted, had);
    return true;
}

static bool accept_short_names(struct naming *s)
{
    struct json_node *had = json_node_named(s->accepted, "shortNames");
    const struct json_node *list = json_node_named(s->wanted, "shortNames");
    bool fine = true;
    /* Only a client of the etcd API can have written so many. */
    if (list && list->type == JSON_TYPE_ARRAY && list->count > KUBE_NAMES_MAX)
        return true;
    for (struct json_node *item = first_of(json_node_named(s->wanted, "shortNames")); item;
         item = json_node_next(item)) {
        struct json_node *same = first_of(had);
        struct slice name;
        while (same && !json_node_equal(same, item))
            same = json_node_next(same);
        if (!text_of(s->meta, item, &name))
            return false;
        if (!same && is_used(s->kinds, s->own, s->group, name, false)) {
            conflict(s, "ShortNamesConflict", name);
            fine = false;
        }
    }
    return !fine || copy_list(s, "shortNames");
}

static bool accept_names(struct naming *s)
{
    return accept_name(s, "plural", false, "PluralConflict") &&
           accept_name(s, "singular", false, "SingularConflict") && accept_short_names(s) &&
           accept_name(s, "kind", true, "KindConflict") &&
           accept_name(s, "listKind", true, "ListKindConflict") && copy_list(s, "categories");
}

static bool set_conditions(struct naming *s, struct json_node *status)
{
    struct json_node *established = kube_condition_find(status, "Established");
    bool serves = established && json_node_is_text(json_node_named(established, "status"), "True");
    bool set_names = s->reason
                         ? kube_condition_set(s->meta, status, "NamesAccepted", false, s->reason,
                                              slice_from_text(s->message))
                         : kube_condition_set(s->meta, status, "NamesAccepted", true, "NoConflicts",
                                              SLICE_LITERAL("no conflicts found"));
    struct error ignored = {0};
    /* A definition that has been established once remains so. */
    if (!set_names || serves)
        return set_names;
    if (!s->reason && kube_definition_authorities(s->meta->arena, s->spec, &ignored) == ST_INVALID)
        return kube_condition_set(s->meta, status, "Established", false, "InvalidCABundle",
                                  SLICE_LITERAL("The conversion webhook CABundle is invalid"));
    return s->reason
               ? kube_condition_set(s->meta, status, "Established", false, "NotAccepted",
                                    SLICE_LITERAL("not all names are accepted"))
               : kube_condition_set(s->meta, status, "Established", true, "InitialNamesAccepted",
                                    SLICE_LITERAL("the initial names have been accepted"));
}

static void forget_conversion(struct json_node *object, struct json_node *status)
{
    const struct json_node *versions = json_node_path(object, "spec.versions");
    struct json_node *condition = kube_condition_find(status, KUBE_CONVERSION_FAILING);
    bool converts =
        json_node_is_text(json_node_path(object, "spec.conversion.strategy"), "Webhook") &&
        versions && versions->count > 1;
    if (condition && !converts)
        json_node_remove(json_node_named(status, "conditions"), condition);
}

bool kube_definition_report_conversion(const struct kube_meta *meta, struct json_node *object,
                                       enum conversion_failure failure, const char *from,
                                       const char *to)
{
    static const struct {
        const char *reason, *what;
    } rows[] = {
        [CONVERSION_FINE] = {"ConversionsSucceed", ""},
        [CONVERSION_CALL_FAILED] = {"WebhookCallFailed",
                                    "it could not be called, or has answered with an error"},
        [CONVERSION_MALFORMED] = {"MalformedAnswer", "it has not answered the question, or says "
                                                     "that it has failed"},
        [CONVERSION_PARTIAL] = {"IncompleteAnswer", "it has answered with another number of "
                                                    "objects"},
        [CONVERSION_INVALID_OBJECT] = {"InvalidObject", "it has answered with an object that is "
                                                        "not valid"},
    };
    _Static_assert(COUNT_OF(rows) == CONVERSION_FAILURES, "each failure has a reason");
    char text[512];
    struct json_node *status;
    snprintf(text, sizeof(text),
             "The conversion webhook has not converted from %s to %s: %s. Requests that need it "
             "are answered with the error",
             from, to, rows[failure].what);
    if (failure == CONVERSION_FINE)
        snprintf(text, sizeof(text), "The conversion webhook converts again");
    return kube_meta_object(meta, object, "status", &status) &&
           kube_condition_set(meta, status, KUBE_CONVERSION_FAILING, failure != CONVERSION_FINE,
                              rows[failure].reason, slice_from_text(text));
}

bool kube_definition_add_stored_version(const struct kube_meta *meta, struct json_node *object,
                                        struct json_node *status)
{
    struct json_node *list, *version = first_of(json_node_path(object, "spec.versions"));
    struct slice name;
    for (; version; version = json_node_next(version)) {
        const struct json_node *storage = json_node_named(version, "storage");
        if (storage && storage->type == JSON_TYPE_BOOL && storage->truth)
            break;
    }
    if (!version || !kube_meta_array(meta, status, "storedVersions", &list) ||
        !text_of(meta, json_node_named(version, "name"), &name))
        return !version;
    struct json_node *item = json_node_first(list);
    while (item && !json_node_equal(item, json_node_named(version, "name")))
        item = json_node_next(item);
    if (item)
        return true;
    struct json_node *added = json_node_new_text(meta->arena, name);
    return (added && json_node_insert(list, NULL, added) == ST_OK) || no_memory(meta);
}

bool kube_definition_accept_names(const struct kube_meta *meta, struct json_node *object,
                                  const struct kube_kinds *kinds)
{
    struct naming s = {.meta = meta, .kinds = kinds};
    struct json_node *status;
    s.wanted = json_node_path(object, "spec.names");
    s.spec = json_node_named(object, "spec");
    if (!kube_meta_object(meta, object, "status", &status))
        return false;
    forget_conversion(object, status);
    return kube_meta_object(meta, status, "acceptedNames", &s.accepted) &&
           text_of(meta, json_node_path(object, "metadata.name"), &s.own) &&
           text_of(meta, json_node_path(object, "spec.group"), &s.group) && accept_names(&s) &&
           set_conditions(&s, status) && kube_definition_add_stored_version(meta, object, status);
}

/* -- Deleting -- */

bool kube_definition_mark(const struct kube_meta *meta, struct json_node *object)
{
    struct json_node *metadata = json_node_named(object, "metadata"), *status, *finalizers;
    char now[KUBE_TIME_BYTES];
    kube_time_text(meta->now_s, now);
    if (!kube_meta_set_text(meta, metadata, "deletionTimestamp", slice_from_text(now)) ||
        !kube_meta_array(meta, metadata, "finalizers", &finalizers) ||
        !kube_meta_object(meta, object, "status", &status))
        return false;
    if (!kube_meta_has_finalizer(object, KUBE_CLEANUP_FINALIZER)) {
        struct json_node *ours =
            json_node_new_text(meta->arena, SLICE_LITERAL(KUBE_CLEANUP_FINALIZER));
        if (!ours || json_node_insert(finalizers, NULL, ours) != ST_OK)
            return no_memory(meta);
    }
    return kube_condition_set(meta, status, "Terminating", true, "InstanceDeletionPending",
                              SLICE_LITERAL("CustomResourceDefinition marked for deletion; "
                                            "CustomResource deletion will begin soon"));
}

bool kube_definition_release(const struct kube_meta *meta, struct json_node *object, bool *ret_ours,
                             bool *ret_held)
{
    struct json_node *list = json_node_path(object, "metadata.finalizers"), *status;
    struct json_node *item = first_of(list);
    while (item && !json_node_is_text(item, KUBE_CLEANUP_FINALIZER))
        item = json_node_next(item);
    if (item)
        json_node_remove(list, item);
    *ret_ours = item;
    *ret_held = kube_meta_has_finalizers(object);
    return !item ||
           (kube_meta_object(meta, object, "status", &status) &&
            kube_condition_set(meta, status, "Terminating", false, "InstanceDeletionCompleted",
                               SLICE_LITERAL("removed all instances")));
}
