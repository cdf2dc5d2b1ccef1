#include "tier/rights/review.h"

#include "codec/json/tree.h"
#include "codec/json/writer.h"
#include "kube/policy/access/rbac/attributes.h"
#include "tier/rights/access.h"
#include "tier/rights/selectors.h"
#include "tier/rights/user.h"

/* -- Writing -- */

static void begin(struct json_writer *w, const char *api_version, const char *kind)
{
    json_begin_object(w);
    json_member_text(w, "apiVersion", api_version);
    json_member_text(w, "kind", kind);
    json_member_object(w, "spec");
}

enum status tier_review_write_token(struct slice token, struct buf *to)
{
    struct json_writer w;
    json_writer_init(&w, to);
    begin(&w, "authentication.k8s.io/v1", "TokenReview");
    json_member_string(&w, "token", token);
    json_end_object(&w);
    json_end_object(&w);
    return json_writer_finish(&w);
}

static void member(struct json_writer *w, const char *name, struct slice value)
{
    if (value.len)
        json_member_string(w, name, value);
}

/* The selectors of other requests decide nothing, as in kube-apiserver. */
static bool has_selectors(const struct tier_access *access)
{
    return strcmp(access->verb, "list") == 0 || strcmp(access->verb, "watch") == 0;
}

enum status tier_review_write_access(struct arena *arena, const struct tier_access *access,
                                     struct buf *to)
{
    struct json_writer w;
    json_writer_init(&w, to);
    /* A writer writes whole values: the braces are the caller's. */
    TRY(buf_append_text(to, "\"resourceAttributes\":"));
    json_begin_object(&w);
    member(&w, "namespace", access->namespace);
    json_member_text(&w, "verb", access->verb);
    member(&w, "group", access->group);
    member(&w, "version", access->version);
    member(&w, "resource", access->resource);
    member(&w, "subresource", access->subresource);
    member(&w, "name", access->name);
    if (has_selectors(access)) {
        tier_write_field_selector(&w, arena, access->field_selector);
        tier_write_label_selector(&w, arena, access->label_selector);
    }
    json_end_object(&w);
    enum status status = json_writer_finish(&w);
    return arena_ran_out(arena) ? ST_NOMEM : status;
}

enum status tier_review_write(const struct tier_user *user, struct slice attributes, struct buf *to)
{
    TRY(buf_append_text(to, "{\"apiVersion\":\"authorization.k8s.io/v1\","
                            "\"kind\":\"SubjectAccessReview\",\"spec\":{"));
    TRY(buf_append(to, user->spec));
    TRY(buf_append_text(to, ","));
    TRY(buf_append(to, attributes));
    return buf_append_text(to, "}}");
}

/* -- Reading -- */

#define GARBAGE "the kube-apiserver's answer to a review cannot be understood"

/* The member "status" of a review of this kind; NULL: it is something else. */
static const struct json_node *read_status(struct arena *arena, struct slice body,
                                           const char *api_version, const char *kind)
{
    struct json_node *root;
    struct error ignored;
    if (json_tree_read(arena, body, &root, &ignored) != ST_OK ||
        !json_node_is_text(json_node_named(root, "kind"), kind) ||
        !json_node_is_text(json_node_named(root, "apiVersion"), api_version))
        return NULL;
    const struct json_node *status = json_node_named(root, "status");
    return status && status->type == JSON_TYPE_OBJECT ? status : NULL;
}

static bool is_bool(const struct json_node *node)
{
    return node && node->type == JSON_TYPE_BOOL;
}

/* False: it is not an object of lists of texts, or has too many. */
static bool read_extra(struct arena *arena, const struct json_node *extra,
                       struct kube_user_info *user)
{
    if (!json_node_is_set(extra))
        return true;
    if (extra->type != JSON_TYPE_OBJECT || extra->count > KUBE_USER_EXTRAS_MAX)
        return false;
    struct kube_user_extra *list = arena_calloc(arena, extra->count + 1, sizeof(*list));
    if (!list)
        return false;
    for (const struct json_node *one = extra->first; one; one = one->next) {
        struct kube_user_extra *to = &list[user->extra_count++];
        to->key = one->key;
        if (!kube_texts_read(arena, one, KUBE_USER_GROUPS_MAX, &to->values))
            return false;
    }
    user->extra = list;
    return true;
}

static size_t texts_bytes(const struct kube_texts *texts)
{
    size_t bytes = 0;
    for (size_t i = 0; i < texts->count; i++)
        bytes += texts->items[i].len;
    return bytes;
}

static bool is_small(const struct kube_user_info *user)
{
    size_t bytes = user->name.len + user->uid.len + texts_bytes(&user->groups);
    for (size_t i = 0; i < user->extra_count; i++)
        bytes += user->extra[i].key.len + texts_bytes(&user->extra[i].values);
    return bytes <= KUBE_USER_BYTES_MAX;
}

static bool read_user(struct arena *arena, const struct json_node *from,
                      struct kube_user_info *user)
{
    *user = (struct kube_user_info){
        .name = kube_text_copy(arena, from, "username"),
        .uid = kube_text_copy(arena, from, "uid"),
    };
    return user->name.len &&
           kube_texts_read(arena, json_node_named(from, "groups"), KUBE_USER_GROUPS_MAX,
                           &user->groups) &&
           read_extra(arena, json_node_named(from, "extra"), user) && is_small(user);
}

enum tier_answer tier_review_read_token(struct arena *arena, struct slice body,
                                        struct kube_user_info *ret_user, const char **ret_reason)
{
    const struct json_node *status =
        read_status(arena, body, "authentication.k8s.io/v1", "TokenReview");
    const struct json_node *authenticated = json_node_named(status, "authenticated");
    *ret_reason = GARBAGE;
    if (!status || (json_node_is_set(authenticated) && !is_bool(authenticated)))
        return TIER_ANSWER_NONE;
    /* Go leaves out what is false. */
    if (!json_node_is_true(authenticated))
        return TIER_ANSWER_NO;
    if (read_user(arena, json_node_named(status, "user"), ret_user) && !arena_ran_out(arena))
        return TIER_ANSWER_YES;
    *ret_reason = "the kube-apiserver's answer to a TokenReview has no user, or one that is too "
                  "long";
    return TIER_ANSWER_NONE;
}

/* The text of a member, cut. */
static struct slice text_of(struct arena *arena, const struct json_node *status, const char *name)
{
    struct slice text = kube_text_copy(arena, status, name);
    return slice_sub(text, 0, size_min(text.len, TIER_REASON_BYTES_MAX));
}

enum tier_answer tier_review_read_access(struct arena *arena, struct slice body,
                                         struct slice *ret_reason)
{
    const struct json_node *status =
        read_status(arena, body, "authorization.k8s.io/v1", "SubjectAccessReview");
    const struct json_node *allowed = json_node_named(status, "allowed");
    const struct json_node *denied = json_node_named(status, "denied");
    *ret_reason = SLICE_LITERAL(GARBAGE);
    if (!is_bool(allowed) || (json_node_is_set(denied) && !is_bool(denied)) || arena_ran_out(arena))
        return TIER_ANSWER_NONE;
    if (allowed->truth && !json_node_is_true(denied))
        return TIER_ANSWER_YES;
    /* An authorizer that has failed has not denied anything; kube-apiserver answers the request
     * itself with 500 then. */
    *ret_reason = text_of(arena, status, "evaluationError");
    if (ret_reason->len && !json_node_is_true(denied))
        return TIER_ANSWER_NONE;
    *ret_reason = text_of(arena, status, "reason");
    return TIER_ANSWER_NO;
}

/* -- The refusal -- */

void tier_review_forbid(struct arena *arena, struct kube_status *status,
                        const struct tier_user *user, const struct tier_access *access,
                        struct slice reason)
{
    char text[TIER_REASON_BYTES_MAX + 1];
    struct kube_user_info info = {.name = user->name};
    struct kube_attributes attributes = {
        .of_resource = true,
        .verb = slice_from_text(access->verb),
        .group = access->group,
        .resource = access->resource,
        .subresource = access->subresource,
        .namespace = access->namespace,
        .name = access->name,
    };
    assert(reason.len <= TIER_REASON_BYTES_MAX);
    slice_copy(text, reason);
    text[reason.len] = 0;
    (void)kube_fail_attributes(arena, status, &info, &attributes, text);
}
