#include "kube/types/object/meta_private.h"

#include "kube/types/object/kind_rules.h"

#include <stdio.h>

/* The members of metadata that are stored, in the order in which they are written. */
static const char *const order[] = {
    "name",          "generateName",      "namespace",         "uid",
    "generation",    "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds",
    "labels",        "annotations",       "ownerReferences",   "finalizers",
    "managedFields",
};

/* -- Helpers -- */

static bool set(const struct kube_meta *meta, struct json_node *object, const char *key,
                struct json_node *value)
{
    return json_node_put(meta->arena, object, key, value) == ST_OK ||
           kube_fail_engine(meta->status, ST_NOMEM);
}

bool kube_meta_set_text(const struct kube_meta *meta, struct json_node *object, const char *key,
                        struct slice text)
{
    return set(meta, object, key, json_node_new_text(meta->arena, text));
}

bool kube_meta_set_int(const struct kube_meta *meta, struct json_node *object, const char *key,
                       int64_t value)
{
    return set(meta, object, key, json_node_new_int(meta->arena, value));
}

bool kube_meta_object(const struct kube_meta *meta, struct json_node *parent, const char *key,
                      struct json_node **ret_object)
{
    struct json_node *object = json_node_named(parent, key);
    if (!object || object->type != JSON_TYPE_OBJECT) {
        object = json_node_new(meta->arena, JSON_TYPE_OBJECT);
        if (!set(meta, parent, key, object))
            return false;
    }
    *ret_object = object;
    return true;
}

bool kube_meta_array(const struct kube_meta *meta, struct json_node *parent, const char *key,
                     struct json_node **ret_array)
{
    struct json_node *array = json_node_named(parent, key);
    if (!array || array->type != JSON_TYPE_ARRAY) {
        array = json_node_new(meta->arena, JSON_TYPE_ARRAY);
        if (!set(meta, parent, key, array))
            return false;
    }
    *ret_array = array;
    return true;
}

static void drop(struct json_node *object, const char *key)
{
    struct json_node *member = json_node_named(object, key);
    if (member)
        json_node_remove(object, member);
}

static bool get_text(const struct kube_meta *meta, const struct json_node *object, const char *key,
                     struct slice *ret_text)
{
    return json_node_text(json_node_named(object, key), meta->arena, ret_text) == ST_OK ||
           kube_fail_engine(meta->status, ST_NOMEM);
}

/* Replaces a member of `object` by that of `old`, or removes it if `old` has none. */
static bool take_from(const struct kube_meta *meta, struct json_node *object,
                      const struct json_node *old, const char *key)
{
    const struct json_node *value = json_node_named(old, key);
    if (value)
        return set(meta, object, key, json_node_copy(meta->arena, value));
    drop(object, key);
    return true;
}

#define metadata_of(object) json_node_named(object, "metadata")

bool kube_meta_is_deleting(const struct json_node *object)
{
    const struct json_node *at = json_node_path(object, "metadata.deletionTimestamp");
    return at && at->type == JSON_TYPE_STRING;
}

bool kube_meta_has_finalizers(const struct json_node *object)
{
    const struct json_node *list = json_node_path(object, "metadata.finalizers");
    return list && list->type == JSON_TYPE_ARRAY && list->first;
}

bool kube_meta_has_finalizer(const struct json_node *object, const char *finalizer)
{
    const struct json_node *item = json_node_items_at(object, "metadata.finalizers");
    while (item && !json_node_is_text(item, finalizer))
        item = item->next;
    return item;
}

/* -- Creating -- */

/*
 * The alphabet that Kubernetes uses for generated names: no vowels, no characters that look alike.
 */
static const char letters[] = "bcdfghjklmnpqrstvwxz2456789";
enum { NAME_RANDOM_BYTES = 5, NAME_BASE_BYTES_MAX = 63 - NAME_RANDOM_BYTES };

static bool make_name(const struct kube_meta *meta, struct json_node *metadata, struct slice base)
{
    uint8_t name[NAME_BASE_BYTES_MAX + NAME_RANDOM_BYTES];
    /* As in Kubernetes, the base is cut so that the whole name fits into a DNS label. */
    base.len = size_min(base.len, NAME_BASE_BYTES_MAX);
    slice_copy(name, base);
    for (size_t i = 0; i < NAME_RANDOM_BYTES; i++)
        name[base.len + i] = (uint8_t)letters[random_below(meta->random, sizeof(letters) - 1)];
    return kube_meta_set_text(meta, metadata, "name", slice_of(name, base.len + NAME_RANDOM_BYTES));
}

bool kube_meta_rename(const struct kube_meta *meta, struct json_node *object)
{
    struct json_node *metadata = metadata_of(object);
    struct slice base;
    if (!get_text(meta, metadata, "generateName", &base) || !base.len)
        return false;
    return make_name(meta, metadata, base);
}

void kube_uid_make(struct random *random, char text[KUBE_UID_BYTES])
{
    static const char digits[] = "0123456789abcdef";
    uint8_t b[16];
    char *at = text;
    random_fill(random, b, sizeof(b));
    b[6] = (uint8_t)((b[6] & 0x0f) | 0x40); /* UUID version 4 */
    b[8] = (uint8_t)((b[8] & 0x3f) | 0x80);
    for (size_t i = 0; i < sizeof(b); i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *at++ = '-';
        *at++ = digits[b[i] >> 4];
        *at++ = digits[b[i] & 0xf];
    }
    *at = '\0';
}

static bool set_uid(const struct kube_meta *meta, struct json_node *metadata)
{
    char text[KUBE_UID_BYTES];
    kube_uid_make(meta->random, text);
    return kube_meta_set_text(meta, metadata, "uid", slice_from_text(text));
}

static bool set_time(const struct kube_meta *meta, struct json_node *metadata, const char *key,
                     int64_t seconds)
{
    char text[KUBE_TIME_BYTES];
    kube_time_text(seconds, text);
    return kube_meta_set_text(meta, metadata, key, slice_from_text(text));
}

/* Fills in the namespace of the path; fails if the object names another one. */
static bool fill_namespace(const struct kube_meta *meta, struct json_node *metadata)
{
    struct slice given;
    if (!get_text(meta, metadata, "namespace", &given))
        return false;
    /* Clients often send the namespace of their context with every object. */
    if (!(meta->kind->flags & KUBE_NAMESPACED)) {
        drop(metadata, "namespace");
        return true;
    }
    if (!meta->namespace.len)
        return kube_fail(meta->status, KUBE_BAD_REQUEST,
                         "an empty namespace may not be set during creation");
    if (given.len && !slice_equal(given, meta->namespace))
        return kube_fail(meta->status, KUBE_BAD_REQUEST,
                         "the namespace of the provided object does not match the namespace sent "
                         "on the request");
    return kube_meta_set_text(meta, metadata, "namespace", meta->namespace);
}

static bool fill_name(const struct kube_meta *meta, struct json_node *metadata)
{
    struct slice name, base;
    if (!get_text(meta, metadata, "name", &name) ||
        !get_text(meta, metadata, "generateName", &base))
        return false;
    return name.len || !base.len || make_name(meta, metadata, base);
}

/* As in Kubernetes, a kind without generations keeps the client's value; 0 counts as absent. */
static bool fill_generation(const struct kube_meta *meta, struct json_node *metadata)
{
    int64_t given = 0;
    const struct json_node *node = json_node_named(metadata, "generation");
    if (meta->kind->flags & KUBE_HAS_GENERATION)
        return kube_meta_set_int(meta, metadata, "generation", 1);
    if (!node || !json_node_int(node, &given) || !given)
        drop(metadata, "generation");
    return true;
}

bool kube_meta_is_revision(struct slice text)
{
    uint64_t value = 0;
    for (size_t i = 0; i < text.len; i++) {
        uint8_t digit = (uint8_t)(text.ptr[i] - '0');
        if (digit > 9 || value > (UINT64_MAX - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    return value;
}

bool kube_meta_begin(const struct kube_meta *meta, struct json_node *object)
{
    static const char *const own[] = {"uid", "creationTimestamp", "deletionTimestamp",
                                      "deletionGracePeriodSeconds", "selfLink"};
    struct json_node *metadata = metadata_of(object);
    for (size_t i = 0; !meta->name.len && i < COUNT_OF(own); i++)
        drop(metadata, own[i]);
    return fill_namespace(meta, metadata);
}

bool kube_meta_create(const struct kube_meta *meta, struct json_node *object)
{
    struct json_node *metadata = metadata_of(object);
    struct slice version;
    if (!get_text(meta, metadata, "resourceVersion", &version) || !fill_namespace(meta, metadata) ||
        !fill_name(meta, metadata))
        return false;
    if (kube_meta_is_revision(version) && !meta->dry_run)
        return kube_fail(meta->status, KUBE_UNKNOWN,
                         "resourceVersion should not be set on objects to be created");
    /* An object that is created from a copy of another one must not begin as a deleted one. */
    drop(metadata, "deletionTimestamp");
    drop(metadata, "deletionGracePeriodSeconds");
    return fill_generation(meta, metadata) && set_uid(meta, metadata) &&
           set_time(meta, metadata, "creationTimestamp", meta->now_s) &&
           kube_meta_validate(meta, object, NULL);
}

/* -- Updating -- */

static bool conflict(const struct kube_meta *meta, const char *why)
{
    return kube_fail_conflict(meta->status, slice_from_text(meta->kind->group),
                              slice_from_text(meta->kind->plural), meta->name, why);
}

static bool check_uid(const struct kube_meta *meta, const struct json_node *old,
                      struct slice wanted, struct slice key)
{
    struct slice has;
    char why[KUBE_MESSAGE_BYTES];
    if (!get_text(meta, metadata_of(old), "uid", &has))
        return false;
    if (!wanted.len || slice_equal(wanted, has))
        return true;
    /* A patch that sets the uid violates validation. In an update the uid is a precondition. */
    if (meta->patched) {
        snprintf(why, sizeof(why), "Invalid value: \"%.*s\": field is immutable",
                 SLICE_ARGS(wanted));
        kube_status_cause(meta->status, "FieldValueInvalid", "metadata.uid", why);
        return kube_fail_invalid(meta->status, slice_from_text(meta->kind->group),
                                 slice_from_text(meta->kind->kind), meta->name);
    }
    snprintf(why, sizeof(why),
             "StorageError: invalid object, Code: 4, Key: %.*s, ResourceVersion: 0, "
             "AdditionalErrorMsg: Precondition failed: UID in precondition: %.*s, UID in object "
             "meta: %.*s",
             SLICE_ARGS(key), SLICE_ARGS(wanted), SLICE_ARGS(has));
    return conflict(meta, why);
}

bool kube_meta_absent(const struct kube_meta *meta, const struct json_node *object,
                      struct slice key)
{
    struct slice uid;
    return get_text(meta, metadata_of(object), "uid", &uid) && check_uid(meta, NULL, uid, key);
}

/* As in Kubernetes, conflicts of a delete name the kind and not the resource. */
static bool differs_from(const struct kube_meta *meta, const char *what, struct slice wanted,
                         struct slice has, const char *hint)
{
    char why[KUBE_MESSAGE_BYTES];
    snprintf(why, sizeof(why),
             "the %s in the precondition (%.*s) does not match the %s in record (%.*s). The object "
             "might have been %s",
             what, SLICE_ARGS(wanted), what, SLICE_ARGS(has), hint);
    return kube_fail_conflict(meta->status, slice_from_text(meta->kind->group),
                              slice_from_text(meta->kind->kind), meta->name, why);
}

bool kube_meta_preconditions(const struct kube_meta *meta, const struct json_node *old,
                             const struct json_node *preconditions, int64_t revision)
{
    struct slice uid, version, has;
    char now[24];
    if (!get_text(meta, preconditions, "uid", &uid) ||
        !get_text(meta, preconditions, "resourceVersion", &version) ||
        !get_text(meta, metadata_of(old), "uid", &has))
        return false;
    /* The uid is compared first, as in Kubernetes: another object of the same name also has another
     * version. */
    if (json_node_is_set(json_node_named(preconditions, "uid")) && !slice_equal(uid, has))
        return differs_from(meta, "UID", uid, has, "deleted and then recreated");
    snprintf(now, sizeof(now), "%lld", (long long)revision);
    if (!json_node_is_set(json_node_named(preconditions, "resourceVersion")) ||
        slice_is(version, now))
        return true;
    return differs_from(meta, "ResourceVersion", version, slice_from_text(now), "modified");
}

static bool parse_version(const struct kube_meta *meta, struct slice text, int64_t *ret_version)
{
    uint64_t value = 0;
    for (size_t i = 0; i < text.len; i++) {
        uint8_t digit = (uint8_t)(text.ptr[i] - '0');
        if (digit > 9 || value > ((uint64_t)INT64_MAX - digit) / 10)
            return kube_fail(meta->status, KUBE_UNKNOWN, "strconv.ParseUint: parsing \"%.*s\": %s",
                             SLICE_ARGS(text), digit > 9 ? "invalid syntax" : "value out of range");
        value = value * 10 + digit;
    }
    *ret_version = (int64_t)value;
    return true;
}

/* Fails unless the object has the name and namespace of the path. */
static bool check_identity(const struct kube_meta *meta, struct json_node *metadata)
{
    struct slice name;
    if (!get_text(meta, metadata, "name", &name))
        return false;
    if (!name.len)
        return kube_fail(meta->status, KUBE_BAD_REQUEST,
                         "the name of the object (%.*s based on URL) was undeterminable: name must "
                         "be provided",
                         SLICE_ARGS(meta->name));
    if (!slice_equal(name, meta->name))
        return kube_fail(meta->status, KUBE_BAD_REQUEST,
                         "the name of the object (%.*s) does not match the name on the URL (%.*s)",
                         SLICE_ARGS(name), SLICE_ARGS(meta->name));
    return fill_namespace(meta, metadata);
}

static bool check_version(const struct kube_meta *meta, struct json_node *metadata,
                          const struct json_node *old, int64_t revision, struct slice key)
{
    struct slice text, uid;
    int64_t version = 0;
    if (!get_text(meta, metadata, "resourceVersion", &text) ||
        !get_text(meta, metadata, "uid", &uid) || !parse_version(meta, text, &version) ||
        !check_uid(meta, old, uid, key))
        return false;
    /* Without a version, or with 0, the update is unconditional. */
    return !version || version == revision || conflict(meta, NULL);
}

/* Whether anything outside metadata and status is different. */
static bool differs(const struct kube_kind *kind, const struct json_node *old,
                    struct json_node *object)
{
    static const char *const apart[] = {"kind", "apiVersion", "metadata", "status"};
    /* In custom resources without a status subresource, "status" is an ordinary member. */
    bool plain = kind->flags & KUBE_CUSTOM && !(kind->flags & KUBE_HAS_STATUS);
    size_t apart_count = COUNT_OF(apart) - plain, counted = 0, had = old->count;
    for (size_t i = 0; i < apart_count; i++)
        had -= json_node_named(old, apart[i]) ? 1 : 0;
    for (const struct json_node *member = object->first; member; member = member->next) {
        bool counts = true;
        for (size_t i = 0; i < apart_count; i++)
            counts = counts && !slice_is(member->key, apart[i]);
        if (!counts)
            continue;
        const struct json_node *same = json_node_member(old, member->key);
        if (!same || !json_node_equal(same, member))
            return true;
        counted++;
    }
    return counted != had;
}

static bool annotations_differ(const struct json_node *old, struct json_node *object)
{
    const struct json_node *had = json_node_path(old, "metadata.annotations");
    struct json_node *has = json_node_path(object, "metadata.annotations");
    if (!had || !has)
        return (had && had->first) || (has && has->first);
    return !json_node_equal(had, has);
}

static bool count_generation(const struct kube_meta *meta, const struct json_node *old,
                             struct json_node *object)
{
    int64_t generation = 0;
    /* Controllers compare status.observedGeneration with the generation, so only changes of what is
     * desired may count. */
    if (!(meta->kind->flags & KUBE_HAS_GENERATION) || meta->of_status)
        return true;
    bool changed =
        differs(meta->kind, old, object) ||
        (kube_kind_rules(meta->kind) & KUBE_COUNTS_ANNOTATIONS && annotations_differ(old, object));
    if (!changed)
        return true;
    /* An object that a client of the etcd API has written may have no generation. */
    if (!json_node_int(json_node_path(old, "metadata.generation"), &generation) ||
        generation == INT64_MAX)
        generation = 0;
    return kube_meta_set_int(meta, metadata_of(object), "generation", generation + 1);
}

bool kube_meta_named(const struct kube_meta *meta, struct json_node *object)
{
    return check_identity(meta, metadata_of(object));
}

static bool is_empty(const struct json_node *node)
{
    switch (node->type) {
    case JSON_TYPE_NULL:
        return true;
    case JSON_TYPE_ARRAY:
    case JSON_TYPE_OBJECT:
        return !node->first;
    case JSON_TYPE_STRING:
        return !node->text.len;
    default:
        return false;
    }
}

/*
 * Only a delete may set these fields, so an update of an object that is not being deleted may not
 * have them.
 */
static bool check_deletion(const struct kube_meta *meta, const struct json_node *old,
                           struct json_node *metadata)
{
    static const char *const names[] = {"deletionTimestamp", "deletionGracePeriodSeconds"};
    char field[64], message[128];
    meta->status->cause_count = 0;
    for (size_t i = 0; i < COUNT_OF(names) && !kube_meta_is_deleting(old); i++) {
        struct json_node *node = json_node_named(metadata, names[i]);
        const char *quote = node && node->type == JSON_TYPE_STRING ? "\"" : "";
        if (!node || is_empty(node))
            continue;
        snprintf(field, sizeof(field), "metadata.%s", names[i]);
        snprintf(message, sizeof(message), "Invalid value: %s%.*s%s: field is immutable", quote,
                 (int)size_min(node->text.len, 64), (const char *)node->text.ptr, quote);
        kube_status_cause(meta->status, "FieldValueInvalid", field, message);
    }
    return !meta->status->cause_count ||
           kube_fail_invalid(meta->status, slice_from_text(meta->kind->group),
                             slice_from_text(meta->kind->kind), meta->name);
}

bool kube_meta_update(const struct kube_meta *meta, const struct json_node *old,
                      struct json_node *object, int64_t revision, struct slice key)
{
    static const char *const kept[] = {"uid", "creationTimestamp", "generation",
                                       "deletionTimestamp", "deletionGracePeriodSeconds"};
    struct json_node *metadata = metadata_of(object);
    const struct json_node *was = metadata_of(old);
    if (!check_identity(meta, metadata) || !check_version(meta, metadata, old, revision, key))
        return false;
    if (!check_deletion(meta, old, metadata))
        return false;
    for (size_t i = 0; i < COUNT_OF(kept); i++) {
        if (!take_from(meta, metadata, was, kept[i]))
            return false;
    }
    return count_generation(meta, old, object) && kube_meta_validate(meta, object, old);
}

bool kube_meta_set_deleting(const struct kube_meta *meta, struct json_node *object, int64_t grace_s)
{
    struct json_node *metadata = metadata_of(object);
    int64_t generation;
    if (!set_time(meta, metadata, "deletionTimestamp", meta->now_s + grace_s) ||
        !kube_meta_set_int(meta, metadata, "deletionGracePeriodSeconds", grace_s))
        return false;
    /* As in Kubernetes, the deletion counts as a change, but an object without a generation does
     * not get one. */
    if (!json_node_int(json_node_named(metadata, "generation"), &generation) || generation <= 0 ||
        generation == INT64_MAX)
        return true;
    return kube_meta_set_int(meta, metadata, "generation", generation + 1);
}

/* -- Order -- */

static bool order_metadata(const struct kube_meta *meta, struct json_node *object)
{
    struct json_node *from = metadata_of(object);
    struct json_node *to = json_node_new(meta->arena, JSON_TYPE_OBJECT);
    for (size_t i = 0; to && i < COUNT_OF(order); i++) {
        struct json_node *member = json_node_named(from, order[i]);
        /* Go's encoder omits empty fields, and a client must not find a difference. */
        if (!member || is_empty(member))
            continue;
        json_node_remove(from, member);
        if (!set(meta, to, order[i], member))
            return false;
    }
    return set(meta, object, "metadata", to);
}

/* Clients of the etcd API can store objects without these members. */
static bool set_first(const struct kube_meta *meta, struct json_node *object, const char *key)
{
    struct json_node *member = json_node_named(object, key);
    if (!member)
        return true;
    json_node_remove(object, member);
    return json_node_set_first(meta->arena, object, slice_from_text(key), member) == ST_OK ||
           kube_fail_engine(meta->status, ST_NOMEM);
}

bool kube_meta_order(const struct kube_meta *meta, struct json_node *object)
{
    return order_metadata(meta, object) && set_first(meta, object, "metadata") &&
           set_first(meta, object, "apiVersion") && set_first(meta, object, "kind");
}
