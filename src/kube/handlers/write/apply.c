#include "kube/handlers/write/apply.h"

#include "kube/call/call.h"
#include "kube/call/conversion.h"
#include "kube/handlers/write/body.h"
#include "kube/handlers/write/custom_rules.h"
#include "kube/handlers/write/managed_versions.h"
#include "kube/merge/apply/apply.h"
#include "kube/merge/apply/conflict.h"
#include "kube/merge/apply/created.h"
#include "kube/merge/apply/fields_v1.h"
#include "kube/merge/apply/scale_owners.h"
#include "kube/types/object/kind_rules.h"
#include "kube/types/schema/strict.h"
#include "kube/types/schema/zero.h"

#include <stdio.h>
#include <stdlib.h>

#define LAST_APPLIED "kubectl.kubernetes.io/last-applied-configuration"
enum { VERSION_BYTES = 512, MANAGER_BYTES_MAX = 128 };

/* One apply or update under way. */
struct job {
    struct apply_request apply;
    struct kube_call *call;
    const struct kube_meta *meta;
    struct managed managed;
    struct error why;
    bool no_memory; /* an allocation failed */
    bool of_scale;  /* what is applied is a Scale, which is made from the object */
    struct slice kind;
    struct scale_paths paths; /* if of_scale */
    char api_version[KUBE_API_VERSION_BYTES];
    char now[KUBE_TIME_BYTES];
};

static bool fail(struct job *job, enum status status)
{
    /* A webhook could not convert an object to the version of a manager. */
    if (status == ST_INVALID && job->apply.in_version && !job->why.text[0])
        return kube_managed_versions_fail(job->call->handler.change);
    if (status == ST_LIMIT || status == ST_NOMEM)
        return kube_fail(&job->call->status, KUBE_TOO_LARGE,
                         "Request entity too large: managedFields have more fields or managers "
                         "than an object may have");
    return kube_fail(&job->call->status, KUBE_UNKNOWN, "%s", job->why.text);
}

/* The arena of the request is used up: there are too many fields. */
static bool no_memory(struct job *job)
{
    return fail(job, ST_NOMEM);
}

/* -- The request -- */

static bool version_known(const struct apply_request *apply, struct slice api_version)
{
    const struct job *job = apply->ctx;
    const struct kube_kind *kind = job->call->kind;
    const struct kube_custom *custom = kube_custom_of(kind);
    if (job->of_scale || !custom)
        return kube_type_find(api_version, job->kind);
    for (size_t i = 0; i < custom->definition->version_count; i++) {
        char text[VERSION_BYTES];
        snprintf(text, sizeof(text), "%s/%s", kind->group,
                 custom->definition->versions[i].kind.version);
        if (slice_is(api_version, text))
            return true;
    }
    return false;
}

/* An object as a manager of another version sees it. */
static enum status in_version(const struct apply_request *apply, const struct json_node *object,
                              struct slice to, struct apply_type *ret_type,
                              struct json_node **ret_object)
{
    const struct job *job = apply->ctx;
    return kube_managed_version(job->call->handler.change, job->meta->arena, object, to, ret_type,
                                ret_object);
}

static bool find_type(struct job *job)
{
    const struct kube_kind *kind = job->call->kind;
    struct kube_custom *custom = kube_custom_of(kind);
    struct apply_type *type = &job->apply.type;
    if (job->of_scale) {
        struct slice version = SLICE_LITERAL(SCALE_API_VERSION);
        *type = (struct apply_type){.kind = APPLY_TYPE_MESSAGE,
                                    .of = kube_type_find(version, job->kind)};
        assert(type->of);
        return true;
    }
    if (custom) {
        *type = (struct apply_type){.kind = APPLY_TYPE_RESOURCE, .of = kube_custom_schema(custom)};
        return type->of || kube_custom_fail_schema(job->call);
    }
    *type = (struct apply_type){.kind = APPLY_TYPE_MESSAGE, .of = kube_type_of_kind(kind)};
    if (!type->of)
        type->kind = APPLY_TYPE_DEDUCED;
    return true;
}

static enum status add_reset(struct job *job, const char *a, const char *b)
{
    const char *const path[] = {a, b};
    const struct field_set *set;
    struct arena *arena = job->meta->arena;
    TRY(field_set_of_path(arena, path, b ? 2 : 1, &set));
    return field_set_combine(arena, FIELD_UNION, job->apply.reset, set, &job->apply.reset);
}

/* The fields that the rules of the kind reset whatever the client sends. */
static enum status find_reset(struct job *job)
{
    const struct kube_kind *kind = job->call->kind;
    unsigned flags = job->call->rules;
    if (flags & KUBE_IS_CERTIFICATE_REQUEST) {
        /* A certificate request cannot be changed, and its status on two paths. */
        struct slice sub = job->call->path.subresource;
        TRY(add_reset(job, "spec", NULL));
        if (!sub.len)
            return add_reset(job, "status", NULL);
        return add_reset(job, "status",
                         job->call->subresource == KUBE_SUBRESOURCE_STATUS ? "conditions"
                                                                           : "certificate");
    }
    if (job->call->subresource != KUBE_SUBRESOURCE_STATUS)
        return kind->flags & KUBE_HAS_STATUS && !job->call->path.subresource.len
                   ? add_reset(job, "status", NULL)
                   : ST_OK;
    TRY(add_reset(job, "spec", NULL));
    if (flags & KUBE_STATUS_ONLY)
        return add_reset(job, "metadata", NULL);
    if (flags & KUBE_STATUS_NO_LABELS)
        return add_reset(job, "metadata", "labels");
    if (!(flags & KUBE_STATUS_NO_OWNERS))
        return ST_OK;
    TRY(add_reset(job, "metadata", "deletionTimestamp"));
    return add_reset(job, "metadata", "ownerReferences");
}

/* A write that names no manager has the first word of its User-Agent. */
static bool find_manager(struct job *job)
{
    struct slice manager = job->call->query.field_manager, agent = SLICE_EMPTY;
    char text[MANAGER_BYTES_MAX];
    size_t len = 0;
    if (!manager.len)
        (void)!http_request_get(job->call->request, SLICE_LITERAL("user-agent"), &agent);
    for (size_t i = 0; i < agent.len && agent.ptr[i] != '/' && len < sizeof(text); i++)
        if (agent.ptr[i] >= ' ' && agent.ptr[i] < 0x7f)
            text[len++] = (char)agent.ptr[i];
    if (!manager.len)
        manager = len ? slice_of(text, len) : SLICE_LITERAL("unknown");
    return arena_dup(job->meta->arena, manager, &job->apply.manager.name) == ST_OK ||
           no_memory(job);
}

static bool begin(struct job *job, const struct kube_meta *meta, struct kube_call *call)
{
    const struct kube_kind *kind = call->kind;
    *job = (struct job){.call = call, .meta = meta, .managed = {.arena = meta->arena}};
    job->kind = slice_from_text(kind->kind);
    kube_kind_api_version(kind, job->api_version);
    kube_time_text(meta->now_s, job->now);
    job->apply = (struct apply_request){
        .typed = {.arena = meta->arena, .why = &job->why},
        .manager = {.api_version = slice_from_text(job->api_version),
                    .subresource = call->path.subresource},
        .now = slice_from_text(job->now),
        .version_known = version_known,
        .in_version = kube_conversion_has_webhook(kind) ? in_version : NULL,
        .ctx = job,
    };
    return find_type(job) && find_manager(job) && (find_reset(job) == ST_OK || no_memory(job));
}

/* -- managedFields in an object -- */

#define list_of(object) json_node_path(object, "metadata.managedFields")

void kube_apply_disown(struct json_node *object)
{
    struct json_node *list = list_of(object);
    if (list)
        json_node_remove(json_node_named(object, "metadata"), list);
}

/* Why Kubernetes cannot read the entries. */
static enum status tell_fault(const struct json_node *list, struct buf *text)
{
    size_t index = 0;
    TRY(buf_append_text(text, ".metadata.managedFields was in an invalid state after admission; "
                              "this could be caused by an outdated mutating admission controller; "
                              "please fix your requests: "));
    for (const struct json_node *entry = json_node_items(list); entry; entry = entry->next) {
        const struct json_node *type = json_node_named(entry, "fieldsType");
        if (!json_node_text_is(entry, "operation", "Apply") &&
            !json_node_text_is(entry, "operation", "Update"))
            return buf_append_text(text, "operation must be `Apply` or `Update`");
        if (!json_node_has_text(json_node_named(entry, "apiVersion")))
            return buf_append_text(text, "apiVersion must not be empty");
        if (!json_node_has_text(type))
            return buf_append_format(text, "missing fieldsType in managed fields entry %zu", index);
        if (!json_node_is_text(type, "FieldsV1"))
            return buf_append_format(text,
                                     "invalid fieldsType \"%.*s\" in managed fields entry %zu",
                                     SLICE_ARGS(type->text), index);
        index++;
    }
    return buf_append_text(text, "the fields of an entry cannot be read");
}

bool kube_apply_keep_valid(const struct kube_meta *meta, struct kube_call *call,
                           const struct json_node *before, struct json_node *object)
{
    AUTO(buf_fini) struct buf text = {0};
    struct managed managed = {.arena = meta->arena};
    const struct json_node *list = list_of(object), *kept = list_of(before);
    bool same = list && kept ? json_node_equal(list, kept) : list == kept;
    enum status status = same ? ST_OK : managed_read(&managed, list);
    if (status == ST_OK || status == ST_NOMEM)
        return status == ST_OK || kube_fail_engine(&call->status, ST_NOMEM);
    if (tell_fault(list, &text) != ST_OK)
        return kube_fail_engine(&call->status, ST_NOMEM);
    kube_call_warn(call, buf_slice(&text));
    kube_apply_disown(object);
    return !kept ||
           json_node_put(meta->arena, json_node_named(object, "metadata"), "managedFields",
                         json_node_copy(meta->arena, kept)) == ST_OK ||
           kube_fail_engine(&call->status, ST_NOMEM);
}

static bool put_list(struct job *job, struct json_node *object)
{
    struct json_node *list, *metadata;
    enum status status = managed_write(&job->managed, &list);
    if (status != ST_OK)
        return fail(job, status);
    if (!list) {
        kube_apply_disown(object);
        return true;
    }
    return kube_meta_object(job->meta, object, "metadata", &metadata) &&
           (json_node_set(job->meta->arena, metadata, SLICE_LITERAL("managedFields"), list) ==
                ST_OK ||
            no_memory(job));
}

/* An object of the kind with zero values. */
static bool zero_object(struct job *job, struct json_node **ret_zero)
{
    struct arena *arena = job->meta->arena;
    *ret_zero = json_node_new(arena, JSON_TYPE_OBJECT);
    if (job->apply.type.kind == APPLY_TYPE_MESSAGE &&
        kube_zero_object(arena, job->apply.type.of, ret_zero) != ST_OK)
        return no_memory(job);
    return *ret_zero || no_memory(job);
}

/* -- Scale -- */

/* Where each version of the kind has its replicas. */
static bool find_paths(struct job *job)
{
    const struct kube_kind *kind = job->call->kind;
    const struct kube_custom *custom = kube_custom_of(kind);
    size_t count = custom ? custom->definition->version_count : 1;
    struct scale_path *paths = arena_calloc(job->meta->arena, count, sizeof(*paths));
    char text[KUBE_API_VERSION_BYTES];
    if (!paths)
        return no_memory(job);
    for (size_t i = 0; i < count; i++) {
        const struct kube_custom *version = custom ? &custom->definition->versions[i] : NULL;
        paths[i].path = version ? version->replicas_path : "spec.replicas";
        kube_kind_api_version(version ? &version->kind : kind, text);
        if (arena_dup(job->meta->arena, slice_from_text(text), &paths[i].api_version) != ST_OK)
            return no_memory(job);
    }
    job->paths = (struct scale_paths){paths, count};
    return true;
}

/* What is owned is a Scale from now on. */
static bool turn_to_scale(struct job *job)
{
    job->of_scale = true;
    job->apply.in_version = NULL;
    job->kind = SLICE_LITERAL("Scale");
    snprintf(job->api_version, sizeof(job->api_version), SCALE_API_VERSION);
    job->apply.manager.api_version = slice_from_text(job->api_version);
    return find_paths(job) && find_type(job);
}

/* Replaces the managers of the Scale by those that the object will have. */
static bool own_replicas(struct job *job, const struct json_node *list)
{
    struct managed object = {.arena = job->meta->arena};
    char version[KUBE_API_VERSION_BYTES];
    struct slice api_version;
    kube_kind_api_version(job->call->kind, version);
    enum status status = arena_dup(job->meta->arena, slice_from_text(version), &api_version);
    if (status == ST_OK)
        status = managed_read(&object, list);
    if (status == ST_OK)
        status = scale_owners_put(&object, &job->paths, api_version, &job->managed, &job->managed);
    return status == ST_OK || fail(job, status);
}

static const char *replicas_path(const struct job *job)
{
    const struct kube_custom *custom = kube_custom_of(job->call->kind);
    return custom && custom->replicas_path ? custom->replicas_path : "spec.replicas";
}

/* The part of a Scale that changes. Go omits a number of 0. */
static enum status make_scale(struct job *job, const struct json_node *object,
                              struct json_node **ret_scale)
{
    struct arena *arena = job->meta->arena;
    const struct json_node *replicas = json_node_path(object, replicas_path(job));
    struct json_node *spec = json_node_new(arena, JSON_TYPE_OBJECT);
    *ret_scale = json_node_new(arena, JSON_TYPE_OBJECT);
    if (!spec || !*ret_scale)
        return ST_NOMEM;
    if (replicas && !kube_is_zero(replicas))
        TRY(json_node_put(arena, spec, "replicas", json_node_copy(arena, replicas)));
    return json_node_set(arena, *ret_scale, SLICE_LITERAL("spec"), spec);
}

/*
 * As in Kubernetes, a change of scale is tracked on a Scale whose owners are those of the replicas:
 * without owners nothing is tracked, and an update by which a manager keeps or gets the replicas
 * becomes an entry of its own without a time.
 */
static bool update_scale(struct job *job, const struct json_node *stored,
                         const struct json_node *object)
{
    struct json_node *live, *scale;
    enum status status = ST_OK;
    if (!turn_to_scale(job))
        return false;
    status = scale_owners_of(&job->managed, &job->paths);
    if (status == ST_OK && job->managed.count)
        status = make_scale(job, stored, &live);
    if (status == ST_OK && job->managed.count)
        status = make_scale(job, object, &scale);
    if (status == ST_OK && job->managed.count)
        status = apply_update(&job->apply, live, scale, &job->managed);
    return status == ST_OK ? own_replicas(job, list_of(stored)) : fail(job, status);
}

/* -- Updates -- */

/* The managedFields of the request if it may set them, else the stored ones. */
static enum status read_managed(struct job *job, const struct json_node *stored,
                                const struct json_node *sent)
{
    struct managed *managed = &job->managed;
    const struct json_node *list = job->call->path.subresource.len ? NULL : list_of(sent);
    /* For custom resources Kubernetes does not distinguish an empty list from none. */
    if (job->call->kind->flags & KUBE_CUSTOM && list && !list->first)
        list = NULL;
    if (managed_is_reset(list))
        return ST_OK;
    enum status status = managed_read(managed, list);
    if (status == ST_NOMEM || (status == ST_OK && managed->count))
        return status;
    managed->count = 0;
    status = managed_read(managed, list_of(stored));
    if (status == ST_OK || status == ST_NOMEM || status == ST_LIMIT)
        return status;
    managed->count = 0;
    return ST_OK;
}

/* An object without its managedFields; both share everything else. */
static struct json_node *without_list(struct arena *arena, const struct json_node *object)
{
    struct json_node *copy = json_node_copy_members(arena, object), *metadata;
    if (!copy || !list_of(object))
        return copy;
    metadata = json_node_copy_members(arena, json_node_named(object, "metadata"));
    if (json_node_put(arena, copy, "metadata", metadata) != ST_OK)
        return NULL;
    kube_apply_disown(copy);
    return copy;
}

bool kube_apply_track(const struct kube_meta *meta, struct kube_call *call,
                      const struct json_node *stored, const struct json_node *sent,
                      struct json_node *object)
{
    struct job job;
    struct json_node *live;
    if (!list_of(stored) && !list_of(sent)) {
        kube_apply_disown(object);
        return true;
    }
    if (!begin(&job, meta, call))
        return false;
    enum status status = read_managed(&job, stored, sent);
    kube_apply_disown(object);
    if (status != ST_OK)
        return fail(&job, status);
    if (!job.managed.count)
        return true;
    if (call->subresource == KUBE_SUBRESOURCE_SCALE)
        return update_scale(&job, stored, object) && put_list(&job, object);
    live = without_list(meta->arena, stored);
    if (!live)
        return no_memory(&job);
    status = apply_update(&job.apply, live, object, &job.managed);
    if (status == ST_AGAIN) /* begins again when an object is known in another version */
        return false;
    if (status == ST_NOMEM || status == ST_LIMIT)
        return fail(&job, status);
    /* An object that does not fit its type, or that a webhook cannot convert, has no owners, as in
     * Kubernetes; the write succeeds. */
    if (status != ST_OK)
        job.managed.count = 0;
    return put_list(&job, object);
}

/* -- New objects -- */

/* With managedFields that the client has sent, of an object that it restores, or with items that
 * only a comparison tells apart. */
static bool own_compared(struct job *job, struct json_node *object)
{
    struct json_node *zero;
    enum status status = managed_read(&job->managed, list_of(object));
    job->apply.in_version = NULL;
    if (status == ST_MALFORMED)
        job->managed.count = 0;
    else if (status != ST_OK)
        return fail(job, status);
    kube_apply_disown(object);
    if (!zero_object(job, &zero))
        return false;
    status = apply_update(&job->apply, zero, object, &job->managed);
    if (status == ST_NOMEM || status == ST_LIMIT)
        return fail(job, status);
    if (status != ST_OK)
        job->managed.count = 0;
    return put_list(job, object);
}

bool kube_apply_own_new(const struct kube_meta *meta, struct kube_call *call,
                        struct json_node *object)
{
    struct job job;
    struct json_node *list;
    if (!call->api->config->owns_new) {
        kube_apply_disown(object);
        return true;
    }
    if (!begin(&job, meta, call))
        return false;
    if (list_of(object))
        return own_compared(&job, object);
    struct created created = {
        .arena = meta->arena,
        .type = job.apply.type,
        .reset = job.apply.reset,
        .manager = job.apply.manager,
        .now = job.apply.now,
    };
    enum status status = created_list(&created, object, &list);
    if (status == ST_NOT_FOUND)
        return own_compared(&job, object);
    if (status == ST_OK && list)
        status = json_node_set(meta->arena, json_node_named(object, "metadata"),
                               SLICE_LITERAL("managedFields"), list);
    return status == ST_OK || fail(&job, status);
}

/* -- Times -- */

static bool same_but_time(const struct json_node *a, const struct json_node *b)
{
    static const char *const members[] = {"manager",    "operation", "apiVersion",
                                          "fieldsType", "fieldsV1",  "subresource"};
    for (size_t i = 0; i < COUNT_OF(members); i++) {
        const struct json_node *m = json_node_named(a, members[i]),
                               *n = json_node_named(b, members[i]);
        if (!m != !n || (m && !json_node_equal(m, n)))
            return false;
    }
    return true;
}

bool kube_apply_keep_times(const struct kube_meta *meta, const struct json_node *stored,
                           struct json_node *object)
{
    const struct json_node *was = list_of(stored);
    struct json_node *is = list_of(object), *old;
    struct json_node *metadata = json_node_named(object, "metadata");
    if (!was || !is || was->type != JSON_TYPE_ARRAY || was->count != is->count)
        return true;
    const struct json_node *m = was->first, *n = is->first;
    for (; m; m = m->next, n = n->next)
        if (!same_but_time(m, n))
            return true;
    old = json_node_copy(meta->arena, was);
    if (!old || json_node_set(meta->arena, metadata, SLICE_LITERAL("managedFields"), old) != ST_OK)
        return kube_fail_engine(meta->status, ST_NOMEM);
    if (json_node_equal(stored, object))
        return true;
    return json_node_set(meta->arena, metadata, SLICE_LITERAL("managedFields"), is) == ST_OK ||
           kube_fail_engine(meta->status, ST_NOMEM);
}

/* -- The configuration -- */

static struct slice text_of(struct job *job, const struct json_node *object, const char *path)
{
    struct slice text = SLICE_EMPTY;
    job->no_memory |=
        json_node_text(json_node_path(object, path), job->meta->arena, &text) != ST_OK;
    return text;
}

/* "/v1, Kind=Pod" */
static void print_kind(struct job *job, const struct json_node *config, char to[VERSION_BYTES])
{
    struct slice version = text_of(job, config, "apiVersion"), kind = text_of(job, config, "kind");
    bool grouped = version.len && memchr(version.ptr, '/', version.len);
    snprintf(to, VERSION_BYTES, "%s%.*s, Kind=%.*s", grouped ? "" : "/",
             (int)size_min(version.len, 200), (const char *)version.ptr,
             (int)size_min(kind.len, 200), (const char *)kind.ptr);
}

static bool check_kind(struct job *job, const struct json_node *config)
{
    char shown[VERSION_BYTES];
    const struct json_node *list = list_of(config);
    struct slice version = text_of(job, config, "apiVersion"), kind = text_of(job, config, "kind");
    if (job->no_memory)
        return no_memory(job);
    if (!slice_is(version, job->api_version) || !slice_equal(kind, job->kind)) {
        print_kind(job, config, shown);
        return kube_fail(&job->call->status, KUBE_BAD_REQUEST, "invalid object type: %s", shown);
    }
    if (json_node_is_set(list))
        return kube_fail(&job->call->status, KUBE_BAD_REQUEST,
                         "metadata.managedFields must be nil");
    return true;
}

static bool check_types(struct job *job, const struct json_node *config)
{
    AUTO(buf_fini) struct buf faults = {0}, text = {0};
    char shown[VERSION_BYTES];
    size_t count;
    struct slice message;
    struct arena *arena = job->meta->arena;
    enum status status = typed_validate(arena, job->apply.type, config, &faults, &count);
    if (status != ST_OK)
        return fail(job, status);
    if (!count)
        return true;
    struct slice namespace = text_of(job, config, "metadata.namespace");
    struct slice name = text_of(job, config, "metadata.name"), rest = buf_slice(&faults);
    print_kind(job, config, shown);
    status = buf_append_format(&text, "failed to create typed patch object (%.*s/%.*s; %s): %s",
                               SLICE_ARGS(namespace), SLICE_ARGS(name), shown,
                               count > 1 ? "errors:\n" : "");
    while (status == ST_OK && rest.len) {
        const uint8_t *end = memchr(rest.ptr, '\n', rest.len);
        size_t len = end ? (size_t)(end - rest.ptr) : rest.len;
        status = buf_append_format(&text, "%s%.*s%s", count > 1 ? "  " : "", (int)len,
                                   (const char *)rest.ptr, end ? "\n" : "");
        rest = slice_sub(rest, size_min(len + 1, rest.len), rest.len - size_min(len + 1, rest.len));
    }
    if (status != ST_OK || arena_dup(&job->call->arena, buf_slice(&text), &message) != ST_OK)
        return no_memory(job);
    kube_fail(&job->call->status, KUBE_UNKNOWN, " ");
    job->call->status.long_message = message;
    return false;
}

/* Rejects values that do not fit Go's types, as a server in Go does. */
static bool check_go(struct job *job, const struct json_node *config, struct json_node *object)
{
    AUTO(buf_fini) struct buf unknown = {0};
    char shown[VERSION_BYTES];
    if (job->apply.type.kind != APPLY_TYPE_MESSAGE)
        return true;
    enum status status = kube_strict(job->apply.type.of, object, &unknown, &job->why);
    if (status == ST_OK)
        return true;
    if (status != ST_INVALID)
        return no_memory(job);
    struct slice namespace = text_of(job, config, "metadata.namespace");
    struct slice name = text_of(job, config, "metadata.name");
    bool bytes = strncmp(job->why.text, "illegal base64", strlen("illegal base64")) == 0;
    print_kind(job, config, shown);
    return kube_fail(&job->call->status, KUBE_UNKNOWN,
                     "failed to convert new object (%.*s/%.*s; %s) to proper version: unable to "
                     "convert unstructured object to %s: %s%s",
                     (int)size_min(namespace.len, 253), (const char *)namespace.ptr,
                     (int)size_min(name.len, 253), (const char *)name.ptr, shown, shown,
                     bytes ? "error decoding from json: " : "", job->why.text);
}

/* -- kubectl's last-applied annotation -- */

static struct json_node *annotation_of(struct json_node *object)
{
    struct json_node *annotations = json_node_path(object, "metadata.annotations");
    struct json_node *node = json_node_member(annotations, SLICE_LITERAL(LAST_APPLIED));
    return json_node_has_text(node) ? node : NULL;
}

/* The fields of kubectl's last client-side apply that have not changed since: it may take them
 * over. */
static enum status find_allowed(struct job *job, struct json_node *live,
                                const struct field_set **ret_allowed)
{
    struct arena *arena = job->meta->arena;
    struct error error;
    struct json_node *applied, *annotation = annotation_of(live);
    const struct field_set *fields, *differs;
    struct slice text;
    AUTO(buf_fini) struct buf faults = {0};
    size_t count;
    *ret_allowed = NULL;
    if (!annotation)
        return ST_OK;
    TRY(json_node_text(annotation, arena, &text));
    enum status status = json_tree_read(arena, text, &applied, &error);
    if (status == ST_NOMEM)
        return status;
    if (status != ST_OK || applied->type != JSON_TYPE_OBJECT)
        return ST_OK;
    struct slice version = text_of(job, applied, "apiVersion");
    if (job->no_memory)
        return ST_NOMEM;
    if (!slice_is(version, job->api_version))
        return ST_OK;
    TRY(typed_validate(arena, job->apply.type, applied, &faults, &count));
    if (count)
        return ST_OK;
    TRY(typed_fields(&job->apply.typed, job->apply.type, applied, &fields));
    TRY(typed_compare(&job->apply.typed, job->apply.type, applied, live, &differs));
    return field_set_combine(arena, FIELD_DIFFERENCE, fields, differs, ret_allowed);
}

static int member_order(const void *a, const void *b)
{
    return slice_compare((*(const struct json_node *const *)a)->key,
                         (*(const struct json_node *const *)b)->key);
}

/* Sorts members by name, as Go writes maps. */
static struct json_node *sorted(struct arena *arena, const struct json_node *node)
{
    struct json_node *out, *value;
    if (node->type != JSON_TYPE_OBJECT && node->type != JSON_TYPE_ARRAY)
        return json_node_copy(arena, node);
    out = json_node_new(arena, (enum json_type)node->type);
    const struct json_node **members = arena_calloc(arena, node->count + 1, sizeof(*members));
    size_t count = 0;
    if (!out || !members)
        return NULL;
    for (const struct json_node *member = node->first; member; member = member->next)
        members[count++] = member;
    if (node->type == JSON_TYPE_OBJECT)
        qsort(members, count, sizeof(*members), member_order);
    for (size_t i = 0; i < count; i++) {
        value = sorted(arena, members[i]);
        if (!value)
            return NULL;
        if ((node->type == JSON_TYPE_ARRAY
                 ? json_node_insert(out, NULL, value)
                 : json_node_set(arena, out, members[i]->key, value)) != ST_OK)
            return NULL;
    }
    return out;
}

static bool set_annotation(struct job *job, const struct json_node *config,
                           struct json_node *object)
{
    struct arena *arena = job->meta->arena;
    AUTO(buf_fini) struct buf text = {0};
    struct json_node *copy = sorted(arena, config), *value;
    struct json_node *annotations = json_node_path(object, "metadata.annotations");
    struct json_node *had = annotation_of(copy);
    if (!copy)
        return no_memory(job);
    if (had)
        json_node_remove(json_node_path(copy, "metadata.annotations"), had);
    enum status status = go_json_append(copy, &text);
    if (status == ST_OK)
        status = buf_append_text(&text, "\n");
    value = status == ST_OK ? json_node_new_text(arena, buf_slice(&text)) : NULL;
    return (value &&
            json_node_set(arena, annotations, SLICE_LITERAL(LAST_APPLIED), value) == ST_OK) ||
           no_memory(job);
}

/* -- Applying -- */

static enum status attempt(struct job *job, struct json_node *live, struct json_node *list,
                           const struct json_node *config, struct json_node **ret_object,
                           struct apply_conflicts *conflicts)
{
    job->managed.count = 0;
    enum status status = managed_read(&job->managed, list);
    if (status == ST_MALFORMED)
        return error_set(&job->why, ST_INVALID, "failed to decode managed fields");
    TRY(status);
    if (job->of_scale)
        TRY(scale_owners_of(&job->managed, &job->paths));
    if (!job->managed.count && json_node_path(live, "metadata.uid")) {
        /* Fields without an owner get the manager "before-first-apply". */
        struct apply_request before = job->apply;
        struct json_node *zero;
        before.manager.name = SLICE_LITERAL("before-first-apply");
        before.manager.applied = false;
        if (!zero_object(job, &zero))
            return ST_NOMEM;
        TRY(apply_update(&before, zero, live, &job->managed));
    }
    return apply_config(&job->apply, live, config, &job->managed, ret_object, conflicts);
}

/* True: the only conflicts were fields that kubectl may take over, and it has. */
static bool settle_conflicts(struct job *job, struct json_node *live, struct json_node *list,
                             const struct json_node *config, struct apply_conflicts *conflicts,
                             struct json_node **ret_object)
{
    const struct field_set *allowed = NULL;
    if (slice_is(job->apply.manager.name, "kubectl") &&
        (find_allowed(job, live, &allowed) != ST_OK ||
         apply_conflicts_without(job->meta->arena, conflicts, allowed) != ST_OK))
        return no_memory(job);
    if (conflicts->count)
        return kube_fail_apply_conflict(&job->call->status, &job->call->arena, conflicts);
    job->apply.force = true;
    enum status status = attempt(job, live, list, config, ret_object, conflicts);
    return status == ST_OK || fail(job, status);
}

static bool run(struct job *job, struct json_node *live, struct json_node *list,
                const struct json_node *config, struct json_node **ret_object)
{
    struct apply_conflicts conflicts;
    enum status status = attempt(job, live, list, config, ret_object, &conflicts);
    if (status == ST_EXISTS)
        return settle_conflicts(job, live, list, config, &conflicts, ret_object);
    return status == ST_OK || fail(job, status);
}

/* -- The whole -- */

bool kube_apply(const struct kube_meta *meta, struct kube_call *call, struct json_node *stored,
                const struct json_node *config, struct json_node **ret_object)
{
    struct job job;
    struct json_node *live = stored, *list = list_of(stored), *object;
    if (!begin(&job, meta, call) ||
        (call->subresource == KUBE_SUBRESOURCE_SCALE && !turn_to_scale(&job)) ||
        !check_kind(&job, config) || !check_types(&job, config))
        return false;
    job.apply.manager.applied = true;
    job.apply.force = call->query.force;
    job.apply.in_version = stored ? job.apply.in_version : NULL;
    if (list)
        json_node_remove(json_node_named(live, "metadata"), list);
    if (!live)
        live = json_node_new(meta->arena, JSON_TYPE_OBJECT);
    if (!live)
        return no_memory(&job);
    if (!run(&job, live, list, config, &object))
        return false;
    if (!object)
        object = live;
    if (!check_go(&job, config, object))
        return false;
    if (job.of_scale || !(call->kind->flags & KUBE_CUSTOM))
        apply_drop_lost(job.apply.type, object);
    *ret_object = object;
    if (slice_is(job.apply.manager.name, "kubectl") && annotation_of(object) &&
        !set_annotation(&job, config, object))
        return false;
    if (job.of_scale && !own_replicas(&job, list))
        return false;
    return put_list(&job, object);
}
