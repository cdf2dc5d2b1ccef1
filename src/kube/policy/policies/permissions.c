#include "kube/policy/policies/permissions.h"

static bool decide(const struct cel_access *access, struct cel_work *work,
                   const struct cel_question *question, struct cel_answer *ret_answer);

void kube_permissions_init(struct kube_permissions *p, struct arena *arena)
{
    *p = (struct kube_permissions){.access = {decide}, .arena = arena};
    p->end = &p->first;
}

/* -- Asking -- */

static bool is_same(const struct kube_permission *p, const struct cel_question *q)
{
    const struct kube_attributes *a = &p->attributes;
    return p->of_account == q->of_account && slice_equal(p->account, q->account) &&
           slice_equal(p->account_namespace, q->account_namespace) &&
           a->of_resource == !q->of_path && slice_equal(a->verb, q->verb) &&
           slice_equal(a->path, q->path) && slice_equal(a->group, q->group) &&
           slice_equal(a->resource, q->resource) && slice_equal(a->subresource, q->subresource) &&
           slice_equal(a->namespace, q->namespace) && slice_equal(a->name, q->name) &&
           slice_equal(a->field_selector, q->field_selector);
}

/* Without memory the arena of the write remembers it, and the write fails. */
static void note(struct kube_permissions *p, const struct cel_question *q)
{
    struct kube_permission *made = arena_calloc(p->arena, 1, sizeof(*made));
    if (!made)
        return;
    struct kube_attributes *a = &made->attributes;
    const struct {
        struct slice from, *to;
    } texts[] = {
        {q->account_namespace, &made->account_namespace},
        {q->account, &made->account},
        {q->verb, &a->verb},
        {q->path, &a->path},
        {q->group, &a->group},
        {q->resource, &a->resource},
        {q->subresource, &a->subresource},
        {q->namespace, &a->namespace},
        {q->name, &a->name},
        {q->field_selector, &a->field_selector},
    };
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        if (arena_dup(p->arena, texts[i].from, texts[i].to) != ST_OK)
            return;
    made->of_account = q->of_account;
    a->of_resource = !q->of_path;
    *p->end = made;
    p->end = &made->next;
    p->count++;
    p->unknown++;
}

/* Roles know no selectors, and so do not limit what is allowed by them; the node authorizer knows
 * field selectors. */
static bool decide(const struct cel_access *access, struct cel_work *work,
                   const struct cel_question *question, struct cel_answer *ret_answer)
{
    struct kube_permissions *p =
        CONTAINER_OF((struct cel_access *)(uintptr_t)access, struct kube_permissions, access);
    *ret_answer = (struct cel_answer){.allowed = !p->arena};
    if (!p->arena)
        return true;
    work->steps_left -= (int64_t)p->count;
    for (const struct kube_permission *known = p->first; known; known = known->next)
        if (is_same(known, question)) {
            *ret_answer = known->answer;
            return known->is_known;
        }
    if (p->count == KUBE_PERMISSIONS_MAX) {
        ret_answer->error = SLICE_LITERAL("the policies that concern this request ask for more "
                                          "permissions than this server examines for one request");
        return true;
    }
    note(p, question);
    return false;
}

struct cel_value kube_permissions_authorizer(const struct kube_permissions *p, struct arena *arena)
{
    return cel_authorizer_new(arena, &(struct cel_question){.access = &p->access});
}

struct cel_value kube_permissions_resource(const struct kube_permissions *p,
                                           const struct kube_match_request *request,
                                           struct arena *arena)
{
    return cel_authorizer_new(arena, &(struct cel_question){
                                         .access = &p->access,
                                         .group = slice_from_text(request->kind->group),
                                         .resource = slice_from_text(request->kind->plural),
                                         .subresource = request->subresource,
                                         .namespace = request->namespace,
                                         .name = request->name,
                                     });
}

/* -- Answering -- */

struct kube_permission *kube_permissions_next(const struct kube_permissions *p)
{
    struct kube_permission *next = p->unknown ? p->first : NULL;
    while (next && next->is_known)
        next = next->next;
    return next;
}

void kube_permission_answer(struct kube_permissions *p, struct kube_permission *permission,
                            bool allowed, const char *reason)
{
    permission->is_known = true;
    permission->answer.allowed = allowed;
    (void)!arena_dup(p->arena, slice_from_text(reason), &permission->answer.reason);
    p->unknown--;
}
