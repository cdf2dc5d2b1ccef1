#include "kube/policy/webhooks/review.h"

#include "codec/json/writer.h"
#include "kube/policy/access/rbac/user.h"

static const char *const api_versions[] = {
    [KUBE_REVIEW_V1] = "admission.k8s.io/v1",
    [KUBE_REVIEW_V1BETA1] = "admission.k8s.io/v1beta1",
};

/* -- Writing -- */

static void write_some(struct json_writer *w, const char *name, struct slice text)
{
    if (text.len)
        json_member_string(w, name, text);
}

/* last: "kind" or "resource" */
static void write_kind(struct json_writer *w, const char *name,
                       const struct kube_webhook_kind *kind, const char *last)
{
    json_member_object(w, name);
    json_member_string(w, "group", kind->group);
    json_member_string(w, "version", kind->version);
    json_member_string(w, last, kind->name);
    json_end_object(w);
}

static void write_raw(struct json_writer *w, const char *name, struct slice json)
{
    json_member_raw(w, name, json.len ? json : SLICE_LITERAL("null"));
}

/* The extra attribute whose key follows `last`; NULL: there is none. Go writes maps in order. */
static const struct kube_user_extra *next_extra(const struct kube_user_info *user,
                                                const struct kube_user_extra *last)
{
    const struct kube_user_extra *next = NULL;
    for (size_t i = 0; i < user->extra_count; i++) {
        const struct kube_user_extra *extra = &user->extra[i];
        if ((!last || slice_compare(extra->key, last->key) > 0) &&
            (!next || slice_compare(extra->key, next->key) < 0))
            next = extra;
    }
    return next;
}

static void write_extras(struct json_writer *w, const struct kube_user_info *user)
{
    const struct kube_user_extra *extra = NULL;
    json_member_object(w, "extra");
    while ((extra = next_extra(user, extra))) {
        json_key_of(w, extra->key);
        json_strings(w, extra->values.items, extra->values.count);
    }
    json_end_object(w);
}

static void write_user(struct json_writer *w, const struct kube_user_info *user)
{
    json_member_object(w, "userInfo");
    if (user) {
        write_some(w, "username", user->name);
        write_some(w, "uid", user->uid);
        if (user->groups.count) {
            json_key(w, "groups");
            json_strings(w, user->groups.items, user->groups.count);
        }
        if (user->extra_count)
            write_extras(w, user);
    }
    json_end_object(w);
}

enum status kube_webhook_review_write(struct buf *to, const struct kube_webhook_review *review)
{
    struct json_writer w;
    json_writer_init(&w, to);
    json_begin_object(&w);
    json_member_text(&w, "kind", "AdmissionReview");
    json_member_text(&w, "apiVersion", api_versions[review->version]);
    json_member_object(&w, "request");
    json_member_string(&w, "uid", review->uid);
    write_kind(&w, "kind", &review->kind, "kind");
    write_kind(&w, "resource", &review->resource, "resource");
    write_some(&w, "subResource", review->subresource);
    write_kind(&w, "requestKind", &review->request_kind, "kind");
    write_kind(&w, "requestResource", &review->request_resource, "resource");
    write_some(&w, "requestSubResource", review->request_subresource);
    write_some(&w, "name", review->name);
    write_some(&w, "namespace", review->namespace);
    json_member_string(&w, "operation", review->operation);
    write_user(&w, review->user);
    write_raw(&w, "object", review->object);
    write_raw(&w, "oldObject", review->old_object);
    json_member_bool(&w, "dryRun", review->dry_run);
    write_raw(&w, "options", review->options);
    json_end_object(&w);
    json_end_object(&w);
    return json_writer_finish(&w);
}
