#include "kube/write/certificate_request.h"

#include "kube/access/user.h"
#include "kube/custom/schema/go_text.h"

#include <stdio.h>

#define CONDITIONS "status.conditions"

static const char *const approvals[] = {"Approved", "Denied"};
/* Conditions that are true or absent, and stay. */
static const char *const lasting[] = {"Approved", "Denied", "Failed"};

bool kube_is_certificate_request(const struct kube_kind *kind)
{
    return strcmp(kind->group, "certificates.k8s.io") == 0 &&
           strcmp(kind->plural, "certificatesigningrequests") == 0;
}

static bool no_memory(struct kube_call *call)
{
    return kube_fail_engine(&call->status, ST_NOMEM);
}

/* -- The spec -- */

bool kube_certificate_create(struct kube_call *call, const struct kube_meta *meta,
                             struct json_node *object)
{
    static const char *const members[] = {"username", "uid", "groups", "extra"};
    struct json_node *spec, *user;
    if (!kube_is_certificate_request(call->kind))
        return true;
    user = kube_user_json(meta->arena, kube_call_user(call));
    if (!user)
        return no_memory(call);
    if (!kube_meta_object(meta, object, "spec", &spec))
        return false;
    for (size_t i = 0; i < COUNT_OF(members); i++) {
        struct json_node *sent = json_node_named(spec, members[i]);
        struct json_node *value = json_node_named(user, members[i]);
        if (sent)
            json_node_remove(spec, sent);
        if (!value)
            continue;
        json_node_remove(user, value);
        if (json_node_set(meta->arena, spec, slice_from_text(members[i]), value) != ST_OK)
            return no_memory(call);
    }
    return true;
}

bool kube_certificate_update(struct kube_change *change, const struct json_node *stored,
                             struct json_node *object)
{
    const struct json_node *spec = json_node_named(stored, "spec");
    struct json_node *copy;
    if (!spec || !kube_is_certificate_request(change->call->kind))
        return true;
    copy = json_node_copy(&change->scratch, spec);
    return (copy &&
            json_node_set(&change->scratch, object, SLICE_LITERAL("spec"), copy) == ST_OK) ||
           no_memory(change->call);
}

/* -- Conditions -- */

static const struct json_node *conditions_of(const struct json_node *object)
{
    const struct json_node *list = json_node_path(object, CONDITIONS);
    return list && list->type == JSON_TYPE_ARRAY ? list->first : NULL;
}

static bool is_of_type(const struct json_node *condition, const char *type)
{
    return json_node_is_text(json_node_named(condition, "type"), type);
}

static size_t count_of_type(const struct json_node *object, const char *type)
{
    size_t count = 0;
    const struct json_node *one = conditions_of(object);
    for (; one; one = one->next)
        count += is_of_type(one, type);
    return count;
}

/* The conditions of this type become what they were, unless their number has changed. */
static bool keep_conditions(struct kube_change *change, const struct json_node *stored,
                            struct json_node *object, const char *type)
{
    const struct json_node *old = conditions_of(stored);
    struct json_node *list = json_node_path(object, CONDITIONS), *next;
    if (!count_of_type(stored, type) || count_of_type(stored, type) != count_of_type(object, type))
        return true;
    for (struct json_node *one = json_node_first(list); one; one = next) {
        struct json_node *copy;
        next = json_node_next(one);
        if (!is_of_type(one, type))
            continue;
        while (!is_of_type(old, type))
            old = old->next;
        copy = json_node_copy(&change->scratch, old);
        if (!copy || json_node_insert(list, one, copy) != ST_OK)
            return no_memory(change->call);
        json_node_remove(list, one);
        old = old->next;
    }
    return true;
}

static bool is_same_condition(const struct json_node *a, const struct json_node *b)
{
    static const char *const members[] = {"type", "status"};
    for (size_t i = 0; i < COUNT_OF(members); i++) {
        const struct json_node *x = json_node_named(a, members[i]);
        const struct json_node *y = json_node_named(b, members[i]);
        if (!x || !y || !json_node_equal(x, y))
            return false;
    }
    return true;
}

/* Null is a time that is not given. */
static bool has_time(const struct json_node *condition, const char *key)
{
    const struct json_node *time = json_node_named(condition, key);
    return time && time->type == JSON_TYPE_STRING;
}

/* A condition that was there before keeps the time of its transition. */
static bool set_transition(const struct kube_meta *meta, const struct json_node *stored,
                           struct json_node *condition, struct slice now)
{
    const struct json_node *old = conditions_of(stored);
    if (has_time(condition, "lastTransitionTime"))
        return true;
    while (old && !(is_same_condition(old, condition) && has_time(old, "lastTransitionTime")))
        old = old->next;
    const struct json_node *time = old ? json_node_named(old, "lastTransitionTime") : NULL;
    return kube_meta_set_text(meta, condition, "lastTransitionTime", time ? time->text : now);
}

static bool set_times(const struct kube_meta *meta, const struct json_node *stored,
                      struct json_node *object)
{
    struct json_node *list = json_node_path(object, CONDITIONS);
    char now[KUBE_TIME_BYTES];
    kube_time_text(meta->now_s, now);
    if (!list || list->type != JSON_TYPE_ARRAY)
        return true;
    for (struct json_node *one = json_node_first(list); one; one = json_node_next(one)) {
        if (one->type != JSON_TYPE_OBJECT)
            continue;
        if (!has_time(one, "lastUpdateTime") &&
            !kube_meta_set_text(meta, one, "lastUpdateTime", slice_from_text(now)))
            return false;
        if (!set_transition(meta, stored, one, slice_from_text(now)))
            return false;
    }
    return true;
}

/* -- Rules -- */

static void forbid_removal(struct kube_change *change, const char *type)
{
    char message[128];
    snprintf(message, sizeof(message),
             "Forbidden: updates may not remove a condition of type \"%s\"", type);
    kube_status_cause(&change->call->status, "FieldValueForbidden", CONDITIONS, message);
}

static bool is_lasting(const struct json_node *condition)
{
    for (size_t i = 0; i < COUNT_OF(lasting); i++)
        if (is_of_type(condition, lasting[i]))
            return true;
    return false;
}

/* "Duplicate value: " with the quoted text of a client. */
static bool add_cause(struct kube_change *change, const char *reason, const char *field,
                      const char *head, struct slice value, const char *tail)
{
    AUTO(buf_fini) struct buf text = {0};
    if (buf_append_text(&text, head) != ST_OK || go_quote(value, &text) != ST_OK ||
        buf_append_text(&text, tail) != ST_OK || buf_append(&text, slice_of("", 1)) != ST_OK)
        return no_memory(change->call);
    kube_status_cause(&change->call->status, reason, field, (const char *)text.ptr);
    return true;
}

static bool check_value(struct kube_change *change, const struct json_node *condition, size_t at)
{
    static const char *const values[] = {"False", "True", "Unknown"};
    bool only_true = is_lasting(condition);
    struct slice value;
    char field[64];
    if (json_node_text(json_node_named(condition, "status"), &change->scratch, &value) != ST_OK)
        return no_memory(change->call);
    snprintf(field, sizeof(field), CONDITIONS "[%zu].status", at);
    if (!value.len) {
        kube_status_cause(&change->call->status, "FieldValueRequired", field, "Required value");
        return true;
    }
    for (size_t i = 0; i < COUNT_OF(values); i++)
        if (slice_equal(value, slice_from_text(values[i])) && (!only_true || i == 1))
            return true;
    return add_cause(change, "FieldValueNotSupported", field, "Unsupported value: ", value,
                     only_true ? ": supported values: \"True\""
                               : ": supported values: \"False\", \"True\", \"Unknown\"");
}

/* A type that an earlier condition has. */
static bool check_type(struct kube_change *change, const struct json_node *condition,
                       const struct json_node *first, size_t at)
{
    const struct json_node *type = json_node_named(condition, "type");
    struct slice text;
    char field[64];
    snprintf(field, sizeof(field), CONDITIONS "[%zu].type", at);
    if (json_node_text(type, &change->scratch, &text) != ST_OK)
        return no_memory(change->call);
    if (!text.len) {
        kube_status_cause(&change->call->status, "FieldValueRequired", field, "Required value");
        return true;
    }
    for (; first != condition; first = first->next) {
        const struct json_node *other = json_node_named(first, "type");
        if (other && json_node_equal(type, other))
            return add_cause(change, "FieldValueDuplicate", field, "Duplicate value: ", text, "");
    }
    return true;
}

static bool has_both(const struct json_node *object)
{
    return count_of_type(object, approvals[0]) && count_of_type(object, approvals[1]);
}

/* What was wrong before stays allowed. */
static bool has_repeated(const struct json_node *object)
{
    for (const struct json_node *a = conditions_of(object); a; a = a->next)
        for (const struct json_node *b = a->next; b; b = b->next) {
            const struct json_node *x = json_node_named(a, "type"), *y = json_node_named(b, "type");
            if (x && y && json_node_equal(x, y))
                return true;
        }
    return false;
}

/* As many as an object of the largest size could have would take seconds to compare. */
enum { CONDITIONS_MAX = 1000 };

static bool check_count(struct kube_change *change, const struct json_node *object)
{
    const struct json_node *list = json_node_path(object, CONDITIONS);
    return !list || list->count <= CONDITIONS_MAX ||
           kube_fail(&change->call->status, KUBE_TOO_LARGE,
                     "Request entity too large: limit of conditions is %d", CONDITIONS_MAX);
}

static bool check_conditions(struct kube_change *change, const struct json_node *stored,
                             const struct json_node *object)
{
    const struct json_node *first = conditions_of(object);
    size_t at = 0;
    if (!check_count(change, object))
        return false;
    bool repeats = has_repeated(stored);
    for (const struct json_node *one = first; one; one = one->next, at++) {
        if (!check_value(change, one, at))
            return false;
        if (!repeats && !check_type(change, one, first, at))
            return false;
    }
    if (has_both(object) && !has_both(stored)) {
        const struct json_node *one = first;
        const char *last = approvals[0];
        for (; one; one = one->next)
            for (size_t i = 0; i < COUNT_OF(approvals); i++)
                last = is_of_type(one, approvals[i]) ? approvals[i] : last;
        return add_cause(change, "FieldValueInvalid", CONDITIONS,
                         "Invalid value: ", slice_from_text(last),
                         ": Approved and Denied conditions are mutually exclusive");
    }
    return true;
}

static void check_removed(struct kube_change *change, const struct json_node *stored,
                          const struct json_node *object)
{
    for (size_t i = 0; i < COUNT_OF(lasting); i++)
        if (count_of_type(object, lasting[i]) < count_of_type(stored, lasting[i]))
            forbid_removal(change, lasting[i]);
}

/* False if anything was found. */
static bool settle(struct kube_change *change)
{
    struct kube_call *call = change->call;
    return !call->status.cause_count ||
           kube_fail_invalid(&call->status, slice_from_text(call->kind->group),
                             slice_from_text(call->kind->kind), change->name);
}

bool kube_certificate_status(struct kube_change *change, const struct json_node *stored,
                             struct json_node *object)
{
    if (!kube_is_certificate_request(change->call->kind))
        return true;
    for (size_t i = 0; i < COUNT_OF(approvals); i++)
        if (!keep_conditions(change, stored, object, approvals[i]))
            return false;
    return set_times(&change->meta, stored, object) && check_count(change, object);
}

bool kube_certificate_approval(struct kube_change *change, const struct json_node *stored,
                               struct json_node *object)
{
    if (!set_times(&change->meta, stored, object) || !check_conditions(change, stored, object))
        return false;
    check_removed(change, stored, object);
    return settle(change);
}
