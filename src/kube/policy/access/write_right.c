#include "kube/policy/access/write_right.h"

#include "kube/types/object/object.h"

bool kube_request_right_of(const struct kube_attributes *request,
                           struct kube_attributes *ret_attributes)
{
    static const char *const connects[] = {"exec", "attach", "portforward"};
    *ret_attributes = *request;
    ret_attributes->verb = SLICE_LITERAL("create");
    if (!slice_is(request->verb, "get") || request->group.len ||
        !slice_is(request->resource, "pods"))
        return false;
    for (size_t i = 0; i < COUNT_OF(connects); i++)
        if (slice_is(request->subresource, connects[i]))
            return true;
    return false;
}

/* Rows of what a write to a subresource does. */
static const struct {
    const char *group, *plural, *subresource;
    const char *verb; /* on the signer that the stored object names */
} acts[] = {
    {"certificates.k8s.io", "certificatesigningrequests", "approval", "approve"},
    {"certificates.k8s.io", "certificatesigningrequests", "status", "sign"},
};

/* The name of the signer, or its domain with a star: "kubernetes.io" and a star after the slash. */
static enum status set_signer(struct arena *arena, const char *verb, struct slice stored,
                              struct kube_write_right *right)
{
    static const struct slice rest = {(const uint8_t *)"/*", 2};
    struct kube_object object;
    struct slice name = SLICE_EMPTY, path, domain;
    if (kube_object_parse(stored, &object) != ST_OK ||
        !kube_object_field(&object, SLICE_LITERAL("spec.signerName"), &name))
        name = SLICE_EMPTY;
    path = name;
    domain = slice_cut(&path, '/');
    uint8_t *all = arena_alloc(arena, domain.len + rest.len);
    if (!all)
        return ST_NOMEM;
    slice_copy(all, domain);
    slice_copy(all + domain.len, rest);
    right->any[0] = (struct kube_attributes){
        .of_resource = true,
        .verb = slice_from_text(verb),
        .group = SLICE_LITERAL("certificates.k8s.io"),
        .resource = SLICE_LITERAL("signers"),
        .name = name,
    };
    right->any[1] = right->any[0];
    right->any[1].name = slice_of(all, domain.len + rest.len);
    right->count = 2;
    return ST_OK;
}

enum status kube_write_right_of(struct arena *arena, const struct kube_write_act *act,
                                struct kube_write_right *ret_right)
{
    const struct kube_kind *kind = act->kind;
    const struct kube_path *path = act->path;
    *ret_right = (struct kube_write_right){0};
    if (act->creates && !act->posts) {
        ret_right->count = 1;
        ret_right->any[0] = (struct kube_attributes){
            .of_resource = true,
            .verb = SLICE_LITERAL("create"),
            .group = path->group,
            .resource = path->resource,
            .subresource = path->subresource,
            .namespace = path->namespace,
            .name = path->name,
        };
        /* As in the attributes of a request, the namespace of a namespace is itself. */
        if (!path->namespace.len && slice_is(path->resource, "namespaces"))
            ret_right->any[0].namespace = path->name;
        return ST_OK;
    }
    for (size_t i = 0; i < COUNT_OF(acts) && act->stored.len; i++)
        if (strcmp(kind->group, acts[i].group) == 0 && strcmp(kind->plural, acts[i].plural) == 0 &&
            slice_is(path->subresource, acts[i].subresource))
            return set_signer(arena, acts[i].verb, act->stored, ret_right);
    return ST_OK;
}
