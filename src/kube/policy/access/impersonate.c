#include "kube/policy/access/impersonate.h"

#include "kube/policy/access/sign_in.h"
#include "kube/request/request.h"
#include "kube/types/object/name.h"
#include "wire/http/exchange.h"

#define AUTHENTICATION SLICE_LITERAL("authentication.k8s.io")

struct reader {
    struct arena *arena;
    struct slice user, uid;
    struct kube_text_list groups;
    struct kube_user_extra extra[KUBE_USER_EXTRAS_MAX];
    struct kube_text_list values[KUBE_USER_EXTRAS_MAX];
    size_t extra_count;
    size_t bytes, fields;
    bool too_many;
};

static void add_extra(struct reader *r, struct slice name, struct slice value)
{
    struct slice key = name_lower(r->arena, name), decoded;
    size_t at = 0;
    /* Clients escape what the name of a header field cannot contain. A name with wrong escapes is
     * used as it is. */
    if (kube_percent_decode(r->arena, key, false, &decoded) == ST_OK)
        key = decoded;
    while (at < r->extra_count && !slice_equal(r->extra[at].key, key))
        at++;
    if (at == KUBE_USER_EXTRAS_MAX) {
        r->too_many = true;
        return;
    }
    if (at == r->extra_count) {
        r->extra[r->extra_count++].key = key;
        r->values[at] = (struct kube_text_list){.arena = r->arena};
    }
    kube_text_add(&r->values[at], value);
}

static bool is_name(struct slice name, const char *text)
{
    return http_name_equal(name, slice_from_text(text));
}

static void read_field(struct reader *r, const struct http_field *field)
{
    struct slice prefix = SLICE_LITERAL("impersonate-"),
                 extra = SLICE_LITERAL("impersonate-extra-");
    struct slice name = field->name;
    if (name.len < prefix.len || !http_name_equal(slice_sub(name, 0, prefix.len), prefix))
        return;
    r->bytes += name.len + field->value.len;
    r->too_many =
        r->too_many || ++r->fields > KUBE_USER_GROUPS_MAX || r->bytes > KUBE_USER_BYTES_MAX;
    /* The request will be refused, so nothing more of it is kept. */
    if (r->too_many)
        return;
    /* If a field is repeated that can have only one value, its first value counts, as in Go's
     * Header.Get. */
    if (is_name(name, "impersonate-user"))
        r->user = r->user.len ? r->user : field->value;
    else if (is_name(name, "impersonate-uid"))
        r->uid = r->uid.len ? r->uid : field->value;
    else if (is_name(name, "impersonate-group"))
        kube_text_add(&r->groups, field->value);
    else if (name.len >= extra.len && http_name_equal(slice_sub(name, 0, extra.len), extra))
        add_extra(r, slice_sub(name, extra.len, name.len - extra.len), field->value);
}

/* -- What the sender must be allowed to do -- */

static void add_check(struct kube_impersonation *to, struct kube_attributes *checks,
                      struct kube_attributes check)
{
    check.of_resource = true;
    check.verb = SLICE_LITERAL("impersonate");
    checks[to->check_count++] = check;
}

static void check_user(const struct reader *r, struct kube_impersonation *to,
                       struct kube_attributes *checks)
{
    struct slice namespace, name;
    to->user = (struct kube_user_info){.name = r->user};
    if (!kube_user_split_account(r->user, &namespace, &name)) {
        add_check(to, checks,
                  (struct kube_attributes){.resource = SLICE_LITERAL("users"), .name = r->user});
        return;
    }
    add_check(to, checks,
              (struct kube_attributes){.resource = SLICE_LITERAL("serviceaccounts"),
                                       .namespace = namespace,
                                       .name = name});
    /* Without groups in the request, an account is in the groups of all accounts and of its
     * namespace. */
    if (!r->groups.count)
        kube_user_account(r->arena, namespace, name, &to->user);
}

static void check_rest(struct reader *r, struct kube_impersonation *to,
                       struct kube_attributes *checks)
{
    for (size_t i = 0; i < r->groups.count; i++)
        add_check(to, checks,
                  (struct kube_attributes){.resource = SLICE_LITERAL("groups"),
                                           .name = r->groups.items[i]});
    for (size_t i = 0; i < r->extra_count; i++)
        for (size_t v = 0; v < r->values[i].count; v++)
            add_check(to, checks,
                      (struct kube_attributes){.group = AUTHENTICATION,
                                               .resource = SLICE_LITERAL("userextras"),
                                               .subresource = r->extra[i].key,
                                               .name = r->values[i].items[v]});
    if (r->uid.len)
        add_check(to, checks,
                  (struct kube_attributes){
                      .group = AUTHENTICATION, .resource = SLICE_LITERAL("uids"), .name = r->uid});
}

static void set_groups(const struct reader *r, struct kube_impersonation *to)
{
    struct kube_user_info *user = &to->user;
    struct slice known = KUBE_GROUP_AUTHENTICATED, unknown = KUBE_GROUP_UNAUTHENTICATED;
    if (r->groups.count)
        user->groups = kube_text_taken(&r->groups);
    /* The anonymous user counts as not authenticated; any other user is, unless the sender says
     * otherwise by a group. */
    if (slice_equal(user->name, KUBE_USER_ANONYMOUS))
        kube_user_add_group(r->arena, user, unknown);
    else if (!kube_texts_have(&user->groups, unknown))
        kube_user_add_group(r->arena, user, known);
}

bool kube_impersonation_read(struct arena *arena, const struct http_request *request,
                             struct kube_impersonation *to, struct kube_status *status)
{
    struct reader r = {.arena = arena, .groups.arena = arena};
    *to = (struct kube_impersonation){0};
    for (size_t i = 0; i < request->field_count; i++)
        read_field(&r, &request->fields[i]);
    if (r.too_many)
        return kube_fail(status, KUBE_BAD_REQUEST, "too many groups or extras to impersonate");
    if (!r.user.len && (r.groups.count || r.extra_count || r.uid.len))
        return kube_fail(status, KUBE_BAD_REQUEST,
                         "requested impersonation of groups, extras or a uid without impersonating "
                         "a user");
    /* The request has none of these fields: its sender acts in their own name. */
    if (!r.user.len)
        return true;
    struct kube_attributes *checks = arena_calloc(arena, r.fields + 1, sizeof(*checks));
    if (!checks)
        return kube_fail_engine(status, ST_NOMEM);
    to->wanted = true;
    to->checks = checks;
    check_user(&r, to, checks);
    check_rest(&r, to, checks);
    set_groups(&r, to);
    struct kube_user_extra *extra = arena_calloc(r.arena, r.extra_count + 1, sizeof(*extra));
    for (size_t i = 0; extra && i < r.extra_count; i++)
        extra[i] = (struct kube_user_extra){r.extra[i].key, kube_text_taken(&r.values[i])};
    to->user.extra = extra;
    to->user.extra_count = extra ? r.extra_count : 0;
    to->user.uid = r.uid;
    return true;
}
