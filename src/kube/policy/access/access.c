#include "kube/policy/access/access.h"

#include "base/xalloc.h"

struct kube_access *kube_access_new(const struct kube_access_options *options)
{
    struct kube_access *access = xcalloc(1, sizeof(*access));
    access->options = *options;
    access->rbac = kube_rbac_new(&(struct kube_rbac_options){
        .shard = options->shard,
        .loop = options->loop,
        .under_way = options->under_way,
        .pool = options->pool,
        .nodes = options->nodes,
        .authorization = options->authorization,
    });
    return access;
}

void kube_access_stop(struct kube_access *access)
{
    if (access)
        kube_rbac_stop(access->rbac);
}

void kube_access_free(struct kube_access *access)
{
    if (!access)
        return;
    kube_rbac_free(access->rbac);
    free(access);
}
